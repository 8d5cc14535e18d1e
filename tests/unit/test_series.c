/*
 * studies/series: counting, arms, the order of runs, and what is concluded from counts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "case_fixture.h"
#include "in_range.h"
#include "run/tally.h"
#include "studies/series/arm.h"
#include "studies/series/schedule.h"
#include "studies/series/series_findings.h"
#include "studies/series/target.h"

#define CRASH "aaaaaaaaaa"
#define TEST1 "bbbbbbbbbb"
#define TEST2 "cccccccccc"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * want))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* ---- tally ---- */

static void count(struct tally *tally, const char *signatures, bool cut_short, uint64_t n)
{
	tally_add(tally, &(struct tally_row){ .signatures = signatures,
					      .cut_short = cut_short,
					      .count = n,
					      .trial = 100 });
}

static bool always(const struct tally *tally, const char *id)
{
	const struct tally_signature *s = tally_find(tally, id);

	assert_non_null(s);
	return s->always;
}

static void failed_are(const struct tally *tally, unsigned int arm, unsigned int slot,
		       uint64_t want_failed, uint64_t want_trials)
{
	uint64_t trials, failed;

	tally_failed(tally, arm, slot, &trials, &failed);
	assert_int_equal(failed, want_failed);
	assert_int_equal(trials, want_trials);
}

static void tally_of_nothing(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	assert_false(tally_intermittent(&tally));
	assert_false(tally_counts(&tally, ""));
	assert_null(tally_find(&tally, CRASH));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 0, 0);
	count(&tally, "", false, 3);
	assert_false(tally_intermittent(&tally));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 0, 3);
}

static void always_needs_every_run_and_two(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	count(&tally, TEST1, false, 1);
	assert_false(always(&tally, TEST1)); /* once is not every time */
	assert_true(tally_intermittent(&tally));
	count(&tally, TEST1, false, 1);
	assert_true(always(&tally, TEST1));
	assert_false(tally_intermittent(&tally));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 2, 2); /* the only failure there is counts */
	count(&tally, "", false, 1);
	assert_false(always(&tally, TEST1));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 2, 3);
}

static void runs_cut_short_say_nothing_about_later_tests(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	/* TEST1 comes early, TEST2 late; a crash in between hides TEST2. */
	count(&tally, TEST1 " " TEST2, false, 6);
	count(&tally, CRASH " " TEST1, true, 2);
	count(&tally, CRASH, true, 1);
	assert_true(always(&tally, TEST1));
	assert_true(always(&tally, TEST2));
	assert_false(always(&tally, CRASH));
	assert_true(tally_intermittent(&tally));
	/* What every run shows does not count while something else is intermittent. */
	assert_false(tally_counts(&tally, TEST1 " " TEST2));
	assert_true(tally_counts(&tally, CRASH " " TEST1));
	assert_true(tally_counts(&tally, CRASH));
	assert_true(tally_counts(&tally, "dddddddddd")); /* a new one is intermittent */
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 3, 9);
	/* A run that reached its end without TEST2 does speak against it. */
	count(&tally, TEST1, false, 1);
	assert_true(always(&tally, TEST1));
	assert_false(always(&tally, TEST2));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 9, 10);
}

static void a_crash_in_every_run_is_always(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	count(&tally, CRASH, true, 5);
	assert_true(always(&tally, CRASH));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 5, 5);
	/* A crash is compared with all runs, those that ended too. */
	count(&tally, "", false, 1);
	assert_false(always(&tally, CRASH));
	count(&tally, CRASH, true, 100);
	assert_false(always(&tally, CRASH));
}

static void crashes_and_timeouts_side_by_side(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	count(&tally, CRASH, true, 4);
	count(&tally, TEST1, true, 4); /* say, a timeout */
	assert_false(always(&tally, CRASH));
	assert_false(always(&tally, TEST1));
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 8, 8);
}

