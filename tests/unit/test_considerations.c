/*
 * The considerations: each row of the table has a story that fires it, and one that differs in one
 * fact and does not. docs/howto-consideration.md says how to add one.
 */
#include "judge/considerations.h"
#include "says.h"
#include "verdict_stories.h"

static const struct {
	const char *row, *fires, *nearly;
} pairs[] = {
	{ "seen-once", "once_only", "narrow" },
	{ "not-in-all", "two_of_three", "narrow" },
	{ "value-not-seen", "value_not_seen", "narrow" },
	{ "harmless-before", "rightful_elsewhere", "others_are_no_excuse" },
	{ "harmless-before", "cached_changed_and_quiet", "cached_torn_and_quiet" },
	{ "nonpointer-before", "such_a_value_twice", "right_before" },
	{ "other-places", "one_of_twins", "read_from_here" },
	{ "free-inferred", "after_free_inferred", "after_free" },
	{ "free-unknown", "narrow_in_a_pool", "narrow" },
	{ "free-unknown", "narrow_in_a_named_pool", "narrow" },
	{ "first-value", "constructor", "set_up_again" },
	{ "only-copied", "only_copied", "source_whole" },
	{ "slot-writer-unknown", "cached_slot_unknown", "cached_and_replaced" },
	{ "mapped-then", "unmapped_since", "never_an_address" },
	{ "readable-address", "a_readable_address", "leads_who_knows_where" },
	{ "clears-field", "set_to_null", "half_set_to_null" },
	{ "clears-field", "marked_as_gone", "number_over_an_address" },
	{ "replaced-number", "number_over_number", "number_over_its_own" },
	{ "in-loop", "element_in_passing", "element_without_a_loop" },
	{ "in-loop", "wide_element_in_passing", "wide" },
	{ "in-loop", "element_with_few_guards", "element_with_whole_guards" },
	{ "mid-field", "part_of_a_field_in_passing", "part_of_a_field_with_whole_guards" },
	{ "mid-field", "part_of_a_field_in_passing", "part_of_a_field_by_its_object" },
	{ "whole-block", "whole_object", "nearly_the_whole_object" },
	{ "copy-piece", "piece_of_a_copy", "a_copy_of_its_own" },
	{ "freed-block-too", "freed_block_besides", "freed_block_in_another_trial" },
	{ "recycled-place", "place_of_another_kind", "place_reached_by_its_owner" },
	{ "object-inside", "object_inside_the_block", "update_inside_the_block" },
	{ "object-inside", "first_object_of_an_arena", "update_in_an_arena" },
	{ "object-inside", "constant_inside_the_block", "constant_where_a_pointer_runs" },
	{ "gap-before", "apart_from_the_block", "index_behind_the_block" },
	{ "mask-unknown", "masked_over_its_block_perhaps", "masked_over_its_block" },
	{ "mask-unknown", "masked_over_its_block_perhaps", "masked_into_another_block" },
	{ "loop-between-blocks", "overflow_in_a_loop", "overflow" },
	{ "loop-down", "canary_from_above", "canary_in_a_loop" },
	{ "loop-down", "canary_from_above", "canary_by_a_copy" },
	{ "loop-up", "guard_before_from_below", "guard_before_in_a_loop" },
	{ "damage-goes-on", "contested_by_a_runner", "contested_but_meant" },
	{ "damage-goes-on", "contested_damage", "damage_only" },
	{ "another-thread", "another_thread_too", "another_thread_under_a_lock" },
	{ "far-apart", "far_away", "overflow" },
	{ "freed-block-recycled", "recycled_only", "freed_in_the_crash" },
	{ "place-shared", "freed_in_a_shared_place", "shared_in_one_trial_only" },
	{ "place-shared", "deep_in_a_freed_block", "freed_in_the_crash" },
	{ "place-shared", "freed_object_in_the_crash", "poisoned_object_in_the_crash" },
	{ "place-shared", "written_in_a_shared_place", "crash_writes_freed" },
	{ "stray-pointer", "read_far_behind", "read_unpointed" },
	{ "read-in-passing", "read_and_passed", "another_read_and_passed" },
	{ "let-through", "read_behind_and_failed", "read_behind" },
	{ "let-through", "read_behind_by_another", "read_behind_and_used" },
	{ "only-by-poison", "used_by_poison_alone", "used_by_poison_once" },
	{ "writer-not-caught", "damage_only", "overflow_of_a_canary" },
	{ "writer-not-caught", "damage_only", "damage_seen_at_a_fence" },
	{ "inexact-holder", "holder_by_looks_only", "held_in_the_middle" },
	{ "pointer-on-stack", "held_on_a_stack_as_well", "dangling" },
	{ "freer-unknown", "freed_by_who_knows_whom", "held_frame" },
	{ "holder-counted", "held_and_counted", "dangling" },
	{ "store-unseen", "held_and_never_stored", "dangling" },
	{ "store-unseen", "held_by_a_list", "dangling" },
	{ "takes-reference", "counted_and_touched", "held_and_counted" },
	{ "by-exclusion", "counted_by_one_alone", "given_back_too_often" },
	{ "by-several", "given_back_by_two", "given_back_too_often" },
	{ "stale-use-before", "double_free_of_another", "double_free_of_what_is_held" },
	{ "only-passing", "free_in_a_passing_trial", "double_free" },
	{ "mere-mismatch", "mismatched", "interior_free" },
	{ "own-allocator", "given_back_twice", "double_free" },
	{ "foreign-pointer", "foreign", "foreign_and_a_crash" },
	{ "may-be-chance", "uninitialised_or_by_chance", "uninitialised_by_the_odds" },
	{ "bytes-not-found", "uninitialised_somewhere", "uninitialised_by_the_odds" },
	{ "one-bit", "outside_one_bit", "outside" },
	{ "system-calls-unseen", "outside_without_syscalls", "outside" },
	{ "instances-noted", "conflated_by_inference", "conflated" },
	{ "not-watched-between", "conflation_unwatched", "conflated" },
	{ "nothing-lost", "race_nothing_lost", "race" },
	{ "only-disturbed", "mapping_under_guards", "mapping_without_guards_too" },
	{ "only-disturbed", "null_with_guards_only", "null_returned" },
	{ "cutter-unknown", "mapping_by_nobody", "mapping" },
	{ "no-memory-test", "memory_test_clean", "bad_memory" },
	{ "writer-caught", "signs_but_a_writer", "machine_signs" },
	{ "damage-apart", "damage_in_some_failures", "damage_in_every_failure" },
	{ "damage-apart", "damage_in_a_success", "damage_in_every_failure" },
	{ "damage-apart", "damage_in_a_success", "guards_take_the_damage" },
	{ "fails-all-the-same", "fails_whoever_takes_the_damage", "guards_take_the_damage" },
	/* It always holds where the class fits: no experiment looks at every kind of error. */
	{ "memory-not-excluded", "plain", NULL },
	{ "damage-not-looked-for", "null_without_fences", "null_returned" },
	{ "damage-not-looked-for", "null_with_few_guards", "null_returned" },
	{ "memory-signs-too", "null_and_turns", "null_and_turns_in_a_success" },
	{ "divisor-unknown", "divided_by_who_knows", "divided_by_zero" },
	{ "one-measurement", "growth_measured_once", "growth" },

	{ "fills-recycled-block", "fills_a_place_of_another_kind", "place_of_another_kind" },
	{ "fills-own-block", "new_block_filled", "new_block_reset" },
	{ "numbers-often", "numbers_all_the_time", "number_over_number" },
	{ "nonpointer-often", "another_kind_of_object", "such_a_value_twice" },
	{ "number-in-passing", "twin_of_numbers", "twin_of_a_number" },
	{ "smaller-fields", "field_in_parts", "field_in_parts_and_whole" },
	{ "own-variable", "variable_set_by_its_function", "variable_set_through_a_pointer" },
	{ "clears-own-field", "set_to_null_by_name", "set_to_null" },
	{ "marks-own-field", "marked_by_name", "marked_as_gone" },
	{ "address-then", "unmapped_since_by_name", "unmapped_since" },
	{ "stores-divisor", "divisor_stored_by_name", "divisor_stored_in_passing" },
	{ "block-address", "address_of_a_block", "address_of_a_block_unnamed" },
	{ "live-pointer", "pointer_to_a_live_block", "pointer_to_a_freed_block" },
	{ "live-pointer", "reader_gone_astray", "pointer_to_a_freed_block" },
	{ "reader-strayed", "read_by_one_who_left", "another_has_left" },
	{ "freed-as-stored", "freed_as_it_was_stored", "moved_and_freed" },
	{ "freed-as-stored", "cursor_freed", "moved_and_freed" },
	{ "freed-as-stored", "cursor_of_nobody_freed", "moved_out_and_freed" },
};

