/*
 * Which experiment is next, what it is expected to take, and what there is to spend:
 * hunt/strategist.c and hunt/budget.c, with experiments and a judge's evidence that are made up.
 * Nothing is run: a chosen experiment is noted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "evidence_fixture.h"

#include <errno.h>
#include <math.h>
#include <signal.h>

#include "base/now.h"
#include "hunt/inquiry.h"

/* ---- what the strategist calls ---- */

static struct strbuf chosen, left_out;
static bool may_go_on = true;
static struct rate of_bench;

const struct question_ops questions[QUESTIONS] = { [QUESTION_WHO] = { .name = "chase",
								      .share = 1 } };

void question_show(struct inquiry *inq, enum question question)
{
	assert_int_equal(question, QUESTION_WHO);
}

int choice_run(struct inquiry *inq, const struct experiment_ops *ops, const struct price *price,
	       int (*run)(struct inquiry *inq))
{
	strbuf_addf(&chosen, "%s%s", chosen.len > 0 ? " " : "", ops->name);
	return run ? run(inq) : 0;
}

int decide_values(struct inquiry *inq, const char *stage, const char *id, struct said_value *values)
{
	struct said said = { 0 };

	said_make(&said, id, values);
	said_deinit(&said);
	strbuf_addf(&left_out, "%s ", id);
	return 0;
}

void bench_rate(const struct bench *bench, uint64_t *trials, uint64_t *failed)
{
	*trials = of_bench.trials;
	*failed = of_bench.failed;
}

bool bench_may_go_on(const struct bench *bench)
{
	return may_go_on;
}

/* ---- experiments ---- */

static bool useful = true, odd;
static unsigned int times;

static bool always(struct inquiry *inq, struct said *why)
{
	return useful;
}

static bool never(struct inquiry *inq, struct said *why)
{
	SAY(why, "why:explained");
	return false;
}

static bool while_odd(struct inquiry *inq, struct said *why)
{
	return odd && times < 3;
}

static void cheap(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, 10, 1, ret);
}

static void dear(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, 50, 2, ret);
}

static int count(struct inquiry *inq)
{
	times++;
	return 0;
}

static int find_it(struct inquiry *inq)
{
	struct evidence e = made_mapping(1, true);

	e.id = 1;
	VEC_PUSH(&inq->evidence.list, e);
	return 0;
}

static int break_down(struct inquiry *inq)
{
	return -EIO;
}

#define WHO .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH

/* Rows of the tests: each test says which of them apply. */
static struct experiment_ops rows[] = {
	{ WHO, .name = "dear", .chance = 0.9, .applies = always, .price = dear },
	{ WHO, .name = "cheap", .chance = 0.3, .applies = always, .price = cheap },
	{ WHO, .name = "shared", .chance = 0.9, .share = 0.1, .applies = always, .price = dear },
	{ WHO, .name = "silent", .chance = 0.9, .applies = never },
	{ WHO, .name = "again", .chance = 0.1, .repeats = true, .applies = while_odd, .price = dear,
	  .run = count },
	{ .question = QUESTION_FAILS,
	  .kind = EXPERIMENT_WATCH,
	  .name = "other",
	  .chance = 1,
	  .applies = always },
	{ WHO, .name = "more", .chance = 0.01, .refines = true, .applies = always, .price = dear },
};
const struct experiment_ops *const experiments[] = { &rows[0], &rows[1], &rows[2], &rows[3],
						     &rows[4], &rows[5], &rows[6] };
const size_t experiment_count = ARRAY_SIZE(experiments);
enum { DEAR, CHEAP, SHARED, SILENT, AGAIN, OTHER, MORE };

static struct hunt_request request;
static struct hunt_result result;
static struct signature_summary target;

static int begin(void **state)
{
	static struct inquiry inq;

	inq = (struct inquiry){
		.request = &request, .ret = &result, .known.trial_s = 2, .how.jobs = 4
	};
	inq.known.target_rate = (struct rate){ .trials = 10, .failed = 5 };
	inq.spending.since_s = clock_s();
	inq.spending.budget = (struct trial_budget){ .trials = UINT64_MAX, .failures = UINT64_MAX };
	request = (struct hunt_request){ 0 };
	result = (struct hunt_result){ 0 };
	target = (struct signature_summary){ .rate = { .trials = 10, .failed = 5 } };
	strbuf_clear(&chosen);
	strbuf_clear(&left_out);
	useful = may_go_on = true;
	odd = false;
	times = 0;
	rows[CHEAP].run = rows[DEAR].run = NULL;
	*state = &inq;
	return 0;
}

