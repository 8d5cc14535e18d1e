/*
 * Stores of every kind to memory that may lie on watched pages. Each mode prints what it computed
 * (which must be the same without the agent) and, on lines that begin with "count", how often the
 * watched bytes of each block were written to. Watched blocks have WATCHED_BYTES, and of those the
 * eight at WATCHED_AT.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define WATCHED_BYTES 1111
#define WATCHED_AT 64

static unsigned char *block_new(void)
{
	unsigned char *block = malloc(WATCHED_BYTES);

	return block;
}

static uint64_t sum(const void *from, size_t bytes)
{
	const unsigned char *at = from;
	uint64_t sum = 14695981039346656037ull;

	while (bytes--)
		sum = (sum ^ *at++) * 1099511628211ull;
	return sum;
}

static int done(const unsigned char *block, long hits)
{
	printf("sum %lx\ncount %ld\n", (unsigned long)sum(block, WATCHED_BYTES), hits);
	return 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 10
#define OBJECTS 1000

static unsigned char *objects[OBJECTS];

static uint64_t *word_of(unsigned char *object)
{
	return (uint64_t *)(object + WATCHED_AT);
}

static long writes = 10000; /* of each thread; ten times as many for the million */

static void *write_many(void *argument)
{
	long self = (long)argument;

	for (long i = 0; i < writes; i++) {
		unsigned char *object = objects[(i * 7 + self * 131) % OBJECTS];

		__atomic_fetch_add(word_of(object), 1, __ATOMIC_RELAXED);
		if (i % 16 == 0) /* a neighbour, which nobody asked about */
			*(volatile unsigned char *)(object + WATCHED_AT + 8) = (unsigned char)i;
	}
	return NULL;
}

static int threads(void)
{
	pthread_t list[THREADS];
	uint64_t total = 0;

	for (long i = 0; i < OBJECTS; i++) {
		objects[i] = block_new();
		memset(objects[i], 0, WATCHED_AT); /* not the watched word */
		__atomic_store_n(word_of(objects[i]), 0, __ATOMIC_RELAXED);
	}
	for (long i = 0; i < THREADS; i++)
		pthread_create(&list[i], NULL, write_many, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(list[i], NULL);
	for (long i = 0; i < OBJECTS; i++)
		total += *word_of(objects[i]);
	printf("total %ld\ncount %ld\n", (long)total, (long)THREADS * writes + OBJECTS);
	return 0;
}

static int threads_million(void)
{
	writes *= 10;
	return threads();
}

/* ---- instructions ---------------------------------------------------------------------------- */

static int has_movbe(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_MOVBE);
}

static int integers(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), *p = block + WATCHED_AT;
	uint64_t a = 0x1122334455667788, b = 3, flags = 0, old;
	unsigned char *q;
	long n = 0;

#define DO(...) (n++, ({ __asm__ volatile(__VA_ARGS__); }))
	DO("movq %1, (%0)" : : "r"(p), "r"(a) : "memory");
	DO("movb %%ah, 1(%0)" : : "S"(p), "a"(a) : "memory");
	DO("movb %%bh, 2(%0)" : : "D"(p), "b"(a) : "memory");
	DO("movw $0x1234, (%0,%1,2)" : : "r"(p), "r"(b) : "memory");
	DO("movl %%esp, %%eax; xorl %%eax, %%eax; movl %%eax, 4(%0)" : : "r"(p) : "eax", "memory");
	DO("addq %1, (%0)" : : "r"(p), "r"(p) : "memory", "cc");
	DO("subq %1, (%0)" : : "r"(p), "r"(p) : "memory", "cc");
	DO("lock; xaddq %0, (%1)" : "+r"(b) : "r"(p) : "memory", "cc");
	DO("xchgq %0, (%1)" : "+r"(a) : "r"(p) : "memory");
	old = *(uint64_t *)p;
	DO("lock; cmpxchgq %2, (%1)" : "+a"(old) : "r"(p), "r"(a) : "memory", "cc");
	old = 1;
	DO("lock; cmpxchgq %2, (%1)" : "+a"(old) : "r"(p), "r"(a) : "memory", "cc");
	DO("incl (%0)" : : "r"(p) : "memory", "cc");
	DO("negq (%0)" : : "r"(p) : "memory", "cc");
	DO("rolq %%cl, (%0)" : : "r"(p), "c"(5) : "memory", "cc");
	DO("shldq $7, %1, (%0)" : : "r"(p), "r"(a) : "memory", "cc");
	DO("btsq $5, (%0)" : : "r"(p) : "memory", "cc");
	DO("btcq %1, (%0)" : : "r"(block), "r"((uint64_t)WATCHED_AT * 8 + 9) : "memory", "cc");
	DO("cmpq %%rax, %%rax; setzb 3(%0)" : : "r"(p) : "memory", "cc");
	if (has_movbe())
		DO("movbeq %1, (%0)" : : "r"(p), "r"(a) : "memory");
	DO("movntiq %1, (%0)" : : "r"(p), "r"(a + 1) : "memory");
	DO("pushq %1; popq (%0)" : : "r"(p), "r"(a ^ 77) : "memory");
	DO("movq %1, %%rbx; movq %0, %%r12; movq %%rbx, (%%r12)"
	   :
	   : "r"(p), "r"(a)
	   : "rbx", "r12", "memory");
	DO("movq %0, %%r13; movl $5, (%%r13)" : : "r"(p) : "r13", "memory");
	q = p - 1;
	DO("xchgq %0, %%rbp; movl $6, 1(%%rbp,%1); xchgq %0, %%rbp"
	   : "+a"(q)
	   : "d"(0ull)
	   : "memory");
	DO("movq %%rsi, (%%rsi)" : : "S"(p) : "memory");
	DO("movq %%rdi, (%%rdi)" : : "D"(p) : "memory");
	DO("movq $0, (%0)" : : "r"(p) : "memory");
	DO("addl $0x7fffffff, (%1); addl $1, (%1); pushfq; popq %0"
	   : "=r"(flags)
	   : "r"(p)
	   : "memory", "cc");
	n++;
	DO("movw %%ds, (%0)" : : "r"(p) : "memory");
	/* One byte before, one byte behind: not counted. */
	block[WATCHED_AT - 1] = 1;
	block[WATCHED_AT + 8] = 1;
	*(volatile uint64_t *)(block + WATCHED_AT - 4) = 0x99; /* over its beginning */
	n++;
	__asm__ volatile(
		"movq %%rsp, %%rax; movq %0, %%rsp; movq %%rax, %0; movq %%rsp, (%%rsp); movq %0, %%rsp"
		: "+r"(p)
		:
		: "rax", "memory");
	n++;
	p = block + WATCHED_AT;
	*(uint64_t *)p = 0; /* it was an address */
	n++;
	printf("a %lx b %lx flags %lx old %lx\n", a, b, flags & 0x8d5, old);
	return done(block, n - 0);
}

