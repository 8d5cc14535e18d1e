/*
 * What threads share: the memory test, the table that several may want first, the agent's lock.
 * `make check` runs this under ThreadSanitizer, which tells unordered accesses; by itself it tells
 * results that are wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "agent/core/spin.h"
#include "base/auto.h"
#include "doctor/memtest.h"
#include "search/minimize/rate_grid.h"

#define THREADS 4
#define ROUNDS 20000u

/* Runs it in several threads at once, which wait for each other before they begin. */
struct crew {
	void (*work)(void *ctx);
	void *ctx;
	pthread_barrier_t gate;
};

static void *crew_member(void *argument)
{
	struct crew *crew = argument;

	(void)pthread_barrier_wait(&crew->gate);
	crew->work(crew->ctx);
	return NULL;
}

static void at_once(void (*work)(void *ctx), void *ctx)
{
	struct crew crew = { .work = work, .ctx = ctx };
	pthread_t threads[THREADS];

	assert_int_equal(pthread_barrier_init(&crew.gate, NULL, THREADS), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, crew_member, &crew), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(pthread_barrier_destroy(&crew.gate), 0);
}

static void read_grid(void *ctx)
{
	const struct rate_grid *grid = rate_grid();
	double sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(grid->log_prior); i++)
		sum += grid->log_prior[i];
	/* Each thread its own; what it is does not matter, it was read. */
	if (sum < 0)
		__atomic_fetch_add((uint32_t *)ctx, 1, __ATOMIC_RELAXED);
}

static void the_grid_is_whole_for_whoever_asks_first(void **state)
{
	uint32_t seen = 0;

	(void)state;
	at_once(read_grid, &seen);
	assert_int_equal(seen, THREADS);
}

struct counted {
	uint32_t lock;
	uint64_t count, refused;
};

static void count_locked(void *ctx)
{
	struct counted *counted = ctx;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (spin_take_sigsafe(&counted->lock, UINT32_MAX)) {
			counted->count++;
			spin_give_sigsafe(&counted->lock);
		} else {
			__atomic_fetch_add(&counted->refused, 1, __ATOMIC_RELAXED);
		}
	}
}

static void the_agents_lock_lets_one_in(void **state)
{
	struct counted counted = { 0 };

	(void)state;
	at_once(count_locked, &counted);
	assert_int_equal(counted.refused, 0);
	assert_int_equal(counted.count, (uint64_t)THREADS * ROUNDS);
}

static void the_memory_test_counts_alone(void **state)
{
	struct memtest_request request = { .seconds = 0.2, .bytes = 8u << 20 };
	struct memtest_result result;

	(void)state;
	assert_int_equal(memtest_run(&request, &result), 0);
	assert_true(result.cores >= 1);
	assert_true(result.passes >= result.cores);
	assert_int_equal(result.errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_grid_is_whole_for_whoever_asks_first),
		cmocka_unit_test(the_agents_lock_lets_one_in),
		cmocka_unit_test(the_memory_test_counts_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
