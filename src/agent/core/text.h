/*
 * Text without stdio: enough to build a path and to read /proc. All _sigsafe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *at,
		*end; /* end is one past the last byte that may be written; keeps room for the 0 */
	bool cut;     /* something did not fit */
};

static inline void text_begin(struct text *text, char *buf, size_t cap)
{
	text->at = buf;
	text->end = buf + cap;
	text->cut = false;
	*buf = 0;
}

static inline void text_add(struct text *text, const char *s)
{
	while (*s && text->at + 1 < text->end)
		*text->at++ = *s++;
	text->cut |= *s != 0;
	*text->at = 0;
}

static inline void text_add_number(struct text *text, uint64_t value, unsigned base)
{
	char digits[24];
	unsigned n = sizeof(digits) - 1;

	digits[n] = 0;
	do {
		digits[--n] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	text_add(text, digits + n);
}

/* Reads a number at *at and moves past it; stops at the first byte that is no digit. */
static inline uint64_t text_number(const char **at, const char *end, unsigned base)
{
	uint64_t value = 0;
	unsigned digit;

	for (; *at < end; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		else
			break;
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	return value;
}

/* Does `s` start with `head`? Returns what follows, or NULL. */
static inline const char *text_after(const char *s, const char *head)
{
	while (*head)
		if (*s++ != *head++)
			return NULL;
	return s;
}
