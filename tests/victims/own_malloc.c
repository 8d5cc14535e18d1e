/*
 * A program with a malloc inside (own_heap.c), which no preloaded library stands in front of:
 * `own_malloc MODE`. Without that file it has libc's.
 *
 *	stale		uses a thing after it was freed
 *	twice		frees a thing twice and dies of the next two being the same
 *	child		fine, in a child, and in a program that it starts
 *	fine		nothing is wrong
 *	count N		N times malloc and free, from one place
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct thing {
	struct thing *self;
	long value;
	char name[24];
};

__attribute__((noipa)) static struct thing *thing_new(long value)
{
	struct thing *thing = malloc(sizeof(*thing));

	thing->self = thing;
	thing->value = value;
	return thing;
}

__attribute__((noipa)) static void thing_drop(struct thing *thing)
{
	free(thing);
}

__attribute__((noipa)) static long thing_value(const struct thing *thing)
{
	return thing->self->value;
}

static void stale(void)
{
	struct thing *thing = thing_new(7), *others[2];

	thing_drop(thing);
	for (int i = 0; i < 2; i++) {
		others[i] = malloc(sizeof(*thing));
		memset(others[i], 'A', sizeof(*thing));
	}
	printf("%ld\n", thing_value(thing));
}

static void twice(void)
{
	struct thing *thing = thing_new(1), *first, *second;

	thing_drop(thing);
	thing_drop(thing);
	first = thing_new(2);
	second = thing_new(3);
	if (first == second)
		abort();
}

/* What free leaves alone may hold something that is needed after it. */
static int registers_kept(void)
{
	void *ptr = malloc(100);
	uint64_t r9, r10, r11, low;

	__asm__ volatile(
		"movq $0x1009, %%r9\n\tmovq $0x1010, %%r10\n\tmovq $0x1011, %%r11\n\t"
		"movq %%r9, %%xmm7\n\tmovq %4, %%rdi\n\tmovq %%rsp, %%rbx\n\t"
		"subq $128, %%rsp\n\tandq $-16, %%rsp\n\tcall free\n\tmovq %%rbx, %%rsp\n\t"
		"movq %%r9, %0\n\tmovq %%r10, %1\n\tmovq %%r11, %2\n\tmovq %%xmm7, %3\n"
		: "=m"(r9), "=m"(r10), "=m"(r11), "=m"(low)
		: "m"(ptr)
		: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm7",
		  "memory", "cc");
	return r9 == 0x1009 && r10 == 0x1010 && r11 == 0x1011 && low == 0x1009;
}

static void *work(void *unused)
{
	for (int i = 0; i < 3000; i++) {
		char *a = malloc(i % 300 + 1), *b = calloc(3, i % 40 + 1);

		a = realloc(a, i % 700 + 1);
		free(b);
		free(a);
	}
	return unused;
}

static int fine(void)
{
	pthread_t threads[3];
	char *grown = malloc(1), *copy = strdup("copied by libc");
	void *aligned = NULL;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 2000; i++) {
		grown = realloc(grown, (size_t)i);
		grown[i - 1] = (char)i;
	}
	for (int i = 1; i < 2000; i++)
		if (grown[i - 1] != (char)i)
			return 2;
	free(grown);
	puts(copy);
	free(copy);
	if (posix_memalign(&aligned, 16, 100) != 0 || posix_memalign(&aligned, 4096, 100) == 0 ||
	    !aligned)
		return 3;
	free(aligned);
	if (malloc((size_t)1 << 40) != NULL)
		return 4;
#ifndef PASSES_ON /* nobody can count on what libc's free leaves alone */
	printf("registers %s\n", registers_kept() ? "kept" : "lost");
#endif
	return 0;
}

static int child(const char *self)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fine());
	waitpid(pid, &status, 0);
	fflush(stdout);
	if (status != 0)
		return 5;
	execl("/bin/sh", "sh", "-c", "ls / >/dev/null && exec \"$0\" fine", self, NULL);
	return 6;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "fine";

	/* In code that is not position-independent this makes an entry of the linker's table the
	 * address of malloc for all. */
	if ((void *)malloc == (void *)argv)
		return 9;
	if (strcmp(mode, "stale") == 0)
		stale();
	else if (strcmp(mode, "twice") == 0)
		twice();
	else if (strcmp(mode, "child") == 0)
		return child(argv[0]);
	else if (strcmp(mode, "count") == 0)
		for (long i = 0; argc > 2 && i < atol(argv[2]); i++)
			free(malloc(40));
	else
		return fine();
	return 0;
}
