#include "base/sha256.h"

#include <string.h>

#define BLOCK 64u

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned int by)
{
	return x >> by | x << (32 - by);
}

static uint32_t read_be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void step(const uint32_t *a, const uint32_t *b, const uint32_t *c, uint32_t *d,
			const uint32_t *e, const uint32_t *f, const uint32_t *g, uint32_t *h,
			uint32_t word)
{
	uint32_t s1 = rotate(*e, 6) ^ rotate(*e, 11) ^ rotate(*e, 25);
	uint32_t s0 = rotate(*a, 2) ^ rotate(*a, 13) ^ rotate(*a, 22);
	uint32_t t = *h + s1 + ((*e & *f) ^ (~*e & *g)) + word;

	*d += t;
	*h = t + s0 + ((*a & *b) ^ (*a & *c) ^ (*b & *c));
}

/* FIPS 180-4, 6.2.2. */
static void mix(struct sha256 *s, const uint8_t *block)
{
	uint32_t w[64], v[8];

	for (unsigned int i = 0; i < 16; i++)
		w[i] = read_be32(block + (size_t)i * 4);
	for (unsigned int i = 16; i < 64; i++) {
		uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, s->state, sizeof(v));
	/* The letters move on by one each round: eight rounds, and they are back. */
	for (unsigned int i = 0; i < 64; i += 8) {
		step(&v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], constants[i] + w[i]);
		step(&v[7], &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6],
		     constants[i + 1] + w[i + 1]);
		step(&v[6], &v[7], &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		     constants[i + 2] + w[i + 2]);
		step(&v[5], &v[6], &v[7], &v[0], &v[1], &v[2], &v[3], &v[4],
		     constants[i + 3] + w[i + 3]);
		step(&v[4], &v[5], &v[6], &v[7], &v[0], &v[1], &v[2], &v[3],
		     constants[i + 4] + w[i + 4]);
		step(&v[3], &v[4], &v[5], &v[6], &v[7], &v[0], &v[1], &v[2],
		     constants[i + 5] + w[i + 5]);
		step(&v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[0], &v[1],
		     constants[i + 6] + w[i + 6]);
		step(&v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[0],
		     constants[i + 7] + w[i + 7]);
	}
	for (unsigned int i = 0; i < 8; i++)
		s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
					 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len > 0) {
		size_t used = s->bytes % BLOCK;
		size_t n = len < BLOCK - used ? len : BLOCK - used;

		s->bytes += n;
		if (n == BLOCK) {
			mix(s, at);
		} else {
			memcpy(s->block + used, at, n);
			if (s->bytes % BLOCK == 0)
				mix(s, s->block);
		}
		at += n;
		len -= n;
	}
}

void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES])
{
	uint64_t bits = s->bytes * 8;
	uint8_t tail[BLOCK + 8] = { 0x80 };
	size_t used = s->bytes % BLOCK;
	size_t len = (used < 56 ? 56 : 120) - used;

	for (unsigned int i = 0; i < 8; i++)
		tail[len + i] = (uint8_t)(bits >> (56 - i * 8));
	sha256_add(s, tail, len + 8);
	for (unsigned int i = 0; i < SHA256_BYTES; i++)
		ret[i] = (uint8_t)(s->state[i / 4] >> (24 - i % 4 * 8));
}

void hmac_init(struct hmac *h, const void *key, size_t len)
{
	uint8_t pad[BLOCK] = { 0 };

	if (len > BLOCK) {
		struct sha256 s;

		sha256_init(&s);
		sha256_add(&s, key, len);
		sha256_end(&s, pad);
	} else {
		memcpy(pad, key, len);
	}
	sha256_init(&h->inner);
	sha256_init(&h->outer);
	for (unsigned int i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36;
	sha256_add(&h->inner, pad, BLOCK);
	for (unsigned int i = 0; i < BLOCK; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_add(&h->outer, pad, BLOCK);
}

void hmac_add(struct hmac *h, const void *bytes, size_t len)
{
	sha256_add(&h->inner, bytes, len);
}

void hmac_end(struct hmac *h, uint8_t ret[SHA256_BYTES])
{
	sha256_end(&h->inner, ret);
	sha256_add(&h->outer, ret, SHA256_BYTES);
	sha256_end(&h->outer, ret);
}

bool bytes_same(const void *a, const void *b, size_t len)
{
	const unsigned char *x = a, *y = b;
	unsigned int differs = 0;

	while (len-- > 0)
		differs |= x[len] ^ y[len];
	return differs == 0;
}
