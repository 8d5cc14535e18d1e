/*
 * The ledger: what is excluded names the experiment behind it, and nothing is excluded that no
 * experiment could have shown.
 */
#include "judge/ledger.h"

#include <math.h>

#include "says.h"
#include "verdict_stories.h"

static const struct ledger_entry *entry_of(const struct verdict *v, enum explanation explanation)
{
	assert_int_equal(v->ledger.count, HYPOTHESES);
	assert_string_equal(v->ledger.items[explanation].id, ledger_id(explanation));
	return &v->ledger.items[explanation];
}

/* A crash that says nothing but that it crashed, and these experiments. */
static void judge_experiments(struct evidence_list *list, const struct experiment_made *made,
			      size_t count, struct verdict *ret)
{
	add(list, made_crash(1, FAULT_NULL));
	for (size_t i = 0; i < count; i++) {
		add(list, evidence_new(EVIDENCE_EXPERIMENT, 0, false));
		*list->list.items[list->list.count - 1].experiment = made[i];
	}
	judge_evidence(list, ret);
}

/* What these experiments alone say about one explanation. */
static enum ledger_status status_after(const struct experiment_made *made, size_t count,
				       enum explanation explanation)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge_experiments(&list, made, count, &v);
	return entry_of(&v, explanation)->status;
}

static struct experiment_made guards(uint64_t telling, double coverage)
{
	return (struct experiment_made){ .kind = EXPERIMENT_GUARDS,
					 .trials = telling + 2,
					 .telling = telling,
					 .coverage = coverage };
}

static enum ledger_status after_guards(uint64_t telling, double coverage)
{
	struct experiment_made made = guards(telling, coverage);

	return status_after(&made, 1, HYP_OVERFLOW);
}

/* ---- by the numbers ---- */

static void the_chance_to_have_missed_it(void **state)
{
	assert_float_equal(chance_missed(0, 1), 1, 0);
	assert_float_equal(chance_missed(1, 1), 0.5, 1e-12);
	assert_float_equal(chance_missed(5, 1), 0.03125, 1e-12);
	assert_float_equal(chance_missed(1, 0.5), 0.75, 1e-12);
	assert_float_equal(chance_missed(11, 0.5), pow(0.75, 11), 1e-12);
	assert_float_equal(chance_missed(1000, 0), 1, 0);
	assert_float_equal(chance_missed(UINT64_MAX, 1), 0, 0);
}

/* What is no share of anything tells nothing. */
static void a_coverage_that_is_none(void **state)
{
	static const double odd[] = { -1, -INFINITY, 1.5, 1e300, INFINITY, NAN };

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_float_equal(chance_missed(1000, odd[i]), 1, 0);
}

/* ---- by silence ---- */

static void nothing_is_excluded_without_an_experiment(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge_evidence(&list, &v);
	VEC_FOREACH (&v.ledger, h) {
		assert_int_equal(h->status, LEDGER_UNTESTED);
		assert_int_equal(h->by, EXPERIMENT_KINDS);
		assert_false(said_anything(&h->because));
	}
}

static void enough_failing_trials_exclude(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	const struct ledger_entry *h;

	judge_experiments(&list, (struct experiment_made[]){ guards(6, 1) }, 1, &v);
	h = entry_of(&v, HYP_OVERFLOW);
	assert_int_equal(h->status, LEDGER_EXCLUDED);
	assert_int_equal(h->by, EXPERIMENT_GUARDS);
	assert_int_equal(h->telling, 6);
	assert_float_equal(h->missed, chance_missed(6, 1), 1e-12);
	assert_string_equal(sentence_of(&h->because),
			    "guards around blocks showed none in 6 failing trials");
	/* Guards look at nothing that stays inside a block. */
	assert_int_equal(entry_of(&v, HYP_NARROW)->status, LEDGER_UNTESTED);
	assert_int_equal(entry_of(&v, HYP_UNINITIALISED)->status, LEDGER_UNTESTED);
	/* They may see a pointer that outlives its block, and often do not. */
	assert_int_equal(entry_of(&v, HYP_DANGLING)->status, LEDGER_OPEN);
}

static void too_few_or_too_little_excludes_nothing(void **state)
{
	assert_int_equal(after_guards(5, 1), LEDGER_EXCLUDED);
	assert_int_equal(after_guards(4, 1), LEDGER_OPEN);
	assert_int_equal(after_guards(0, 1), LEDGER_OPEN);
	assert_int_equal(after_guards(1000, 0), LEDGER_OPEN);
	assert_int_equal(after_guards(11, 0.5), LEDGER_EXCLUDED);
	assert_int_equal(after_guards(10, 0.5), LEDGER_OPEN);
}

