/*
 * One way to die per argument, for the tests of fault classes. The functions keep their names and
 * are not inlined, so that they can be looked for in stacks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))
/* The linker can be told to put this far from all other code: in a segment of its own. */
#define APART __attribute__((section("apart_text")))

static volatile char sink;
static char data[64] = { (char)0xc3 };

KEEP static void die_null(void)
{
	sink = *(volatile char *)0x28;
}

KEEP static void die_null_write(void)
{
	*(volatile char *)0x10 = 1;
}

KEEP static void die_unmapped(void)
{
	sink = *(volatile char *)0x123456789000;
}

KEEP static void die_non_canonical(void)
{
	char *volatile wild = (char *)0xdeadbeefdeadbeef;

	sink = *wild;
}

KEEP static void die_misaligned(void)
{
	__asm__ volatile("movaps (%0), %%xmm0" : : "r"(data + 1) : "xmm0");
}

KEEP static void die_execute(void)
{
	void (*volatile function)(void) = (void (*)(void))(uintptr_t)data;

	function();
}

/* An array that is not there, and an index that leads far away from NULL. */
KEEP static void die_null_index(void)
{
	int *volatile none = NULL;
	volatile long index = 3000000;
	int *array = none;
	long at = index;

	__asm__ volatile("movl (%1,%2,4), %%eax; movb %%al, %0"
			 : "=m"(sink)
			 : "r"(array), "r"(at)
			 : "eax");
}

KEEP static void die_jump_nowhere(void)
{
	void (*volatile function)(void) = (void (*)(void))0x4142434445464748;

	function();
	sink = 1;
}

/* A text runs over the place that it was to return to. Five letters make an address that could be
 * one. */
KEEP static void die_return_nowhere(void)
{
	const char *volatile text = "drmo:";

	strcpy((char *)__builtin_frame_address(0) + 8, text);
	sink = 1;
}

/* Arrays larger than what is recorded of the stack at once: one in the function itself, and one of
 * its callers'. */
KEEP static void die_wide_frame(void)
{
	volatile char frame[90000];

	frame[0] = *(volatile char *)0x28;
	sink = frame[0];
}

KEEP static void wide_caller(void)
{
	volatile char frame[3 << 20];

	frame[0] = 1;
	die_wide_frame();
	sink = frame[0];
}

/* Two that call each other: which of them meets the end of the stack depends on where it began. */
KEEP static int die_circle_a(int depth);

KEEP static int die_circle_b(int depth)
{
	volatile char frame[100];

	frame[0] = (char)depth;
	return die_circle_a(depth + 1) + frame[0];
}

KEEP static int die_circle_a(int depth)
{
	volatile char frame[3000];

	frame[0] = (char)depth;
	return die_circle_b(depth + 1) + frame[0];
}

KEEP static void die_circle(void)
{
	volatile char *pad = __builtin_alloca((unsigned int)getpid() % 7000 + 1);

	pad[0] = 1;
	sink = (char)die_circle_b(pad[0]);
}

KEEP static int die_overflow(int depth)
{
	volatile char frame[4096];

	frame[0] = (char)depth;
	return die_overflow(depth + 1) + frame[0];
}

KEEP static void die_read_only(void)
{
	*(volatile char *)(uintptr_t) "literal" = 1;
}

KEEP static void die_abort(void)
{
	abort();
}

KEEP static void die_assert(void)
{
	assert(data[0] == 0 && "the data is there");
}

KEEP static void die_double_free(void)
{
	char *volatile p = malloc(24);

	free(p);
	free(p);
}

KEEP static void die_divide(void)
{
	volatile int seven = 7, zero = 0;

	sink = (char)(seven / zero);
}

KEEP static void die_illegal(void)
{
	__asm__ volatile("ud2");
}

KEEP static void die_trap(void)
{
	__asm__ volatile("int3");
}

/* Large blocks are mappings of their own: freed, nothing is there. */
KEEP APART static char *make_large(void)
{
	return malloc(1 << 20);
}

KEEP APART static void drop_large(char *p)
{
	free(p);
}

KEEP static void die_freed(void)
{
	char *volatile p = make_large();

	drop_large(p);
	sink = p[5000];
}

/* What is bad was bad before the block was freed that it was loaded from. */
__attribute__((noinline, noclone, optimize("O0"))) static void die_freed_since(void)
{
	char ***table = malloc(40);
	char **bad;

	table[2] = (char **)0x123456789000;
	bad = table[2];
	free(table);
	sink = bad[0] != NULL;
}

