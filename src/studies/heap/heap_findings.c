#include "studies/heap/heap_findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "read/damage_runs.h"

#define FINDINGS_MAX 200
#define NOTES_MAX 20

/* Where the call stands; offsets in files are the same in every run. */
static uint64_t place(const struct stack *stack)
{
	return stack->count > 0 ? stack->frames[0].offset : 0;
}

/* Does the program's own code stand at the same line, whichever routine of the C library did it
 * for it? A loop has several instructions for one access. */
static bool same_code(const struct stack *a, const struct stack *b)
{
	const struct frame *x = stack_site(a), *y = stack_site(b);

	if (!x || !y)
		return !x && !y && place(a) == place(b);
	if (x->line > 0 && y->line > 0)
		return x->line == y->line && cstr_same(x->file, y->file) &&
		       cstr_same(x->function, y->function);
	return x->offset == y->offset;
}

static bool alike(const struct heap_finding *a, const struct heap_finding *b)
{
	if (a->kind != b->kind || a->continued != b->continued ||
	    !cstr_same(a->context, b->context))
		return false;
	if (a->fenced || b->fenced)
		return a->fenced && b->fenced && a->write == b->write &&
		       same_code(&a->seen_at, &b->seen_at);
	if (a->kind <= HEAP_WRITE_AFTER_FREE) {
		/* Behind a block whose size varies, what is the same is how far. */
		int64_t x = a->kind == HEAP_OVERFLOW ? (int64_t)a->size : 0;
		int64_t y = b->kind == HEAP_OVERFLOW ? (int64_t)b->size : 0;

		return a->offset - x == b->offset - y;
	}
	return place(&a->seen_at) == place(&b->seen_at);
}

static void add_sighting(struct heap_finding *known, const struct finding_trial *trial,
			 const struct heap_finding *here)
{
	known->count += here->accesses > 0 ? here->accesses : 1;
	if (known->last_trial == trial->number)
		return;
	known->trials++;
	known->last_trial = trial->number;
	if (known->seen.count < HEAP_SIGHTINGS_MAX)
		VEC_PUSH(&known->seen, ((struct heap_sighting){ .trial = trial->number,
								.failed = trial->failed,
								.id = here->id,
								.size = here->size,
								.address = here->address,
								.offset = here->offset,
								.length = here->length }));
}

/* Once it fits this block alone, or another one as well, it is this block's. */
static void forget_rival(char **rival, const struct heap_finding *finding)
{
	if (!*rival || cstr_same(*rival, finding->rival) || cstr_same(*rival, finding->through))
		return;
	mem_free(*rival);
	*rival = NULL;
}

/* Who ran over the end: where did he begin? Fences stand nearer to the end in some trials. */
static bool nearer(const struct heap_finding *a, const struct heap_finding *b)
{
	uint64_t x = (uint64_t)a->offset - a->size, y = (uint64_t)b->offset - b->size;

	return a->fenced && a->live && b->live && a->offset >= 0 && b->offset >= 0 && x < y;
}

/* The example is this one from now on, and its trial the first. */
static void take_example(struct heap_finding *known, struct heap_finding *finding)
{
	finding->count = known->count;
	finding->trials = known->trials;
	finding->last_trial = known->last_trial;
	VEC_DEINIT(&finding->seen);
	finding->seen = known->seen;
	if (known->seen.items[known->seen.count - 1].trial == finding->trial) {
		struct heap_sighting first = known->seen.items[0];

		finding->seen.items[0] = known->seen.items[known->seen.count - 1];
		finding->seen.items[known->seen.count - 1] = first;
	}
	memset(&known->seen, 0, sizeof(known->seen));
	heap_finding_deinit(known);
	*known = *finding;
}

static void add(const struct finding_trial *trial, struct heap_report *report,
		struct heap_finding finding)
{
	VEC_FOREACH (&report->findings, known) {
		if (!alike(known, &finding))
			continue;
		forget_rival(&known->rival, &finding);
		forget_rival(&known->through, &finding);
		add_sighting(known, trial, &finding);
		if (nearer(&finding, known))
			take_example(known, &finding);
		else
			heap_finding_deinit(&finding);
		return;
	}
	if (report->findings.count >= FINDINGS_MAX) {
		heap_finding_deinit(&finding);
		return;
	}
	add_sighting(&finding, trial, &finding);
	VEC_PUSH(&report->findings, finding);
}

