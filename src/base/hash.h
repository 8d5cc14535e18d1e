#pragma once

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits: for names and identities, not against somebody who wants two to be alike. Stored
 * cases hold such numbers: it never changes. */
#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
	return hash;
}