static void counts_per_arm_and_slot(void **state)
{
	AUTO(tally_deinit) struct tally tally = { 0 };

	for (unsigned int i = 0; i < 40; i++)
		tally_add(&tally,
			  &(struct tally_row){ .arm = i % 2,
					       .slot = i % 4,
					       .signatures = i % 4 == 3 && i < 20 ? CRASH : "",
					       .cut_short = i % 4 == 3 && i < 20,
					       .count = 1,
					       .trial = 1000 - i });
	failed_are(&tally, TALLY_ALL, TALLY_ALL, 5, 40);
	failed_are(&tally, 0, TALLY_ALL, 0, 20);
	failed_are(&tally, 1, TALLY_ALL, 5, 20);
	failed_are(&tally, TALLY_ALL, 3, 5, 10);
	failed_are(&tally, TALLY_ALL, 1, 0, 10);
	failed_are(&tally, 1, 3, 5, 10);
	failed_are(&tally, 0, 3, 0, 0);
	failed_are(&tally, 7, 7, 0, 0);
	/* Small, however many trials: one row per arm, slot and outcome. */
	assert_int_equal(tally.counts.count, 5);
	/* The example is the smallest number, in whatever order they came. */
	assert_int_equal(tally_find(&tally, CRASH)->trial, 1000 - 19);
	VEC_FOREACH (&tally.counts, c)
		if (c->cut_short)
			assert_int_equal(c->trial, 1000 - 19);
}

/* ---- arm ---- */

static void parsed(const char *text, struct arm *ret)
{
	struct err err = { 0 };

	if (arm_parse(text, ret, &err) < 0)
		fail_msg("%s", err.message);
}

static void list_is(const struct strv *got, const char *want)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	for (size_t i = 0; i < got->count; i++)
		strbuf_addf(&sb, "%s%s", i > 0 ? "|" : "", got->items[i]);
	assert_string_equal(strbuf_str(&sb), want);
}

static void arm_is(const char *text, const char *name, unsigned int jobs, const char *env,
		   const char *args)
{
	AUTO(arm_deinit) struct arm arm = { 0 };

	parsed(text, &arm);
	assert_string_equal(arm.name, name);
	assert_int_equal(arm.jobs, jobs);
	list_is(&arm.env, env);
	list_is(&arm.args, args);
}

static void arms_are_read(void **state)
{
	arm_is("plain", "plain", 0, "", "");
	arm_is("with space", "with space", 0, "", "");
	arm_is("par:jobs=4", "par", 4, "", "");
	arm_is("a:A=1,B=2", "a", 0, "A=1|B=2", "");
	arm_is("a:A=1:B=2", "a", 0, "A=1|B=2", "");
	arm_is("a:A=", "a", 0, "A=", "");
	arm_is("a:env=jobs=3", "a", 0, "jobs=3", ""); /* a variable with a setting's name */
	arm_is("a:unset=HOME,jobs=2", "a", 2, "HOME", "");
	arm_is("a:observe=none", "a", 0, "", "");
}

static void values_may_hold_commas_and_colons(void **state)
{
	arm_is("a:CUDA_VISIBLE_DEVICES=0,1,2", "a", 0, "CUDA_VISIBLE_DEVICES=0,1,2", "");
	arm_is("a:PATH=/bin:/usr/bin,jobs=2", "a", 2, "PATH=/bin:/usr/bin", "");
	arm_is("a:URL=http://x:80/,_Y=,,:", "a", 0, "URL=http://x:80/|_Y=,,:", "");
	arm_is("a:A=x=y", "a", 0, "A=x=y", "");
	arm_is("a:args=--list=1,2 --x", "a", 0, "", "--list=1,2|--x");
}

static void args_are_words(void **state)
{
	arm_is("a:args=--one 'two words' \"three more words\"", "a", 0, "",
	       "--one|two words|three more words");
	arm_is("a:args=", "a", 0, "", "");
	arm_is("a:args=-v,A=1", "a", 0, "A=1", "-v");
}

