#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/*
 * One output stream of a trial: its bytes up to a limit (the beginning, and
 * the end in a ring: the end matters more), and its lines as they come.
 */
#define CAPTURE_LINE_MAX 4096

typedef void (*line_fn)(void *ctx, const char *line, size_t len);

struct capture {
	struct strbuf head;
	size_t head_limit;
	char *ring; /* allocated once the head is full */
	size_t ring_size, ring_at;
	uint64_t total;
	struct strbuf line;  /* the unfinished one */
	uint64_t line_start; /* where it begins in the stream */
	uint64_t line_end;   /* for on_line: where the line ends, its newline not counted */
	line_fn on_line;
	void *ctx;
};

void capture_init(struct capture *c, uint64_t limit, line_fn on_line, void *ctx);
void capture_deinit(struct capture *c);
void capture_reset(struct capture *c); /* for the next trial; keeps the memory */

void capture_add(struct capture *c, const char *bytes, size_t len);

/* The stream has ended: an unfinished line counts as a line. */
void capture_finish(struct capture *c);

/* Writes what was kept as `name` in `dir`; a gap is marked by a line that says its size. */
int capture_save(const struct capture *c, int dir, const char *name, struct err *err);