static int sixteen(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), *p = block + WATCHED_AT;
	uint64_t low = 0, high = 0, count = 0;
	unsigned char ok;

	for (int i = 0; i < 100; i++) {
		__asm__ volatile("lock; cmpxchg16b (%3); setz %2"
				 : "+a"(low), "+d"(high), "=q"(ok)
				 : "r"(p), "b"(low + 3), "c"(high + 5)
				 : "memory", "cc");
		count += ok;
	}
	printf("low %lx high %lx count_ok %lx\n", low, high, count);
	return done(block, 100);
}

#define KEEP() ({ __asm__ volatile("" ::: "memory"); })

__attribute__((target("avx512f,avx512bw,avx512vl,avx2"))) static long wide_stores(unsigned char *p)
{
	__m512i v = _mm512_set1_epi32(0x01020304);
	__m256i m = _mm256_setr_epi32(0, 0, -1, 0, 0, 0, 0, 0);
	long n = 0;

	_mm512_storeu_si512(p, v), n++, KEEP();
	_mm512_mask_storeu_epi32(p, 3, _mm512_set1_epi32(7)), n++, KEEP();
	_mm512_mask_storeu_epi32(p, 0xfffc, _mm512_set1_epi32(8)), KEEP(); /* beside it */
	_mm512_mask_storeu_epi8(p - 32, 1ull << 32 | 1, _mm512_set1_epi8(9)), n++, KEEP();
	_mm512_mask_storeu_epi32(p, 0, v), KEEP(); /* nowhere */
	_mm512_mask_compressstoreu_epi32(p, 0xf0f, v), n++, KEEP();
	_mm512_mask_cvtepi32_storeu_epi8(p, 0xffff, v), n++, KEEP();
	_mm256_maskstore_epi32((int *)p - 1, m, _mm256_set1_epi32(77)), n++, KEEP();
	_mm256_maskstore_epi32((int *)p - 2, m, _mm256_set1_epi32(78)), n++, KEEP();
	_mm256_maskstore_epi32((int *)p + 1, m, _mm256_set1_epi32(79)), KEEP(); /* beside it */
	__asm__ volatile("vmovdqu64 %1, 64(%0)" : : "r"(p - 64), "v"(v) : "memory");
	n++;
	return n;
}

__attribute__((target("avx512f"))) static long scatters(unsigned char *p)
{
	__m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

	_mm512_i32scatter_epi32(p, index, _mm512_set1_epi32(5), 4);
	return 1;
}

