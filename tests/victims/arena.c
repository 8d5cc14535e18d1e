/*
 * An allocator of its own, inside one block of malloc: `arena MODE`.
 *
 *	stale	uses a thing after it was given back
 *	grown	the same, of one that was resized before
 *	twice	gives a thing back twice and dies of the next two being the same
 *	fine	nothing is wrong
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL 64
#define CELLS 4096

struct arena {
	char *cells;
	size_t used;
	void *spare;
};

struct thing {
	struct thing *next;
	int *value;
	char name[24];
};

static struct arena arena;
static int number = 42;

__attribute__((noinline)) void *arena_take(size_t size, const char *why)
{
	void *got = arena.spare;

	(void)why;
	if (size > CELL)
		abort();
	if (got) {
		memcpy(&arena.spare, got, sizeof(void *));
		return got;
	}
	if (arena.used == CELLS)
		return NULL;
	return arena.cells + CELL * arena.used++;
}

__attribute__((noinline)) void arena_give(const char *why, void *ptr)
{
	(void)why;
	memcpy(ptr, &arena.spare, sizeof(void *));
	arena.spare = ptr;
}

__attribute__((noinline)) void *arena_resize(void *ptr, size_t size)
{
	void *moved;

	if (size > CELL)
		return NULL;
	moved = arena_take(size, "resize");
	memcpy(moved, ptr, sizeof(struct thing));
	arena_give("resize", ptr);
	return moved;
}

__attribute__((noinline)) static struct thing *thing_new(void)
{
	struct thing *thing = arena_take(sizeof(*thing), "thing");

	memset(thing, 0, sizeof(*thing));
	thing->value = &number;
	return thing;
}

__attribute__((noinline)) static void thing_drop(struct thing *thing)
{
	thing->value = NULL;
	arena_give("thing", thing);
	number++;
}

__attribute__((noinline)) static int thing_value(const struct thing *thing)
{
	return *thing->value;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct thing *things[64], *one;
	int sum = 0;

	arena.cells = malloc(CELL * CELLS);
	for (int i = 0; i < 64; i++)
		things[i] = thing_new();
	for (int i = 0; i < 64; i++)
		sum += thing_value(things[i]);
	one = things[7];
	if (!strcmp(mode, "grown")) {
		one = arena_resize(one, 60);
		printf("%p\n", arena_resize(one, 1000));
	}
	for (int i = 0; i < 64; i++)
		if (things[i] != one && i != 7)
			thing_drop(things[i]);
	thing_drop(one);
	if (!strcmp(mode, "twice"))
		thing_drop(one);
	if (strcmp(mode, "fine"))
		sum += thing_value(one);
	printf("%d\n", sum);
	return 0;
}
