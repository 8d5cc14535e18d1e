#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/trial.h"
#include "run/testline.h"

/*
 * A run that was asked for certain tests in a certain order: did it start them, and no others?
 *
 * Names that are no tests of the list (a test's own output may look like a framework's) are not
 * looked at.
 */

/* The full list, with a way to find a test's number by its name. */
struct test_names {
	struct strv names; /* printable, as testline_read() gives them */
	uint32_t *slots;   /* hash table of numbers + 1 */
	size_t room;
};

void test_names_init(struct test_names *names, const struct strv *list);
void test_names_deinit(struct test_names *names);

#define TEST_NAMES_NONE SIZE_MAX
size_t test_names_find(const struct test_names *names, const char *name);

/* What one trial is to run. A zeroed one stands for a trial that was asked for nothing. */
struct wanted_list {
	VEC(uint32_t) tests; /* numbers in the full list, in order; none twice */
	uint32_t stop_after; /* number + 1 of the test after whose pass the trial is over; 0 = none
			      */
	bool marks;	     /* tests are told through the marks, not through lines of output */
};

struct wanted {
	const struct test_names *names; /* NULL: nothing is wanted */
	const struct wanted_list *list;
	uint32_t *place; /* per test of the full list: its place in this run's, from 1 */
	struct trial_end *end;
	bool over; /* the test of `stop_after` has passed */
};

/* Starts a trial; `names` and `list` must live until the next call. */
void wanted_begin(struct wanted *w, const struct test_names *names, const struct wanted_list *list,
		  struct trial_end *end);
void wanted_deinit(struct wanted *w);

/* A test of this name has started or ended. */
void wanted_event(struct wanted *w, enum test_event event, const char *name);

/* A line of the marks: '+' (started), '=' (passed) or '-' (failed), a space, the test's number.
 * Returns the event, with the test's name in *ret_name (not the caller's); TEST_NONE for
 * anything else. */
enum test_event wanted_mark(const struct wanted *w, const char *line, size_t len,
			    const char **ret_name);