static int vectors(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), *p = block + WATCHED_AT;
	double d = 3.25;
	float f = 1.5f;
	long double l = 1.75L;
	long n = 0;

	_mm_storeu_si128((__m128i *)p, _mm_set1_epi8(3)), n++, KEEP();
	_mm_store_si128((__m128i *)p, _mm_set1_epi8(4)), n++,
		KEEP(); /* aligned, as malloc's blocks are */
	_mm_stream_si128((__m128i *)p, _mm_set1_epi8(5)), n++, KEEP();
	_mm_store_sd((double *)p, _mm_set_sd(d)), n++, KEEP();
	_mm_store_ss((float *)(p + 4), _mm_set_ss(f)), n++, KEEP();
	_mm_storeh_pd((double *)p, _mm_set1_pd(d)), n++, KEEP();
	DO("movd %1, (%0)" : : "r"(p), "x"(_mm_set1_epi32(12)) : "memory");
	DO("fldt %1; fstpt (%0)" : : "r"(p), "m"(l) : "memory");
	DO("fldl %1; fistpll (%0)" : : "r"(p), "m"(d) : "memory");
	DO("fnstcw (%0)" : : "r"(p) : "memory");
	DO("stmxcsr (%0)" : : "r"(p) : "memory");
	*(volatile uint32_t *)p &= 0xffff, n++;
	DO("movq %1, %%mm0; movq %%mm0, (%0); emms" : : "r"(p), "m"(d) : "memory", "mm0");
	DO("maskmovdqu %1, %2"
	   :
	   : "D"(p), "x"(_mm_set1_epi8(-1)), "x"(_mm_set1_epi8(6))
	   : "memory");
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
		n += wide_stores(p);
		n += scatters(p);
	}
	return done(block, n);
}

static int strings(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), from[WATCHED_BYTES], *to;
	const unsigned char *src;
	size_t count;
	long n = 0;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 3);
#define COPY(insn, at, source, times)                                                    \
	(to = (at), src = (source), count = (times), ({                                  \
		 __asm__ volatile(insn : "+D"(to), "+S"(src), "+c"(count) : : "memory"); \
	 }),                                                                             \
	 printf("%ld %ld %zu\n", (long)(to - block), (long)(src - from), count))
	COPY("rep movsb", block, from, WATCHED_BYTES), n++;
	COPY("rep movsq", block + 8, from, 100), n++;
	COPY("std; rep movsq; cld", block + 800, from + 800, 100), n++;
	COPY("movsl", block + WATCHED_AT, from, 1), n++;
	COPY("rep movsb", block, from, WATCHED_AT); /* up to it */
	COPY("rep movsb", block + WATCHED_AT + 8, from, 100);
	to = block + 1, src = block, count = 500; /* a copy onto itself: fills */
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(src), "+c"(count) : : "memory");
	n++;
	for (int i = 0; i < 4; i++) {
		to = block + 3 * i, count = 30;
		__asm__ volatile("rep stosq"
				 : "+D"(to), "+c"(count)
				 : "a"(0x0102030405060708 * i)
				 : "memory");
		n++;
	}
	memset(block, 7, 0);
	return done(block, n);
}

