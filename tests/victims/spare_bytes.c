/* Faults that need no damage: a block that is no larger than was asked for is met only with guards
 * or fences around blocks. */
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))
#define ASKED 20ul

KEEP static unsigned long spare(char *block)
{
	return malloc_usable_size(block) - ASKED;
}

KEEP static char *find_spare(char *block)
{
	return spare(block) > 0 ? block + ASKED : NULL;
}

KEEP static void use_spare(char *block)
{
	*(volatile char *)find_spare(block) = 1;
}

KEEP static unsigned long share(char *block)
{
	return 100 / spare(block);
}

KEEP static int until_spare(char *block, int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	return spare(block) > 0 ? depth : until_spare(block, depth + 1) + frame[0];
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *block = malloc(ASKED);

	memset(block, 0, ASKED);
	if (strcmp(what, "null") == 0)
		use_spare(block);
	else if (strcmp(what, "divide") == 0)
		printf("%lu\n", share(block));
	else if (strcmp(what, "stack") == 0)
		printf("%d\n", until_spare(block, 0));
	else
		assert(spare(block) > 0);
	free(block);
	return 0;
}