static int end(void **state)
{
	struct inquiry *inq = *state;

	evidence_list_deinit(&inq->evidence);
	strbuf_deinit(&chosen);
	strbuf_deinit(&left_out);
	return 0;
}

/* ---- prices ---- */

static void trials_cost_what_they_took(void **state)
{
	struct price price;

	price_of_trials(*state, 12, 2, &price);
	assert_float_equal(price.trials, 12, 1e-9);
	assert_float_equal(price.failures, 6, 1e-9);
	assert_float_equal(price.seconds, 12, 1e-9); /* 12 of 2 s, twice as slow, four at a time */
}

static void failures_cost_as_many_trials_as_they_are_rare(void **state)
{
	struct inquiry *inq = *state;
	struct price price;

	inq->known.target_rate.failed = 1;
	price_of_failures(inq, 3, 1, &price);
	assert_float_equal(price.trials, 30, 1e-9);
	assert_float_equal(price.failures, 3, 1e-9);
}

static void before_the_first_failure_one_in_five_is_assumed(void **state)
{
	struct inquiry *inq = *state;
	struct price price;

	inq->known.target_rate = (struct rate){ 0 };
	inq->known.trial_s = 0;
	inq->how.jobs = 0;
	price_of_failures(inq, 2, 1, &price);
	assert_float_equal(price.trials, 10, 1e-9);
	assert_float_equal(price.seconds, 10, 1e-9); /* a second each, one at a time */
}

/* ---- the choice ---- */

static void the_best_chance_per_second_comes_first(void **state)
{
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	/* cheap: 0.3 in 5 s; dear and shared: 0.9 in 100 s, the first row before its equal. */
	assert_string_equal(strbuf_str(&chosen), "cheap dear shared more");
	assert_string_equal(strbuf_str(&left_out), "left-out ");
}

static void why_it_was_left_out_is_said_once(void **state)
{
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_string_equal(strbuf_str(&left_out), "left-out ");
	/* Asked again, each is run again. */
	assert_string_equal(strbuf_str(&chosen), "cheap dear shared more cheap dear shared more");
}

static void one_that_repeats_is_run_until_it_does_not_apply(void **state)
{
	useful = false;
	odd = true;
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_string_equal(strbuf_str(&chosen), "again again again");
}

static void what_takes_more_than_its_share_is_left_out(void **state)
{
	request.budget_s = 900; /* a tenth is 90 s, and it takes 100 */
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_string_equal(strbuf_str(&chosen), "cheap dear more");
	assert_string_equal(strbuf_str(&left_out), "left-out left-out ");
}

static void a_firm_answer_ends_it_but_for_what_refines(void **state)
{
	rows[CHEAP].run = find_it;
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_string_equal(strbuf_str(&chosen), "cheap more");
}

static void an_error_ends_it(void **state)
{
	rows[CHEAP].run = break_down;
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), -EIO);
	assert_string_equal(strbuf_str(&chosen), "cheap");
}

static int spend(struct inquiry *inq)
{
	inq->spending.budget.failures = 0;
	return 0;
}

static void a_spent_budget_ends_it(void **state)
{
	rows[CHEAP].run = spend;
	assert_int_equal(strategist_ask(*state, QUESTION_WHO), 0);
	assert_string_equal(strbuf_str(&chosen), "cheap");
}

/* ---- the outlook ---- */

struct outlook {
	unsigned int count;
	double trials[8], failures[8], seconds[8];
};

static void note(void *ctx, double trials, double failures, double seconds)
{
	struct outlook *outlook = ctx;

	outlook->trials[outlook->count] = trials;
	outlook->failures[outlook->count] = failures;
	outlook->seconds[outlook->count++] = seconds;
}

static void the_outlook_is_this_one_and_a_share_of_a_watch(void **state)
{
	struct inquiry *inq = *state;
	struct outlook outlook = { 0 };

	request.show = (struct hunt_show){ .expect = note, .ctx = &outlook };
	inq->known.target = &target;
	assert_int_equal(strategist_ask(inq, QUESTION_WHO), 0);
	assert_int_equal(outlook.count, 4);
	/* cheap, 10 trials of which 5 fail; and with 70 % a watch: two failing trials of four. */
	assert_float_equal(outlook.trials[0], 10 + 0.7 * 4, 1e-9);
	assert_float_equal(outlook.failures[0], 5 + 0.7 * 2, 1e-9);
	assert_float_equal(outlook.seconds[0], 5 + 0.7 * 4 * 2 * 1.5 / 4, 1e-9);
}

