/*
 * cached HOW: what libc keeps in a thread's cache of freed blocks, used well and badly.
 *
 * Prints where its blocks lie, from the first one on, so that the heap with and without somebody
 * in between can be compared.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *origin;
static sigjmp_buf back;

static void where(const char *name, const void *block)
{
	long from = (const char *)block - origin;

	if (block && labs(from) < 1 << 30)
		printf("%s %ld\n", name, from);
	else /* of another thread's heap */
		printf("%s %s\n", name, block ? "far" : "none");
}

/* Enough of it to be known by. */
static void *warm(void *argument)
{
	int i;

	for (i = 0; i < 100; i++)
		free(malloc(48 + i % 4 * 16));
	return argument;
}

static void many(void)
{
	void *blocks[64] = { 0 };
	unsigned x = 12345;
	int i;

	for (i = 0; i < 20000; i++) {
		unsigned at, size;

		x = x * 1103515245 + 12345;
		at = x >> 16 & 63;
		x = x * 1103515245 + 12345;
		size = (x >> 16) % 1100;
		switch ((x >> 8) % 8) {
		case 0:
			blocks[at] = realloc(blocks[at], size + 1);
			break;
		case 1:
			free(blocks[at]);
			blocks[at] = calloc(1, size);
			break;
		default:
			free(blocks[at]);
			blocks[at] = malloc(size);
		}
		where("", blocks[at]);
	}
}

static void *run(void *argument)
{
	char *first = malloc(40);
	int i;

	for (i = 0; i < 1000; i++) {
		char *block = malloc(i % 200), *other = malloc(i % 100);

		free(block);
		*(long *)argument += other - first;
		free(other);
	}
	free(first);
	return malloc(24); /* another thread frees it */
}

/* The block behind the next one of its bin is at `to`. */
static void lead_to(uint64_t to)
{
	uint64_t *one = malloc(40), *two = malloc(40);

	free(two);
	free(one);
	one[0] = to ^ (uint64_t)one >> 12;
	where("one", malloc(40));
}

static void caught(int signo)
{
	siglongjmp(back, signo);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	char *block, *next;

	setvbuf(stdout, NULL, _IONBF, 0);
	origin = malloc(24);
	if (!strcmp(how, "worker")) { /* only another thread */
		pthread_t thread;

		pthread_create(&thread, NULL, warm, NULL);
		pthread_join(thread, NULL);
	} else {
		warm(NULL);
	}
	if (!strcmp(how, "many")) {
		many();
	} else if (!strcmp(how, "threads")) {
		pthread_t threads[4];
		long sums[4] = { 0 };
		void *left;
		int i;

		for (i = 0; i < 4; i++) {
			pthread_create(&threads[i], NULL, run, &sums[i]);
			pthread_join(threads[i], &left);
			free(left);
			printf("%ld\n", sums[i]);
		}
	} else if (!strcmp(how, "sizes")) {
		size_t sizes[] = { 0,		1,    8,    9,	      24,	    25,
				   1032,	1033, 1040, SIZE_MAX, SIZE_MAX - 6, SIZE_MAX - 7,
				   SIZE_MAX / 2 };
		unsigned i;

		for (i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
			errno = 0;
			block = malloc(sizes[i / 2]);
			where("block", block);
			printf("errno %d\n", errno);
			free(block);
		}
	} else if (!strcmp(how, "full")) {
		char *blocks[20];
		int i;

		for (i = 0; i < 20; i++)
			blocks[i] = malloc(72);
		for (i = 0; i < 20; i++)
			free(blocks[i]);
		for (i = 0; i < 20; i++)
			where("again", malloc(72));
	} else if (!strcmp(how, "head")) { /* an overrun has made the next block longer */
		block = malloc(24);
		next = malloc(24);
		((uint64_t *)next)[-1] = 0x41;
		free(next);
		where("24", malloc(24));
		where("56", malloc(56));
	} else if (!strcmp(how, "no-size")) {
		block = malloc(24);
		next = malloc(24);
		((uint64_t *)next)[-1] = 0x13;
		free(next);
	} else if (!strcmp(how, "nowhere")) {
		lead_to(0x123456789000);
		where("two", malloc(40));
	} else if (!strcmp(how, "never")) { /* not even an address */
		lead_to(0x4242424242424240);
		where("two", malloc(40));
	} else if (!strcmp(how, "odd")) {
		lead_to((uint64_t)origin + 8);
		where("two", malloc(40));
	} else if (!strcmp(how, "elsewhere")) { /* another live block is given out again */
		memset(origin, 0, 24);
		lead_to((uint64_t)origin);
		where("two", malloc(40));
	} else if (!strcmp(how, "twice")) {
		block = malloc(40);
		free(block);
		free(block);
	} else if (!strcmp(how, "survives")) {
		signal(SIGSEGV, caught);
		if (!sigsetjmp(back, 1)) {
			lead_to(0x123456789000);
			where("two", malloc(40));
		} else {
			printf("caught\n");
		}
		where("other", malloc(100));
	} else {
		printf("ready\n");
		(void)read(0, &how, 1);
	}
	return 0;
}