static const struct consideration *row_called(const char *name)
{
	for (size_t i = 0; i < consideration_count; i++)
		if (strcmp(considerations[i].name, name) == 0)
			return &considerations[i];
	fail_msg("no consideration is called %s", name);
	return NULL;
}

/* How often a row was asked in a story, and how often it held and was told. */
struct asked {
	size_t times, held, told;
};

static bool among(const struct said_list *doubts, const char *name)
{
	VEC_FOREACH (&doubts->list, doubt)
		if (strcmp(doubt->id, name) == 0)
			return true;
	return false;
}

static void ask_rule(const struct consideration *row, const struct rule *rule,
		     const struct facts *facts, struct asked *ret)
{
	struct proof proof = { 0 };

	rule->weigh(rule, facts, &proof);
	if (proof.main && row->classes & BIT(rule->class)) {
		struct weighing w = { .rule = rule, .facts = facts, .proof = &proof };

		if (proof.main->kind == EVIDENCE_WRITE)
			w.write = proof.main;
		consider(rule, facts, &proof);
		ret->times++;
		ret->held += consideration_holds(row, &w);
		ret->told += among(&proof.doubts, row->name);
	}
	proof_deinit(&proof);
}

static void ask_write(const struct consideration *row, const struct evidence *write,
		      const struct facts *facts, struct asked *ret)
{
	struct weighing w = { .facts = facts, .write = write };

	ret->times++;
	ret->held += consideration_holds(row, &w);
	ret->told += consider_cleared(facts, write) == row;
}

