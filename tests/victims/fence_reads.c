/*
 * Accesses out of bounds and to freed blocks that do no harm: no output and no exit status shows
 * them. One in each mode; `innocent` has none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 80

static volatile unsigned char sink;

static __attribute__((noinline)) unsigned char *block_new(size_t size)
{
	unsigned char *block = malloc(size);

	memset(block, 'a', size);
	return block;
}

static __attribute__((noinline)) void block_drop(unsigned char *block)
{
	free(block);
}

static __attribute__((noinline)) void byte_read(const unsigned char *block, long at)
{
	sink = ((const volatile unsigned char *)block)[at];
}

static __attribute__((noinline)) void byte_write(unsigned char *block, long at)
{
	((volatile unsigned char *)block)[at] = 'b';
}

/* Counts to the length, and one more. */
static __attribute__((noinline)) void row_sum(const unsigned char *block, long count)
{
	long i;

	for (i = 0; i <= count; i++)
		sink += ((const volatile unsigned char *)block)[i];
}

static __attribute__((noinline)) void text_send(const void *text, size_t size)
{
	if (write(STDERR_FILENO, text, size) != (ssize_t)size)
		_exit(3);
}

static __attribute__((noinline)) void texts_send(const void *text, size_t size)
{
	struct iovec list[2] = { { (void *)"ab", 2 }, { (void *)text, size } };

	if (writev(STDERR_FILENO, list, 2) != (ssize_t)size + 2)
		_exit(3);
}

/* By one string instruction. */
static __attribute__((noinline)) void text_copy(void *to, const void *from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

/* Writes back what it reads, up to a zero. */
static __attribute__((noinline)) void text_refresh(unsigned char *text)
{
	volatile unsigned char *at = text;

	while (*at) {
		*at = *at;
		at++;
	}
}

static void *thread_main(void *block)
{
	int i;

	for (i = 0; i < 200; i++)
		byte_read(block, 40);
	return NULL;
}

static void in_threads(unsigned char *block)
{
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, thread_main, block))
			_exit(4);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void in_child(unsigned char *block)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		byte_read(block, 40);
		exit(7);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		_exit(5);
}

/* More blocks than can have fences at once on kernels that need mappings for them. */
static void many(void)
{
	static unsigned char *blocks[60000];
	size_t i, count = sizeof(blocks) / sizeof(blocks[0]);

	for (i = 0; i < count; i++)
		blocks[i] = block_new(8 + i % 64);
	for (i = 0; i < count; i++)
		if (blocks[i][i % 8] != 'a' || malloc_usable_size(blocks[i]) < 8 + i % 64)
			_exit(6);
	for (i = 0; i < count; i++)
		block_drop(blocks[i]);
}

/* What a program may do. */
static void innocent(void)
{
	unsigned char *block = block_new(100), *zeroed = calloc(3, 1000), *aligned = NULL;
	long i;

	for (i = 0; i < 3000; i++)
		if (zeroed[i])
			_exit(8);
	for (i = 1; i < 70000; i = i * 3 / 2 + 1) {
		block = realloc(block, (size_t)i);
		if (block[0] != 'a')
			_exit(9);
		memset(block, 'a', (size_t)i);
	}
	for (i = 16; i <= 8192; i *= 2) {
		if (posix_memalign((void **)&aligned, (size_t)i, 33) ||
		    (uintptr_t)aligned % (size_t)i)
			_exit(10);
		memset(aligned, 1, 33);
		free(aligned);
	}
	free(malloc(0));
	free(block);
	free(zeroed);
}

/* Structures and names that the kernel takes from what was freed, in calls that wait, change the
 * mask, or do not come back. */
