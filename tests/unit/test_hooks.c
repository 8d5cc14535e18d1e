#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/hooks/allocator.h"
#include "plan/hooks/own_malloc.h"
#include "plan/hooks/patches.h"
#include "wire/plan.h"

#define PROGRAM PROGRAMS_DIR "/program-shapes"

struct planned {
	struct patches patches;
	bool unfollowed;
	struct err err;
	int r;
};

static void planned_deinit(struct planned *planned)
{
	patches_deinit(&planned->patches);
}

static void plan(const char *name, struct planned *ret)
{
	AUTO(module_closep) struct module *module = NULL;
	AUTO(functions_deinit) struct functions found = { 0 };
	AUTO(shape_deinit) struct shape shape = { 0 };

	*ret = (struct planned){ 0 };
	assert_int_equal(module_open(PROGRAM, NULL, &module, NULL), 0);
	functions_find(module, name, &found);
	assert_int_equal(found.list.count, 1);
	ret->r = shape_read(module, &found.list.items[0], &shape, &ret->err);
	ret->unfollowed = shape.unfollowed;
	if (ret->r == 0)
		ret->r = patches_plan(&shape, &ret->patches, &ret->err);
}

static const struct {
	const char *name;
	bool entry_trap;
	size_t exits; /* that are planned */
	size_t exit_traps;
	const char *refused; /* a word of why exits are not seen, or NULL */
} shapes[] = {
	{ "loops_into_entry", true, 1, 0, NULL },
	{ "loops_to_entry", false, 1, 0, NULL },
	{ "only_returns", false, 0, 0, "nothing but return" },
	{ "never_returns", false, 0, 0, "never returns" },
	{ "other_function", false, 1, 0, NULL },
	{ "calls_other", false, 1, 0, NULL },
	{ "jumps_to_other", false, 0, 0, "jump to 'other_function'" },
	{ "jumps_to_own", false, 1, 0, NULL },
	{ "through_pointer", false, 0, 0, "another function" },
	{ "unfollowed", true, 1, 1, NULL },
	{ "after_mark", false, 1, 0, NULL },
	{ "entered_from_outside", true, 1, 0, NULL },
	{ "short_return", false, 1, 1, NULL },
};

static void test_shapes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		AUTO(planned_deinit) struct planned p;
		size_t traps = 0;

		plan(shapes[i].name, &p);
		if (p.r < 0)
			fail_msg("%s: %s", shapes[i].name, p.err.message);
		for (size_t k = 1; k < p.patches.list.count; k++)
			traps += p.patches.list.items[k].trap;
		if (p.patches.list.items[0].trap != shapes[i].entry_trap ||
		    p.patches.list.count - 1 != shapes[i].exits || traps != shapes[i].exit_traps)
			fail_msg("%s: entry trap %d, %zu exits, %zu traps, %s", shapes[i].name,
				 p.patches.list.items[0].trap, p.patches.list.count - 1, traps,
				 p.patches.no_exits.message);
		if (!shapes[i].refused != (p.patches.no_exits.code == 0) ||
		    (shapes[i].refused && !strstr(p.patches.no_exits.message, shapes[i].refused)))
			fail_msg("%s: '%s'", shapes[i].name, p.patches.no_exits.message);
	}
}

/* No patch overlaps another or reaches into the next function. */
static void test_patches_keep_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		AUTO(planned_deinit) struct planned p;

		plan(shapes[i].name, &p);
		VEC_FOREACH (&p.patches.list, a)
			VEC_FOREACH (&p.patches.list, b) {
				size_t a_bytes = a->trap ? 1 : a->covered;
				size_t b_bytes = b->trap ? 1 : b->covered;

				if (a != b && a->at < b->at + b_bytes && b->at < a->at + a_bytes)
					fail_msg("%s: patches at %llx and %llx", shapes[i].name,
						 (unsigned long long)a->at,
						 (unsigned long long)b->at);
			}
	}
}

static void test_garbage_is_refused(void **state)
{
	AUTO(planned_deinit) struct planned p;

	(void)state;
	plan("has_garbage", &p);
	assert_true(p.r < 0);
	assert_non_null(strstr(p.err.message, "+0x1 that are no instruction"));
}

static const struct {
	const char *text, *words;
} refusals[] = {
	{ "alloc=own_functoin", "did you mean 'own_function'?" },
	{ "alloc=always_inlined", "was inlined" },
	{ "alloc=chooses", "only chooses" },
	{ "alloc=jumps_to_other", "tail call" },
	{ "alloc=has_garbage", "no instruction" },
	{ "alloc=malloc", "without being asked" },
	{ "free=memcpy", "cannot be hooked" },
	{ "alloc=0x1", "no function begins at 0x1" },
	{ "alloc=nolib.so!f", "no such file" },
	{ "aloc=own_function", "did you mean 'alloc='?" },
	{ "alloc=own_function(size@6)", "at character 25" },
	{ "alloc=own_function(size=0)", "a size of 0" },
	{ "alloc=own_function(ptr@0)", "how large" },
	{ "free=own_function(size@0)", "which argument is the object" },
	{ "alloc=own_function(size@0", "no function" },
	{ "alloc=(size@0)", "name of the function is missing" },
	{ "own_function", "is none of" },
	{ "  ", "nothing in it" },
};

