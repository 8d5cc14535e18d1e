/*
 * The ids that cross the process boundary.
 *
 * One-field structs, so that a block's id cannot be passed for a context's.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "wire/checksum.h"

/* One allocation of one process image. Never reused; 0 is "no block". Ids of different images
 * are different name spaces: the full name of a block is (pid, image, id). */
struct alloc_id {
	uint64_t v;
};

/* Small objects of CPython have no number: context and, in the lower 32 bits, ordinal, with this
 * above. Below 2^53, which readers of JSON may take for a floating-point number. */
#define ALLOC_ID_PAIR (1ull << 52)

/* A row of the image's context table: where something was allocated or freed. 0 is "unknown". */
struct context_id {
	uint32_t v;
};

/* Names "the same" block in another run: the stack's hash, the lane (which thread slot, by order
 * of creation) and how many blocks that context had made before. */
struct block_key {
	uint64_t stack_hash;
	uint32_t lane;
	uint32_t ordinal;
};

/* A module by what survives ASLR and a move: its build-id, else its file's last name. Never 0. */
static inline uint64_t wire_module_identity(const uint8_t *build_id, size_t build_id_bytes,
					    const char *path)
{
	uint8_t padded[20] = { 0 };
	const char *name = path;

	if (build_id_bytes && build_id_bytes <= sizeof(padded)) {
		memcpy(padded, build_id, build_id_bytes);
		return checksum_add(CHECKSUM_SEED, padded, sizeof(padded)) | 1;
	}
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return checksum_add(CHECKSUM_SEED, name, strlen(name)) | 1;
}

_Static_assert(sizeof(struct alloc_id) == 8, "crosses the wire");
_Static_assert(sizeof(struct context_id) == 4, "crosses the wire");
_Static_assert(sizeof(struct block_key) == 16, "crosses the wire");
