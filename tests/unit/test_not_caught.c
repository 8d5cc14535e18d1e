/*
 * What is said when nothing fits: the sentence, what was seen all the same, and the next step.
 */
#include "judge/rules.h"
#include "says.h"
#include "verdict_stories.h"

/* A crash in 9 of 40 trials. */
static struct failure_seen *crashing(struct evidence_list *l)
{
	struct failure_seen *f = add(l, made_failure(false))->failure;

	f->kind = FAILURE_SIGNAL;
	f->signal = 11;
	f->fault = true;
	f->failed = 9;
	f->ran_failed = 9;
	return f;
}

static struct failure_seen *never_failed(struct evidence_list *l)
{
	struct failure_seen *f = add(l, made_failure(false))->failure;

	f->failed = f->ran_failed = 0;
	f->signature[0] = '\0';
	mem_free(f->summary);
	f->summary = NULL;
	return f;
}

static void clean(struct evidence_list *l)
{
	never_failed(l);
}

static void clean_under_guards(struct evidence_list *l)
{
	never_failed(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 0))->experiment->trials = 12;
}

static void too_slow(struct evidence_list *l)
{
	struct failure_seen *f = never_failed(l);

	f->trials = 0;
	f->obstacles = OBSTACLE_TOO_SLOW;
	f->limit_s = 90;
}

static void no_trial_ended(struct evidence_list *l)
{
	never_failed(l)->trials = 0;
}

static void plain_alone(struct evidence_list *l)
{
	add(l, made_failure(false));
}

static void plain_under_guards(struct evidence_list *l)
{
	plain_alone(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 3));
}

static void plain_under_guards_once(struct evidence_list *l)
{
	plain_alone(l);
	add(l, made_experiment(EXPERIMENT_GUARDS, 1));
}

static void hangs(struct evidence_list *l)
{
	add(l, made_failure(false))->failure->kind = FAILURE_TIMEOUT;
}

static void signal_from_elsewhere(struct evidence_list *l)
{
	struct failure_seen *f = add(l, made_failure(false))->failure;

	f->kind = FAILURE_SIGNAL;
	f->signal = 9;
}

static void aborts(struct evidence_list *l)
{
	crashing(l)->signal = 6;
}

static void no_agent(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_NO_AGENT | OBSTACLE_NOT_CHASED;
}

/* Neither with allocation ids nor with guards nor with a watchpoint did it fail. */
static void agent_hides(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_AGENT_HIDES;
	add(l, made_experiment(EXPERIMENT_GUARDS, 0))->experiment->trials = 40;
}

static void ids_hide(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_IDS_HIDE;
}

static void interrupted(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_INTERRUPTED | OBSTACLE_NOT_CHASED;
}

static void budget(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_BUDGET | OBSTACLE_NOT_CHASED;
}

/* The writer was looked for, and then the budget ended. */
static void budget_after_a_chase(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_BUDGET;
	add(l, made_watch(1, 0));
}

static void everything_tried(struct evidence_list *l)
{
	crashing(l);
	add(l, made_crash(3, FAULT_NULL));
	add(l, made_watch(3, 0));
	add(l, made_experiment(EXPERIMENT_GUARDS, 5));
}

static void not_chased_yet(struct evidence_list *l)
{
	crashing(l)->obstacles = OBSTACLE_NOT_CHASED;
	add(l, made_crash(4, FAULT_NULL));
}

/* The agent recorded no block. */
static void crash_without_blocks(struct evidence_list *l)
{
	struct evidence *e;

	not_chased_yet(l);
	e = &l->list.items[1];
	VEC_FOREACH (&e->crash->blocks, block)
		block_life_deinit(block);
	e->crash->blocks.count = 0;
}

static void watched_without_syscalls(struct evidence_list *l)
{
	add(l, made_watch(1, 0))->watch->kernel_writes = false;
}

/* Guards found damage that nobody explains, and there is no crash. */
static void something_failed(struct evidence_list *l)
{
	add(l, made_holder(1, false));
}

/* Where the block came from is not known. */
static void numbers_in_a_block_of_nobody(struct evidence_list *l)
{
	numbers_all_the_time(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_WRITE)
			stack_deinit(&e->write->victim->allocated);
}

static void judge(void (*make)(struct evidence_list *), struct evidence_list *list,
		  struct verdict *ret)
{
	make(list);
	judge_evidence(list, ret);
}

