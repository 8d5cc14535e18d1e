/*
 * Reading through all of the target's writable memory, piece by piece, without a fault.
 *
 * What is ours is left out: it is full of addresses of blocks. So are pages that were never
 * touched. Other threads run on meanwhile, so what they change is seen before or after. All
 * _sigsafe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/maps.h"
#include "wire/log_format.h"

#define SCAN_PIECE (64u << 10)
#define SCAN_WORDS (SCAN_PIECE / sizeof(uint64_t))

/* A part of memory: words[0..count) stand at `at`. They may be the memory itself, which others go
 * on writing, and which may be gone the next moment: a read that faults ends the call. So each word
 * is read once and nothing is left half done between two reads. */
struct scan_piece {
	const struct maps_line *line;
	uint64_t at;
	const uint64_t *words;
	size_t count;
	bool globals; /* data of a file, or the zeroed part behind it */
};

/* Too large for somebody else's stack: mapped by who needs it, zeroed. */
struct scan {
	void (*piece)(void *ctx, const struct scan_piece *piece);
	void *ctx;
	uint64_t read_max; /* bytes */
	bool by_copy;	   /* not in place */
	uint64_t read_bytes;
	bool cut_short;	   /* by read_max, or by whoever is told the pieces */
	uint64_t file_end; /* of the line before, if it was a file */
	struct maps_buffer maps;
	uint64_t words[SCAN_WORDS];
	unsigned char resident[256];
};

void scan_memory_sigsafe(struct scan *scan);

/* Who holds the word at `where`: a live block, a global, a stack. False: memory that was freed, or
 * that the allocator has not given out. `frame` is where the caller's own frames begin: what lies
 * below on the same stack is only the looking itself. */
bool scan_holder_sigsafe(const struct scan_piece *piece, uint64_t where, uint64_t frame,
			 struct log_holder *ret);
