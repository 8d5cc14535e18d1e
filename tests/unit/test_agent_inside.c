/*
 * Parts of the agent that can be asked alone: how it tells ways to a place apart, and what it makes
 * of libc's cache of freed blocks, with a libc that is made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/alloc/tcache.h"
#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/real.h"
#include "agent/ids/context.h"
#include "agent/watch/watch.h"

/* The agent's, as far as its cache asks for it. */
struct agent agent;
struct log log_map;
struct real real;
struct watch_state watch_state;

#define WORDS THREAD_SITE_WORDS
#define WAY (WORDS + 1) /* the return address itself, and the words above it */

static bool is_same(const struct thread_site *site, const uint64_t way[WAY])
{
	uint64_t stack[WAY + 1];

	stack[0] = 0;
	memcpy(stack + 1, way, sizeof(uint64_t[WAY]));
	return context_sum(site, way[0], (uint64_t)stack) == site->sum;
}

/* Two callers that both lie elsewhere, by the same bits: no sum may let them cancel each other out.
 * The lower half of the return address itself is compared besides, so its other bits are taken. */
static void ways_that_differ_twice_are_told_apart(void **state)
{
	struct thread_site site = { 0 };
	uint64_t way[WAY], other[WAY], stack[WAY + 1] = { 0 };

	(void)state;
	if (!arch_can_mix())
		skip();
	for (unsigned i = 0; i < WAY; i++)
		way[i] = 0x555555555000 + 0x131 * (i + 1);
	for (unsigned i = 0; i < WORDS; i++)
		site.offset[i] = (uint16_t)(16 + 8 * i);
	memcpy(stack + 1, way, sizeof(way));
	site.sum = context_sum(&site, way[0], (uint64_t)stack);
	assert_true(is_same(&site, way));
	for (unsigned i = 1; i < WAY; i++)
		for (unsigned k = i + 1; k < WAY; k++)
			for (uint64_t bits = 1; bits < 1 << 16; bits++) {
				memcpy(other, way, sizeof(way));
				other[i] ^= bits;
				other[k] ^= bits;
				if (is_same(&site, other))
					fail_msg("words %u and %u, both changed by %#lx", i, k,
						 (unsigned long)bits);
			}
}

/* ---- a libc --------------------------------------------------------------------------------- */

enum habit {
	AS_KNOWN,
	FIRST_STAYS,
	NOT_MIXED,
	KEY_STAYS,
	KEY_CHANGES,
	COUNTS_TWICE,
	OTHER_BIN,
	NO_COUNT,
};

enum outcome {
	LEFT_ALONE = 1,
	USED = 2,
	STILL_WATCHED = 4,
	BLOCKS_DIFFER = 8,
	NO_MEMORY = 16,
};

#define KEY 0x5eed5eed5eed5eedull

static struct {
	unsigned bins;
	int step;
	unsigned room;
	enum habit habit;
	unsigned from; /* that call on */
} libc;
static __thread uint64_t *cache; /* among this program's variables of a thread, as in libc's */
static _Alignas(16) uint64_t heap[1 << 17];
static uint64_t behind[1 << 17]; /* by block: the next one, whatever the block says */
static size_t heap_used;
static unsigned calls;

static uint64_t *carve(size_t chunk)
{
	uint64_t *block = &heap[heap_used + 2];

	if (heap_used + chunk / 8 + 2 > sizeof(heap) / 8)
		_exit(NO_MEMORY);
	block[-1] = chunk | 1;
	heap_used += chunk / 8;
	return block;
}

static bool odd(enum habit habit)
{
	return libc.habit == habit && calls >= libc.from;
}

static uint16_t *count_of(size_t bin)
{
	return (uint16_t *)cache + bin;
}

static uint64_t *first_of(size_t bin)
{
	return (uint64_t *)((uint16_t *)cache + libc.bins) + bin;
}

static void cache_make(void)
{
	cache = carve((libc.bins * 10 + 8 + 15) / 16 * 16);
	for (unsigned i = 0; i < libc.bins; i++)
		*count_of(i) = libc.step > 0 ? 0 : (uint16_t)libc.room;
}

static uint64_t mixed(const uint64_t *block, uint64_t next)
{
	return odd(NOT_MIXED) ? next : next ^ (uint64_t)block >> 12;
}

static void count_by(size_t bin, int step)
{
	if (!odd(NO_COUNT))
		*count_of(bin) = (uint16_t)(*count_of(bin) + step * (odd(COUNTS_TWICE) ? 2 : 1));
}

static void *libc_malloc(size_t size)
{
	size_t bin = size < 9 ? 0 : (size - 9) / 16;
	uint64_t *block, *link;

	calls++;
	if (!cache)
		cache_make();
	if (odd(OTHER_BIN) && *first_of(bin + 1))
		bin++;
	link = first_of(bin);
	block = (uint64_t *)*link;
	if (!block)
		return carve(32 + 16 * bin);
	*link = behind[block - heap];
	count_by(bin, -libc.step);
	if (!odd(KEY_STAYS))
		block[1] = 0;
	return block;
}