/* Over the end of a page, wherever that is in the block: counted only if it hits the word. */
static int straddling(void)
{
	unsigned char *blocks[64];
	uint64_t all = 0;
	long n = 0;

	for (int i = 0; i < 64; i++) {
		blocks[i] = calloc(1, WATCHED_BYTES);
		for (int at = 0; at + 32 <= WATCHED_BYTES; at += 13) {
			*(volatile uint64_t *)(blocks[i] + at) = (uint64_t)at * 77;
			n += at + 8 > WATCHED_AT && at < WATCHED_AT + 8;
			_mm_storeu_si128((__m128i *)(blocks[i] + at), _mm_set1_epi8((char)at));
			n += at + 16 > WATCHED_AT && at < WATCHED_AT + 8;
			__asm__ volatile("lock; addq %1, (%0)"
					 :
					 : "r"(blocks[i] + (at & ~7)), "r"(5ull)
					 : "memory", "cc");
			n += (at & ~7) + 8 > WATCHED_AT && (at & ~7) < WATCHED_AT + 8;
		}
		all ^= sum(blocks[i], WATCHED_BYTES);
	}
	printf("sum %lx\ncount %ld\n", all, n);
	return 0;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static void filled(int fd)
{
	char text[600];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	if (write(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
		_exit(3);
}

static int calls(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), *other = calloc(1, WATCHED_BYTES);
	char local[100];
	struct iovec list[3] = { { local, 50 }, { block, 200 }, { local + 50, 50 } };
	struct msghdr message = { .msg_iov = list, .msg_iovlen = 3 };
	struct mmsghdr several[2] = { { .msg_hdr = message }, { .msg_hdr = message } };
	struct stat *st = (struct stat *)other;
	int pipes[2], sockets[2], r;
	long n = 0;

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	filled(pipes[1]);
	printf("read %zd\n", read(pipes[0], block, 100)), n++;
	printf("short %zd\n", read(pipes[0], block, 64));
	printf("raw %ld\n", syscall(SYS_read, pipes[0], block + 60, 10)), n++;
	printf("readv %zd\n", readv(pipes[0], list, 3)), n++;
	printf("empty %zd\n", readv(pipes[0], list, 1));
	filled(sockets[1]);
	printf("recv %zd\n", recv(sockets[0], block, 80, 0)), n++;
	printf("recvmsg %zd %d\n", recvmsg(sockets[0], &message, 0), message.msg_flags), n++;
	message.msg_iov = list;
	r = recvmmsg(sockets[0], several, 1, 0, NULL), n++;
	printf("recvmmsg %d %u\n", r, several[0].msg_len);
	printf("getrandom %d\n", syscall(SYS_getrandom, block, 0, 0) == 0);
	printf("bad %zd %d\n", read(-1, block, 100), errno == EBADF);
	printf("fault %zd %d\n", read(pipes[0], (void *)16, 1), errno == EFAULT);
	memset(block, 0, 60);
	/* st_size is at 48, st_blksize at 56, st_blocks at 64. */
	printf("fstat %d\n", fstat(0, st)), n++;
	printf("mode %o\n", st->st_mode & S_IFMT);
	printf("write %zd\n", write(pipes[1], block, 100));
	printf("read %zd\n", read(pipes[0], local, 100));
	close(pipes[0]), close(pipes[1]), close(sockets[0]), close(sockets[1]);
	return done(block, n);
}

/* ---- fork, realloc, signals --------------------------------------------------------------------
 */

static void *forks_often(void *block)
{
	int status, i;

	for (i = 0; i < 5; i++) {
		pid_t child = fork();

		if (child == 0) {
			(*(volatile uint64_t *)block)++;
			_exit(42);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 42 << 8)
			abort();
	}
	return block;
}

/* No file may be made, nor written to; several threads fork at once. */
static int forks_limited(void)
{
	struct rlimit none = { 100, 100 }, few = { 3, 3 };
	unsigned char *block = calloc(1, WATCHED_BYTES);
	pthread_t threads[4];
	int i;

	*word_of(block) = 1;
	setrlimit(RLIMIT_FSIZE, &none);
	setrlimit(RLIMIT_NOFILE, &few);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, forks_often, (void *)word_of(block));
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("count %d\n", 1);
	return *word_of(block) != 1;
}

static int forks(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES);
	volatile uint64_t *word = word_of(block);
	int status, raw;

	*word = 1;
	for (raw = 0; raw < 2; raw++) {
		pid_t child = raw ? (pid_t)syscall(SYS_fork) : fork();

		if (child == 0) {
			if (*word != (uint64_t)raw + 1)
				_exit(1);
			for (int i = 0; i < 100; i++)
				*word = 1000 + i;
			usleep(20000);
			_exit(*word == 1099 ? 42 : 2);
		}
		*word = (uint64_t)raw + 2; /* before the child has looked, most likely */
		waitpid(child, &status, 0);
		printf("child %d, here %ld\n", WEXITSTATUS(status), (long)*word);
	}
	if (vfork() == 0) {
		*word = 77; /* the parent's memory */
		_exit(0);
	}
	wait(&status);
	printf("after vfork %ld\n", (long)*word);
	fflush(stdout);
	status = system("exit 3");
	printf("system %d\n", WEXITSTATUS(status));
	printf("count 4\n");
	return 0;
}

static int resizes(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES), *moved;
	long n = 0;

	memset(block, 3, WATCHED_AT);
	*word_of(block) = 5, n++;
	printf("usable %d\n", malloc_usable_size(block) >= WATCHED_BYTES);
	moved = realloc(block, 100);
	printf("smaller %lx %ld\n", (long)sum(moved, 72), (long)*word_of(moved));
	moved = realloc(moved, 5000);
	printf("larger %lx %ld\n", (long)sum(moved, 72), (long)*word_of(moved));
	moved = realloc(moved, WATCHED_BYTES); /* back onto watched pages */
	printf("back %lx %ld\n", (long)sum(moved, 72), (long)*word_of(moved));
	*word_of(moved) = 6;
	free(moved);
	for (int i = 0; i < 1000; i++) {
		block = block_new();
		*word_of(block) = i, n++;
		free(block);
	}
	block = memalign(4096, WATCHED_BYTES);
	*word_of(block) = 1, n++;
	printf("aligned %d\n", (uintptr_t)block % 4096 == 0);
	free(block);
	printf("posix_memalign %d\n", posix_memalign((void **)&block, 256, WATCHED_BYTES));
	*word_of(block) = 1, n++;
	free(block);
	printf("atleast %ld\n", n);
	return 0;
}

static volatile sig_atomic_t faults, steps;
static sigjmp_buf back;

static void on_fault(int signo, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	faults++;
	if (info->si_addr != (void *)(4096 + 8))
		_exit(4);
	if (faults % 2)
		uc->uc_mcontext.gregs[REG_RIP] += 7; /* movq $imm, (%rax) */
	else
		siglongjmp(back, 1);
}

static void on_alarm(int signo)
{
	*word_of(objects[0]) += 1; /* with everything blocked */
	steps++;
}