static void wrong_arms_are_told(void **state)
{
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{ "", "has no name" },
		{ ":A=1", "has no name" },
		{ "a:", "is not a setting" },
		{ "a:fast", "'fast' is not a setting" },
		{ "a:1A=2", "is not a setting" },
		{ "a:jobs=0", "wants a whole number from 1 to 1024, not '0'" },
		{ "a:jobs=many", "not 'many'" },
		{ "a:jobs=", "jobs=" },
		{ "a:args='open", "open '" },
		{ "a:env=x", "env= wants NAME=VALUE" },
		{ "a:unset=", "unset= wants" },
		{ "a:unset=A=1", "unset= wants" },
		{ "a:observe=massif", "observe=massif" },
		{ "a:A=1,jobs=x", "jobs=" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(arm_deinit) struct arm arm = { 0 };
		struct err err = { 0 };

		if (arm_parse(rows[i].text, &arm, &err) != -EINVAL)
			fail_msg("'%s' was taken", rows[i].text);
		if (!strstr(err.message, rows[i].sentence))
			fail_msg("'%s': %s", rows[i].text, err.message);
		assert_non_null(strstr(err.message, "--arm"));
	}
}

/* ---- schedule ---- */

static void every_run_comes_once(void **state)
{
	static const uint64_t per_arms[] = { 1, 2, 3, 7, 10, 60 },
			      batches[] = { 1, 2, 3, 4, 7, 8, 100 };

	for (unsigned int arms = 1; arms <= 5; arms++)
		for (size_t p = 0; p < ARRAY_SIZE(per_arms); p++)
			for (size_t b = 0; b < ARRAY_SIZE(batches); b++) {
				struct schedule schedule = { arms, per_arms[p], batches[b],
							     42 + p };
				uint64_t runs = schedule_runs(&schedule), last_batch = 0;
				AUTO(mem_freep) bool *seen = mem_alloc(runs);
				uint64_t given[5] = { 0 };
				unsigned int last_arm = 0;

				assert_int_equal(runs, arms * per_arms[p]);
				for (uint64_t at = 1; at <= runs; at++) {
					struct schedule_place place = schedule_at(&schedule, at);

					assert_true(place.arm < arms);
					assert_true(place.index < per_arms[p]);
					assert_false(seen[place.arm * per_arms[p] + place.index]);
					seen[place.arm * per_arms[p] + place.index] = true;
					/* Runs of an arm come in their order. */
					assert_int_equal(place.index, given[place.arm]);
					given[place.arm]++;
					/* Batches follow each other and hold one arm each. */
					assert_true(place.batch >= last_batch);
					if (batches[b] > 1 && at > 1 && place.batch == last_batch)
						assert_int_equal(place.arm, last_arm);
					last_batch = place.batch;
					last_arm = place.arm;
					/* At no time is an arm more than a batch ahead. */
					for (unsigned int a = 0; a < arms; a++)
						assert_true(given[place.arm] <=
							    given[a] + batches[b]);
				}
			}
}

static unsigned int differing(const struct schedule *a, const struct schedule *b)
{
	unsigned int n = 0;

	for (uint64_t at = 1; at <= schedule_runs(a); at++)
		n += schedule_at(a, at).arm != schedule_at(b, at).arm;
	return n;
}

static void the_seed_is_the_order(void **state)
{
	struct schedule one = { 2, 100, 1, 1 }, same = one, two = { 2, 100, 1, 2 };
	unsigned int first = 0;

	assert_int_equal(differing(&one, &same), 0);
	/* About half of them; these seeds give the same answer every time. */
	assert_uint_in_range(differing(&one, &two), 50, 150);
	/* Neither arm is favoured with the first turn. */
	for (uint64_t at = 1; at <= 200; at += 2)
		first += schedule_at(&one, at).arm == 0;
	assert_uint_in_range(first, 30, 70);
	/* A longer comparison begins like a shorter one: it can be resumed with more runs. */
	two = (struct schedule){ 2, 500, 1, 1 };
	assert_int_equal(differing(&one, &two), 0);
}

