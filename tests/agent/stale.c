/*
 * stale: what earlier calls have left on the stack looks like the way to a block. Functions take
 * room on the stack that they do not write to, more or less of it from call to call, and the depth
 * changes. The size of a block tells which of them made it, and by which calls it was reached.
 */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 12000
#define KEPT 64u

static void *kept[KEPT];

/* The same in every run. */
static unsigned drawn(void)
{
	static unsigned seed = 12345;

	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static __attribute__((noinline)) void keep(void *block)
{
	void **at = &kept[drawn() % KEPT];

	free(*at);
	*at = block;
}

static __attribute__((noinline)) void *inner(size_t size)
{
	void *volatile block = malloc(size);

	return block;
}

static __attribute__((noinline)) void *outer(size_t size)
{
	void *volatile block = inner(size);

	return block;
}

#define MAKER(number)                                                                   \
	static __attribute__((noinline)) void maker_##number(unsigned more, size_t way) \
	{                                                                               \
		char *volatile room = alloca(16 + more % 5 * 32);                       \
		size_t size = 1000 + 8 * number + way;                                  \
                                                                                        \
		room[0] = 1;                                                            \
		keep(number % 2 ? inner(size) : outer(size));                           \
	}
#define MAKERS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9)

MAKERS(MAKER)

#define MAKER_IN_LIST(number) maker_##number,
static void (*const makers[])(unsigned, size_t) = { MAKERS(MAKER_IN_LIST) };

/* Of the calls that led here the last two, behind a 1. */
static void make(unsigned more, unsigned way)
{
	makers[drawn() % (sizeof(makers) / sizeof(makers[0]))](more, way < 4 ? way : 4 + way % 4);
}

static __attribute__((noinline)) void deeper(unsigned depth, unsigned way)
{
	if (!depth) {
		make(drawn(), way);
	} else if (drawn() & 1) {
		deeper(depth - 1, 2 * way);
	} else {
		char used[48];

		memset(used, (int)depth, sizeof(used));
		deeper(depth - 1, 2 * way + 1);
		__asm__ volatile("" ::"r"(used));
	}
	if (drawn() % 4 == 0)
		make(depth, way);
}

int main(void)
{
	int round;

	for (round = 0; round < ROUNDS; round++)
		deeper(drawn() % 10, 1);
	return 0;
}
