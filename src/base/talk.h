#pragma once

#include <stdbool.h>

#include "base/err.h"

/*
 * Talk on stderr. stdout belongs to the product.
 *
 * Commands use all of it; everything below cmd/ only log_debug().
 */
enum log_level {
	LOG_QUIET,  /* errors only */
	LOG_NORMAL, /* plus notes and progress */
	LOG_DEBUG,  /* plus what redhand itself is doing */
};

void log_set_level(enum log_level level);
bool log_shows(enum log_level level);

void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "redhand: SENTENCE." and, on a line of its own, what to try. */
void log_err(const struct err *err);

/* The latest that was told; its code is 0 when there was none. */
const struct err *log_last_err(void);