/* ---- findings ---- */

static int setup(void **state)
{
	static struct scratch s;

	scratch_make(&s);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(*state);
	return 0;
}

static struct case_store *new_case(const struct scratch *s, struct series_id *ret)
{
	struct case_store *cs = NULL;
	struct err err = { 0 };

	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), 0);
	assert_int_equal(made_series(cs, "x", ret, &err), 0);
	return cs;
}

/* `trials` on each of `slots`; the first `failing[slot]` of a slot crash. */
static void fill(struct case_store *cs, struct series_id series, unsigned int slots,
		 unsigned int trials, const unsigned int *failing)
{
	struct err err = { 0 };
	uint64_t number = 0;

	for (unsigned int i = 0; i < trials; i++)
		for (unsigned int slot = 0; slot < slots; slot++) {
			number++;
			assert_int_equal(
				add_made(cs, series,
					 &(struct made_trial){ .number = number,
							       .position = number,
							       .slot = slot,
							       .test = "T",
							       .signal = i < failing[slot] ? 11 : 0,
							       .last_crumb = i % 2 ? "x" : "y" },
					 &err),
				0);
		}
}

static void summarise(struct case_store *cs, struct series_id series, struct series_summary *ret)
{
	AUTO(tally_deinit) struct tally tally = { 0 };
	AUTO(readings_deinit) struct readings readings = { 0 };
	struct findings_source of = {
		.tally = &tally, .cs = cs, .series = series, .readings = &readings
	};
	struct err err = { 0 };

	assert_int_equal(tally_load(&tally, cs, series, &err), 0);
	if (findings_summarise(&of, ret, &err) < 0)
		fail_msg("%s", err.message);
}

/*
 * Expected p-values: exact fractions by Python's math.comb. Slot 0 fails 0 of 20, the other
 * three 8 of 20 each: two-sided p, times four slots.
 */
static void an_odd_slot_is_found(void **state)
{
	static const unsigned int failing[] = { 0, 8, 8, 8 };
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	fill(cs, series, 4, 20, failing);
	summarise(cs, series, &summary);
	assert_int_equal(summary.rate.trials, 80);
	assert_int_equal(summary.rate.failed, 24);
	assert_true(summary.intermittent);
	assert_int_equal(summary.failed_any, 24);
	assert_int_equal(summary.slots.count, 4);
	assert_int_equal(summary.odd_slot, 0);
	near(summary.slots.items[0].p, 4 * 0.0004054704036177367);
	near(summary.slots.items[1].p, 1.0);
	assert_int_equal(summary.slots.items[2].rate.failed, 8);
	assert_int_equal(summary.slots.items[2].rate.trials, 20);
	assert_int_equal(summary.crashes, 24);
	assert_int_equal(summary.crash_places, 2);
	assert_int_equal(summary.signatures.list.count, 1);
	assert_int_equal(summary.signatures.list.items[0].rate.failed, 24);
	assert_int_equal(summary.signatures.list.items[0].places, 2);
	assert_string_equal(summary.signatures.list.items[0].signature.summary, "SIGSEGV in T");
	assert_false(summary.signatures.list.items[0].always);
	/* ln(0.01) / ln(1 - 0.3) = 12.9 */
	assert_int_equal(summary.clean_runs_for_99, 13);
	/* 24 of 80 may be as rare as 21.06 %: ln(0.01) / ln(1 - 0.2106) = 19.5 */
	assert_int_equal(summary.clean_runs_at_low, 20);
	case_close(cs);
}

/* Each is compared with the other: one test, and nothing to correct for. */
static void of_two_slots_one_is_odd(void **state)
{
	static const unsigned int failing[] = { 8, 0 };
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	fill(cs, series, 2, 20, failing);
	summarise(cs, series, &summary);
	near(summary.slots.items[0].p, 0.003276003276003276);
	assert_int_equal(summary.odd_slot, 1); /* which never fails */
	case_close(cs);
}