static const struct {
	const char *name;
	void (*make)(struct evidence_list *);
	const char *sentence, *next; /* parts of them */
} ways[] = {
#define TOLD(make, sentence, next)          \
	{                                   \
#make, make, sentence, next \
	}
	TOLD(nothing, "there is no evidence yet", "redhand repro --observe ids"),
	TOLD(clean,
	     "none of 40 trials failed, so there is nothing to explain; a rate above 7.2 % is "
	     "excluded with 95 % confidence",
	     "redhand repro -n 2995 -- CMD would exclude a rate above 0.1 %"),
	TOLD(clean_under_guards, "with guards around its blocks no damage was seen in 12 trials",
	     "redhand repro -n 2995"),
	TOLD(too_slow, "no trial came to its end within 90 s", "or --timeout with how long"),
	TOLD(no_trial_ended, "no trial came to its end within the budget",
	     "--timeout for a program that hangs"),
	TOLD(plain_alone,
	     "it fails in 17 of 40 trials, but not by a fault (test_schedule says "
	     "FAILED, exit status 1); no experiment has looked at its memory",
	     "redhand minimize"),
	TOLD(plain_under_guards, "guards around blocks saw no damage in 3 failing trials,",
	     "redhand minimize"),
	TOLD(plain_under_guards_once, "guards around blocks saw no damage in 1 failing trial,",
	     "redhand minimize"),
	TOLD(hangs, "but not by a fault", "gdb -p on a run that hangs"),
	TOLD(signal_from_elsewhere, "but not by a fault", "who sends the signal"),
	TOLD(aborts, "no writer was caught: no failing trial has been watched yet",
	     "the program stopped itself"),
	TOLD(no_agent, "no writer was caught", "link the program dynamically"),
	TOLD(agent_hides, "no writer was caught", "a core file of such a run"),
	TOLD(ids_hide, "no writer was caught", "tracking allocations hides it"),
	TOLD(interrupted,
	     "it failed in 9 of 40 trials, but the hunt ended before anybody could be caught",
	     "the same command goes on where this one ended"),
	TOLD(budget, "the hunt ended before anybody could be caught", "a larger --budget"),
	TOLD(budget_after_a_chase, "the damaged memory was watched in 1 failing trial,",
	     "a larger --budget"),
	TOLD(everything_tried, "the damaged memory was watched in 1 failing trial,",
	     "redhand heap --sweep"),
	TOLD(not_chased_yet, "no failing trial has been watched yet, 52 trials run",
	     "redhand chase --from 4"),
	TOLD(crash_without_blocks, "no failing trial has been watched yet",
	     "which block was it, and who freed it"),
	TOLD(watched_without_syscalls, "the damaged memory was watched in 1 failing trial",
	     "writes by system calls included"),
	TOLD(numbers_all_the_time, "the damaged memory was watched in 3 failing trials",
	     "the block that object_new"),
	TOLD(numbers_in_a_block_of_nobody, "the damaged memory was watched in 3 failing trials",
	     "how the failing code got struct object.word"),
	TOLD(something_failed, "no failing trial has been watched yet", "redhand heap -- CMD"),
};

static void each_way_has_its_words(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };

		judge(ways[i].make, &list, &v);
		if (v.class != VERDICT_NOT_CAUGHT)
			fail_msg("%s: %s", ways[i].name, verdict_class_name(v.class));
		if (!says(&v.sentence, ways[i].sentence))
			fail_msg("%s: '%s'", ways[i].name, sentence_of(&v.sentence));
		if (!says(&v.next, ways[i].next))
			fail_msg("%s: next '%s'", ways[i].name, sentence_of(&v.next));
	}
}

/* Where nothing failed, nothing is open: there is nothing to explain. */
static void what_never_failed_leaves_nothing_open(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 }, failing = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 }, open = { 0 };

	judge(clean, &list, &v);
	assert_int_equal(v.open.list.count, 0);
	judge(plain_alone, &failing, &open);
	assert_int_equal(open.open.list.count, HYPOTHESES);
}

/* What only somebody who knows the program can answer is said to be such. */
static void who_has_to_answer_is_told(void **state)
{
	AUTO(evidence_list_deinit)
	struct evidence_list numbers = { 0 }, types = { 0 }, crash = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 }, other = { 0 }, none = { 0 };

	judge(numbers_all_the_time, &numbers, &v);
	assert_true(v.needs_user);
	judge(story_find("another_kind_of_object")->make, &types, &other);
	assert_true(other.needs_user);
	assert_true(says(&other.next, "--allocator"));
	judge(not_chased_yet, &crash, &none);
	assert_false(none.needs_user);
}

/* Damage that guards found in a program that never failed. */
static void damage_without_a_failure(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	never_failed(&list);
	damage_only(&list);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_OVERFLOW);
	assert_true(says(&v.sentence, "no failure was seen in 40 trials"));
}

/* Of which failure the verdict speaks: its evidence's, the hunt's, or any. */
static void the_failure_is_named(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list hunted = { 0 }, crash = { 0 }, own = { 0 };
	AUTO(verdict_deinit) struct verdict a = { 0 }, b = { 0 }, c = { 0 };

	judge(plain_alone, &hunted, &a);
	assert_string_equal(a.signature, "0123456789");
	(void)strcpy(add(&crash, made_crash(1, FAULT_NULL))->signature, "feed");
	judge_evidence(&crash, &b);
	assert_string_equal(b.signature, "feed");
	judge(narrow, &own, &c);
	verdict_deinit(&c);
	VEC_FOREACH (&own.list, e)
		(void)strcpy(e->signature, e->kind == EVIDENCE_WRITE ? "beef" : "feed");
	judge_evidence(&own, &c);
	assert_string_equal(c.signature, "beef");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_has_its_words),
		cmocka_unit_test(what_never_failed_leaves_nothing_open),
		cmocka_unit_test(who_has_to_answer_is_told),
		cmocka_unit_test(damage_without_a_failure),
		cmocka_unit_test(the_failure_is_named),
	};

	return cmocka_run_group_tests_name("not_caught", tests, NULL, NULL);
}
