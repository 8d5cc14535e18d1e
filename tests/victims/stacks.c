/*
 * Dies in one of several ways, each with a stack that is known beforehand. Before it dies it prints
 * that stack, innermost frame first, as "function line" (line 0: not told), so that a test can
 * compare.
 *
 *	stacks plain | signal | qsort | null-call | data-call | jit | jit-leaf | deep | thread |
 *	       vdso | strlen | abort | overflow | smash | astray | tail | tail-chain |
 *	       tail-either | tail-one-way | tail-pointer | cold
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int sink;
static int *volatile nowhere;

#define SAY(function, line) printf("%s %d\n", function, line)
#define NOINLINE __attribute__((noinline, noclone))

/* Keeps a call from becoming a jump, and locals alive around it. */
#define AFTER() (sink++)

static inline __attribute__((always_inline)) int innermost(int x)
{
	return *nowhere + x; /* the fault */
}
enum { INNERMOST_LINE = __LINE__ - 2 };

static inline __attribute__((always_inline)) int middle(int x)
{
	return innermost(x + 1) * 3;
}
enum { MIDDLE_LINE = __LINE__ - 2 };

NOINLINE static int physical(int x)
{
	int r = middle(x);

	AFTER();
	return r;
}
enum { PHYSICAL_LINE = __LINE__ - 5 };

static void say_crash(void)
{
	SAY("innermost", INNERMOST_LINE);
	SAY("middle", MIDDLE_LINE);
	SAY("physical", PHYSICAL_LINE);
}

NOINLINE static int uses_stack(int x)
{
	char room[300];
	int r;

	memset(room, x, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	r = physical(x);
	AFTER();
	return r + room[x & 7];
}
enum { USES_STACK_LINE = __LINE__ - 4 };

NOINLINE static void plain(void)
{
	say_crash();
	SAY("uses_stack", USES_STACK_LINE);
	SAY("plain", 0);
	SAY("main", 0);
	fflush(stdout);
	uses_stack(2);
	AFTER();
}

NOINLINE static void handler(int signo)
{
	uses_stack(signo);
	AFTER();
}

/* The signal comes at the very first instruction: the address before it is another function's. */
__attribute__((naked, noinline)) static void at_start(void)
{
	__asm__ volatile("ud2; ret");
}
enum { AT_START_LINE = __LINE__ - 2 };

NOINLINE static int interrupted(int x)
{
	at_start();
	AFTER();
	return x;
}
enum { INTERRUPTED_LINE = __LINE__ - 4 };

NOINLINE static void by_signal(void)
{
	struct sigaction sa = { .sa_handler = handler };

	sigaction(SIGILL, &sa, NULL);
	say_crash();
	SAY("uses_stack", USES_STACK_LINE);
	SAY("handler", 0);
	SAY("*signal*", 0);
	SAY("at_start", AT_START_LINE);
	SAY("interrupted", INTERRUPTED_LINE);
	SAY("by_signal", 0);
	SAY("main", 0);
	fflush(stdout);
	interrupted(3);
	AFTER();
}

static int compare(const void *a, const void *b)
{
	int r = uses_stack(*(const int *)a - *(const int *)b);

	AFTER();
	return r;
}

NOINLINE static void by_qsort(void)
{
	int numbers[2] = { 2, 1 };

	say_crash();
	SAY("uses_stack", USES_STACK_LINE);
	SAY("compare", 0);
	SAY("*library*", 0);
	SAY("by_qsort", 0);
	SAY("main", 0);
	fflush(stdout);
	qsort(numbers, 2, sizeof(int), compare);
	AFTER();
}

NOINLINE static int calls(int (*fn)(int), int x)
{
	int r = fn(x);

	AFTER();
	return r;
}
enum { CALLS_LINE = __LINE__ - 5 };

static char data[64] = "not code";

NOINLINE static void bad_call(void *target)
{
	SAY("?", 0);
	SAY("calls", CALLS_LINE);
	SAY("bad_call", 0);
	SAY("main", 0);
	fflush(stdout);
	calls(__extension__(int (*)(int)) target, 1);
	AFTER();
}

/* Emitted code. With a frame pointer: push rbp; mov rbp,rsp; sub rsp,32; call rdi; leave; ret. */
static const unsigned char with_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xbf,
					    0x01, 0x00, 0x00, 0x00, 0x48, 0xb8, 0,    0,    0,
					    0,	  0,	0,    0,    0,	  0xff, 0xd0, 0xc9, 0xc3 };