static void even_slots_are_not_odd(void **state)
{
	static const unsigned int failing[] = { 3, 4, 5, 4 };
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	fill(cs, series, 4, 20, failing);
	summarise(cs, series, &summary);
	assert_int_equal(summary.odd_slot, -1);
	VEC_FOREACH (&summary.slots, s)
		assert_true(s->p > 0.05 && s->p <= 1);
	case_close(cs);
}

static void a_single_slot_is_never_odd(void **state)
{
	static const unsigned int failing[] = { 10 };
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	fill(cs, series, 1, 20, failing);
	summarise(cs, series, &summary);
	assert_int_equal(summary.odd_slot, -1);
	assert_true(summary.slots.items[0].p == 1);
	case_close(cs);
}

static void nothing_failed(void **state)
{
	static const unsigned int failing[] = { 0, 0 };
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	AUTO(series_summary_deinit) struct series_summary empty = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	summarise(cs, series, &empty);
	assert_int_equal(empty.rate.trials, 0);
	assert_int_equal(empty.odd_slot, -1);
	fill(cs, series, 2, 15, failing);
	summarise(cs, series, &summary);
	assert_int_equal(summary.rate.failed, 0);
	assert_false(summary.intermittent);
	assert_int_equal(summary.clean_runs_for_99, 0);
	near(summary.clean_bound, 1 - pow(0.05, 1 / 30.0));
	assert_int_equal(summary.signatures.list.count, 0);
	assert_int_equal(summary.odd_slot, -1);
	case_close(cs);
}

static void what_every_run_shows_comes_last(void **state)
{
	AUTO(series_summary_deinit) struct series_summary summary = { 0 };
	struct err err = { 0 };
	struct series_id series;
	struct case_store *cs = new_case(*state, &series);

	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(add_made(cs, series,
					  &(struct made_trial){ .number = i,
								.position = i,
								.signal = i < 4 ? 11 : 0,
								.exit_status = i < 4 ? 0 : 1,
								.last_crumb = "x" },
					  &err),
				 0);
	summarise(cs, series, &summary);
	assert_int_equal(summary.failed_any, 10);
	assert_int_equal(summary.rate.failed, 3);
	assert_int_equal(summary.signatures.list.count, 2);
	assert_string_equal(summary.signatures.list.items[0].signature.summary, "SIGSEGV");
	assert_string_equal(summary.signatures.list.items[1].signature.summary, "exit 1");
	assert_true(summary.signatures.list.items[1].always);
	case_close(cs);
}

/* ---- which failure ---- */

static struct signature crash_at(const char *site, const char *fault, const char *test)
{
	struct signature s = { .kind = FAILURE_SIGNAL, .signal = 11, .exit_status = -1 };

	s.site = mem_strdup(site);
	s.fault = mem_strdup(fault);
	s.test = test ? mem_strdup(test) : NULL;
	signature_seal(&s);
	return s;
}

static bool is_target(const struct target *like, const char *site, const char *fault,
		      const char *test)
{
	AUTO(signature_deinit) struct signature s = crash_at(site, fault, test);

	return target_is(like, &s);
}

/* The same crash has another fault under ids, which know blocks; another crash has another place,
 * or is no pointer's fault. */
static void a_crash_is_known_again_under_another_observer(void **state)
{
	AUTO(target_deinit)
	struct target t = { .known = true,
			    .faults = true,
			    .signature = crash_at("f", "non-canonical", NULL) };

	assert_true(is_target(&t, "f", "non-canonical", NULL));
	assert_true(is_target(&t, "f", "freed-block", NULL));
	assert_true(is_target(&t, "f", "unmapped", NULL));
	assert_false(is_target(&t, "f", "null", NULL));
	assert_false(is_target(&t, "g", "non-canonical", NULL));
	t.faults = false;
	assert_true(is_target(&t, "f", "null", NULL));
	assert_false(is_target(&t, "g", "null", NULL));
}

