#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A growing, always NUL-terminated string that may hold any bytes.
 * A zeroed struct is a valid empty one.
 */
struct strbuf {
	char *data; /* NULL until the first byte */
	size_t len;
	size_t room;
};

void strbuf_deinit(struct strbuf *sb);
void strbuf_clear(struct strbuf *sb); /* keeps the memory */

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len);
void strbuf_adds(struct strbuf *sb, const char *text);
void strbuf_addc(struct strbuf *sb, char c);
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0), nonnull(2)));

/* Makes room for `len` more bytes and returns where they go; the caller adds to sb->len. */
char *strbuf_reserve(struct strbuf *sb, size_t len);

/* The text, never NULL. Valid until the next change. */
const char *strbuf_str(const struct strbuf *sb);

/* Hands the memory to the caller and leaves the buffer empty. */
char *strbuf_take(struct strbuf *sb);

/* Appends `text` with bytes that a terminal or a log must not see (control characters,
 * broken UTF-8) written as \xNN. For everything that came from the target. */
void strbuf_add_printable(struct strbuf *sb, const char *text, size_t len);
