#include "cmd/common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/talk.h"
#include "report/report_error.h"
#include "report/wording.h"

const struct option common_option_table[] = {
	OPTION(TEXT, "case", "DIR", offsetof(struct common_options, case_dir),
	       "The case directory, where trials and findings are kept (default " CASE_DIR_DEFAULT
	       " in the current directory)"),
	OPTION(FLAG, "json", NULL, offsetof(struct common_options, json),
	       "Print one JSON document on stdout instead of text; progress stays on stderr"),
	OPTION(FLAG, "quiet", NULL, offsetof(struct common_options, quiet),
	       "No progress and no notes, only the result and errors", .letter = 'q'),
	OPTION(FLAG, "verbose", NULL, offsetof(struct common_options, verbose),
	       "Also tell what redhand itself is doing", .letter = 'v'),
	OPTIONS_END,
};

void common_defaults(void *ptr)
{
	struct common_options *common = ptr;

	common->case_dir = CASE_DIR_DEFAULT;
}

/* The worker alone has none of them. */
static const struct common_options *common_of(const struct invocation *inv)
{
	for (const struct option_group *group = inv->command->groups; group->title; group++)
		if (group->options == common_option_table)
			return (const void *)((const char *)inv->options + group->offset);
	return NULL;
}

int common_run(const struct invocation *inv)
{
	const struct common_options *common = common_of(inv);
	struct err err = { 0 };
	int status;

	if (common)
		log_set_level(common->quiet ? LOG_QUIET : common->verbose ? LOG_DEBUG : LOG_NORMAL);
	status = inv->command->run(inv, &err);
	if (status >= 0)
		return status;
	log_err(&err);
	return inv->command->trouble > 0 ? inv->command->trouble : EXIT_TROUBLE;
}

int common_exit(bool interrupted, bool found)
{
	return interrupted ? EXIT_INTERRUPTED : found ? EXIT_FOUND : EXIT_AS_EXPECTED;
}

int common_need_case(const struct common_options *common, struct err *err)
{
	AUTO(case_closep) struct case_store *reader = NULL;
	int r = case_open(common->case_dir, CASE_READ, &reader, err);

	/* One of an older version is brought up to date by opening it for writing. */
	if (r == -ENOENT || r == -ENOTDIR)
		return err_set_remedy(err,
				      "name it with --case DIR; redhand case list shows the cases "
				      "that are here");
	*err = (struct err){ 0 };
	return 0;
}

int common_open_case(const struct common_options *common, struct case_store **ret, struct err *err)
{
	int r = common_need_case(common, err);

	return r == 0 ? case_open(common->case_dir, CASE_WRITE, ret, err) : r;
}

void common_say(const char *id)
{
	log_note("%s", words_text(id));
}

/* https://no-color.org: set and not empty means no. */
bool common_colour(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_color && no_color[0] != '\0') &&
	       !(term && strcmp(term, "dumb") == 0);
}

void common_error_json(void)
{
	report_error_json(log_last_err(), stdout);
}

unsigned int common_columns(void)
{
	struct winsize size = { 0 };

	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 0)
		return size.ws_col;
	return COLUMNS_DEFAULT;
}