static int handlers(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO },
			 alarm_action = { .sa_handler = on_alarm };
	unsigned char *block = objects[0] = calloc(1, WATCHED_BYTES);
	sigset_t all, old;
	long n = 0;

	sigfillset(&all);
	alarm_action.sa_mask = all;
	sigaction(SIGALRM, &alarm_action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < 10; i++) {
		*word_of(block) = i, n++;
		if (!sigsetjmp(back, 1))
			__asm__ volatile("movq $5, (%0)" : : "a"(4096l + 8) : "memory");
	}
	sigprocmask(SIG_BLOCK, &all, &old);
	*word_of(block) = 7, n++;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8); /* around libc */
	*word_of(block) = 8, n++;
	raise(SIGALRM);
	sigprocmask(SIG_SETMASK, &old, NULL);
	n++;
	sigaction(SIGSEGV, NULL, &action);
	printf("faults %d alarms %d own %d\n", faults, steps, action.sa_sigaction == on_fault);
	return done(block, n);
}

static void on_step(int signo, siginfo_t *info, void *context)
{
	steps++;
}

/* Code that steps itself sees each instruction once. */
static int steps_itself(void)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	unsigned char *block = calloc(1, WATCHED_BYTES);

	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq\n\t"
			 "nop\n\tmovq $5, (%0)\n\tnop\n\tmovq $6, (%0)\n\taddq $1, (%0)\n\t"
			 "pushfq; andq $~0x100, (%%rsp); popfq"
			 :
			 : "r"(block + WATCHED_AT)
			 : "memory", "cc");
	printf("steps %d\n", steps);
	return done(block, 3);
}

static void *sleeper(void *argument)
{
	char text[100] = "";
	int *pipes = argument;
	ssize_t got = read(pipes[0], objects[0], 100);

	return (void *)(long)got;
}

static void cleaned(void *argument)
{
	printf("cleaned %s\n", (const char *)argument);
}

/* With memory of its own: nobody has a reason to make this call elsewhere. */
static void *bystander(void *argument)
{
	char text[100];
	int *pipes = argument;
	ssize_t got;

	pthread_cleanup_push(cleaned, "up");
	got = read(pipes[0], text, sizeof(text));
	pthread_cleanup_pop(0);
	return (void *)(long)got;
}

/* A thread that waits in a call with watched memory, one that is cancelled there, and one that is
 * cancelled in a call without. */
static int waits(void)
{
	int pipes[2], none[2];
	pthread_t reader, lost, other;
	void *result;

	objects[0] = calloc(1, WATCHED_BYTES);
	if (pipe(pipes) || pipe(none))
		return 1;
	pthread_create(&reader, NULL, sleeper, pipes);
	pthread_create(&lost, NULL, sleeper, none);
	pthread_create(&other, NULL, bystander, none);
	usleep(50000);
	*word_of(objects[0]) = 9; /* meanwhile */
	filled(pipes[1]);
	pthread_join(reader, &result);
	printf("got %ld\n", (long)result);
	pthread_cancel(lost);
	pthread_join(lost, &result);
	printf("cancelled %d\n", result == PTHREAD_CANCELED);
	pthread_cancel(other);
	pthread_join(other, &result);
	printf("cancelled %d\n", result == PTHREAD_CANCELED);
	return done(objects[0], 2);
}

/* The kernel fills a buffer when it gets round to it. */
static void asynchronous(unsigned char *block, int file)
{
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_fildes = (uint32_t)file,
			   .aio_buf = (uintptr_t)block,
			   .aio_nbytes = 100 },
		    *list[] = { &cb };
	struct io_event event = { 0 };
	aio_context_t context = 0;

	printf("io_setup %ld\n", syscall(SYS_io_setup, 1, &context));
	printf("io_submit %ld\n", syscall(SYS_io_submit, context, 1, list));
	printf("io_getevents %ld\n", syscall(SYS_io_getevents, context, 1, 1, &event, NULL));
	printf("read %lld %lx\n", (long long)event.res, (long)sum(block, 100));
}

