#pragma once

#include "base/command.h"
#include "cmd/common.h"

/* The sub-commands of `case`; private to its files. */
struct case_options {
	struct common_options common;
	const char *evidence, *because, *until;
	bool force;
};

void case_defaults(void *options);

extern const struct command case_park_command, case_resume_command;
