#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "model/frame.h"

/*
 * Rows of a label and its text, the text wrapped below itself, for a terminal of so many columns.
 * Private to report/.
 */
#define SCREEN_LABEL 11
#define SCREEN_COLUMNS_LEAST 60
#define SCREEN_COLUMNS_MOST 100

struct screen {
	unsigned int columns; /* the widest that a row may be */
	bool colour;
	FILE *out;
};

/* Columns that a row leaves for its text. */
size_t screen_room(const struct screen *screen);

void screen_paint(const struct screen *screen, const char *code);

/* At most `lines` lines (0: any number); what is left out is marked. */
void screen_row(const struct screen *screen, const char *label, const char *text, size_t lines);
void screen_rowf(const struct screen *screen, const char *label, size_t lines, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A command that can be pasted as it stands: broken only between words, with a backslash. False,
 * and nothing printed, when it takes more than `lines` lines. */
bool screen_command(const struct screen *screen, const char *label, const char *command,
		    size_t lines);

/* Words separated by ", ", none of them broken: a name that is wider than the screen stays whole.
 */
void screen_names(const struct screen *screen, const char *label, const char *text, size_t lines);

/* A function's name without its template arguments and parameters. The caller's to free. */
char *screen_name(const char *function);

/* "function (file:line)" in at most `room` columns: of a path its end is kept, of a name with
 * template arguments or parameters what stands before them. */
void screen_frame(const struct frame *frame, size_t room, struct strbuf *sb);
