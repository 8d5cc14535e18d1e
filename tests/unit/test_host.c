/*
 * Signs that it is the machine: what counts as one, what nearly does, and the memory test itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "doctor/memtest.h"
#include "judge/judge.h"
#include "judge/signs.h"
#include "run/settings.h"

/* ---- flipped bits ---- */

/* A field that was watched from its block's birth to a failure. */
static struct evidence *watched(struct evidence_list *list, uint64_t trial, int64_t offset,
				uint64_t birth, uint64_t found)
{
	struct evidence e = evidence_new(EVIDENCE_WATCH, trial, true);

	e.watch->home = (struct home){ .kind = HOME_BLOCK,
				       .key = mem_strdup("00c0ffee00c0ffee#1"),
				       .offset = offset,
				       .len = 8 };
	e.watch->mode = mem_strdup("hw");
	e.watch->victim_watched = e.watch->since_birth = e.watch->value_known = true;
	e.watch->birth_value = birth;
	e.watch->value = found;
	VEC_PUSH(&list->list, e);
	return &list->list.items[list->list.count - 1];
}

/* Three failing trials, each with another bit of another field. */
static void flips(struct evidence_list *list)
{
	watched(list, 1, 8, 0x1000, 0x1400);
	watched(list, 2, 24, 0x7f0000001000, 0x7f0000001001);
	watched(list, 3, 40, 0, 1ull << 63);
}

static struct host_signs count(struct evidence_list *list)
{
	struct host_signs signs = { .core = -1, .core_p = 1 };

	signs_count_flips(list, &signs);
	evidence_list_deinit(list);
	return signs;
}

static void bits_that_flip_here_and_there_are_a_sign(void **state)
{
	struct evidence_list list = { 0 };
	struct host_signs signs;

	flips(&list);
	signs = count(&list);
	assert_int_equal(signs.bit_flips, 3);
	assert_int_equal(signs.flip_homes, 3);
	assert_int_equal(signs.flip_bits, 3);
	assert_true(signs_flips(&signs));
}

static void two_bits_are_no_flip(struct evidence_list *list)
{
	list->list.items[2].watch->value |= 1;
}

static void somebody_wrote_it(struct evidence_list *list)
{
	list->list.items[2].watch->hits = 1;
}

static void it_was_not_watched_all_the_time(struct evidence_list *list)
{
	list->list.items[2].watch->since_birth = false;
}

static void another_block_was_watched(struct evidence_list *list)
{
	list->list.items[2].watch->victim_watched = false;
}

static void the_trial_passed(struct evidence_list *list)
{
	list->list.items[2].failing = false;
}

static void one_trial_shows_it_twice(struct evidence_list *list)
{
	list->list.items[2].trial = 2;
}

static void nothing_changed(struct evidence_list *list)
{
	list->list.items[2].watch->value = list->list.items[2].watch->birth_value;
}

/* The same bit of the same field every time: a program's doing. */
static void it_is_always_the_same_bit(struct evidence_list *list)
{
	VEC_FOREACH (&list->list, e) {
		e->watch->home.offset = 24;
		e->watch->birth_value = 0x1001;
		e->watch->value = 0x1000;
	}
}

static void what_nearly_is_a_sign(void **state)
{
	void (*const nearly[])(struct evidence_list *) = {
		two_bits_are_no_flip,
		somebody_wrote_it,
		it_was_not_watched_all_the_time,
		another_block_was_watched,
		the_trial_passed,
		one_trial_shows_it_twice,
		nothing_changed,
		it_is_always_the_same_bit,
	};

	for (size_t i = 0; i < sizeof(nearly) / sizeof(nearly[0]); i++) {
		struct evidence_list list = { 0 };
		struct host_signs signs;

		flips(&list);
		nearly[i](&list);
		signs = count(&list);
		assert_false(signs_flips(&signs));
	}
}

static void signals_are_a_sign_only_all_together(void **state)
{
	struct host_signs signs = { .segv = 5, .bus = 1, .ill = 1, .sites = 3, .core = -1 };

	assert_true(signs_signals(&signs));
	signs.ill = 0;
	assert_false(signs_signals(&signs));
	signs.ill = 1;
	signs.sites = 2; /* it dies where it always dies */
	assert_false(signs_signals(&signs));
}

static void a_core_is_a_sign_only_beyond_chance(void **state)
{
	struct host_signs signs = { .core = 0, .core_p = 0.0001 };

	assert_true(signs_core(&signs));
	signs.core_p = 0.01;
	assert_false(signs_core(&signs));
	signs = (struct host_signs){ .core = -1, .core_p = 0.0001 };
	assert_false(signs_core(&signs));
}

