/*
 * The checksum of everything in wire/.
 *
 * It guards against stray stores of the program under test, not against an attacker: every input
 * bit reaches the result through a 64x64 multiply, and a run of zeros does not sum to zero, so a
 * wiped record is never valid. It must be cheap enough for a signal handler and for a record per
 * malloc, which rules out a table-driven CRC.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CHECKSUM_SEED 0x9e3779b97f4a7c15ull

static inline uint64_t checksum_mix(uint64_t a, uint64_t b)
{
	__uint128_t wide = (__uint128_t)(a ^ 0xa0761d6478bd642full) * (b ^ 0xe7037ed1a0b428dbull);

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

/* Continues `state` over len bytes. Splitting a range at a multiple of 8 does not change the
 * result, so a header and its payload can be summed where they lie. */
static inline uint64_t checksum_add(uint64_t state, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		state = checksum_mix(state, word) + CHECKSUM_SEED;
	}
	if (len) {
		word = 0;
		memcpy(&word, p, len);
		state = checksum_mix(state, word) + CHECKSUM_SEED;
	}
	return state;
}

/* For long pieces: four sums beside each other, because one waits for its own multiply. Another
 * value than checksum_add() gives; len is a multiple of 8. */
static inline uint64_t checksum_long(uint64_t state, const void *bytes, size_t len)
{
	uint64_t lane[4] = { state, state + 1, state + 2, state + 3 }, word[4];
	const unsigned char *p = bytes;

	for (; len >= 32; p += 32, len -= 32) {
		memcpy(word, p, sizeof(word));
		lane[0] = checksum_mix(lane[0], word[0]) + CHECKSUM_SEED;
		lane[1] = checksum_mix(lane[1], word[1]) + CHECKSUM_SEED;
		lane[2] = checksum_mix(lane[2], word[2]) + CHECKSUM_SEED;
		lane[3] = checksum_mix(lane[3], word[3]) + CHECKSUM_SEED;
	}
	state = checksum_add(checksum_mix(lane[0], lane[1]), p, len);
	return checksum_mix(state, checksum_mix(lane[2], lane[3]));
}
