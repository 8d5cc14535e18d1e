/*
 * A test program with one defect per argument: heap_tests DEFECT. Tests are told as googletest
 * does. On descriptor 3, if it is open, the true culprit is told: FILE:FUNCTION.
 */
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item {
	char *name;
	long value;
	struct item *next; /* where glibc's own list of free blocks does not reach */
};

static const char *defect;
static struct item *kept;
static char *buffer;

static int is(const char *name)
{
	return !strcmp(defect, name);
}

static void truth(const char *function)
{
	dprintf(3, "heap_tests.c:%s\n", function);
}

static __attribute__((noinline)) struct item *item_new(long value)
{
	struct item *item = malloc(sizeof(*item));

	item->next = NULL;
	item->name = NULL;
	item->value = value;
	return item;
}

static __attribute__((noinline)) char *buffer_new(size_t size)
{
	return memset(malloc(size), 'b', size);
}

static __attribute__((noinline)) void buffer_terminate(char *text, long size)
{
	text[size] = 0; /* one too far, if size is the buffer's */
}

static __attribute__((noinline)) void buffer_strip(char *text, long length)
{
	text[length - 1] = 0; /* before the buffer, if it is empty */
}

static __attribute__((noinline)) void item_touch(struct item *item)
{
	item->value = 42;
}

static __attribute__((noinline)) void item_drop(struct item *item)
{
	free(item);
}

static __attribute__((noinline)) void item_drop_again(struct item *item)
{
	free(item);
}

static void test_setup(void)
{
	kept = item_new(1);
	buffer = buffer_new(21);
}

static void test_calm(void)
{
	int i;

	for (i = 0; i < 100; i++)
		free(buffer_new(100));
}

static void test_harm(void)
{
	if (is("overflow")) {
		truth("buffer_terminate");
		buffer_terminate(buffer, 21);
	} else if (is("underflow")) {
		truth("buffer_strip");
		buffer_strip(buffer, 0);
	} else if (is("late-overflow")) {
		/* Found only when the block is freed. */
		truth("buffer_terminate");
		char *own = buffer_new(33);

		buffer_terminate(own, 33);
		free(own);
	} else if (is("double")) {
		item_drop(kept);
		truth("item_drop_again");
		item_drop_again(kept);
	} else if (is("interior")) {
		truth("test_harm");
		free(&kept->value);
	} else if (is("odd")) {
		/* As after skipping a character. */
		truth("test_harm");
		free((char *)kept + 1);
	} else if (is("invalid")) {
		static char global[64];

		truth("test_harm");
		free(global + 16);
	} else if (is("use") || is("use-crash") || is("use-evicted")) {
		item_drop(kept);
	} else if (is("read")) {
		kept->next = item_new(2);
		item_drop(kept);
	}
}

static void churn(void)
{
	int i;

	for (i = 0; i < 4000; i++) {
		char *volatile block = malloc(1000);

		free(block);
	}
}

static void test_later(void)
{
	if (is("use") || is("use-crash") || is("use-evicted")) {
		truth("item_touch");
		item_touch(kept);
	}
	if (is("use-crash"))
		abort();
	/* No defect of memory. */
	if (is("assert"))
		assert(kept->value == 4711);
	if (is("use-evicted"))
		churn();
	if (is("read")) {
		struct item *volatile next = kept->next;

		item_touch(next);
	}
}

static void run(const char *name, void (*test)(void))
{
	printf("[ RUN      ] Heap.%s\n", name);
	fflush(stdout);
	test();
	printf("[       OK ] Heap.%s (0 ms)\n", name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	defect = argc > 1 ? argv[1] : "none";
	run("Setup", test_setup);
	run("CalmA", test_calm);
	run("Harm", test_harm);
	run("CalmB", test_calm);
	run("Later", test_later);
	run("CalmC", test_calm);
	return 0;
}
