/*
 * What stands in new and in freed blocks, where MALLOC_PERTURB_ tells libc to fill them: of each
 * block, what most of its bytes are (n: as filled in for new ones, f: for freed ones, -: neither).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 64
#define ROUNDS 40
#define LINKS 32 /* at a block's start libc keeps addresses, whose bytes are luck */

/* A block that was part of a larger free one has addresses further on, too: two of them, with at
 * most six bytes each that differ from run to run. At least 16 bytes are looked at. So for luck to
 * make half of them look filled, four bytes of an address must be the fill: once in 2^32 such
 * blocks. */

static unsigned int fill;

static void count(const unsigned char *bytes, size_t size)
{
	unsigned int new = 0, freed = 0;

	for (size_t i = LINKS; i < size; i++) {
		new += bytes[i] == (fill ^ 0xff);
		freed += bytes[i] == fill;
	}
	putchar(new * 2 >= size - LINKS ? 'n' : freed * 2 >= size - LINKS ? 'f' : '-');
}

int main(void)
{
	const char *said = getenv("MALLOC_PERTURB_");
	/* Hidden from the compiler, which may take a read of a freed block for whatever it likes.
	 */
	unsigned char *volatile blocks[BLOCKS];
	static const size_t sizes[] = { 48, 100, 500, 1032, 1033, 5000, 200000 };

	fill = said ? (unsigned int)atoi(said) & 0xff : 0;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t size = sizes[round % (sizeof(sizes) / sizeof(sizes[0]))];

		printf("%u: ", round);
		for (unsigned int i = 0; i < BLOCKS; i++) {
			blocks[i] = malloc(size);
			count(blocks[i], size);
			memset(blocks[i], 'x', size);
		}
		for (unsigned int i = 0; i < BLOCKS; i++)
			free(blocks[i]);
		/* The last of them still has its place: large ones go back to the kernel. */
		if (size < 2000)
			count(blocks[BLOCKS - 1], size);
		putchar('\n');
	}
	return 0;
}
