/*
 * The verdict rules: every story (verdict_stories.h) is judged as its row says; and what a verdict
 * says besides its class.
 */
#include "says.h"
#include "verdict_stories.h"

static void judge(void (*make)(struct evidence_list *), struct evidence_list *list,
		  struct verdict *ret)
{
	make(list);
	judge_evidence(list, ret);
}

/* What is excluded names its experiment; what is untested has nothing to say. */
static void check_entry(const char *name, const struct ledger_entry *h)
{
	if ((h->status != LEDGER_UNTESTED) != said_anything(&h->because))
		fail_msg("%s: %s was decided by nothing", name, h->id);
	if (h->status == LEDGER_EXCLUDED &&
	    (h->by == EXPERIMENT_KINDS || h->telling == 0 || !(h->missed < 1)))
		fail_msg("%s: %s was excluded by no experiment", name, h->id);
	if (h->status == LEDGER_CONFIRMED && (h->by == EXPERIMENT_KINDS || h->evidence.count == 0))
		fail_msg("%s: %s was confirmed without evidence", name, h->id);
}

/* Whatever it is: counts hold together, doubts go with doubt, nobody is accused without a class. */
static void check_sound(const char *name, const struct verdict *v)
{
	if (sentence_of(&v->sentence)[0] == '\0')
		fail_msg("%s: no sentence", name);
	if (v->caught > v->watched)
		fail_msg("%s: caught %d of %d", name, (int)v->caught, (int)v->watched);
	if (v->class == VERDICT_NOT_CAUGHT) {
		if (v->writer.count > 0 || v->firm || !said_anything(&v->next) || v->caught > 0)
			fail_msg("%s: not caught, and yet", name);
		return;
	}
	if (v->firm != (v->doubts.list.count == 0))
		fail_msg("%s: firm %d with %zu doubts", name, v->firm, v->doubts.list.count);
	if (v->evidence.count == 0)
		fail_msg("%s: a class without evidence", name);
	VEC_FOREACH (&v->ledger, h)
		check_entry(name, h);
}

/* What to try next is never what was tried. */
static void check_next(const char *name, const struct evidence_list *list, const struct verdict *v)
{
	static const char guards[] = "redhand heap -- CMD";
	bool made = false;

	VEC_FOREACH (&list->list, e)
		made |= e->kind == EVIDENCE_EXPERIMENT && e->experiment->kind == EXPERIMENT_GUARDS;
	if (!made)
		return;
	if (said_anything(&v->next) && strstr(sentence_of(&v->next), guards))
		fail_msg("%s: guards once more: %s", name, sentence_of(&v->next));
	VEC_FOREACH (&v->alternatives, other)
		if (strstr(sentence_of(&other->tell_apart), guards))
			fail_msg("%s: guards once more, for another explanation", name);
}

static void check_story(const struct story *story)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	const struct frame *site;
	const char *writer;

	judge(story->make, &list, &v);
	check_next(story->name, &list, &v);
	site = stack_site(&v.writer) ?: v.writer.frames;
	writer = site ? site->function : NULL;
	if (v.class != story->class || v.firm != story->firm)
		fail_msg("%s: %s%s, wanted %s%s: %s %s", story->name, verdict_class_name(v.class),
			 v.firm ? "" : " (doubted)", verdict_class_name(story->class),
			 story->firm ? "" : " (doubted)", sentence_of(&v.sentence),
			 v.doubts.list.count > 0 ? sentence_of(&v.doubts.list.items[0]) : "");
	if (!story->writer != !writer || (writer && strcmp(writer, story->writer) != 0))
		fail_msg("%s: accuses %s", story->name, writer ? writer : "nobody");
	check_sound(story->name, &v);
}

static void every_rule_fires_and_nearly_fires(void **state)
{
	EACH_STORY (story)
		check_story(story);
}

/* Each class has a row that states it firmly and one that nearly does. */
static void no_class_is_left_out(void **state)
{
	/* That it is no memory error is never stated firmly: nobody looks at everything. */
	bool fires[VERDICT_CLASSES] = { [VERDICT_NOT_CAUGHT] = true, [VERDICT_NOT_MEMORY] = true };

	EACH_STORY (story)
		if (story->firm)
			fires[story->class] = true;
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++)
		if (!fires[class])
			fail_msg("nothing fires %s", verdict_class_name(class));
}

static const struct ledger_entry *hypothesis(const struct verdict *v, const char *id)
{
	VEC_FOREACH (&v->ledger, h)
		if (strcmp(h->id, id) == 0)
			return h;
	fail_msg("no hypothesis %s", id);
	return NULL;
}

/* Where two fit, both are shown. */
static void an_inferred_free_leaves_the_other_class(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	after_free_inferred(&list);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_WRITE_AFTER_FREE);
	assert_int_equal(v.alternatives.count, 1);
	assert_int_equal(v.alternatives.items[0].class, VERDICT_NARROW_WRITE);
	assert_int_equal(hypothesis(&v, "narrow")->status, LEDGER_OPEN);
}

