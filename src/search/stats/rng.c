#include "search/stats/rng.h"

#include <assert.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Every 64-bit value occurs once in the period, so four in a row are never all zero. */
static uint64_t splitmix_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

void rng_init(struct rng *rng, uint64_t seed)
{
	for (size_t i = 0; i < 4; i++)
		rng->state[i] = splitmix_next(&seed);
}

uint64_t rng_fresh_seed(void)
{
	uint32_t seed;
	struct timespec now;
	uint64_t mix;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed))
		return seed;
	/* Early at boot, or the call is filtered: it only has to differ from the last one. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	mix = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	mix ^= (uint64_t)getpid() << 40;
	return splitmix_next(&mix) >> 32;
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t bound)
{
	/* 2^64 is rarely a multiple of the bound: the first 2^64 mod bound values would
	 * make some results likelier, so they are drawn again. */
	uint64_t surplus, value;

	assert(bound > 0);
	surplus = -bound % bound;
	do {
		value = rng_next(rng);
	} while (value < surplus);
	return value % bound;
}

double rng_unit(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static void swap_bytes(unsigned char *a, unsigned char *b, size_t len_bytes)
{
	for (size_t i = 0; i < len_bytes; i++) {
		unsigned char kept = a[i];

		a[i] = b[i];
		b[i] = kept;
	}
}

void rng_shuffle(struct rng *rng, void *elements, size_t count, size_t size_bytes)
{
	unsigned char *bytes = elements;

	/* Fisher and Yates: the last place gets one of all, the one before one of the rest. */
	for (size_t left = count; left > 1; left--) {
		size_t chosen = (size_t)rng_below(rng, left);

		swap_bytes(bytes + chosen * size_bytes, bytes + (left - 1) * size_bytes,
			   size_bytes);
	}
}
