/*
 * Programs that look suspicious and are innocent: heap_innocent WHICH.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                    \
	do {                                           \
		if (!(what)) {                         \
			printf("failed: %s\n", #what); \
			exit(1);                       \
		}                                      \
	} while (0)

/* Uses every byte that malloc_usable_size() grants. */
static void full_size(void)
{
	size_t size;

	for (size = 0; size < 3000; size += 7) {
		char *block = malloc(size);
		size_t usable = malloc_usable_size(block);

		CHECK(usable >= size);
		memset(block, 0x5a, usable);
		block = realloc(block, size * 2 + 1);
		memset(block, 0xa5, malloc_usable_size(block));
		free(block);
	}
}

/* An allocator of its own inside one block, with headers, free lists and recycling. */
struct cell {
	struct cell *next;
	char bytes[40];
};

static void pool(void)
{
	struct cell *cells = malloc(64 * sizeof(*cells)), *spare = NULL, *used[64];
	int round, i;

	for (i = 0; i < 64; i++) {
		cells[i].next = spare;
		spare = &cells[i];
	}
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 64; i++) {
			used[i] = spare;
			spare = spare->next;
			memset(used[i], round, sizeof(*used[i]));
		}
		for (i = 0; i < 64; i++) {
			used[i]->next = spare;
			spare = used[i];
		}
	}
	free(cells);
}

/* A buffer that grows byte by byte, moved or not, and keeps what it holds. */
static void growing(void)
{
	unsigned char *bytes = NULL;
	size_t count;

	for (count = 0; count < 100000; count++) {
		bytes = realloc(bytes, count + 1);
		bytes[count] = (unsigned char)(count * 31);
	}
	while (count > 10) {
		size_t i;

		count -= count / 3;
		bytes = realloc(bytes, count);
		for (i = 0; i < count; i += 97)
			CHECK(bytes[i] == (unsigned char)(i * 31));
	}
	free(bytes);
}

/* Blocks freed by another thread than the one that made them. */
static void *box[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *trader(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed;
	int i;

	for (i = 0; i < 20000; i++) {
		size_t size = (state = state * 1103515245u + 12345u) >> 20;
		unsigned char *mine = malloc(size + 2), *theirs;

		mine[0] = mine[size + 1] = (unsigned char)size;
		pthread_mutex_lock(&lock);
		theirs = box[state % 64];
		box[state % 64] = mine;
		pthread_mutex_unlock(&lock);
		if (theirs)
			theirs = realloc(theirs, 600);
		free(theirs);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t ids[4];
	uintptr_t i;

	for (i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, trader, (void *)(i + 1));
	for (i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	for (i = 0; i < 64; i++)
		free(box[i]);
}

/* A child goes on with, and gives back, what its parent made. */
static void forking(void)
{
	void *blocks[200];
	int i, status;

	for (i = 0; i < 200; i++)
		blocks[i] = memset(malloc(i * 3), i, i * 3);
	for (i = 0; i < 100; i++)
		free(blocks[i]);
	if (!fork()) {
		for (i = 100; i < 200; i++)
			free(realloc(blocks[i], 1000));
		exit(0);
	}
	wait(&status);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	for (i = 100; i < 200; i++)
		free(blocks[i]);
	malloc_trim(0);
}

/* Pointers with a mark in their low bits, and lists through the items themselves. */
struct link {
	uintptr_t next;
};

static void tagged(void)
{
	struct link *head = NULL;
	int i;

	for (i = 0; i < 1000; i++) {
		struct link *link = malloc(sizeof(*link));

		link->next = (uintptr_t)head | (i & 7);
		head = link;
	}
	while (head) {
		struct link *next = (struct link *)(head->next & ~(uintptr_t)7);

		free(head);
		head = next;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "full-size", full_size }, { "pool", pool },	{ "growing", growing },
		    { "threads", threads },	{ "forking", forking }, { "tagged", tagged } };
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (argc < 2 || !strcmp(argv[1], all[i].name)) {
			all[i].run();
			printf("%s\n", all[i].name);
		}
	return 0;
}
