/* A library that comes after the program has started. */
#include <stdlib.h>
#include <string.h>

void *late_make(size_t size);
void *late_make_deeper(size_t size);
void late_end(void *block);

__attribute__((noinline)) void *late_make(size_t size)
{
	void *block = malloc(size);

	return block ? memset(block, 0x5a, size) : NULL;
}

__attribute__((noinline)) void *late_make_deeper(size_t size)
{
	void *block = late_make(size + 1);

	__asm__ volatile("" : "+r"(block));
	return block;
}

void late_end(void *block)
{
	free(block);
}