/* Without: xor eax,eax; mov eax,[rax]; ret. */
static const unsigned char leaf[] = { 0x31, 0xc0, 0x8b, 0x00, 0xc3 };

NOINLINE static int called_by_jit(int x)
{
	int r = uses_stack(x);

	AFTER();
	return r;
}

NOINLINE static void jit(int is_leaf)
{
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *target = (void *)called_by_jit;
	char name[64];
	FILE *map;

	if (is_leaf) {
		memcpy(code + 64, leaf, sizeof(leaf));
	} else {
		memcpy(code + 64, with_frame, sizeof(with_frame));
		memcpy(code + 64 + 15, &target, sizeof(target));
	}
	snprintf(name, sizeof(name), "%s/perf-%d.map", getenv("PERF_MAP_DIR"), (int)getpid());
	map = fopen(name, "w");
	fprintf(map, "%lx 40 old_emitted\n%lx 20 emitted(int)\n", (unsigned long)code + 64,
		(unsigned long)code + 64);
	fclose(map);
	if (!is_leaf) {
		say_crash();
		SAY("uses_stack", USES_STACK_LINE);
		SAY("called_by_jit", 0);
	}
	SAY("emitted(int)", 0);
	SAY("calls", CALLS_LINE);
	SAY("jit", 0);
	SAY("main", 0);
	fflush(stdout);
	calls(__extension__(int (*)(int))(void *)(code + 64), 7);
	AFTER();
}

NOINLINE static int deep(int n)
{
	int r = n > 0 ? deep(n - 1) : uses_stack(n);

	AFTER();
	return r + 1;
}

static void *in_thread(void *arg)
{
	deep(1);
	AFTER();
	return arg;
}

NOINLINE static void by_thread(void)
{
	pthread_t thread;

	say_crash();
	SAY("uses_stack", USES_STACK_LINE);
	SAY("deep", 0);
	SAY("deep", 0);
	SAY("in_thread", 0);
	SAY("*library*", 0);
	fflush(stdout);
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	AFTER();
}

/* Stops, and then goes on into the kernel's code. */
NOINLINE static long by_vdso(void)
{
	struct timespec ts;

	SAY("*library*", 0);
	SAY("by_vdso", 0);
	SAY("main", 0);
	fflush(stdout);
	raise(SIGSEGV);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	AFTER();
	return ts.tv_nsec;
}

NOINLINE static size_t by_strlen(const char *text)
{
	size_t r;

	SAY("*library*", 0);
	SAY("by_strlen", 0);
	SAY("main", 0);
	fflush(stdout);
	r = strlen(text);
	AFTER();
	return r;
}

NOINLINE static void by_abort(void)
{
	SAY("*library*", 0);
	SAY("by_abort", 0);
	SAY("main", 0);
	fflush(stdout);
	abort();
}

NOINLINE static int overflow(volatile int *up)
{
	volatile int room[16];

	room[0] = *up + 1;
	return overflow(room) + room[0];
}

/* Writes over its own return address, as an overrun buffer on the stack does. */
NOINLINE static int smash(int x)
{
	void *volatile *slot = __builtin_frame_address(0);

	slot[1] = (void *)0x4141414141414141;
	return sink + x;
}

NOINLINE static int smashed(int x)
{
	int r = smash(x);

	AFTER();
	return r;
}

NOINLINE static int uses_nothing(int x)
{
	__asm__ volatile("" ::: "memory");
	return x ^ sink;
}

/* The same with an address that could be one: the processor goes there. */
NOINLINE static int astray(int x)
{
	void *volatile *slot = __builtin_frame_address(0);

	sink += uses_nothing(x);
	slot[1] = (void *)0x3a6f6d7264;
	return sink + x;
}

/* Old addresses lie where its variables are, right where a call would have left one. */
NOINLINE static int went_astray(int x)
{
	void *volatile old[64];
	int r;

	for (int i = 0; i < 64; i++)
		old[i] = __builtin_return_address(0);
	r = astray(x);
	AFTER();
	return r + (old[x & 63] != NULL);
}

/* Functions that end in a jump: they have no frame of their own. */
NOINLINE static int jumps_on(int x)
{
	sink += x;
	return uses_stack(x + 1);
}
enum { JUMPS_ON_LINE = __LINE__ - 2 };

