#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"

/*
 * Messages between our own processes: numbers and strings, one after another.
 * Both ends are the same program, but the reading end still checks every length.
 */
void pack_u64(struct strbuf *sb, uint64_t value);
void pack_str(struct strbuf *sb, const char *text); /* NULL survives the journey */
void pack_bytes(struct strbuf *sb, const struct strbuf *bytes);
void pack_strv(struct strbuf *sb, const struct strv *strv);

struct unpacker {
	const char *at;
	size_t left;
	bool broken; /* set by the first read past the end; every later one gives 0 or NULL */
};

uint64_t unpack_u64(struct unpacker *u);
char *unpack_str(struct unpacker *u);			   /* the caller's; NULL as it was packed */
void unpack_bytes(struct unpacker *u, struct strbuf *ret); /* added to it */
void unpack_strv(struct unpacker *u, struct strv *ret);
