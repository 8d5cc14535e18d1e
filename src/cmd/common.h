#pragma once

#include "base/command.h"

/*
 * The options that every command takes. A command's options struct starts with
 * `struct common_options common;` and its groups end with COMMON_GROUP(struct …).
 */
struct common_options {
	const char *case_dir;
	bool json;
	bool quiet;
	bool verbose;
};

extern const struct option common_option_table[];

#define COMMON_GROUP(type)                                                 \
	{                                                                  \
		.title = "Common options", .options = common_option_table, \
		.offset = offsetof(type, common)                           \
	}

#define CASE_DIR_DEFAULT "redhand-case"

/* Applies -q and -v; call first in every run(). */
void common_apply(const struct common_options *common);

/* Is stdout a terminal that wants colour? */
bool common_colour(void);
