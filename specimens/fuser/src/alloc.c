#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(size_t size)
{
	fprintf(stderr, "fuser: out of memory (%zu bytes)\n", size);
	exit(3);
}

void *fz_alloc(size_t size)
{
	void *ptr = malloc(size);

	if (!ptr)
		out_of_memory(size);
	return memset(ptr, 0, size);
}

void *fz_resize(void *ptr, size_t size)
{
	void *moved = realloc(ptr, size);

	if (!moved)
		out_of_memory(size);
	return moved;
}

void *fz_grow(void *array, size_t *capacity, size_t needed, size_t size)
{
	size_t cap = *capacity ? *capacity : 4;

	if (needed <= *capacity)
		return array;
	while (cap < needed)
		cap *= 2;
	*capacity = cap;
	return fz_resize(array, cap * size);
}