/* With one entry, which is at offset 0 of the third mapping. */
static void ringed(unsigned char *block, int file)
{
	struct io_uring_params params = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	char *queue, *done;
	struct io_uring_sqe *entry;
	struct io_uring_cqe *result;

	printf("io_uring %d\n", ring >= 0);
	if (ring < 0)
		return;
	queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	entry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (queue == MAP_FAILED || done == MAP_FAILED || entry == MAP_FAILED)
		return;
	*entry = (struct io_uring_sqe){
		.opcode = IORING_OP_READ, .fd = file, .addr = (uintptr_t)block, .len = 200
	};
	*(uint32_t *)(queue + params.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
	printf("enter %ld\n",
	       syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	result = (struct io_uring_cqe *)(done + params.cq_off.cqes);
	printf("read %d %lx\n", result->res, (long)sum(block, 200));
	close(ring);
}

static int kernel_later(bool first)
{
	int file = open("/proc/self/exe", O_RDONLY);
	unsigned char *block = first ? malloc(1) : calloc(1, WATCHED_BYTES);

	if (!first)
		*word_of(block) = 7;
	asynchronous(first ? calloc(1, 100) : block, file);
	if (first)
		block = calloc(1, WATCHED_BYTES);
	ringed(block, file);
	*word_of(block) = 8; /* nobody looks any more */
	close(file);
	if (fork() == 0)
		_exit((int)(*word_of(block) += 1));
	wait(NULL);
	return done(block, first ? 0 : 1);
}

static int engines(void)
{
	return kernel_later(false);
}

static int engines_first(void)
{
	return kernel_later(true);
}

/* A crash is the target's own. */
static int wild(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES);

	*(volatile uint64_t *)word_of(block) = 1;
	puts("count 1");
	fflush(stdout);
	*(volatile uint64_t *)(uintptr_t)(block - block + 8) = 5;
	return 0;
}

/* Read where nobody minds: a block that was freed, in a child, after many others have come and
 * gone. */
static int reads_freed(void)
{
	unsigned char *kept = calloc(1, WATCHED_BYTES), *block = calloc(1, WATCHED_BYTES);
	volatile unsigned char *volatile stale = block + 7;
	int status;

	if (fork() > 0) {
		wait(&status);
		kept[3] = 1;
		printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		free(kept);
		return 0;
	}
	for (int i = 0; i < 20000; i++)
		free(malloc(WATCHED_BYTES));
	kept[3] = 2;
	free(block);
	_exit(*stale == 1);
}

/* ---- a small alternate stack, as runtimes have them ---------------------------------------------
 */

#define BELOW (64u << 10)
#define PATTERN 0x5a

static unsigned char *small_stack;
static size_t small_bytes;
static int on_small_stack;

/* A write in a handler: we are called while the stack is in use. */
static void write_in_handler(int signo)
{
	unsigned char here;

	(void)signo;
	on_small_stack += (size_t)(&here - small_stack) < small_bytes;
	++*(volatile uint64_t *)word_of(objects[0]);
}

/* What lies below it is somebody's memory. */
static int small_stack_kept(void)
{
	struct sigaction action = { .sa_handler = write_in_handler, .sa_flags = SA_ONSTACK };
	unsigned char *all;
	stack_t stack = { 0 }, now;
	size_t i, spoilt = 0;

	small_bytes = (size_t)sysconf(_SC_MINSIGSTKSZ) + 4096;
	all = malloc(BELOW + small_bytes);
	memset(all, PATTERN, BELOW);
	small_stack = all + BELOW;
	stack.ss_sp = small_stack;
	stack.ss_size = small_bytes;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	objects[0] = calloc(1, WATCHED_BYTES);
	for (i = 0; i < 100; i++) {
		++*(volatile uint64_t *)word_of(objects[0]);
		if (i % 10 == 0)
			raise(SIGUSR1);
	}
	sigaltstack(NULL, &now);
	for (i = 0; i < BELOW; i++)
		spoilt += all[i] != PATTERN;
	printf("spoilt %zu, on it %d, still there %d\n", spoilt, on_small_stack,
	       now.ss_sp == stack.ss_sp && now.ss_size == stack.ss_size && now.ss_flags == 0);
	return done(objects[0], 110);
}

/* ---- the first block, while signals are blocked -------------------------------------------------
 */

static long raw4(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static int first_block(void)
{
	unsigned char *block = calloc(1, WATCHED_BYTES);

	*(volatile uint64_t *)word_of(block) = 1;
	return done(block, 1);
}

/* Around libc. What is asked for and what is in force afterwards must not differ, either. */
static int blocked_before(void)
{
	uint64_t all = ~0ull, now = 0;
	int r;

	(void)raw4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, 0, 8);
	r = first_block();
	fflush(stdout);
	(void)raw4(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&all, (long)&now, 8);
	return r;
}

static volatile int handled;

static void handle_raw(int signo)
{
	handled += signo == SIGUSR1 && raw4(SYS_getpid, 0, 0, 0, 0) == getpid();
}

/* A handler that was set before the first block, with everything blocked while it runs. */
static int masked_before(void)
{
	struct sigaction now;
	struct {
		uint64_t handler, flags, restorer, mask;
	} action = { (uint64_t)handle_raw, 0, 0, ~0ull };
	int r;

	/* The restorer is libc's. */
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, handle_raw);
	(void)raw4(SYS_rt_sigaction, SIGUSR2, 0, (long)&now, 8);
	memcpy(&action.restorer, (const char *)&now + 16, 8);
	action.flags = 0x04000000;
	(void)raw4(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8);
	r = first_block();
	kill(getpid(), SIGUSR1);
	printf("handled %d\n", handled);
	return r;
}

static uint64_t first_by_handler;

static void allocate_in_handler(int signo)
{
	unsigned char *block = calloc(1, WATCHED_BYTES);

	(void)signo;
	*(volatile uint64_t *)word_of(block) = 1;
	first_by_handler = (uint64_t)block;
}

/* The first block comes in a handler that interrupts code with everything blocked but its signal:
 * that mask comes back when the handler returns. */
static int handler_first(void)
{
	uint64_t most = ~(1ull << (SIGUSR1 - 1));

	signal(SIGUSR1, allocate_in_handler);
	(void)raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&most, 0, 8);
	kill(getpid(), SIGUSR1);
	return done((unsigned char *)first_by_handler, 1);
}

/* Others are meanwhile where libc blocks all signals: threads start and end, programs are started,
 * signals are raised. */