/* Trials that passed tell nothing, however many they are. */
static void passing_trials_exclude_nothing(void **state)
{
	struct experiment_made made = { .kind = EXPERIMENT_GUARDS, .trials = 1000, .coverage = 1 };

	assert_int_equal(status_after(&made, 1, HYP_OVERFLOW), LEDGER_OPEN);
}

static void two_of_one_kind_add_up(void **state)
{
	struct experiment_made few[] = { guards(3, 1), guards(3, 1) };
	struct experiment_made uneven[] = { guards(3, 1), guards(100, 0) };

	assert_int_equal(status_after(few, 1, HYP_OVERFLOW), LEDGER_OPEN);
	assert_int_equal(status_after(few, 2, HYP_OVERFLOW), LEDGER_EXCLUDED);
	/* Each with its own coverage. */
	assert_int_equal(status_after(uneven, 2, HYP_OVERFLOW), LEDGER_OPEN);
}

/* What looks at one field cannot say that nothing happened elsewhere. */
static void watchpoints_and_threads_exclude_nothing_by_silence(void **state)
{
	static const enum experiment_kind kinds[] = { EXPERIMENT_WATCH, EXPERIMENT_RACE,
						      EXPERIMENT_MACHINE, EXPERIMENT_RUN };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (unsigned int k = 0; k < HYPOTHESES; k++) {
			struct experiment_made made = {
				.kind = kinds[i], .trials = 1000, .telling = 1000, .coverage = 1
			};

			if (status_after(&made, 1, k) == LEDGER_EXCLUDED)
				fail_msg("%s excludes %s", experiment_name(kinds[i]), ledger_id(k));
		}
}

static void growth_is_no_matter_of_failing_trials(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	struct experiment_made made = {
		.kind = EXPERIMENT_GROWTH, .trials = 6, .telling = 6, .coverage = 1
	};

	judge_experiments(&list, &made, 1, &v);
	assert_int_equal(entry_of(&v, HYP_GROWTH)->status, LEDGER_EXCLUDED);
	assert_false(says(&entry_of(&v, HYP_GROWTH)->because, "failing"));
}

/* What looks for one thing only, and saw something, saw that. */
static void an_experiment_that_saw_it_does_not_exclude_it(void **state)
{
	static const struct {
		enum experiment_kind kind;
		enum explanation explanation;
	} one[] = {
		{ EXPERIMENT_FILL_FREED, HYP_DANGLING },
		{ EXPERIMENT_FILL_FRESH, HYP_UNINITIALISED },
		{ EXPERIMENT_GROWTH, HYP_GROWTH },
	};
	struct experiment_made many = guards(20, 1);

	for (size_t i = 0; i < ARRAY_SIZE(one); i++) {
		struct experiment_made made = {
			.kind = one[i].kind, .trials = 40, .telling = 20, .coverage = 1
		};

		assert_int_equal(status_after(&made, 1, one[i].explanation), LEDGER_EXCLUDED);
		made.shown = 20;
		assert_int_equal(status_after(&made, 1, one[i].explanation), LEDGER_OPEN);
	}
	/* Guards tell what they saw by evidence of its own. */
	many.shown = 20;
	assert_int_equal(status_after(&many, 1, HYP_DOUBLE_FREE), LEDGER_EXCLUDED);
}

/* ---- what evidence suggests ---- */

/* Every experiment that can exclude something, over plenty of failing trials. */
static void try_everything(struct evidence_list *list)
{
	for (unsigned int i = 0; i < EXPERIMENT_KINDS; i++)
		add(list, made_experiment(i, 100));
}

static bool is_excluded(const struct evidence_list *list, enum explanation explanation)
{
	AUTO(facts_deinit) struct facts facts;

	facts_init(&facts, list);
	return ledger_look(&facts, explanation).excluded;
}

static void check_suggested(struct evidence e, enum explanation explanation)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };

	try_everything(&list);
	if (!is_excluded(&list, explanation))
		fail_msg("nothing excludes %s", ledger_id(explanation));
	add(&list, e);
	if (is_excluded(&list, explanation))
		fail_msg("%s was seen (%s), and excluded by silence", ledger_id(explanation),
			 evidence_kind_name(e.kind));
}

