/*
 * Writes to memory that is watched: each mode makes a known number of them, to blocks of
 * WATCHED_BYTES (the plan watches blocks by that size), and prints what the agent should have
 * counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCHED_BYTES 4208
#define WRITES 20000
#define THREADS 8

static uint64_t *block_new(void)
{
	uint64_t *block = malloc(WATCHED_BYTES);

	return block;
}

static int expect(const char *name, long count)
{
	printf("%s %ld\n", name, count);
	return 0;
}

static __attribute__((noinline)) void count_up(volatile uint64_t *word, long times)
{
	for (long i = 0; i < times; i++)
		*word = (uint64_t)i + 1000;
}

static int one(void)
{
	count_up(block_new(), WRITES);
	return expect("hits", WRITES);
}

/* ---- threads --------------------------------------------------------------------------------- */

static pthread_barrier_t ready;
static uint64_t *shared;

static void *add_many(void *arg)
{
	pthread_barrier_wait(&ready);
	for (long i = 0; i < WRITES / THREADS; i++)
		__atomic_fetch_add(shared, 1, __ATOMIC_RELAXED);
	return arg;
}

static int threads(int before)
{
	pthread_t list[THREADS];

	pthread_barrier_init(&ready, NULL, THREADS + 1);
	if (!before)
		shared = block_new();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&list[i], NULL, add_many, NULL);
	if (before)
		shared = block_new();
	pthread_barrier_wait(&ready);
	for (int i = 0; i < THREADS; i++)
		pthread_join(list[i], NULL);
	return expect("hits", WRITES);
}

static int threads_before(void)
{
	return threads(1);
}

static int threads_after(void)
{
	return threads(0);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static int same(void)
{
	volatile uint64_t *word = block_new();

	*word = 7;
	for (int i = 0; i < 1000; i++)
		*word = 7;
	expect("hits", 1001);
	return expect("unchanged", 1000);
}

/* Watched are bytes 16 to 23. */
static int widths(void)
{
	unsigned char *block = (unsigned char *)block_new();

	/* By one store: libc's memset makes one or two, which hangs on the CPU. */
	__asm__ volatile("pxor %%xmm0, %%xmm0\n\t"
			 "movups %%xmm0, (%0)\n\t"
			 "movb $1, 16(%0)\n\t"
			 "movb $1, 23(%0)\n\t"
			 "movw $1, 22(%0)\n\t"
			 "movl $1, 17(%0)\n\t"
			 "movl $1, 20(%0)\n\t"
			 "movq $1, 16(%0)\n\t"
			 "movq $1, 12(%0)\n\t" /* its upper half */
			 "movq $1, 23(%0)\n\t" /* one byte of it */
			 "movb $1, 15(%0)\n\t" /* beside it: no hits */
			 "movq $1, 24(%0)\n\t"
			 :
			 : "r"(block)
			 : "xmm0", "memory");
	return expect("hits", 8);
}

/* Over both watches: 16 to 23 and 24 to 31. Nothing else may come near: where memset() clears a few
 * bytes with a mask, the processor may trap at those that the mask leaves out. */
static int vector(void)
{
	unsigned char *block = (unsigned char *)block_new();

	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\t"
			 "movups %%xmm0, 16(%0)"
			 :
			 : "r"(block)
			 : "memory", "xmm0");
	return 0;
}

static int stos(void)
{
	unsigned char *block = (unsigned char *)block_new();
	unsigned char *to = block;
	size_t count = 512;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0x5a) : "memory");
	return block[16] == 0x5a && block[511] == 0x5a ? 0 : 1;
}

static int reads(void)
{
	uint64_t *block = block_new();
	int ends[2];

	if (pipe(ends) || write(ends[1], "01234567890123456789012345678901", 32) != 32)
		return 1;
	return read(ends[0], block, 32) == 32 && !memcmp(block, "0123", 4) ? 0 : 1;
}

static int copies(void)
{
	uint64_t *block = block_new();
	char *from = malloc(300);

	memset(from, 0x61, 300);
	memcpy(block, from, 300);
	return 0;
}

/* ---- lives ----------------------------------------------------------------------------------- */

static int resizes(void)
{
	uint64_t *block = block_new(), *other;

	count_up(block + 2, 10);
	block = realloc(block, WATCHED_BYTES - 48); /* in place */
	count_up(block + 2, 20);
	other = block_new();
	(void)other;
	block = realloc(block, 200000); /* elsewhere, and too large to be watched */
	count_up(block + 2, 30);
	free(block);
	return 0;
}

static int reuse(void)
{
	uint64_t *first = block_new(), *second;

	count_up(first + 2, 10);
	free(first);
	count_up(first + 2, 20);
	second = block_new();
	count_up(second + 2, 30);
	return expect("same", first == second);
}

static int after_free(void)
{
	uint64_t *first = block_new();

	free(malloc(WATCHED_BYTES / 2));
	count_up(first + 2, 10);
	free(first);
	count_up(first + 2, 20);
	return 0;
}

