/*
 * Plans hooks and writes the agent's plan: plan_hooks FILE PROGRAM SPEC...
 *
 * SPEC is ret:FUNC, argN:FUNC, what --allocator takes, or `own` for a malloc inside the program.
 * Prints each hook on a line, notes and errors behind "note:" and "error:". Exit 1 when one is
 * refused.
 */
#include <stdio.h>
#include <string.h>

#include "plan/hooks/allocator.h"
#include "plan/hooks/own_malloc.h"
#include "report/wording.h"
#include "wire/plan.h"

static int plan_own(struct hook_planner *planner, const char *program, struct strbuf *items,
		    struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf unseen = { 0 };
	int r = own_malloc_plan(planner, program, items, &unseen, err);

	if (unseen.len > 0)
		printf("note: unseen: %s\n", unseen.data);
	return r;
}

static int plan_one(struct hook_planner *planner, const char *program, const char *text,
		    uint32_t watch, struct strbuf *items, struct err *err)
{
	if (strcmp(text, "own") == 0)
		return plan_own(planner, program, items, err);
	if (strncmp(text, "ret:", 4) == 0)
		return hook_plan_watch(planner, text + 4, -1, watch, items, err);
	if (strncmp(text, "arg", 3) == 0 && text[4] == ':')
		return hook_plan_watch(planner, text + 5, text[3] - '0', watch, items, err);
	return allocator_plan(planner, text, items, err);
}

static void print_hook(const struct plan_hook *hook)
{
	printf("hook %s module=%s at=0x%llx form=%s%s%s%s%s%s covered=%u before=%u moved=%u fixups=%u bytes=",
	       hook->label, hook->place.module, (unsigned long long)hook->place.offset,
	       hook->form == PLAN_HOOK_TRAP ? "trap" : "jump",
	       hook->flags & PLAN_HOOK_EXIT ? " exit" : "",
	       hook->flags & PLAN_HOOK_PUSHES ? " pushes" : "",
	       hook->flags & PLAN_HOOK_TAIL ? " tail" : "",
	       hook->flags & PLAN_HOOK_KEEP ? " keep" : "",
	       hook->flags & PLAN_HOOK_LOADER ? " loader" : "", hook->covered, hook->before,
	       hook->moved_bytes, hook->fixup_count);
	for (uint32_t i = 0; i < hook->moved_bytes; i++)
		printf("%02x", hook->moved[i]);
	printf("\n");
}

static int write_plan(const char *path, const struct strbuf *items)
{
	AUTO(mem_freep) unsigned char *bytes = mem_alloc(PLAN_BYTES_MAX);
	const struct plan_item *item = NULL;
	struct plan_header plan;
	FILE *file = fopen(path, "wb");
	size_t len;

	plan_init(&plan, PLAN_OBSERVE_IDS);
	len = plan_seal(&plan, items->data, items->len, bytes, PLAN_BYTES_MAX);
	while (len > 0 && (item = plan_next(bytes, item)))
		if (item->type == PLAN_ITEM_HOOK)
			print_hook((const struct plan_hook *)item);
	return len == 0 || !file || fwrite(bytes, 1, len, file) != len || fclose(file) ? 1 : 0;
}

int main(int argc, char **argv)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	struct err err = { 0 };
	int failed = 0;

	if (argc < 3)
		return 2;
	if (hook_planner_new(&(struct libraries_request){ .program = argv[2] }, &planner, &err) <
	    0) {
		printf("error: %s\n", err.message);
		return 1;
	}
	for (int i = 3; i < argc; i++) {
		err = (struct err){ 0 };
		if (plan_one(planner, argv[2], argv[i], (uint32_t)(i - 3), &items, &err) == 0)
			continue;
		printf("error: %s (%s)\n", err.message, err.remedy);
		failed = 1;
	}
	VEC_FOREACH (&hook_planner_notes(planner)->list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		printf("note: %s\n", text);
	}
	return write_plan(argv[1], &items) || failed;
}