static void nothing_is_foretold_before_a_failure_and_nothing_more_after_a_firm_answer(void **state)
{
	struct inquiry *inq = *state;
	struct outlook outlook = { 0 };

	request.show = (struct hunt_show){ .expect = note, .ctx = &outlook };
	assert_int_equal(strategist_ask(inq, QUESTION_WHO), 0);
	assert_int_equal(outlook.count, 0);
	inq->known.target = &target;
	rows[CHEAP].run = find_it;
	assert_int_equal(strategist_ask(inq, QUESTION_WHO), 0);
	assert_int_equal(outlook.count, 2);
	assert_true(outlook.trials[0] > 0);
	assert_float_equal(outlook.trials[1], 0, 1e-9);
}

/* ---- the budget ---- */

static void a_share_is_of_the_whole_budget_and_ends_with_it(void **state)
{
	struct inquiry *inq = *state;

	hunt_allow(inq, 0.5);
	assert_float_equal(inq->spending.budget.deadline_s, 0, 1e-9); /* there is none */
	request.budget_s = 100;
	inq->spending.since_s = clock_s() - 20;
	hunt_allow(inq, 0.5);
	assert_true(fabs(inq->spending.budget.deadline_s - inq->spending.since_s - 70) < 5);
	hunt_allow(inq, 1);
	assert_float_equal(inq->spending.budget.deadline_s, inq->spending.since_s + 100, 1e-9);
	assert_false(hunt_over(inq));
	inq->spending.since_s -= 80;
	assert_true(hunt_over(inq));
}

static void trials_that_the_case_had_are_spent(void **state)
{
	struct inquiry *inq = *state;

	hunt_count(inq, 5, 2, 3);
	assert_int_equal(inq->spending.budget.trials, UINT64_MAX);
	inq->spending.budget.trials = 10;
	hunt_count(inq, 5, 2, 3);
	assert_int_equal(inq->spending.ran, 10);
	assert_int_equal(inq->spending.ran_failed, 4);
	assert_int_equal(hunt_trials(inq, 4), 4);
	assert_int_equal(hunt_trials(inq, 40), 7);
	hunt_count(inq, 0, 0, 30);
	assert_int_equal(hunt_trials(inq, 40), 0);
	assert_true(hunt_over(inq));
}

static void an_interrupted_hunt_and_a_bench_that_may_not_go_on_are_over(void **state)
{
	struct inquiry *inq = *state;
	int bench;

	assert_false(inquiry_over(inq));
	inq->bench = (struct bench *)&bench;
	may_go_on = false;
	assert_true(inquiry_over(inq));
	may_go_on = true;
	result.interrupted = true;
	assert_true(inquiry_over(inq));
	/* A chase has no budget of a hunt's. */
	inq->request = NULL;
	assert_false(inquiry_over(inq));
}

static void a_signal_that_was_sent_is_no_crash(void **state)
{
	struct signature s = { .kind = FAILURE_SIGNAL, .signal = SIGSEGV };

	assert_true(signature_crashes(&s));
	s.fault = (char *)"sent";
	assert_false(signature_crashes(&s));
	s.signal = SIGABRT; /* the program's own, whoever calls */
	assert_true(signature_crashes(&s));
	s.signal = SIGTERM;
	assert_false(signature_crashes(&s));
	s.kind = FAILURE_EXIT;
	assert_false(signature_crashes(&s));
}

static void two_runs_that_fail_are_not_every_run(void **state)
{
	struct inquiry *inq = *state;

	target.always = true;
	inq->known.target = &target;
	inq->known.summary.rate.trials = 2;
	assert_false(hunt_always(inq));
	inq->known.summary.rate.trials = 4;
	assert_true(hunt_always(inq));
	target.always = false;
	assert_false(hunt_always(inq));
	inq->known.target = NULL;
	assert_false(hunt_crashes(inq));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(trials_cost_what_they_took),
		TEST(failures_cost_as_many_trials_as_they_are_rare),
		TEST(before_the_first_failure_one_in_five_is_assumed),
		TEST(the_best_chance_per_second_comes_first),
		TEST(why_it_was_left_out_is_said_once),
		TEST(one_that_repeats_is_run_until_it_does_not_apply),
		TEST(what_takes_more_than_its_share_is_left_out),
		TEST(a_firm_answer_ends_it_but_for_what_refines),
		TEST(an_error_ends_it),
		TEST(a_spent_budget_ends_it),
		TEST(the_outlook_is_this_one_and_a_share_of_a_watch),
		TEST(nothing_is_foretold_before_a_failure_and_nothing_more_after_a_firm_answer),
		TEST(a_share_is_of_the_whole_budget_and_ends_with_it),
		TEST(trials_that_the_case_had_are_spent),
		TEST(an_interrupted_hunt_and_a_bench_that_may_not_go_on_are_over),
		TEST(a_signal_that_was_sent_is_no_crash),
		TEST(two_runs_that_fail_are_not_every_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