/* "All 14 failures on node n3": with other signs it is the machine, alone it accuses nobody. */
static void a_node_is_a_sign_only_beyond_chance(void **state)
{
	struct evidence_list list = { 0 };
	struct evidence e = evidence_new(EVIDENCE_HOST, 0, true);
	struct verdict verdict = { 0 };

	e.host->core = -1;
	e.host->core_p = 1;
	(void)snprintf(e.host->node, sizeof(e.host->node), "n3");
	e.host->node_p = 0.01;
	assert_false(signs_node(e.host));
	e.host->node_p = 1e-6;
	assert_true(signs_node(e.host));
	VEC_PUSH(&list.list, e);
	judge_evidence(&list, &verdict);
	assert_int_not_equal(verdict.class, VERDICT_HOST_SUSPECTED);
	verdict_deinit(&verdict);
	flips(&list);
	signs_count_flips(&list, list.list.items[0].host);
	judge_evidence(&list, &verdict);
	assert_int_equal(verdict.class, VERDICT_HOST_SUSPECTED);
	verdict_deinit(&verdict);
	list.list.items[0].host->node_p = 0.01;
	judge_evidence(&list, &verdict);
	assert_int_not_equal(verdict.class, VERDICT_HOST_SUSPECTED);
	verdict_deinit(&verdict);
	evidence_list_deinit(&list);
}

/* One sign alone, even with a clean memory test beside it, accuses nobody. */
static void one_sign_is_no_verdict(void **state)
{
	struct evidence_list list = { 0 };
	struct evidence e = evidence_new(EVIDENCE_HOST, 0, true);
	struct verdict verdict = { 0 };

	flips(&list);
	e.host->core = -1;
	e.host->core_p = 1;
	e.host->memory_tested = true;
	signs_count_flips(&list, e.host);
	assert_true(signs_flips(e.host));
	VEC_PUSH(&list.list, e);
	judge_evidence(&list, &verdict);
	assert_int_not_equal(verdict.class, VERDICT_HOST_SUSPECTED);
	verdict_deinit(&verdict);

	/* A second one does, though not firmly. */
	list.list.items[list.list.count - 1].host->core = 1;
	list.list.items[list.list.count - 1].host->core_p = 1e-6;
	judge_evidence(&list, &verdict);
	assert_int_equal(verdict.class, VERDICT_HOST_SUSPECTED);
	assert_false(verdict.firm);
	verdict_deinit(&verdict);
	evidence_list_deinit(&list);
}

/* ---- the memory test ---- */

static void good_memory_has_no_errors(void **state)
{
	struct memtest_result result;

	assert_int_equal(memtest_run(&(struct memtest_request){ .seconds = 0.2, .bytes = 4 << 20 },
				     &result),
			 0);
	assert_int_equal(result.errors, 0);
	assert_int_equal(result.core, -1);
	assert_true(result.passes > 0 && result.cores > 0);
	assert_true(result.bytes > (4 << 20) / 2 && result.bytes <= 4 << 20);
}

static void flip(void *ctx, uint64_t *words, size_t count)
{
	if (count > 100)
		words[100] ^= 1ull << 17;
}

static void a_bit_that_does_not_stay_is_found(void **state)
{
	struct memtest_result result;

	assert_int_equal(memtest_run(&(struct memtest_request){ .seconds = 0.5,
								.bytes = 4 << 20,
								.meanwhile = flip },
				     &result),
			 0);
	assert_true(result.errors > 0 && result.errors <= result.passes);
	assert_true(result.core >= 0);
}

static void too_little_memory_is_told(void **state)
{
	struct memtest_result result = { .errors = 7 };

	assert_int_not_equal(
		memtest_run(&(struct memtest_request){ .seconds = 0.1, .bytes = 16 }, &result), 0);
	assert_int_equal(result.errors, 7);
}

/* ---- settings of a series, changed ---- */

static void a_line_of_the_settings_is_replaced(void **state)
{
	static const char text[] = "command 4:hunt\narg 12:x\njobs 9\ny 1\njobs 2\npty 0\n";
	char *changed = series_settings_with(text, "jobs", "jobs 1\n");

	/* What looks like a line inside of an argument is none. */
	assert_string_equal(changed, "command 4:hunt\narg 12:x\njobs 9\ny 1\njobs 1\npty 0\n");
	mem_free(changed);
	changed = series_settings_with(text, "chaos", "chaos 31\n");
	assert_string_equal(changed,
			    "command 4:hunt\narg 12:x\njobs 9\ny 1\njobs 2\npty 0\nchaos 31\n");
	mem_free(changed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_that_flip_here_and_there_are_a_sign),
		cmocka_unit_test(what_nearly_is_a_sign),
		cmocka_unit_test(signals_are_a_sign_only_all_together),
		cmocka_unit_test(a_core_is_a_sign_only_beyond_chance),
		cmocka_unit_test(a_node_is_a_sign_only_beyond_chance),
		cmocka_unit_test(one_sign_is_no_verdict),
		cmocka_unit_test(good_memory_has_no_errors),
		cmocka_unit_test(a_bit_that_does_not_stay_is_found),
		cmocka_unit_test(too_little_memory_is_told),
		cmocka_unit_test(a_line_of_the_settings_is_replaced),
	};

	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