static void where_nothing_failed_no_trial_is_called_failing(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict failing = { 0 }, passing = { 0 };

	judge(narrow, &list, &failing);
	assert_true(says(&failing.sentence, "caught in 3 of 3 failing trials"));
	list.failed = 0;
	judge_evidence(&list, &passing);
	assert_true(says(&passing.sentence, "caught in 3 of 3 trials"));
}

/* How many bytes a vector store wrote is known by its mask only. */
static void a_width_that_is_a_limit_is_told_as_one(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list known = { 0 }, unknown = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 }, limit = { 0 };

	judge(story_find("masked_over_its_block")->make, &known, &v);
	assert_true(says(&v.sentence, " wrote 64 bytes "));
	judge(story_find("masked_over_its_block_perhaps")->make, &unknown, &limit);
	assert_true(says(&limit.sentence, " wrote up to 64 bytes "));
}

static void a_firm_verdict_decides_the_others(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(narrow, &list, &v);
	assert_int_equal(hypothesis(&v, "narrow")->status, LEDGER_CONFIRMED);
	assert_int_equal(hypothesis(&v, "wide")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "conflated")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "cached")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "stale")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "host")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "race")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "plain")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "growth")->status, LEDGER_UNTESTED);
	/* The observation that did it has its number. */
	assert_int_equal(list.list.items[hypothesis(&v, "wide")->evidence.items[0] - 1].kind,
			 EVIDENCE_WRITE);
	assert_int_equal(list.list.items[hypothesis(&v, "race")->evidence.items[0] - 1].kind,
			 EVIDENCE_WATCH);
	assert_int_equal(v.caught, 3);
	assert_int_equal(v.watched, 3);
	assert_int_equal(v.trials, 41);
	assert_true(says(&v.sentence, "caught in 3 of 3 failing trials"));
	assert_true(says(&v.sentence, "41 trials run"));
	assert_false(said_anything(&v.next));
	assert_int_equal(list.list.items[v.crash - 1].kind, EVIDENCE_CRASH);
	assert_int_equal(v.steps.count, 3); /* allocated, written, failed */
}

static void a_doubted_verdict_decides_little(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(once_only, &list, &v);
	assert_int_equal(hypothesis(&v, "narrow")->status, LEDGER_OPEN);
	assert_int_equal(hypothesis(&v, "wide")->status, LEDGER_OPEN);
	assert_int_equal(hypothesis(&v, "race")->status, LEDGER_OPEN);
	/* But the very block was seen to be written: that was no mix-up. */
	assert_int_equal(hypothesis(&v, "conflated")->status, LEDGER_EXCLUDED);
	assert_true(said_anything(&v.next));
}

static void two_that_fit_are_both_shown(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	race_nothing_lost(&list);
	damage_only(&list);
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_OVERFLOW);
	assert_int_equal(v.alternatives.count, 1);
	assert_int_equal(v.alternatives.items[0].class, VERDICT_RACE);
	assert_true(strlen(sentence_of(&v.alternatives.items[0].tell_apart)) > 20);
	assert_true(v.alternatives.items[0].evidence.count > 0);
}

/* A holder says all that a use says, and more: it is no rival. */
static void what_is_covered_is_no_rival(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(dangling, &list, &v);
	assert_int_equal(v.alternatives.count, 0);
	assert_int_equal(list.list.items[v.holder - 1].kind, EVIDENCE_HOLDER);
	assert_int_equal(v.steps.count, 3); /* allocated, stored, freed */
	assert_string_equal(v.steps.items[1].what.id, "step:stored");
	assert_string_equal(v.steps.items[2].what.id, "step:freed");
}

/* Nobody was seen storing the pointer: a bad write may have done it. */
static void an_unknown_writer_leaves_more_open(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(holder_with_gaps, &list, &v);
	assert_int_equal(hypothesis(&v, "dangling")->status, LEDGER_CONFIRMED);
	assert_int_equal(hypothesis(&v, "conflated")->status, LEDGER_EXCLUDED);
	assert_int_equal(hypothesis(&v, "narrow")->status, LEDGER_UNTESTED);
}

/* A pointer that led on to where the bad value was read: about that place its store says nothing.
 */
static void a_store_on_the_way_falsifies_nothing(void **state)
{
	static const char *const ids[] = { "conflated", "uninitialised", "host", "outside",
					   "race" };
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };

	judge(a_readable_address, &list, &v);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(hypothesis(&v, ids[i])->status, LEDGER_OPEN);
}

/* Whoever read from the freed block is named, not who used what was read; and who called both. */
static void the_first_reader_of_a_freed_block_is_named(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict v = { 0 };
	struct evidence *seen;

	tell_story(&list, "freed_used");
	seen = add(&list, made_freed_use(3, false));
	seen->freed_use->fenced = true;
	stack_deinit(&seen->freed_use->user);
	made_stack(&seen->freed_use->user, "list_next", 20);
	judge_evidence(&list, &v);
	assert_true(says(&v.sentence, "clone_statement (") && !says(&v.sentence, "list_next ("));
	verdict_deinit(&v);
	v = (struct verdict){ 0 };
	seen->freed_use->first = true;
	judge_evidence(&list, &v);
	assert_int_equal(v.class, VERDICT_USE_AFTER_FREE);
	assert_true(says(&v.sentence, "list_next (") && !says(&v.sentence, "clone_statement ("));
	assert_true(says(&v.sentence, "called both"));
}

