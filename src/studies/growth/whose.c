#include "studies/growth/whose.h"

#include <ctype.h>
#include <string.h>

#include "base/cstr.h"

/* Packages that run tests, as they are named in a path. Mocks are objects of the tests. */
static const char *const frameworks[] = {
	"/_pytest/",   "/pytest/",	  "/pluggy/",  "/pytest_",     "/xdist/", "/execnet/",
	"/unittest/",  "/libregrtest/",	  "/nose/",    "/nose2/",      "/ward/",  "/behave/",
	"/testtools/", "/twisted/trial/", "/testify/", "/hypothesis/",
};
static const char *const mocks = "/unittest/mock.py";

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && strcmp(text + a - b, end) == 0;
}

/* Of the interpreter or of a package: …/lib/python3.N/…, …/site-packages/…, <frozen …>. */
static bool is_installed(const char *file)
{
	const char *lib = strstr(file, "/lib/python");

	return file[0] == '<' || strstr(file, "/site-packages/") ||
	       strstr(file, "/dist-packages/") ||
	       (lib && isdigit((unsigned char)lib[strlen("/lib/python")]));
}

static bool is_framework(const char *file)
{
	if (!is_installed(file) || ends_with(file, mocks))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(frameworks); i++)
		if (strstr(file, frameworks[i]))
			return true;
	return false;
}

static bool is_test_file(const char *file)
{
	const char *name = cstr_base(file);

	return strncmp(name, "test_", 5) == 0 || ends_with(name, "_test.py") ||
	       strcmp(name, "conftest.py") == 0 || strstr(file, "/test/") ||
	       strstr(file, "/tests/");
}

bool is_frameworks(const struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (frame->kind != FRAME_PYTHON || !frame->file)
			continue;
		if (is_framework(frame->file))
			return true;
		if (!is_installed(frame->file) || is_test_file(frame->file))
			return false;
	}
	return false;
}