static void what_was_seen_is_not_excluded_by_silence(void **state)
{
	check_suggested(made_canary(2, CANARY_AFTER), HYP_OVERFLOW);
	check_suggested(made_canary(2, CANARY_BEFORE), HYP_OVERFLOW);
	check_suggested(made_canary(2, CANARY_FREED), HYP_STALE);
	check_suggested(made_freed_use(2, true), HYP_STALE);
	check_suggested(made_freed_use(2, false), HYP_DANGLING);
	check_suggested(made_holder(2, false), HYP_DANGLING);
	check_suggested(made_bad_free(2, BAD_FREE_MISMATCHED), HYP_DOUBLE_FREE);
	check_suggested(made_mapping(2, false), HYP_MAPPING);
	check_suggested(made_odds(2, 0), HYP_UNINITIALISED);
	check_suggested(made_growth(), HYP_GROWTH);
	/* The crash says it by itself. */
	check_suggested(made_crash(2, FAULT_FREED), HYP_DANGLING);
	check_suggested(made_crash(2, FAULT_RECYCLED), HYP_STALE);
	check_suggested(made_crash(2, FAULT_MAPPING_SHRANK), HYP_MAPPING);
}

/* ---- a failure that is no fault ---- */

static void an_exit_status_alone_is_never_not_memory(void **state)
{
	for (unsigned int always = 0; always < 2; always++)
		for (unsigned int kind = 0; kind < FAILURE_KINDS; kind++) {
			AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
			AUTO(verdict_deinit) struct verdict v = { 0 };

			add(&list, made_failure(always))->failure->kind = kind;
			judge_evidence(&list, &v);
			assert_int_equal(v.class, VERDICT_NOT_CAUGHT);
			VEC_FOREACH (&v.ledger, h)
				assert_int_not_equal(h->status, LEDGER_EXCLUDED);
		}
}

/* Without any one of the three it is not said. */
static void not_memory_needs_every_experiment(void **state)
{
	static const enum experiment_kind needed[] = { EXPERIMENT_GUARDS, EXPERIMENT_FILL_FREED,
						       EXPERIMENT_FILL_FRESH };

	for (size_t without = 0; without <= ARRAY_SIZE(needed); without++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };

		add(&list, made_failure(true));
		for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
			if (i != without)
				add(&list, made_experiment(needed[i], 20));
		judge_evidence(&list, &v);
		assert_int_equal(v.class, without == ARRAY_SIZE(needed) ? VERDICT_NOT_MEMORY
									: VERDICT_NOT_CAUGHT);
		assert_false(v.firm);
	}
}

/* ---- records that make no sense ---- */

static void check_whole(const char *name, const struct verdict *v)
{
	VEC_FOREACH (&v->ledger, h) {
		if (h->status == LEDGER_EXCLUDED &&
		    (h->by >= EXPERIMENT_KINDS || h->telling == 0 || !(h->missed < 1) ||
		     !said_anything(&h->because)))
			fail_msg("%s: %s was excluded by nothing", name, h->id);
		/* By silence: nothing that was seen is named. */
		if (h->status == LEDGER_EXCLUDED && h->evidence.count == 0 &&
		    !(h->missed <= EXCLUDED_BELOW))
			fail_msg("%s: %s was excluded by too little", name, h->id);
		if (!(h->missed >= 0 && h->missed <= 1))
			fail_msg("%s: %s has a chance of %f", name, h->id, h->missed);
	}
}

static void a_damaged_record_excludes_nothing(void **state)
{
	static const struct experiment_made damaged[] = {
		{ .trials = 100, .telling = 100, .coverage = NAN },
		{ .trials = 100, .telling = 100, .coverage = -3 },
		{ .trials = 100, .telling = 100, .coverage = 1e300 },
		{ .trials = 100, .telling = 100, .coverage = INFINITY },
		/* More trials failed than were run. */
		{ .trials = 2, .telling = 100, .coverage = 1 },
		{ .trials = 0, .telling = UINT64_MAX, .coverage = 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++)
		for (unsigned int kind = 0; kind < EXPERIMENT_KINDS; kind++) {
			AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
			AUTO(verdict_deinit) struct verdict v = { 0 };
			struct experiment_made made = damaged[i];

			made.kind = kind;
			judge_experiments(&list, &made, 1, &v);
			check_whole("damaged", &v);
			VEC_FOREACH (&v.ledger, h)
				if (h->status == LEDGER_EXCLUDED)
					fail_msg("record %zu of %s excludes %s", i,
						 experiment_name(kind), h->id);
		}
}

/* Counts that no sum can hold do not turn into small ones. */
static void huge_counts_stay_huge(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	struct experiment_made made[] = { guards(UINT64_MAX - 2, 1), guards(UINT64_MAX - 2, 1) };

	judge_experiments(&list, made, 2, &v);
	check_whole("huge", &v);
	assert_true(entry_of(&v, HYP_OVERFLOW)->telling >= UINT64_MAX - 2);
}

/* ---- whatever the evidence is ---- */

static uint64_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	return *random >> 33;
}