#define ROUNDS 40

static volatile int rounds[4], stop_all;

static void *nothing(void *argument)
{
	return argument;
}

static void *starts(void *argument)
{
	pthread_t thread;

	for (; !stop_all; rounds[0]++)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			abort();
	return argument;
}

static void *raises(void *argument)
{
	for (; !stop_all; rounds[1]++)
		raise(SIGWINCH);
	return argument;
}

static void *runs(void *argument)
{
	pid_t child;

	for (; !stop_all; rounds[2]++) {
		char *arguments[] = { "true", NULL }, *none[] = { NULL };

		if (!posix_spawn(&child, "/bin/true", NULL, NULL, arguments, none))
			waitpid(child, NULL, 0);
	}
	return argument;
}

static void wait_for_rounds(int at_least)
{
	int from[3] = { rounds[0], rounds[1], rounds[2] };

	for (int i = 0; i < 3; i++)
		while (rounds[i] < from[i] + at_least)
			sched_yield();
}

static int others_busy(void)
{
	pthread_t threads[3];
	int r;

	pthread_create(&threads[0], NULL, starts, NULL);
	pthread_create(&threads[1], NULL, raises, NULL);
	pthread_create(&threads[2], NULL, runs, NULL);
	wait_for_rounds(ROUNDS / 8);
	r = first_block();
	wait_for_rounds(ROUNDS / 8);
	stop_all = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return r;
}

static void *places(void *argument)
{
	(void)first_block();
	return argument;
}

/* The other way round: the first block is another thread's. */
static int other_first(void)
{
	pthread_t placing, thread;

	pthread_create(&placing, NULL, places, NULL);
	for (int i = 0; i < ROUNDS; i++)
		if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
			abort();
	pthread_join(placing, NULL);
	return 0;
}

/* ---- blocks that must be writable by their own address ------------------------------------------
 */

#define STACK_BYTES (256u << 10)

static volatile sig_atomic_t signals_come;

/* The kernel puts what it saves on the stack that is in use. */
static void come(int signo)
{
	volatile char room[512];

	memset((void *)room, signo, sizeof(room));
	signals_come++;
}

static void signals_without_stack(void)
{
	static const int all[] = { SIGUSR1, SIGSEGV, SIGSYS, SIGTRAP };
	struct sigaction action = { .sa_handler = come };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigaction(all[i], &action, NULL);
}

/* Signals, calls and pushes, a few frames deep. */
static int deep(int depth)
{
	volatile char room[200];

	memset((void *)room, depth, sizeof(room));
	if (depth)
		return deep(depth - 1) + room[7];
	for (int i = 0; i < 20; i++) {
		raise(SIGUSR1);
		(void)syscall(SYS_getppid);
	}
	return 0;
}

static void *runs_on_block(void *argument)
{
	printf("deep %d\n", deep(5));
	return argument;
}

static int stack_of_thread(void)
{
	void *stack = aligned_alloc(4096, STACK_BYTES);
	pthread_attr_t attributes;
	pthread_t thread;

	signals_without_stack();
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, &attributes, runs_on_block, NULL) ||
		    pthread_join(thread, NULL))
			abort();
	free(stack);
	printf("come %d\n", (int)signals_come);
	return 0;
}

static ucontext_t here, there;

static void coroutine(void)
{
	for (int i = 0; i < 3; i++) {
		printf("deep %d\n", deep(5));
		swapcontext(&there, &here);
	}
}

static int stack_of_coroutine(void)
{
	char *stack = malloc(STACK_BYTES);
	pid_t child;
	int status = 0;

	signals_without_stack();
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
	fflush(stdout);
	child = fork(); /* which goes on there, as its parent does */
	swapcontext(&here, &there);
	fflush(stdout);
	if (!child)
		_exit(7);
	waitpid(child, &status, 0);
	swapcontext(&here, &there);
	printf("come %d, child %d\n", (int)signals_come, WEXITSTATUS(status));
	free(stack);
	/* Somebody else's now. */
	stack = malloc(STACK_BYTES);
	memset(stack, 1, STACK_BYTES);
	printf("sum %lx\n", (unsigned long)sum(stack, STACK_BYTES));
	free(stack);
	return 0;
}

static int stack_of_signals(void)
{
	struct sigaction action = { .sa_handler = come, .sa_flags = SA_ONSTACK };
	stack_t *now = malloc(sizeof(*now));
	stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES };
	uint64_t *word = malloc(64);

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 20; i++) {
		*(volatile uint64_t *)word = i;
		raise(SIGUSR1);
	}
	sigaltstack(NULL, now);
	printf("come %d, %d\n", (int)signals_come,
	       now->ss_sp == stack.ss_sp && now->ss_size == stack.ss_size);
	return 0;
}

