#pragma once

#include <stddef.h>

/*
 * Lines that test frameworks print when a test starts or ends. From them comes
 * the name of the test that was running when a trial died.
 */
enum test_event {
	TEST_NONE,
	TEST_STARTED,
	TEST_PASSED, /* or was skipped */
	TEST_FAILED,
	TEST_ENDED, /* either: the line does not say */
};

/* What this line says, with the test's name in *ret_name (the caller's to free) unless it says
 * nothing. `line` need not be NUL-terminated. */
enum test_event testline_read(const char *line, size_t len, char **ret_name);
