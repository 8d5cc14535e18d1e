#include "model/heap.h"

#include <string.h>

#include "base/mem.h"
#include "model/crash.h"

const char *heap_kind_name(enum heap_kind kind)
{
	static const char *const names[HEAP_KINDS] = {
		[HEAP_OVERFLOW] = "overflow",
		[HEAP_UNDERFLOW] = "underflow",
		[HEAP_WRITE_AFTER_FREE] = "write-after-free",
		[HEAP_DOUBLE_FREE] = "double-free",
		[HEAP_INTERIOR_FREE] = "interior-free",
		[HEAP_MISMATCHED_FREE] = "mismatched-free",
		[HEAP_INVALID_FREE] = "invalid-free",
		[HEAP_USE_AFTER_FREE] = "use-after-free",
		[HEAP_OVER_READ] = "over-read",
	};

	return names[kind];
}

void heap_finding_deinit(struct heap_finding *finding)
{
	mem_free(finding->program);
	mem_free(finding->key);
	mem_free(finding->context);
	mem_free(finding->rival);
	mem_free(finding->through);
	stack_deinit(&finding->allocated);
	stack_deinit(&finding->freed);
	stack_deinit(&finding->seen_at);
	mem_free(finding->instruction);
	VEC_DEINIT(&finding->seen);
	mem_free(finding->when.check);
	mem_free(finding->when.after);
	mem_free(finding->when.before);
	strv_deinit(&finding->when.tests);
}

static char *dup(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

void heap_finding_copy(struct heap_finding *to, const struct heap_finding *from)
{
	*to = *from;
	to->program = dup(from->program);
	to->key = dup(from->key);
	to->context = dup(from->context);
	to->rival = dup(from->rival);
	to->through = dup(from->through);
	to->instruction = dup(from->instruction);
	to->allocated = to->freed = to->seen_at = (struct stack){ 0 };
	stack_copy(&to->allocated, &from->allocated);
	stack_copy(&to->freed, &from->freed);
	stack_copy(&to->seen_at, &from->seen_at);
	to->when.check = dup(from->when.check);
	to->when.after = dup(from->when.after);
	to->when.before = dup(from->when.before);
	to->when.tests = (struct strv){ 0 };
	for (size_t i = 0; i < from->when.tests.count; i++)
		strv_add(&to->when.tests, from->when.tests.items[i]);
	memset(&to->seen, 0, sizeof(to->seen));
	VEC_FOREACH (&from->seen, seen)
		VEC_PUSH(&to->seen, *seen);
}

void heap_holder_deinit(struct heap_holder *holder)
{
	mem_free(holder->kind);
	mem_free(holder->name);
	mem_free(holder->module);
	mem_free(holder->key);
	stack_deinit(&holder->stack);
	VEC_DEINIT(&holder->used_in.list);
	VEC_DEINIT(&holder->there_in.list);
}

void heap_dangling_deinit(struct heap_dangling *dangling)
{
	mem_free(dangling->context);
	mem_free(dangling->key);
	stack_deinit(&dangling->allocated);
	stack_deinit(&dangling->freed);
	VEC_FOREACH (&dangling->holders, holder)
		heap_holder_deinit(holder);
	VEC_DEINIT(&dangling->holders);
}

bool heap_dangling_held(const struct heap_dangling *dangling)
{
	VEC_FOREACH (&dangling->holders, holder)
		if (strcmp(holder->kind, "stack") != 0 && strcmp(holder->kind, "register") != 0)
			return true;
	return false;
}

void heap_report_deinit(struct heap_report *report)
{
	mem_free(report->crash_place);
	mem_free(report->sentence);
	VEC_FOREACH (&report->findings, finding)
		heap_finding_deinit(finding);
	VEC_DEINIT(&report->findings);
	VEC_FOREACH (&report->dangling, dangling)
		heap_dangling_deinit(dangling);
	VEC_DEINIT(&report->dangling);
	VEC_FOREACH (&report->suspects, suspect) {
		mem_free(suspect->context);
		stack_deinit(&suspect->stack);
	}
	VEC_DEINIT(&report->suspects);
	strv_deinit(&report->notes);
}
