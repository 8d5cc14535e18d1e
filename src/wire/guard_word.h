/*
 * What the heap observer writes beside and into blocks, and how to know it again.
 *
 * A guard stands before and behind every block, poison in every freed one. Both are made of one
 * word per block, of the block's address and the seed: 48 bits of it, six to a byte, and the
 * upper two bits of each byte are 10. Poison is that word over and over. A guard's words differ
 * from each other (canary_guard_at()): a copy that moves the guard by a word or more is seen. So no
 * byte is ever 0, ASCII or 0xff (what stray writes write most), no word is an address that the CPU
 * would take (a poisoned pointer faults when it is used), and a poisoned word that turns up in a
 * register names the block that it was read from. The lowest bits of the address stand in the
 * highest byte: a field's address, made out of poison, is a little more than it and must not be the
 * poison of a neighbour.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/checksum.h"

enum canary_kind {
	CANARY_GUARD = 21, /* five bits; nothing else is a sound word */
	CANARY_POISON = 10,
};

#define CANARY_MARK 0x8080808080808080ull
#define CANARY_MARK_MASK 0xc0c0c0c0c0c0c0c0ull
#define CANARY_BITS ((1ull << 48) - 1)
#define CANARY_START_BITS 43u /* blocks lie at multiples of 16, below 2^47 */

static inline uint64_t canary_spread(uint64_t x)
{
	x = (x & 0xffffff) | (x & 0xffffff000000) << 8;
	x = (x & 0x00000fff00000fff) | (x & 0x00fff00000fff000) << 4;
	x = (x & 0x003f003f003f003f) | (x & 0x0fc00fc00fc00fc0) << 2;
	return x | CANARY_MARK;
}

static inline uint64_t canary_gather(uint64_t x)
{
	x &= ~CANARY_MARK_MASK;
	x = (x & 0x003f003f003f003f) | (x & 0x3f003f003f003f00) >> 2;
	x = (x & 0x00000fff00000fff) | (x & 0x0fff00000fff0000) >> 4;
	return (x & 0xffffff) | (x & 0x00ffffff00000000) >> 8;
}

/* Bytes behind the guard of every block that are nobody's, in every other trial that guards all
 * blocks: whose the damage is, is the same at both distances. */
static inline uint64_t canary_gap(uint64_t seed, bool sampled)
{
	return sampled ? 0 : (seed & 1) * 16;
}

/* The word of the block at `start`. */
static inline uint64_t canary_word(uint64_t seed, uint64_t start, enum canary_kind kind)
{
	uint64_t bits = start >> 4 | (uint64_t)kind << CANARY_START_BITS;

	return __builtin_bswap64(canary_spread((bits ^ seed) & CANARY_BITS));
}

/* Every byte of it is at least 5 and less than 21, so that the words at addresses 8, 16 and 24
 * bytes apart differ in each of their bytes, whatever is carried from one byte to the next. */
#define CANARY_STEP 0x0b0d1113070f0513ull

/* The word that a guard has at `address`, where the block's word is `guard`. */
static inline uint64_t canary_guard_at(uint64_t guard, uint64_t address)
{
	return guard ^ ((address >> 3) * CANARY_STEP & ~CANARY_MARK_MASK);
}

/* The poison of the block whose guard this is: only the kind differs, in the lowest byte. */
static inline uint64_t canary_poison_of(uint64_t guard)
{
	return guard ^ (uint64_t)(CANARY_GUARD ^ CANARY_POISON) << CANARY_START_BITS % 6;
}

/* False: no such word of this seed. One word in 2^18 of those that look like one is taken for it by
 * chance. */
static inline bool canary_decode(uint64_t seed, uint64_t word, enum canary_kind kind,
				 uint64_t *ret_start)
{
	uint64_t bits;

	if ((word & CANARY_MARK_MASK) != CANARY_MARK)
		return false;
	bits = (canary_gather(__builtin_bswap64(word)) ^ seed) & CANARY_BITS;
	if (bits >> CANARY_START_BITS != (uint64_t)kind)
		return false;
	*ret_start = (bits & ((1ull << CANARY_START_BITS) - 1)) << 4;
	return true;
}

/* Are freed blocks of this context overwritten in the trial with this seed? Both sides decide it
 * alike; in a share of `ppm` millionths of all contexts and trials, each by itself. */
static inline bool canary_chance(uint64_t seed, uint64_t stack_hash, uint32_t ppm)
{
	return checksum_mix(seed ^ 0x706f69736f6eull, stack_hash) % 1000000 < ppm;
}

/* For the same coin about one word of the new blocks of a context: it holds garbage if both coins
 * say so. */
static inline uint64_t canary_word_hash(uint64_t stack_hash, uint64_t word)
{
	return checksum_mix(stack_hash, word + 1);
}

#define CANARY_FRESH_WORDS 512u /* of a block that have a coin each; then it begins anew */
