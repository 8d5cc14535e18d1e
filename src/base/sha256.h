#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104).
 */
#define SHA256_BYTES 32

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64]; /* what does not fill one yet */
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
void sha256_end(struct sha256 *s, uint8_t ret[SHA256_BYTES]);

struct hmac {
	struct sha256 inner, outer;
};

void hmac_init(struct hmac *h, const void *key, size_t len);
void hmac_add(struct hmac *h, const void *bytes, size_t len);
void hmac_end(struct hmac *h, uint8_t ret[SHA256_BYTES]);

/* In the same time whatever differs. */
bool bytes_same(const void *a, const void *b, size_t len);
