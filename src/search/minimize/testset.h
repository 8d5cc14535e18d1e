/*
 * A set of tests as a bit set over the indices of the full list. The width (in
 * words) belongs to the owner: all sets of one minimiser have the same.
 */
#ifndef REDHAND_ENGINE_REDUCE_TESTSET_H
#define REDHAND_ENGINE_REDUCE_TESTSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t testset_word;

static inline size_t testset_words(size_t n_tests)
{
	return (n_tests + 63) / 64;
}

static inline bool testset_has(const testset_word *set, size_t test)
{
	return set[test / 64] >> (test % 64) & 1;
}

static inline void testset_add(testset_word *set, size_t test)
{
	set[test / 64] |= (testset_word)1 << (test % 64);
}

static inline void testset_remove(testset_word *set, size_t test)
{
	set[test / 64] &= ~((testset_word)1 << (test % 64));
}

static inline bool testset_equal(const testset_word *a, const testset_word *b, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* Is every test of `a` in `b`, too? */
static inline bool testset_within(const testset_word *a, const testset_word *b, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (a[i] & ~b[i])
			return false;
	return true;
}

static inline size_t testset_count(const testset_word *set, size_t words)
{
	size_t count = 0;

	for (size_t i = 0; i < words; i++)
		count += (size_t)__builtin_popcountll(set[i]);
	return count;
}

#endif
