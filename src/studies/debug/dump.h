#pragma once

#include "base/err.h"
#include "base/strbuf.h"

/*
 * What lies in the two files that cross the process boundary, a line each, for people who work on
 *redhand and for its tests:
 *
 *	TYPE name=value name="text" ...
 *
 * The names are those of wire/. Whatever is damaged or not known is left out or told as a number.
 */
enum dump_sections {
	DUMP_RINGS = 1 << 0,	/* LIFE: the history of blocks */
	DUMP_CONTEXTS = 1 << 1, /* ROW: contexts with their counters */
	DUMP_WATCH = 1 << 2,	/* WATCH, WRITER, WATCHED, HIT */
	DUMP_KEYS = 1 << 3,	/* KEY: what names each block that was freed */
};

/* One such text; bytes that are not printable, quotes and backslashes as \xNN, a 0 as a space. */
void dump_text(struct strbuf *out, const char *name, const void *bytes, size_t len);

/* Header, records and damage of an event log, and the sections that are asked for. */
int dump_log(const char *path, unsigned int sections, struct strbuf *out, struct err *err);

/* A plan: its header and its items. */
int dump_plan(const char *path, struct strbuf *out, struct err *err);
