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

#include "arch/arch.h"
#include "base/fd.h"
#include "base/mem.h"
#include "debuginfo/symbols.h"
#include "model/mappings.h"

#define STACK_BYTES 65536

static struct snapshot snapshot;
static uint8_t stack_bytes[STACK_BYTES];
static struct mappings maps;
static volatile int sink;

static void take_mappings(void)
{
	AUTO(mem_freep) char *text = NULL;
	struct err err;
	size_t len = 0;

	if (file_read("/proc/self/maps", 1 << 20, &text, &len, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		exit(2);
	}
	mappings_deinit(&maps);
	(void)mappings_parse(&maps, text, len);
	snapshot.mappings = maps.items;
	snapshot.mapping_count = maps.count;
}

/* The state of whoever calls this; the slice stays valid after they are gone. */
static __attribute__((noinline)) void capture(void)
{
	ucontext_t context;
	const struct mapping *mapping;
	size_t len = STACK_BYTES;

	(void)getcontext(&context);
	snapshot.pid = getpid();
	arch_registers_from_saved(arch_native(), (const uint64_t *)context.uc_mcontext.gregs,
				  REG_RIP + 1, &snapshot.registers);
	take_mappings();
	snapshot.stack.address = snapshot.registers.value[arch_native()->sp];
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
	mappings_deinit(&maps);
	return open / rounds < 50 ? 0 : 1;
}
