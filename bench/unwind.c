/*
 * How long does one stack of 40 frames take, unwound and named?
 *
 *	bench_unwind [ROUNDS]
 *
 * The stack is this program's own: 40 different functions (a few of them inlined into others, on
 * top), captured as a snapshot. Three cases: everything still closed; the debug information open,
 * but none of these addresses ever seen (another 40 functions); the same stack again. The bar is 50
 * ms for the second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/x86_64.h"
#include "base/mem.h"
#include "debuginfo/symbols.h"

#define STACK_BYTES 65536

static struct snapshot snapshot;
static uint8_t stack_bytes[STACK_BYTES];
static struct mapping mappings[1024];
static char paths[1024][256];
static volatile int sink;

static void take_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4352];

	snapshot.mapping_count = 0;
	while (maps && snapshot.mapping_count < 1024 && fgets(line, sizeof(line), maps)) {
		struct mapping *m = &mappings[snapshot.mapping_count];
		char *path = paths[snapshot.mapping_count];
		unsigned long start, end, offset;
		char perms[5];

		path[0] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %255[^\n]", &start, &end, perms, &offset,
			   path) < 4)
			continue;
		*m = (struct mapping){ .start = start, .end = end, .file_offset = offset };
		m->path = path[0] ? path : NULL;
		m->perms = MAPPING_READ | (perms[1] == 'w' ? MAPPING_WRITE : 0) |
			   (perms[2] == 'x' ? MAPPING_EXEC : 0);
		snapshot.mapping_count++;
	}
	if (maps)
		(void)fclose(maps);
	snapshot.mappings = mappings;
}

/* The state of whoever calls this; the slice stays valid after they are gone. */
static __attribute__((noinline)) void capture(void)
{
	static const int order[][2] = {
		{ X86_64_RBX, REG_RBX }, { X86_64_RBP, REG_RBP }, { X86_64_RSP, REG_RSP },
		{ X86_64_R12, REG_R12 }, { X86_64_R13, REG_R13 }, { X86_64_R14, REG_R14 },
		{ X86_64_R15, REG_R15 }, { X86_64_RIP, REG_RIP },
	};
	ucontext_t context;
	const struct mapping *mapping;
	size_t len = STACK_BYTES;

	(void)getcontext(&context);
	snapshot.pid = getpid();
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		snapshot.registers.value[order[i][0]] =
			(uint64_t)context.uc_mcontext.gregs[order[i][1]];
		snapshot.registers.known |= 1u << order[i][0];
	}
	take_mappings();
	snapshot.stack.address = snapshot.registers.value[X86_64_RSP];
	mapping = snapshot_mapping(&snapshot, snapshot.stack.address);
	if (mapping && mapping->end - snapshot.stack.address < len)
		len = (size_t)(mapping->end - snapshot.stack.address);
	memcpy(stack_bytes, (void *)(uintptr_t)snapshot.stack.address, len);
	snapshot.stack.bytes = stack_bytes;
	snapshot.stack.len = len;
}

static inline __attribute__((always_inline)) void inlined(int n)
{
	sink += n;
	capture();
	sink -= n;
}

/* Ten functions that call each other, the last one calling `next`. */
#define LEVEL(name, callee)                              \
	static __attribute__((noinline)) int name(int n) \
	{                                                \
		int room[8] = { n };                     \
		int r = callee(n + 1);                   \
                                                         \
		__asm__ volatile("" : : "r"(room));      \
		sink += r;                               \
		return r + room[n & 7];                  \
	}
#define TEN(name, next)         \
	LEVEL(name##0, next)    \
	LEVEL(name##1, name##0) \
	LEVEL(name##2, name##1) \
	LEVEL(name##3, name##2) \
	LEVEL(name##4, name##3) \
	LEVEL(name##5, name##4) \
	LEVEL(name##6, name##5) \
	LEVEL(name##7, name##6) \
	LEVEL(name##8, name##7) \
	LEVEL(name##9, name##8)

static __attribute__((noinline)) int bottom(int n)
{
	inlined(n);
	return n;
}

TEN(a, bottom)
TEN(b, a9)
TEN(c, b9)
TEN(d, c9)
TEN(e, bottom)
TEN(f, e9)
TEN(g, f9)
TEN(h, g9)

static double now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Milliseconds of one unwinding; the number of frames goes to *ret_frames. */
static double measure(struct symbols *symbols, size_t *ret_frames)
{
	struct stack stack = { 0 };
	struct err err;
	double start = now_ms(), ms;

	if (symbols_unwind(symbols, &snapshot, &stack, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		exit(2);
	}
	ms = now_ms() - start;
	*ret_frames = stack.count;
	for (size_t i = 0; i < stack.count; i++)
		if (!stack.frames[i].function)
			fprintf(stderr, "frame %zu has no name\n", i);
	if (stack.end != STACK_COMPLETE)
		fprintf(stderr, "the stack ends early: %s\n", stack_end_name(stack.end));
	stack_deinit(&stack);
	return ms;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	double first = 0, open = 0, again = 0;
	size_t frames = 0;

	for (int i = 0; i < rounds; i++) {
		struct symbols *symbols = symbols_new(&(struct symbols_options){ 0 });

		d9(0);
		first += measure(symbols, &frames);
		h9(0);
		open += measure(symbols, &frames);
		again += measure(symbols, &frames);
		symbols_free(symbols);
	}
	printf("one stack of %zu frames, unwound and named (mean of %d)\n", frames, rounds);
	printf("  debug information closed    %8.3f ms\n", first / rounds);
	printf("  debug information open      %8.3f ms   (bar: 50 ms)\n", open / rounds);
	printf("  the same stack again        %8.3f ms\n", again / rounds);
	return open / rounds < 50 ? 0 : 1;
}