static void libc_free(void *ptr)
{
	uint64_t *block = ptr, *link, bin = ((block[-1] & ~7ull) - 32) / 16;

	calls++;
	if (libc.step > 0 ? *count_of(bin) >= libc.room : !*count_of(bin))
		return; /* to be given out never again: simple, and the same for all */
	block[1] = odd(KEY_CHANGES) ? KEY + calls : KEY;
	link = first_of(bin);
	if (odd(FIRST_STAYS) && *link) { /* behind the first, which stays */
		link = &behind[(uint64_t *)*link - heap];
		((uint64_t *)*first_of(bin))[0] =
			mixed((uint64_t *)*first_of(bin), (uint64_t)block);
	}
	block[0] = mixed(block, *link);
	behind[block - heap] = *link;
	*link = (uint64_t)block;
	count_by(bin, libc.step);
}

/* As the hooks call it. */
static void *hook_malloc(size_t size)
{
	void *ptr = tcache_take(size);

	if (ptr)
		return ptr;
	return tcache.watching ? tcache_malloc_watched(size) : real.malloc(size);
}

static void hook_free(void *ptr)
{
	if (tcache_give(ptr))
		return;
	if (tcache.watching)
		tcache_free_watched(ptr);
	else
		real.free(ptr);
}

/* What is left of a program that has done this, and which blocks it had. */
static uint64_t program(void *(*get)(size_t), void (*give)(void *), unsigned rounds)
{
	uint64_t *held[16] = { 0 }, seen = 1, x = 12345;

	for (unsigned i = 0; i < rounds; i++) {
		unsigned at = (unsigned)(x >> 33) % 16;

		x = x * 6364136223846793005u + 1442695040888963407u;
		if (held[at])
			give(held[at]);
		held[at] = get((x >> 40) % 120);
		seen = seen * 31 + (uint64_t)(held[at] - heap);
	}
	return seen;
}

/* What the hook makes of this libc; in a child, because it decides once in a process's life. */
static int outcome(unsigned bins, int step, unsigned room, enum habit habit, unsigned from,
		   const char *variable)
{
	char *environment[] = { (char *)variable, NULL };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		uint64_t by_itself, before, by_hook;
		int found = 0;

		libc.bins = bins;
		libc.step = step;
		libc.room = room;
		libc.habit = habit;
		libc.from = from;
		by_itself = program(libc_malloc, libc_free, 3000);
		memset(heap, 0, sizeof(heap));
		heap_used = calls = 0;
		cache = NULL;
		real.malloc = libc_malloc;
		real.free = libc_free;
		real.glibc_malloc = true;
		agent.environment = environment;
		tcache_init();
		by_hook = program(hook_malloc, hook_free, 3000);
		found |= by_hook == by_itself ? 0 : BLOCKS_DIFFER;
		found |= tcache.watching ? STILL_WATCHED : 0;
		/* Whoever uses the cache needs libc no more for this one. */
		hook_free(hook_malloc(24));
		before = calls;
		hook_free(hook_malloc(24));
		found |= calls == before ? USED : LEFT_ALONE;
		_exit(found);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void known_caches_are_used(void **state)
{
	(void)state;
	assert_int_equal(outcome(64, 1, 7, AS_KNOWN, 0, NULL), USED);	/* glibc 2.36, 2.41 */
	assert_int_equal(outcome(76, -1, 7, AS_KNOWN, 0, NULL), USED);	/* 2.42 */
	assert_int_equal(outcome(76, -1, 16, AS_KNOWN, 0, NULL), USED); /* 2.43 */
}

/* From the first call on, and after it was as foreseen for a while. */
static void others_are_left_alone(void **state)
{
	static const unsigned froms[] = { 0, 10, 20 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (enum habit habit = FIRST_STAYS; habit <= NO_COUNT; habit++) {
			int old = outcome(64, 1, 7, habit, froms[i], NULL);
			int new = outcome(76, -1, 16, habit, froms[i], NULL);

			if (old != LEFT_ALONE || new != LEFT_ALONE)
				fail_msg("habit %d from call %u on: %d, %d", habit, froms[i], old,
					 new);
		}
}

static void a_count_that_goes_the_other_way_is_another(void **state)
{
	(void)state;
	assert_int_equal(outcome(64, -1, 7, AS_KNOWN, 0, NULL), LEFT_ALONE);
	assert_int_equal(outcome(76, 1, 7, AS_KNOWN, 0, NULL), LEFT_ALONE);
}

/* Nothing is found to look at, until patience ends. */
static void a_cache_of_another_size_is_not_taken_for_one(void **state)
{
	(void)state;
	assert_int_equal(outcome(72, 1, 7, AS_KNOWN, 0, NULL), LEFT_ALONE);
	assert_int_equal(outcome(80, -1, 16, AS_KNOWN, 0, NULL), LEFT_ALONE);
}

static void a_tuned_one_is_left_alone(void **state)
{
	(void)state;
	assert_int_equal(outcome(64, 1, 7, AS_KNOWN, 0,
				 "GLIBC_TUNABLES=glibc.malloc.tcache_count=2"),
			 LEFT_ALONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_that_differ_twice_are_told_apart),
		cmocka_unit_test(known_caches_are_used),
		cmocka_unit_test(others_are_left_alone),
		cmocka_unit_test(a_count_that_goes_the_other_way_is_another),
		cmocka_unit_test(a_cache_of_another_size_is_not_taken_for_one),
		cmocka_unit_test(a_tuned_one_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
