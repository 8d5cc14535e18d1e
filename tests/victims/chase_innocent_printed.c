/*
 * Innocent: it prints numbers and bytes that look like what redhand writes into freed blocks, as
 * far as somebody can who has not read one, and frees what it has read before.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

#define LIKE 0x8080808080808080ull

APART static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(void)
{
	struct timespec now;
	uint64_t state, sum = 0;

	tell_truth("class none\n");
	clock_gettime(CLOCK_MONOTONIC, &now);
	state = (uint64_t)now.tv_nsec * 2654435761u + 1;
	for (int i = 0; i < 2000; i++) {
		uint64_t *block = malloc(64), word;

		if (!block)
			exit(3);
		*block = word = (next(&state) & ~(LIKE | LIKE >> 1)) | LIKE;
		printf("%" PRIu64 " %" PRId64 " %" PRIx64 " %" PRId32 " ", word, (int64_t)word,
		       word, (int32_t)(word >> 32));
		fwrite(&word, sizeof(word), 1, stdout);
		sum += *block;
		free(block);
	}
	printf("\nsum %" PRIu64 "\n", sum);
	return 0;
}