static void add_notes(const struct finding_trial *trial, const struct said_list *notes,
		      struct heap_report *report)
{
	VEC_FOREACH (&notes->list, note)
		if (report->notes.list.count < NOTES_MAX)
			SAY_TOO(&report->notes, "note:of-trial", said_number(trial->number),
				said_copied(note));
}

static void add_fence(const struct heap_fence *from, struct heap_report *report)
{
	struct heap_fence *to = &report->fence;

	if (to->nowhere.kind == HOME_UNKNOWN && from->nowhere.kind != HOME_UNKNOWN) {
		home_copy(&to->nowhere, &from->nowhere);
		to->pointer = from->pointer;
		to->trial = from->trial;
	}
	to->fenced += from->fenced;
	to->passed += from->passed;
	to->let_through += from->let_through;
	to->processes += from->processes;
	to->without += from->without;
	to->untold += from->untold;
	if (from->level > to->level)
		to->level = from->level;
}

void findings_add(const struct finding_trial *trial, struct reading *reading,
		  struct heap_report *report)
{
	const struct damage *damage = reading_damage(reading);
	struct event_logs *logs;

	VEC_FOREACH (&damage->findings, finding) {
		struct heap_finding copy;

		heap_finding_copy(&copy, finding);
		add(trial, report, copy);
	}
	report->blocks += damage->blocks;
	report->guarded += damage->guarded;
	report->unguarded += damage->unguarded;
	add_fence(&damage->fence, report);
	add_notes(trial, &damage->notes, report);
	if (reading_logs(reading, &logs, NULL) == 0)
		add_notes(trial, &logs->notes, report);
}

/* The block that the faulting instruction's pointer leads to, or came from. */
static const struct block_life *freed_block(const struct crash *crash)
{
	return VEC_FIND(&crash->blocks, block,
			block->telling && (block->state == BLOCK_FREED || block->former) &&
				block->key);
}

void findings_add_crash(const struct finding_trial *trial, const struct crash *crash,
			struct heap_report *report)
{
	const struct block_life *block = freed_block(crash);
	struct heap_finding finding = { .kind = HEAP_USE_AFTER_FREE,
					.trial = trial->number,
					.pid = crash->pid,
					.allocated_by = "?" };

	if (!block || (crash->fault != FAULT_FREED && crash->fault != FAULT_RECYCLED))
		return;
	finding.program = cstr_dup(crash->program);
	finding.key = mem_strdup(block->key);
	finding.context = mem_strndup(block->key, strcspn(block->key, "@#"));
	finding.id = block->id;
	finding.size = block->size;
	finding.address = block->start;
	finding.offset = (int64_t)(block->value - block->start);
	finding.poison = block->poison;
	finding.python = block->python;
	finding.recycled = block->former;
	finding.write = crash->write;
	finding.instruction = cstr_dup(crash->instruction);
	stack_copy(&finding.allocated, &block->allocated);
	stack_copy(&finding.freed, &block->freed);
	stack_copy(&finding.seen_at, &crash->stack);
	finding.when.check = mem_strdup("crash");
	if (trial->end->last_crumb)
		finding.when.after = mem_strdup(trial->end->last_crumb);
	if (trial->end->running_test)
		strv_add(&finding.when.tests, trial->end->running_test);
	add(trial, report, finding);
}

bool findings_in(const struct heap_report *report, uint64_t trial)
{
	return VEC_ANY(&report->findings, finding, finding->last_trial == trial);
}

static int by_weight(const void *a, const void *b)
{
	const struct heap_finding *x = a, *y = b;

	if (x->continued != y->continued)
		return x->continued ? 1 : -1;
	return ORDER(y->trials, x->trials) ?: ORDER(x->trial, y->trial) ?: ORDER(x->id, y->id);
}

/* What was settled only now may be what another trial showed at once. */
static void join_alike(struct heap_report *report)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->findings.count; i++) {
		struct heap_finding *f = &report->findings.items[i], *known = NULL;

		for (size_t k = 0; k < kept && !known; k++)
			if (alike(&report->findings.items[k], f))
				known = &report->findings.items[k];
		if (!known) {
			report->findings.items[kept++] = *f;
			continue;
		}
		known->count += f->count;
		known->trials += f->trials;
		VEC_FOREACH (&f->seen, seen)
			if (known->seen.count < HEAP_SIGHTINGS_MAX)
				VEC_PUSH(&known->seen, *seen);
		heap_finding_deinit(f);
	}
	report->findings.count = kept;
}

void findings_sort(struct heap_report *report)
{
	runs_settle(report->findings.items, report->findings.count);
	join_alike(report);
	VEC_SORT(&report->findings, by_weight);
}