static void test_refusals(void **state)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;

	(void)state;
	assert_int_equal(hook_planner_new(&(struct libraries_request){ .program = PROGRAM },
					  &planner, NULL),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		AUTO(strbuf_deinit) struct strbuf items = { 0 };
		struct err err = { 0 };
		int r = allocator_plan(planner, refusals[i].text, &items, &err);

		if (r >= 0 || !strstr(err.message, refusals[i].words))
			fail_msg("'%s': %s", refusals[i].text, r < 0 ? err.message : "planned");
		assert_int_equal(items.len, 0);
	}
}

static void test_items_of_a_plan(void **state)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	static _Alignas(8) unsigned char bytes[1 << 16];
	const struct plan_item *item = NULL;
	struct plan_header header, read;
	size_t hooks = 0, actions = 0, len;

	(void)state;
	assert_int_equal(hook_planner_new(&(struct libraries_request){ .program = PROGRAM },
					  &planner, NULL),
			 0);
	assert_int_equal(allocator_plan(planner,
					"alloc=calls_other(count@1*size@0) free=other_function",
					&items, NULL),
			 0);
	assert_int_equal(hook_plan_watch(planner, "calls_other", 3, 5, &items, NULL), 0);
	assert_true(hook_plan_watch(planner, "calls_other", 6, 5, &items, NULL) < 0);
	plan_init(&header, PLAN_OBSERVE_IDS);
	len = plan_seal(&header, items.data, items.len, bytes, sizeof(bytes));
	assert_int_equal(plan_check(bytes, len, &read), PLAN_OK);
	while ((item = plan_next(bytes, item))) {
		const struct plan_action *action = (const struct plan_action *)item;

		hooks += item->type == PLAN_ITEM_HOOK;
		actions += item->type == PLAN_ITEM_ACTION;
		if (item->type == PLAN_ITEM_ACTION && action->what == PLAN_ALLOC_ENTER)
			assert_true(action->size == 0 && action->count == 1);
		if (item->type == PLAN_ITEM_ACTION && action->what == PLAN_WATCH_ARGUMENT)
			assert_true(action->pointer == 3 && action->number == 5);
	}
	assert_int_equal(actions, 4);
	assert_int_equal(hooks, 4);
}

#define OWN_MALLOC PROGRAMS_DIR "/program-own-malloc"

static size_t count_items(const struct strbuf *items, enum plan_item_type type)
{
	struct plan_item item;
	size_t count = 0;

	for (size_t at = 0; at < items->len; at += item.bytes) {
		memcpy(&item, items->data + at, sizeof(item));
		count += item.type == type;
	}
	return count;
}

static void test_a_malloc_inside_the_program(void **state)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 }, unseen = { 0 };
	struct plan_action action;
	struct plan_hook hook;

	(void)state;
	assert_int_equal(hook_planner_new(&(struct libraries_request){ .program = OWN_MALLOC },
					  &planner, NULL),
			 0);
	assert_int_equal(own_malloc_plan(planner, OWN_MALLOC, &items, &unseen, NULL), 0);
	assert_int_equal(unseen.len, 0);
	/* malloc and free; cfree is free. */
	assert_int_equal(count_items(&items, PLAN_ITEM_HOOK), 2);
	assert_int_equal(count_items(&items, PLAN_ITEM_ACTION), 2);
	memcpy(&hook, items.data, sizeof(hook));
	memcpy(&action, items.data + sizeof(hook), sizeof(action));
	assert_string_equal(hook.label, "malloc");
	assert_int_equal(hook.form, PLAN_HOOK_JUMP);
	assert_true(action.key == hook.key && action.what == PLAN_REPLACE &&
		    action.number == PLAN_OWN_MALLOC);
	/* It calls nothing: compilers know what it leaves alone. */
	assert_true(hook.flags & PLAN_HOOK_KEEP);
}

static void test_what_the_user_names_goes_first(void **state)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 }, unseen = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(hook_planner_new(&(struct libraries_request){ .program = OWN_MALLOC },
					  &planner, NULL),
			 0);
	assert_int_equal(allocator_plan(planner, "alloc=malloc free=free", &items, NULL), 0);
	len = items.len;
	assert_int_equal(own_malloc_plan(planner, OWN_MALLOC, &items, &unseen, NULL), -EBUSY);
	assert_int_equal(items.len, len);
}

static void test_a_program_without_one(void **state)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 }, unseen = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hook_planner_new(&(struct libraries_request){ .program = PROGRAM },
					  &planner, NULL),
			 0);
	assert_int_equal(own_malloc_plan(planner, PROGRAM, &items, &unseen, &err), -ENOTSUP);
	assert_non_null(strstr(err.message, "malloc"));
	assert_int_equal(items.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_patches_keep_apart),
		cmocka_unit_test(test_garbage_is_refused),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_items_of_a_plan),
		cmocka_unit_test(test_a_malloc_inside_the_program),
		cmocka_unit_test(test_what_the_user_names_goes_first),
		cmocka_unit_test(test_a_program_without_one),
	};

	return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