NOINLINE static int jumps_first(int x)
{
	sink -= x;
	return jumps_on(x * 3);
}
enum { JUMPS_FIRST_LINE = __LINE__ - 2 };

/* Two jumps: which of them it was cannot be told, so what it jumped to is not put back. */
NOINLINE static int jumps_either(int x)
{
	sink ^= x;
	return x > 100 ? jumps_first(x) : jumps_on(x);
}

/* Several, and one of them leads to where it is now. */
NOINLINE static int jumps_one_way(int x)
{
	sink ^= x;
	if (x < 100)
		return uses_stack(x + 1);
	if (x < 200)
		return jumps_on(x + 2);
	return jumps_first(x + 3);
}
enum { JUMPS_ONE_WAY_LINE = __LINE__ - 5 };

static int (*volatile somewhere)(int) = uses_stack;

NOINLINE static int jumps_by_pointer(int x)
{
	sink += x;
	return somewhere(x + 1);
}
enum { JUMPS_BY_POINTER_LINE = __LINE__ - 2 };

__attribute__((cold, noinline)) static int seldom(int x)
{
	int r = uses_stack(x);

	AFTER();
	return r;
}

/* What is seldom done stands apart from the rest of the function, and is reached by a jump. */
NOINLINE static int partly_cold(int x)
{
	int r = x;

	if (x != 0)
		r += seldom(x);
	AFTER();
	return r;
}

NOINLINE static void by_tail(const char *how, int x)
{
	int r = 0;

	say_crash();
	SAY("uses_stack", USES_STACK_LINE);
	if (strcmp(how, "tail-pointer") == 0)
		SAY("jumps_by_pointer", JUMPS_BY_POINTER_LINE);
	else if (strcmp(how, "tail-either") == 0)
		SAY("jumps_either", 0);
	else if (strcmp(how, "tail-one-way") == 0)
		SAY("jumps_one_way", JUMPS_ONE_WAY_LINE);
	else if (strcmp(how, "cold") == 0) {
		SAY("seldom", 0);
		SAY("partly_cold", 0);
	} else
		SAY("jumps_on", JUMPS_ON_LINE);
	if (strcmp(how, "tail-chain") == 0)
		SAY("jumps_first", JUMPS_FIRST_LINE);
	SAY("by_tail", 0);
	SAY("main", 0);
	fflush(stdout);
	if (strcmp(how, "tail") == 0)
		r = jumps_on(x);
	else if (strcmp(how, "tail-chain") == 0)
		r = jumps_first(x);
	else if (strcmp(how, "tail-either") == 0)
		r = jumps_either(x);
	else if (strcmp(how, "tail-one-way") == 0)
		r = jumps_one_way(x);
	else if (strcmp(how, "tail-pointer") == 0)
		r = jumps_by_pointer(x);
	else if (strcmp(how, "cold") == 0)
		r = partly_cold(x);
	sink += r;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "plain";

	if (strcmp(how, "plain") == 0) {
		plain();
	} else if (strcmp(how, "signal") == 0) {
		by_signal();
	} else if (strcmp(how, "qsort") == 0) {
		by_qsort();
	} else if (strcmp(how, "null-call") == 0) {
		bad_call(NULL);
	} else if (strcmp(how, "data-call") == 0) {
		bad_call(data);
	} else if (strcmp(how, "jit") == 0) {
		jit(0);
	} else if (strcmp(how, "jit-leaf") == 0) {
		jit(1);
	} else if (strcmp(how, "thread") == 0) {
		by_thread();
	} else if (strcmp(how, "strlen") == 0) {
		by_strlen((const char *)(sink + 8));
	} else if (strcmp(how, "abort") == 0) {
		by_abort();
	} else if (strcmp(how, "overflow") == 0) {
		int first = 0;

		sink = overflow(&first);
	} else if (strcmp(how, "smash") == 0) {
		smashed(argc);
	} else if (strcmp(how, "astray") == 0) {
		went_astray(argc);
	} else if (strcmp(how, "vdso") == 0) {
		by_vdso();
	} else if (strncmp(how, "tail", 4) == 0 || strcmp(how, "cold") == 0) {
		by_tail(how, argc);
	} else if (strcmp(how, "deep") == 0) {
		say_crash();
		SAY("uses_stack", USES_STACK_LINE);
		for (int i = 0; i <= 30; i++)
			SAY("deep", 0);
		SAY("main", 0);
		fflush(stdout);
		deep(30);
	}
	AFTER();
	return 0;
}
