/*
 * A malloc of the program's own, linked into own_malloc and own_new: lists of spare cells of 32,
 * 64, 128 … bytes, each behind a word that says how large it is.
 *
 * calloc, realloc and posix_memalign call malloc and free, as allocators do. free calls nothing at
 * all, so that compilers may know which registers it leaves alone.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define CLASSES 20
#define SMALLEST 32u
#define CHUNK (8u << 20)
#define HEAD 16u

void *malloc(size_t size);
void free(void *ptr);

static struct {
	char *at, *end;
	void *spare[CLASSES];
	char lock;
} heap;

static void take_lock(void)
{
	while (__atomic_test_and_set(&heap.lock, __ATOMIC_ACQUIRE))
		;
}

static unsigned int class_of(size_t size)
{
	unsigned int class = 0;

	while (class < CLASSES && ((size_t)SMALLEST << class) < size)
		class ++;
	return class;
}

static void *cut(unsigned int class)
{
	size_t bytes = ((size_t)SMALLEST << class) + HEAD;
	char *cell;

	if ((size_t)(heap.end - heap.at) < bytes) {
		size_t room = bytes > CHUNK ? bytes : CHUNK;
		char *more = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (more == MAP_FAILED)
			return NULL;
		heap.at = more;
		heap.end = more + room;
	}
	cell = heap.at;
	heap.at += bytes;
	*(size_t *)cell = class;
	return cell + HEAD;
}

void *malloc(size_t size)
{
	unsigned int class = class_of(size);
	void *got;

	if (class == CLASSES) {
		errno = ENOMEM;
		return NULL;
	}
	take_lock();
	got = heap.spare[class];
	if (got)
		heap.spare[class] = *(void **)got;
	else
		got = cut(class);
	__atomic_clear(&heap.lock, __ATOMIC_RELEASE);
	return got;
}

void free(void *ptr)
{
	unsigned int class;

	if (!ptr)
		return;
	class = (unsigned int)*(size_t *)((char *)ptr - HEAD) % CLASSES;
	take_lock();
	*(void **)ptr = heap.spare[class];
	heap.spare[class] = ptr;
	__atomic_clear(&heap.lock, __ATOMIC_RELEASE);
}

void *calloc(size_t count, size_t size)
{
	void *got = malloc(count * size);

	if (got)
		memset(got, 0, count * size);
	return got;
}

void *realloc(void *ptr, size_t size)
{
	size_t room = ptr ? (size_t)SMALLEST << *(size_t *)((char *)ptr - HEAD) : 0;
	void *moved;

	if (ptr && size <= room)
		return ptr;
	moved = malloc(size);
	if (moved && ptr) {
		memcpy(moved, ptr, room);
		free(ptr);
	}
	return moved;
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *got = align > HEAD ? NULL : malloc(size);

	if (!got)
		return ENOMEM;
	*ret = got;
	return 0;
}
