/*
 * A malloc for own_malloc.c that puts a word before each block and passes on to the next one, as
 * wrappers that count do.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define HEAD 16u

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static void *(*next_realloc)(void *, size_t);
static long counted;

static void look_up(void)
{
	next_malloc = dlsym(RTLD_NEXT, "malloc");
	next_realloc = dlsym(RTLD_NEXT, "realloc");
	next_free = dlsym(RTLD_NEXT, "free");
}

void *malloc(size_t size)
{
	char *got;

	if (!next_free)
		look_up();
	got = size >> 39 ? NULL : next_malloc(size + HEAD);
	if (!got) {
		errno = ENOMEM;
		return NULL;
	}
	__atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
	*(size_t *)got = size;
	return got + HEAD;
}

void free(void *ptr)
{
	if (!ptr)
		return;
	__atomic_fetch_sub(&counted, 1, __ATOMIC_RELAXED);
	next_free((char *)ptr - HEAD);
}

void *calloc(size_t count, size_t size)
{
	void *got = malloc(count * size);

	return got ? memset(got, 0, count * size) : NULL;
}

void *realloc(void *ptr, size_t size)
{
	char *moved;

	if (!ptr)
		return malloc(size);
	moved = next_realloc((char *)ptr - HEAD, size + HEAD);
	if (!moved)
		return NULL;
	*(size_t *)moved = size;
	return moved + HEAD;
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *got = align > HEAD ? NULL : malloc(size);

	if (!got)
		return ENOMEM;
	*ret = got;
	return 0;
}
