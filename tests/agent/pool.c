/*
 * A small allocator, as programs bring them: small blocks from a static pool, large ones from
 * mmap, a list of free blocks per size. Safe in signal handlers: no locks, one exchange per call.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define POOL_BYTES (512u << 20)
#define CLASSES 64u
#define STEP 32u

void *malloc(size_t size);
void free(void *ptr);
void *calloc(size_t count, size_t size);
void *realloc(void *ptr, size_t size);
void *memalign(size_t align, size_t size);
void *aligned_alloc(size_t align, size_t size);
int posix_memalign(void **ret, size_t align, size_t size);
size_t malloc_usable_size(void *ptr);
void *pool_take(size_t size);

/* In front of each block. */
struct head {
	size_t size;
	size_t class; /* CLASSES: mapped, or never given back */
};

static _Alignas(64) unsigned char pool[POOL_BYTES];
static size_t used;
static void *last_freed[CLASSES]; /* one per class: enough to be given out again */

static void *take(size_t size)
{
	size_t class = size / STEP, span = sizeof(struct head) + (class + 1) * STEP;
	static int begun;
	struct head *head;
	char name[16];
	void *ptr;

	/* Allocators set themselves up at the first call, whoever makes it. */
	if (!__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED))
		(void)prctl(PR_GET_NAME, name, 0, 0, 0);
	if (class >= CLASSES) {
		head = mmap(NULL, size + sizeof(*head), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (head == MAP_FAILED)
			return NULL;
		class = CLASSES;
	} else {
		ptr = __atomic_exchange_n(&last_freed[class], NULL, __ATOMIC_ACQ_REL);
		if (ptr) {
			((struct head *)ptr - 1)->size = size;
			return ptr;
		}
		span = __atomic_fetch_add(&used, span, __ATOMIC_RELAXED);
		if (span > POOL_BYTES - (1u << 20))
			return NULL;
		head = (struct head *)(pool + span);
	}
	head->size = size;
	head->class = class;
	return head + 1;
}

void *malloc(size_t size)
{
	return take(size);
}

/* The same memory, by another name: what no hook of malloc sees. */
void *pool_take(size_t size)
{
	return take(size);
}

void free(void *ptr)
{
	struct head *head = (struct head *)ptr - 1;

	if (!ptr)
		return;
	if (head->class == CLASSES)
		munmap(head, head->size + sizeof(*head));
	else if (head->class < CLASSES)
		__atomic_store_n(&last_freed[head->class], ptr, __ATOMIC_RELEASE);
}

void *calloc(size_t count, size_t size)
{
	void *ptr;

	if (__builtin_mul_overflow(count, size, &size))
		return NULL;
	ptr = take(size);
	return ptr ? memset(ptr, 0, size) : NULL;
}

void *realloc(void *ptr, size_t size)
{
	void *moved = take(size);
	size_t old = ptr ? ((struct head *)ptr - 1)->size : 0;

	if (moved && ptr) {
		memcpy(moved, ptr, old < size ? old : size);
		free(ptr);
	}
	return moved;
}

/* Never given back: the room in front of an aligned block is lost. */
void *memalign(size_t align, size_t size)
{
	uintptr_t at = (uintptr_t)take(size + align + sizeof(struct head));
	struct head *head;

	if (!at)
		return NULL;
	at = (at + sizeof(*head) + align - 1) & ~(uintptr_t)(align - 1);
	head = (struct head *)at - 1;
	head->size = size;
	head->class = CLASSES + 1;
	return head + 1;
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	*ret = memalign(align, size);
	return *ret ? 0 : 12;
}

size_t malloc_usable_size(void *ptr)
{
	return ptr ? ((struct head *)ptr - 1)->size : 0;
}
