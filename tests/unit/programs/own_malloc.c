/* A program that brings its own allocator: a bump allocator that never gives back. */
#include <stddef.h>

static char arena[1 << 16] __attribute__((aligned(16)));
static size_t used;
static void *volatile given_back;

void *malloc(size_t size);
void free(void *ptr);

void *malloc(size_t size)
{
	void *block = arena + used;

	used += (size + 15) & ~(size_t)15;
	return used <= sizeof(arena) ? block : NULL;
}

void free(void *ptr)
{
	given_back = ptr;
}

/* Another name for the same. */
void cfree(void *ptr) __attribute__((alias("free")));

int main(void)
{
	char *volatile block = malloc(10);

	free(block);
	return 0;
}