static struct asked ask(const struct consideration *row, const char *story)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(facts_deinit) struct facts facts;
	struct asked ret = { 0 };

	tell_story(&list, story);
	facts_init(&facts, &list);
	for (size_t i = 0; row->effect == DOUBT && i < rule_count; i++)
		ask_rule(row, &rules[i], &facts, &ret);
	if (row->effect == CLEARS)
		VEC_FOREACH (&list.list, e)
			if (e->kind == EVIDENCE_WRITE && e->failing)
				ask_write(row, e, &facts, &ret);
	return ret;
}

static void every_row_fires(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (ask(row_called(pairs[i].row), pairs[i].fires).told == 0)
			fail_msg("%s: %s does not fire it", pairs[i].row, pairs[i].fires);
}

/* The row is asked in the other story as well, and does not hold. */
static void every_row_nearly_fires(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct asked asked;

		if (!pairs[i].nearly)
			continue;
		asked = ask(row_called(pairs[i].row), pairs[i].nearly);
		if (asked.times == 0)
			fail_msg("%s: nobody asks it in %s", pairs[i].row, pairs[i].nearly);
		if (asked.held > 0)
			fail_msg("%s: %s fires it, too", pairs[i].row, pairs[i].nearly);
	}
}

/* A row without a story that nearly fires it holds wherever it is asked. */
static void what_nothing_nearly_fires_always_holds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const struct consideration *row = row_called(pairs[i].row);

		if (pairs[i].nearly)
			continue;
		EACH_STORY (story) {
			struct asked asked = ask(row, story->name);

			if (asked.held < asked.times)
				fail_msg("%s: %s nearly fires it", row->name, story->name);
		}
	}
}

static void no_row_is_left_out(void **state)
{
	for (size_t i = 0; i < consideration_count; i++) {
		bool found = false;

		for (size_t k = 0; k < ARRAY_SIZE(pairs); k++)
			found |= strcmp(pairs[k].row, considerations[i].name) == 0;
		if (!found)
			fail_msg("%s has no story", considerations[i].name);
	}
}

/* Names are identifiers in JSON, and each row has its words. */
static void every_row_is_whole(void **state)
{
	for (size_t i = 0; i < consideration_count; i++) {
		const struct consideration *row = &considerations[i];

		if (row_called(row->name) != row)
			fail_msg("two rows are called %s", row->name);
		if (strspn(row->name, "abcdefghijklmnopqrstuvwxyz-") != strlen(row->name))
			fail_msg("%s is no name for JSON", row->name);
		if (!words_text(row->name))
			fail_msg("%s has no words", row->name);
		if (row->effect == CLEARS && row->add)
			fail_msg("%s clears a writer, and nobody asks for its values", row->name);
		assert_int_not_equal(row->classes, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_fires),
		cmocka_unit_test(every_row_nearly_fires),
		cmocka_unit_test(what_nothing_nearly_fires_always_holds),
		cmocka_unit_test(no_row_is_left_out),
		cmocka_unit_test(every_row_is_whole),
	};

	return cmocka_run_group_tests_name("considerations", tests, NULL, NULL);
}