static void calls_on(const char *what, unsigned char *block)
{
	void *place = block + 40;

	if (!strcmp(what, "poll-freed")) { /* no descriptor is -1: nothing happens, at once */
		struct timespec none = { 0, 0 };

		if (syscall(SYS_ppoll, place, 1, &none, NULL, 8) != 0)
			_exit(13);
	}
	if (!strcmp(what, "select-freed")) {
		struct timespec none = { 0, 0 };

		if (syscall(SYS_pselect6, 1, NULL, NULL, place, &none, NULL) != 0)
			_exit(14);
	}
	if (!strcmp(what, "mask-freed")) {
		if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, place, NULL, 8) != 0)
			_exit(15);
	}
	if (!strcmp(what, "action-freed")) {
		if (syscall(SYS_rt_sigaction, SIGUSR1, place, NULL, 8) != 0)
			_exit(16);
	}
	if (!strcmp(what, "wait-freed")) { /* the word is another one */
		if (syscall(SYS_futex, place, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) != -1 ||
		    errno != EAGAIN)
			_exit(17);
	}
	if (!strcmp(what, "exec-freed")) {
		execl("/bin/echo", "echo", (char *)place, (char *)NULL);
		_exit(18);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "innocent";
	unsigned char *block = block_new(SIZE), *copy = block_new(SIZE), *old;
	long i;

	if (!strcmp(what, "behind"))
		row_sum(block, SIZE);
	if (!strcmp(what, "before"))
		byte_read(block, -1);
	if (!strcmp(what, "write-behind"))
		byte_write(block, SIZE);
	if (!strcmp(what, "slack")) {
		old = block_new(SIZE - 3);
		byte_write(old, SIZE - 3);
		block_drop(old);
	}
	if (!strcmp(what, "refresh")) /* nothing ends it inside */
		text_refresh(block);
	if (!strcmp(what, "refresh-odd")) {
		old = block_new(SIZE - 3);
		text_refresh(old);
		block_drop(old);
	}
	if (!strcmp(what, "modify")) {
		old = block_new(SIZE - 3);
		__asm__ volatile("orb $0, %0" : "+m"(old[SIZE - 3]));
		block_drop(old);
	}
	if (!strcmp(what, "send-behind"))
		text_send(block, SIZE + 1);
	if (!strcmp(what, "innocent"))
		innocent();
	if (!strcmp(what, "many"))
		many();
	if (!strcmp(what, "resized")) {
		old = block;
		block = realloc(block, 20000);
		byte_read(old, 40);
	}
	if (!strcmp(what, "exec-freed"))
		strcpy((char *)block + 40, "a word");
	else if (strstr(what, "poll-") || strstr(what, "select-") || strstr(what, "action-") ||
		 strstr(what, "mask-"))
		memset(block + 40, strstr(what, "poll-") ? -1 : 0, 40);
	block_drop(block);
	calls_on(what, block);
	if (!strcmp(what, "freed"))
		byte_read(block, 40);
	if (!strcmp(what, "write-freed")) {
		byte_write(block, 40);
		byte_read(block, 40);
		if (sink != 'b')
			_exit(11);
	}
	if (!strcmp(what, "often"))
		for (i = 0; i < 100000; i++)
			byte_read(block, 40);
	if (!strcmp(what, "left-open")) { /* what is written there then is not lost */
		for (i = 0; i < 200; i++)
			byte_read(block, 40);
		byte_write(block, 41);
		text_send(block + 40, 8);
	}
	if (!strcmp(what, "moved")) /* one instruction, two blocks */
		text_copy(copy + SIZE, block + 40, 1);
	if (!strcmp(what, "copied")) {
		text_copy(copy + 40, block + 40, 40);
		if (copy[79] != 'a')
			_exit(12);
	}
	if (!strcmp(what, "send-freed"))
		text_send(block + 40, 8);
	if (!strcmp(what, "list-freed"))
		texts_send(block + 40, 8);
	if (!strcmp(what, "threads"))
		in_threads(block);
	if (!strcmp(what, "child"))
		in_child(block);
	block_drop(copy);
	puts("done");
	return 0;
}