/* 1000 allocations after the free, and 500 frees. */
KEEP static void die_freed_ago(void)
{
	char *volatile p = make_large();
	void *volatile small;

	drop_large(p);
	for (int i = 0; i < 1000; i++) {
		small = malloc(16);
		if (i % 2)
			free(small);
	}
	sink = p[5000];
}

KEEP static void die_beyond(void)
{
	char *volatile p;

	/* The last block of the heap, with less than a page behind it. */
	(void)mallopt(M_TOP_PAD, 0);
	(void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
	p = make_large();
	for (size_t i = 1 << 20;; i++)
		sink = p[i];
}

KEEP static void die_shrank(void)
{
	char name[] = "shrinking-XXXXXX";
	int fd = mkstemp(name);
	volatile char *p;

	if (fd < 0 || ftruncate(fd, 8192) < 0)
		exit(3);
	p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	if (ftruncate(fd, 100) < 0)
		exit(3);
	sink = p[5000];
}

KEEP static void die_raise(void)
{
	raise(SIGSEGV);
}

/* More than any stack: the stack pointer leaves it by far. */
KEEP static void die_large_frame(void)
{
	volatile char frame[96 << 20];

	frame[0] = 1;
	sink = frame[0];
}

static ucontext_t outside, coroutine;

KEEP static int recurse(int depth)
{
	volatile char frame[300];

	frame[0] = (char)depth;
	return recurse(depth + 1) + frame[0];
}

static void coroutine_main(void)
{
	(void)recurse(0);
}

KEEP static void die_coroutine(void)
{
	char *stack =
		mmap(NULL, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)mprotect(stack, 4096, PROT_NONE);
	(void)getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack + 4096;
	coroutine.uc_stack.ss_size = (size_t)4 * 4096;
	coroutine.uc_link = &outside;
	makecontext(&coroutine, coroutine_main, 0);
	(void)swapcontext(&outside, &coroutine);
}

/* Behind the last block of the heap, up to its end. */
KEEP static void die_ran_off(void)
{
	volatile char *block = malloc(100);

	for (size_t i = 0;; i++)
		block[i] = 1;
}

static void abort_handler(int signo)
{
	(void)signo;
	abort();
}

KEEP static void die_handler_aborts(void)
{
	signal(SIGSEGV, abort_handler);
	die_null();
}

static sigjmp_buf back;
static volatile int probing;

static void probe_handler(int signo)
{
	if (probing)
		siglongjmp(back, 1);
	abort_handler(signo);
}

KEEP static void probe(void)
{
	sink = *(volatile char *)0x58;
}

/* Lives with faults, as runtimes do, until one that it does not expect. */
static void probe_often(void)
{
	volatile int i;

	signal(SIGSEGV, probe_handler);
	for (i = 0; i < 10; i++) {
		probing = 1;
		if (!sigsetjmp(back, 1))
			probe();
		probing = 0;
	}
}

KEEP static void die_after_probing(void)
{
	probe_often();
	die_null();
}

static void say_handler(int signo)
{
	static const char text[] = "not me\n";

	(void)signo;
	(void)!write(2, text, sizeof(text) - 1);
}

KEEP static void die_abort_handled(void)
{
	signal(SIGABRT, say_handler);
	abort();
}

static void null_handler(int signo)
{
	(void)signo;
	sink = *(volatile char *)0x68;
}

KEEP static void die_handler_dies(void)
{
	signal(SIGSEGV, null_handler);
	die_null();
}

/* Its table of functions is freed, and its place has another owner. */
KEEP static void die_call_recycled(void)
{
	void (**volatile table)(void) = malloc(64);
	char *volatile text;

	free((void *)table);
	text = malloc(64);
	for (size_t i = 0; i < 64; i++)
		((volatile char *)text)[i] = 'A';
	table[1]();
}

/* As unoptimised code has it: mov rax, [rbp-8]; mov rax, [rax+16]. */
__attribute__((noinline, noclone, optimize("O0"))) static void die_freed_variable(void)
{
	char ***table = malloc(32);

	/* The place has two owners, and both give it back. */
	free(table);
	table = malloc(40);
	free(table);
	table[2] = (char **)0x123456789000;
	sink = table[2][0] != NULL;
}

/* A function's address out of a block that somebody else has now. */
KEEP static void die_jump_recycled(void)
{
	void (**volatile table)(void) = malloc(64);
	volatile uint64_t *volatile number;

	free((void *)table);
	number = malloc(72);
	number[1] = 0x123456789000;
	table[1]();
	sink = 1;
}

/* What is no function's address happens to be that of a block, which was freed. */
KEEP static void die_jump_freed(void)
{
	volatile uintptr_t number = (uintptr_t)malloc(4000);

	free((void *)number);
	((void (*)(void))number)();
	sink = 1;
}

/* A shell hides the death, and the environment that it has is not its parent's. */
KEEP static void die_in_shell(void)
{
	char command[4096 + 32], path[4096] = "";

	(void)readlink("/proc/self/exe", path, sizeof(path) - 1);
	snprintf(command, sizeof(command), "'%s' null; exit $?", path);
	unsetenv("LD_PRELOAD");
	exit(system(command) >> 8);
}

static void dying_handler(int signo)
{
	(void)signo;
	die_null();
}

/* A handler on a stack of its own: who was interrupted is on another. */
KEEP static void die_on_signal_stack(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = dying_handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink = 1;
}

static void own_handler(int signo)
{
	static const char text[] = "own handler\n";

	(void)!write(2, text, sizeof(text) - 1);
	signal(signo, SIG_DFL);
	raise(signo);
}

/* What Python's faulthandler does. */
KEEP static void die_handled(void)
{
	signal(SIGSEGV, own_handler);
	die_null();
}

/* What Go's runtime makes of a fault in C code: a call, which ends the process past libc. */
KEEP static void end_past_libc(void)
{
	static const char words[] = "fatal: unexpected signal\n";

	(void)!write(2, words, sizeof(words) - 1);
	__asm__ volatile("syscall" : : "a"(231l), "D"(2l) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

static void turn_into_call(int signo, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signo;
	(void)info;
	gregs[REG_RSP] -= 8;
	*(greg_t *)gregs[REG_RSP] = gregs[REG_RIP];
	gregs[REG_RIP] = (greg_t)end_past_libc;
}

KEEP static void die_called(void)
{
	struct sigaction action = { .sa_sigaction = turn_into_call, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	die_null();
}

/* The same handler's way, and the program goes on: it fails for another reason. */
static sigjmp_buf behind;

KEEP static void go_on(void)
{
	siglongjmp(behind, 1);
}

static void turn_and_go_on(int signo, siginfo_t *info, void *context)
{
	turn_into_call(signo, info, context);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)go_on;
}

KEEP static void die_of_an_error(void)
{
	struct sigaction action = { .sa_sigaction = turn_and_go_on, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(behind, 1))
		die_null();
	exit(4);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*die)(void);
	} ways[] = {
		{ "null", die_null },
		{ "null-write", die_null_write },
		{ "unmapped", die_unmapped },
		{ "non-canonical", die_non_canonical },
		{ "misaligned", die_misaligned },
		{ "execute", die_execute },
		{ "read-only", die_read_only },
		{ "abort", die_abort },
		{ "assert", die_assert },
		{ "double-free", die_double_free },
		{ "divide", die_divide },
		{ "illegal", die_illegal },
		{ "trap", die_trap },
		{ "freed", die_freed },
		{ "beyond", die_beyond },
		{ "shrank", die_shrank },
		{ "raise", die_raise },
		{ "handled", die_handled },
		{ "called", die_called },
		{ "error", die_of_an_error },
		{ "large-frame", die_large_frame },
		{ "null-index", die_null_index },
		{ "jump-nowhere", die_jump_nowhere },
		{ "return-nowhere", die_return_nowhere },
		{ "wide-frame", wide_caller },
		{ "circle", die_circle },
		{ "on-signal-stack", die_on_signal_stack },
		{ "coroutine", die_coroutine },
		{ "ran-off", die_ran_off },
		{ "handler-aborts", die_handler_aborts },
		{ "after-probing", die_after_probing },
		{ "probing", probe_often },
		{ "call-recycled", die_call_recycled },
		{ "freed-variable", die_freed_variable },
		{ "freed-ago", die_freed_ago },
		{ "jump-recycled", die_jump_recycled },
		{ "jump-freed", die_jump_freed },
		{ "freed-since", die_freed_since },
		{ "in-shell", die_in_shell },
		{ "abort-handled", die_abort_handled },
		{ "handler-dies", die_handler_dies },
	};

	if (argc > 1 && strcmp(argv[1], "overflow") == 0)
		return die_overflow(0);
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(ways[i].name, argv[1]) == 0)
			ways[i].die();
	return argc > 1 ? 3 : 0;
}