/* Flags that are pushed, and popped again: one step of the processor's must not be among them. */
static int stack_of_flags(void)
{
	char *stack = malloc(STACK_BYTES);
	uint64_t top = (uint64_t)stack + STACK_BYTES, flags;

	__asm__ volatile("xchg %%rsp, %0\n\t"
			 "pushfq\n\t"
			 "movq (%%rsp), %1\n\t"
			 "popfq\n\t"
			 "xchg %%rsp, %0"
			 : "+&r"(top), "=&r"(flags)
			 :
			 : "memory", "cc");
	printf("step %d\n", (int)(flags >> 8 & 1));
	return 0;
}

static int runs_cloned(void *argument)
{
	*(int *)argument = deep(3) + 1;
	return 5;
}

static int stack_of_clone(void)
{
	char *stack = malloc(STACK_BYTES);
	int status = 0, written = 0;
	pid_t child;

	signals_without_stack();
	child = clone(runs_cloned, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &written);
	waitpid(child, &status, 0);
	printf("child %d, %d\n", WEXITSTATUS(status), written);
	child = clone(runs_cloned, stack + STACK_BYTES, SIGCHLD, &written);
	waitpid(child, &status, 0);
	printf("child %d, %d\n", WEXITSTATUS(status), written);
	return 0;
}

static sigjmp_buf denied;

static void is_denied(int signo)
{
	siglongjmp(denied, signo);
}

/* Without a key the call is that of mprotect; where the processor has them, with one, too. */
static int keys_on_blocks(void)
{
	char *block = aligned_alloc(4096, 8192);
	volatile int key = (int)syscall(SYS_pkey_alloc, 0, 0), i;
	int signo;

	signal(SIGSEGV, is_denied);
	for (i = -1; i <= key; i += key + 1) {
		printf("%ld", syscall(SYS_pkey_mprotect, block, 4096, PROT_READ, i));
		signo = sigsetjmp(denied, 1);
		if (!signo)
			*(volatile char *)block = 1;
		printf(" denied %d", signo);
		printf(" %ld", syscall(SYS_pkey_mprotect, block, 8192, PROT_READ | PROT_WRITE, i));
		memset(block, 'k' + i, 8192);
		printf(" %lx\n", (unsigned long)sum(block, 8192));
		if (key < 0)
			break;
	}
	printf("%ld\n", syscall(SYS_pkey_mprotect, block, 4096, PROT_READ, 77));
	memset(block, 3, 8192);
	printf("%lx\n", (unsigned long)sum(block, 8192));
	return 0;
}

static volatile sig_atomic_t scattered;

/* Instructions that run with the pages open. */
static void *scatters_on(void *block)
{
	for (int i = 0; i < 2000; i++)
		if (__builtin_cpu_supports("avx512f"))
			(void)scatters(block);
	scattered = 1;
	return NULL;
}

static int protected_meanwhile(void)
{
	unsigned char *block = aligned_alloc(4096, 4096);
	pthread_t thread;

	memset(block, 0, 4096);
	pthread_create(&thread, NULL, scatters_on, block);
	while (!scattered)
		if (mprotect(block, 4096, PROT_READ | PROT_WRITE))
			abort();
	pthread_join(thread, NULL);
	return 0;
}

static int own_memory(void)
{
	char *block = malloc(3000), *other = malloc(5000);
	int fd = open("/proc/self/mem", O_RDWR);
	struct iovec list = { "vector", 6 };

	memset(block, '.', 3000);
	memset(other, '.', 5000);
	printf("%ld", (long)pwrite(fd, "written", 7, (off_t)block));
	printf(" %ld", (long)pwritev(fd, &list, 1, (off_t)block + 100));
	printf(" %d", lseek(fd, (off_t)other, SEEK_SET) == (off_t)other);
	printf(" %ld", (long)write(fd, "sought", 6));
	printf(" %d", lseek(fd, 0, SEEK_CUR) == (off_t)other + 6);
	printf(" %.8s %.8s %.8s\n", block, block + 100, other);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{ "threads", threads },
	{ "small-stack", small_stack_kept },
	{ "threads-million", threads_million },
	{ "integers", integers },
	{ "sixteen", sixteen },
	{ "vectors", vectors },
	{ "strings", strings },
	{ "straddling", straddling },
	{ "calls", calls },
	{ "forks", forks },
	{ "forks-limited", forks_limited },
	{ "resizes", resizes },
	{ "handlers", handlers },
	{ "steps-itself", steps_itself },
	{ "waits", waits },
	{ "wild", wild },
	{ "reads-freed", reads_freed },
	{ "blocked-before", blocked_before },
	{ "masked-before", masked_before },
	{ "handler-first", handler_first },
	{ "others-busy", others_busy },
	{ "other-first", other_first },
	{ "engines", engines },
	{ "engines-first", engines_first },
	{ "stack-of-thread", stack_of_thread },
	{ "stack-of-coroutine", stack_of_coroutine },
	{ "stack-of-signals", stack_of_signals },
	{ "stack-of-clone", stack_of_clone },
	{ "stack-of-flags", stack_of_flags },
	{ "keys", keys_on_blocks },
	{ "own-memory", own_memory },
	{ "protected-meanwhile", protected_meanwhile },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run();
	return 64;
}
