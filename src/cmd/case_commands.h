#pragma once

#include "base/command.h"
#include "case/case.h"
#include "cmd/common.h"
#include "model/world.h"

/* The sub-commands of `case`; private to its files. */
struct case_options {
	struct common_options common;
	const char *evidence, *because, *until;
	bool force;
};

/* What those have that take the common options and so many arguments. */
#define CASE_COMMAND(arguments) \
	COMMON_OPTIONS(struct case_options), .args_min = (arguments), .args_max = (arguments)

/* Runs `fn` with the text that the user gave, and tells the number of what it made. */
typedef int (*case_add_fn)(struct case_store *cs, const char *text, uint64_t *ret_id,
			   struct err *err);
int case_add_text(const struct invocation *inv, const char *what, case_add_fn fn, struct err *err);

/* The same with a number that case show has printed. */
typedef int (*case_end_fn)(struct case_store *cs, uint64_t id, struct err *err);
int case_end_numbered(const struct invocation *inv, const char *what, case_end_fn fn,
		      struct err *err);

/* What the world looks like around the program of the case; and where that runs, NULL unknown,
 * which is the caller's to free. */
int case_subject_look(struct case_store *cs, char **ret_cwd, struct world *ret, struct err *err);

extern const struct command case_park_command, case_resume_command, case_attempt_command,
	case_step_add_command, case_step_done_command, case_relate_command;