static int policy(void)
{
	volatile uint64_t *blocks[10];

	for (int i = 0; i < 10; i++)
		blocks[i] = block_new();
	for (int i = 0; i < 10; i++)
		blocks[i][2] = (uint64_t)i;
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

static int forks(void)
{
	uint64_t *block = block_new();
	pid_t child;
	int status;

	count_up(block + 2, 10);
	child = fork();
	count_up(block + 2, child ? 200 : 100);
	if (!child) {
		count_up(block_new() + 2, 50);
		_exit(0);
	}
	return waitpid(child, &status, 0) == child ? status : 1;
}

static char *self_path;

static int execs(void)
{
	count_up(block_new() + 2, 10);
	return execl(self_path, self_path, "one-few", NULL);
}

static int one_few(void)
{
	count_up(block_new() + 2, 300);
	return 0;
}

static int small_limit(void)
{
	struct rlimit limit = { 20, 20 };

	return setrlimit(RLIMIT_NOFILE, &limit) || execl(self_path, self_path, "one-few", NULL);
}

static int limit_later(void)
{
	struct rlimit limit = { 8, 8 };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	return one_few();
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Everything that was open before is closed, and what comes then is as ever. */
static int closes(void (*all)(void))
{
	int low = dup(1), high = fcntl(1, F_DUPFD, 1000), r = 0;

	if (low != 3 || high != 1000)
		return 1;
	all();
	r |= close(low) == -1 && errno == EBADF ? 0 : 2;
	r |= close(high) == -1 && errno == EBADF ? 0 : 4;
	r |= dup2(1, 700) == 700 && !close(700) ? 0 : 8;
	count_up(block_new() + 2, 300);
	return r;
}

static void by_loop(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (close(fd) && errno != EBADF)
			_exit(9);
}

static void by_range(void)
{
	if (close_range(3, ~0u, 0))
		_exit(9);
}

static void by_from(void)
{
	closefrom(3);
}

static void by_dup(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (dup2(1, fd) == fd)
			close(fd);
}

static int close_loop(void)
{
	return closes(by_loop);
}
static int close_ranges(void)
{
	return closes(by_range);
}
static int close_from(void)
{
	return closes(by_from);
}
static int close_dup(void)
{
	return closes(by_dup);
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t traps;

static void on_trap(int signo)
{
	traps += signo == SIGTRAP;
}

static int own_trap(void)
{
	volatile uint64_t *word;

	signal(SIGTRAP, on_trap);
	word = block_new() + 2;
	for (int i = 0; i < 100; i++) {
		*word = (uint64_t)i + 1;
		if (i % 10 == 0)
			__asm__ volatile("int3");
	}
	raise(SIGTRAP);
	expect("traps", traps);
	return expect("hits", 100);
}

static void block_traps(void)
{
	sigset_t set;

	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Without a handler of the target's own the mask does not keep our signal away… */
static int blocked(void)
{
	block_traps();
	return one_few();
}

/* …with one it does. */
static int blocked_with_handler(void)
{
	sigset_t set;

	signal(SIGTRAP, on_trap);
	block_traps();
	count_up(block_new() + 2, 1);
	sigfillset(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return expect("traps", traps);
}

/* ---- nobody ---------------------------------------------------------------------------------- */

static void poke(uint64_t *word, uint64_t value)
{
	struct iovec from = { &value, 8 }, to = { word, 8 };

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != 8)
		_exit(9);
}

/* Only when the line is written it can be seen. */
static int line(void)
{
	uint64_t *word = block_new() + 2;

	*word = 1;
	puts("before");
	poke(word, 2);
	puts("between");
	poke(word, 1);
	puts("after");
	return 0;
}

static int at_exit(void)
{
	uint64_t *word = block_new() + 2;

	*word = 1;
	poke(word, 2);
	return 0;
}

/* Many lines while others write: nobody from outside. */
static volatile int stop;

static void *write_on(void *arg)
{
	while (!stop)
		__atomic_fetch_add(shared, 1, __ATOMIC_RELAXED);
	return arg;
}

static int busy_lines(void)
{
	pthread_t list[3];

	shared = block_new() + 2;
	for (int i = 0; i < 3; i++)
		pthread_create(&list[i], NULL, write_on, NULL);
	for (int i = 0; i < 300; i++)
		puts("line");
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(list[i], NULL);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{ "one", one },
	{ "threads-before", threads_before },
	{ "threads-after", threads_after },
	{ "same", same },
	{ "widths", widths },
	{ "vector", vector },
	{ "stos", stos },
	{ "reads", reads },
	{ "copies", copies },
	{ "resizes", resizes },
	{ "reuse", reuse },
	{ "after-free", after_free },
	{ "policy", policy },
	{ "forks", forks },
	{ "execs", execs },
	{ "one-few", one_few },
	{ "small-limit", small_limit },
	{ "limit-later", limit_later },
	{ "close-loop", close_loop },
	{ "close-range", close_ranges },
	{ "close-from", close_from },
	{ "close-dup", close_dup },
	{ "own-trap", own_trap },
	{ "blocked", blocked },
	{ "blocked-with-handler", blocked_with_handler },
	{ "line", line },
	{ "at-exit", at_exit },
	{ "busy-lines", busy_lines },
};

int main(int argc, char **argv)
{
	self_path = argv[0];
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run();
	return 64;
}
