#pragma once

#include "base/vec.h"

/*
 * What a series' stored settings say: lines "NAME LENGTH:VALUE" and "NAME VALUE", as
 * cmd/trial_options.c writes them. They come from a file: whatever does not look so is skipped.
 * Private to engine/investigation/.
 */
struct series_settings {
	struct strv program;
	char *cwd;	/* NULL when it is not told */
	char *observer; /* likewise */
};

void series_settings_read(const char *text, struct series_settings *ret);
void series_settings_deinit(struct series_settings *settings);
