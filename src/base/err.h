#pragma once

#include <stdarg.h>

/*
 * Errors as values.
 *
 * A function that can fail returns 0 or -errno and leaves the sentence in the
 * caller's `struct err`. Whoever knows what the user could do about it adds the
 * remedy, once. Only commands print an err; nothing below them does.
 *
 *	r = case_open(path, &cs, err);
 *	if (r < 0)
 *		return r;
 */
struct err {
	int code;	    /* negative errno; 0 while nothing went wrong */
	char message[1024]; /* one sentence without a full stop */
	char remedy[512];   /* what to try; empty when nobody knew */
};

/* Sets the sentence and returns `code`, so that it can stand in a return statement.
 * `err` may be NULL when the caller only wants the number. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Like err_set(), with ": strerror(-code)" at the end. */
int err_set_errno(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds what to try, unless somebody nearer to the cause already did. Returns err->code. */
int err_set_remedy(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the sentence. Returns err->code. */
int err_set_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