static void what_is_left_open_is_told(void **state)
{
	static const struct {
		void (*make)(struct evidence_list *);
		const char *next, *open;
	} cases[] = {
		{ nothing, "redhand repro", "narrow: " },
		{ imprecise, "--mode pages", "came in late" },
		{ one_of_five, "--mode pages", "1 of 5 failing trials" },
		{ outside_with_a_gap, "from its birth", "outside: " },
		{ zero_from_birth_on, "--mode pages",
		  "2 failing trials: a value that was never set" },
		{ plain_beside_a_crash, "redhand chase --from 4", "race: " },
		{ numbers_all_the_time, "the block that object_new",
		  "takes the object for another type" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		bool found = false;

		judge(cases[i].make, &list, &v);
		VEC_FOREACH (&v.open.list, open)
			found |= says(open, cases[i].open);
		if (!found || !says(&v.next, cases[i].next))
			fail_msg("case %zu: %s", i, sentence_of(&v.next));
	}
}

/* Any subset of any evidence gives a sound verdict, in any order. */
static void nonsense_is_judged_soundly(void **state)
{
	uint64_t random = 4711; /* the seed */

	for (unsigned int round = 0; round < 400; round++) {
		AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
		AUTO(verdict_deinit) struct verdict v = { 0 };
		char name[32];

		for (unsigned int i = 0; i < 24; i++) {
			struct evidence *e;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			e = add(&list, made_any((unsigned int)(random >> 40) % EVIDENCE_KINDS));
			e->trial = (random >> 33) % 4;
			e->failing = (random >> 32) % 4 != 0;
			if (e->kind == EVIDENCE_WRITE && (random >> 50) % 2) {
				e->write->flags = (unsigned int)(random >> 20) % 128;
				block_life_free(e->write->base);
				e->write->base = NULL;
			}
			if (e->kind == EVIDENCE_CANARY && (random >> 51) % 2) {
				block_life_free(e->canary->block);
				e->canary->block = NULL;
			}
		}
		judge_evidence(&list, &v);
		(void)snprintf(name, sizeof(name), "round %u", round);
		check_sound(name, &v);
	}
}

/* Code of Rust's library that was compiled into the program says nothing about who called it. */
static void sites_pass_over_rusts_library(void **state)
{
	AUTO(stack_deinit) struct stack stack = { 0 };

	made_frame(&stack, "<alloc::raw_vec::RawVecInner>::try_allocate_in", NULL, 0, FRAME_NATIVE);
	made_frame(&stack, "alloc::boxed::Box<T>::new",
		   "/rustc/0123abcd/library/alloc/src/boxed.rs", 286, FRAME_NATIVE);
	made_frame(&stack, "app::push", "/opt/app/src/push.rs", 4, FRAME_NATIVE);
	made_frame(&stack, "app::main", "/opt/app/src/main.rs", 9, FRAME_NATIVE);
	assert_string_equal(stack_site(&stack)->function, "app::push");
}

/* A folder may have any name: numpy is what is installed as that. */
static void test_numpy_is_folded_and_a_folder_of_that_name_is_not(void **state)
{
	static const struct {
		const char *module, *site;
	} cases[] = { { "/usr/lib/python3/dist-packages/numpy/core/_multiarray.so", "caller" },
		      { "/home/you/numpy/lib/fill.so", "fill" } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(stack_deinit) struct stack stack = { 0 };

		(void)stack_push(&stack, &(struct frame){ .function = (char *)"fill",
							  .module = (char *)cases[i].module });
		(void)stack_push(&stack, &(struct frame){ .function = (char *)"caller",
							  .module = (char *)"/home/you/own.so" });
		assert_string_equal(stack_site(&stack)->function, cases[i].site);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_fires_and_nearly_fires),
		cmocka_unit_test(no_class_is_left_out),
		cmocka_unit_test(an_inferred_free_leaves_the_other_class),
		cmocka_unit_test(where_nothing_failed_no_trial_is_called_failing),
		cmocka_unit_test(a_width_that_is_a_limit_is_told_as_one),
		cmocka_unit_test(a_firm_verdict_decides_the_others),
		cmocka_unit_test(a_doubted_verdict_decides_little),
		cmocka_unit_test(two_that_fit_are_both_shown),
		cmocka_unit_test(what_is_covered_is_no_rival),
		cmocka_unit_test(an_unknown_writer_leaves_more_open),
		cmocka_unit_test(a_store_on_the_way_falsifies_nothing),
		cmocka_unit_test(the_first_reader_of_a_freed_block_is_named),
		cmocka_unit_test(what_is_left_open_is_told),
		cmocka_unit_test(sites_pass_over_rusts_library),
		cmocka_unit_test(test_numpy_is_folded_and_a_folder_of_that_name_is_not),
		cmocka_unit_test(nonsense_is_judged_soundly),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