static struct experiment_made random_experiment(uint64_t *random)
{
	static const double coverages[] = { 0, 0.1, 0.5, 1, 1, 1, -1, 7, NAN };
	struct experiment_made made = { .kind = next_random(random) % EXPERIMENT_KINDS,
					.trials = next_random(random) % 40,
					.telling = next_random(random) % 40 };

	made.shown = next_random(random) % 3;
	made.shown_passing = next_random(random) % 2;
	made.coverage = coverages[next_random(random) % ARRAY_SIZE(coverages)];
	return made;
}

static void twist_failure(struct failure_seen *f, uint64_t *random)
{
	f->kind = next_random(random) % FAILURE_KINDS;
	f->fault = next_random(random) % 2;
	f->always = next_random(random) % 2;
	f->failed = next_random(random) % 3 ? f->failed : 0;
	f->obstacles = next_random(random) % (OBSTACLE_NOT_CHASED * 2);
}

static void twist_write(struct write_seen *w, uint64_t *random)
{
	w->flags = WRITE_LAST | (unsigned int)next_random(random) % 128;
	w->fit = next_random(random) % FIT_KINDS;
	w->new = next_random(random) % 2 ? w->new : next_random(random) % 3;
	made_traits(w, (unsigned int)next_random(random) % (MADE_TWIN * 2));
	if (next_random(random) % 3 == 0) {
		block_life_free(w->base);
		w->base = made_block(5, MADE_BLOCK - 64, 48,
				     next_random(random) % 2 ? BLOCK_LIVE : BLOCK_FREED);
	}
}

/* Of a few trials, so that pieces belong together now and then. */
static void add_random(struct evidence_list *list, uint64_t *random)
{
	struct evidence *e = add(list, made_any(next_random(random) % EVIDENCE_KINDS));

	e->trial = next_random(random) % 4;
	e->failing = next_random(random) % 4 != 0;
	if (e->kind == EVIDENCE_EXPERIMENT)
		*e->experiment = random_experiment(random);
	if (e->kind == EVIDENCE_FAILURE)
		twist_failure(e->failure, random);
	if (e->kind == EVIDENCE_WRITE && next_random(random) % 2)
		twist_write(e->write, random);
	if (e->kind == EVIDENCE_CRASH)
		e->crash->fault = next_random(random) % FAULT_CLASSES;
}

/* The class's own explanation, and the alternatives', stand as not excluded. */
static void check_class(const char *name, const struct verdict *v, enum verdict_class class)
{
	for (size_t i = 0; i < rule_count; i++)
		if (rules[i].class == class &&
		    entry_of(v, rules[i].hypothesis)->status == LEDGER_EXCLUDED)
			fail_msg("%s: %s is stated, and %s excluded", name,
				 verdict_class_name(class), ledger_id(rules[i].hypothesis));
}

static void check_against_ledger(const char *name, const struct verdict *v)
{
	size_t confirmed = 0;

	check_whole(name, v);
	check_class(name, v, v->class);
	VEC_FOREACH (&v->alternatives, a)
		check_class(name, v, a->class);
	VEC_FOREACH (&v->ledger, h)
		confirmed += h->status == LEDGER_CONFIRMED;
	assert_int_equal(confirmed, v->firm);
	if (v->class == VERDICT_NOT_MEMORY && v->firm)
		VEC_FOREACH (&v->ledger, h)
			if (h->status != LEDGER_EXCLUDED && strcmp(h->id, "plain") != 0)
				fail_msg("%s: not memory, and %s is not excluded", name, h->id);
}

static void tell_random(struct evidence_list *list, uint64_t *random)
{
	uint64_t count = 0, chosen;

	EACH_STORY (story)
		count++;
	chosen = next_random(random) % count;
	EACH_STORY (story)
		if (chosen-- == 0)
			story->make(list);
}

