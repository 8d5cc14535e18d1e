/*
 * Random numbers that a printed seed brings back.
 *
 * For the order of trials and for sampling, not for secrets. The sequence that belongs to a
 * seed is part of the contract: a resumed case and a bug report rely on it, and
 * a unit test pins it. The generator is xoshiro256** of Blackman and Vigna, its
 * state filled by splitmix64, so that any seed, 0 too, is a good one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state[4]; /* never all zero */
};

/* Plain memory, no clean-up. A copy of the struct repeats what the original will give. */
void rng_init(struct rng *rng, uint64_t seed);

/* A seed for when the user gave none; below 2^32, short to type and exact in JSON. */
uint64_t rng_fresh_seed(void);

/* 64 random bits. */
uint64_t rng_next(struct rng *rng);

/* A number in 0 .. bound - 1, each exactly as likely. `bound` is not 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

/* A number in [0, 1), a multiple of 2^-53. */
double rng_unit(struct rng *rng);

/* Puts the `count` elements of `size_bytes` each into random order, all orders as likely. */
void rng_shuffle(struct rng *rng, void *elements, size_t count, size_t size_bytes);