static void where_tests_have_names_the_test_counts(void **state)
{
	AUTO(target_deinit)
	struct target t = { .known = true,
			    .faults = true,
			    .signature = crash_at("f", "unmapped", "one") };

	assert_true(is_target(&t, "g", "null", "one"));
	assert_false(is_target(&t, "f", "unmapped", "two"));
	assert_true(is_target(&t, "f", "mapping-shrank", "two"));
	t.exact = true;
	assert_false(is_target(&t, "g", "null", "one"));
	assert_true(is_target(&t, "f", "beyond-block", "one"));
}

/* A test that says that it failed, as it does where what it needs was left out of the list. */
static bool is_target_by_word(const struct target *like, const char *test)
{
	AUTO(signature_deinit) struct signature s = { .kind = FAILURE_TEST, .exit_status = 1 };

	s.test = mem_strdup(test);
	signature_seal(&s);
	return target_is(like, &s);
}

static void a_failing_test_is_no_way_of_its_crash_unless_it_was_seen(void **state)
{
	AUTO(target_deinit)
	struct target t = { .known = true, .signature = crash_at("f", "unmapped", "one") };
	struct signature word = { .kind = FAILURE_TEST, .exit_status = 1 };

	(void)state;
	VEC_PUSH(&t.members, crash_at("g", "null", "one"));
	assert_true(is_target(&t, "h", "null", "one"));
	assert_false(is_target_by_word(&t, "one"));
	word.test = mem_strdup("one");
	signature_seal(&word);
	VEC_PUSH(&t.members, word);
	assert_true(is_target_by_word(&t, "one"));
}

static bool is_kin(const struct target *like, const char *site, int signal, const char *test)
{
	AUTO(signature_deinit) struct signature s = crash_at(site, "abort", test);

	s.signal = signal;
	return target_kin(like, &s);
}

/* A freed string kills its user by its pointer, or by the exception about its length. */
static void the_same_function_dies_in_several_ways(void **state)
{
	AUTO(target_deinit)
	struct target t = { .known = true,
			    .faults = true,
			    .signature = crash_at("f", "non-canonical", NULL) };

	assert_false(is_target(&t, "f", "abort", NULL));
	assert_true(is_kin(&t, "f", 6, NULL));
	assert_false(is_kin(&t, "g", 6, NULL));
	assert_false(is_kin(&t, "f", 6, "one"));
	t.exact = true;
	assert_false(is_kin(&t, "f", 6, NULL));
}

int main(void)
{
#define CASE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tally_of_nothing),
		cmocka_unit_test(always_needs_every_run_and_two),
		cmocka_unit_test(runs_cut_short_say_nothing_about_later_tests),
		cmocka_unit_test(a_crash_in_every_run_is_always),
		cmocka_unit_test(crashes_and_timeouts_side_by_side),
		cmocka_unit_test(counts_per_arm_and_slot),
		cmocka_unit_test(arms_are_read),
		cmocka_unit_test(values_may_hold_commas_and_colons),
		cmocka_unit_test(args_are_words),
		cmocka_unit_test(wrong_arms_are_told),
		cmocka_unit_test(every_run_comes_once),
		cmocka_unit_test(a_crash_is_known_again_under_another_observer),
		cmocka_unit_test(where_tests_have_names_the_test_counts),
		cmocka_unit_test(a_failing_test_is_no_way_of_its_crash_unless_it_was_seen),
		cmocka_unit_test(the_same_function_dies_in_several_ways),
		cmocka_unit_test(the_seed_is_the_order),
		CASE_TEST(an_odd_slot_is_found),
		CASE_TEST(of_two_slots_one_is_odd),
		CASE_TEST(even_slots_are_not_odd),
		CASE_TEST(a_single_slot_is_never_odd),
		CASE_TEST(nothing_failed),
		CASE_TEST(what_every_run_shows_comes_last),
	};

	return cmocka_run_group_tests_name("series", tests, NULL, NULL);
}