/* Evidence that makes no sense, and stories with some of it added. */
static void verdict_and_ledger_never_contradict_each_other(void **state)
{
	uint64_t random = 20261117; /* the seed */
	bool seen[VERDICT_CLASSES] = { 0 };

	for (unsigned int round = 0; round < 6000; round++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		uint64_t pieces = 1 + next_random(&random) % 12;
		char name[32];

		if (round % 2) {
			tell_random(&list, &random);
			pieces /= 4;
		}
		for (uint64_t i = 0; i < pieces; i++)
			add_random(&list, &random);
		judge_evidence(&list, &v);
		(void)snprintf(name, sizeof(name), "round %u", round);
		check_against_ledger(name, &v);
		seen[v.class] = true;
	}
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++)
		if (!seen[class])
			fail_msg("too tame: no round came by %s", verdict_class_name(class));
}

/* The same of the stories, whose evidence makes sense. */
static void stories_and_ledger_never_contradict_each_other(void **state)
{
	EACH_STORY (story) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };

		story->make(&list);
		judge_evidence(&list, &v);
		check_against_ledger(story->name, &v);
	}
}

/* ---- judged again ---- */

static void store_and_load(const struct evidence_list *list, struct evidence_list *ret)
{
	ret->trials = list->trials;
	ret->failed = list->failed;
	VEC_FOREACH (&list->list, e) {
		AUTO(strbuf_deinit) struct strbuf bytes = { 0 };
		struct evidence back = { 0 };

		evidence_pack(e, &bytes);
		assert_int_equal(evidence_unpack(bytes.data, bytes.len, &back, NULL), 0);
		back.id = e->id; /* the row's */
		VEC_PUSH(&ret->list, back);
	}
}

static void what_was_stored_is_judged_word_for_word(void **state)
{
	EACH_STORY (story) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 }, loaded = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 }, again = { 0 };
		AUTO(strbuf_deinit) struct strbuf bytes = { 0 }, bytes_again = { 0 };

		story->make(&list);
		store_and_load(&list, &loaded);
		judge_evidence(&list, &v);
		judge_evidence(&loaded, &again);
		verdict_pack(&v, &bytes);
		verdict_pack(&again, &bytes_again);
		if (bytes.len != bytes_again.len ||
		    memcmp(bytes.data, bytes_again.data, bytes.len) != 0)
			fail_msg("%s: '%s' became '%s'", story->name, sentence_of(&v.sentence),
				 sentence_of(&again.sentence));
	}
}

/* What is worth an experiment: whatever it can show that is not decided yet. */
static void what_is_decided_needs_no_experiment(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	struct experiment_made grown = {
		.kind = EXPERIMENT_GROWTH, .trials = 9, .telling = 9, .coverage = 1
	};

	judge_experiments(&list, &grown, 1, &v);
	assert_false(judge_would_tell(&v, EXPERIMENT_GROWTH));
	assert_true(judge_would_tell(&v, EXPERIMENT_WATCH));
	assert_true(judge_would_tell(&v, EXPERIMENT_FILL_FRESH));
	/* It looks at how the program fails, not at memory. */
	assert_false(judge_would_tell(&v, EXPERIMENT_RUN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_chance_to_have_missed_it),
		cmocka_unit_test(a_coverage_that_is_none),
		cmocka_unit_test(nothing_is_excluded_without_an_experiment),
		cmocka_unit_test(enough_failing_trials_exclude),
		cmocka_unit_test(too_few_or_too_little_excludes_nothing),
		cmocka_unit_test(passing_trials_exclude_nothing),
		cmocka_unit_test(two_of_one_kind_add_up),
		cmocka_unit_test(watchpoints_and_threads_exclude_nothing_by_silence),
		cmocka_unit_test(growth_is_no_matter_of_failing_trials),
		cmocka_unit_test(an_experiment_that_saw_it_does_not_exclude_it),
		cmocka_unit_test(what_was_seen_is_not_excluded_by_silence),
		cmocka_unit_test(an_exit_status_alone_is_never_not_memory),
		cmocka_unit_test(not_memory_needs_every_experiment),
		cmocka_unit_test(a_damaged_record_excludes_nothing),
		cmocka_unit_test(huge_counts_stay_huge),
		cmocka_unit_test(verdict_and_ledger_never_contradict_each_other),
		cmocka_unit_test(stories_and_ledger_never_contradict_each_other),
		cmocka_unit_test(what_was_stored_is_judged_word_for_word),
		cmocka_unit_test(what_is_decided_needs_no_experiment),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
