#include "studies/heap/heap_evidence.h"

#include <string.h>

#include "base/cstr.h"
#include "read/field_names.h"
#include "wire/log_format.h"

/* One finding, as one trial saw it. */
struct seen_once {
	const struct heap_finding *finding;
	const struct heap_sighting *seen;
	bool example; /* the trial that all of the finding is about */
};

static struct block_life *life_of(const struct seen_once *once)
{
	const struct heap_finding *f = once->finding;
	struct block_life *life = mem_alloc(sizeof(*life));

	*life = (struct block_life){
		.id = once->seen->id,
		/* The same block has another ordinal in another trial. */
		.key = cstr_dup(once->example ? f->key : f->context),
		.start = once->seen->address,
		.size = once->seen->size,
		.value = once->seen->address + (uint64_t)once->seen->offset,
		.state = f->live ? BLOCK_LIVE : BLOCK_FREED,
		.former = f->recycled,
		.poison = f->poison,
		.python = f->python,
	};
	stack_copy(&life->allocated, &f->allocated);
	stack_copy(&life->freed, &f->freed);
	return life;
}

/* Within its guards, and no other block's damage leads there: the block itself was overrun. Farther
 * off, a guard does not reach. */
static void tell_damage(const struct seen_once *once, struct evidence *ret)
{
	static const enum canary_side sides[] = { [HEAP_OVERFLOW] = CANARY_AFTER,
						  [HEAP_UNDERFLOW] = CANARY_BEFORE,
						  [HEAP_WRITE_AFTER_FREE] = CANARY_FREED };
	const struct heap_finding *f = once->finding;
	struct canary_broken *canary = ret->canary;

	canary->side = sides[f->kind];
	canary->block = life_of(once);
	canary->offset = once->seen->offset;
	canary->len = once->seen->length;
	canary->goes_on_at = cstr_dup(f->rival ? f->rival : f->through);
	if (f->fenced) {
		stack_copy(&canary->writer, &f->seen_at);
		canary->instruction = cstr_dup(f->instruction);
	}
	if (!once->example)
		return;
	strbuf_add(&canary->expected, f->expected, f->bytes);
	strbuf_add(&canary->found, f->found, f->bytes);
	canary->last_whole = cstr_dup(f->when.after);
	canary->first_broken = cstr_dup(f->when.before);
}

static void tell_free(const struct seen_once *once, struct evidence *ret)
{
	static const enum bad_free_kind kinds[] = { [HEAP_DOUBLE_FREE] = BAD_FREE_DOUBLE,
						    [HEAP_INTERIOR_FREE] = BAD_FREE_INTERIOR,
						    [HEAP_MISMATCHED_FREE] = BAD_FREE_MISMATCHED,
						    [HEAP_INVALID_FREE] = BAD_FREE_FOREIGN };
	const struct heap_finding *f = once->finding;
	struct bad_free *bad = ret->bad_free;

	bad->kind = kinds[f->kind];
	bad->pointer = once->seen->address + (uint64_t)once->seen->offset;
	if (f->kind != HEAP_INVALID_FREE)
		bad->block = life_of(once);
	stack_copy(&bad->second, &f->seen_at);
	if (f->kind == HEAP_MISMATCHED_FREE)
		bad->how = mem_printf("%s, then %s", f->allocated_by, f->freed_by);
}

/* A freed block's pages are closed from its free on: of all that were seen at them, the first. */
static bool came_first(const struct heap_report *report, const struct seen_once *once)
{
	const struct heap_finding *f = once->finding;

	if (!once->example || !f->fenced || f->kind == HEAP_OVER_READ || f->live)
		return false;
	return !VEC_ANY(&report->findings, other,
			other->fenced && other->kind != HEAP_OVER_READ &&
				other->trial == f->trial && other->pid == f->pid &&
				other->id == f->id && other->number < f->number);
}

static void tell_use(const struct heap_report *report, const struct seen_once *once,
		     struct evidence *ret)
{
	const struct heap_finding *f = once->finding;

	ret->freed_use->block = life_of(once);
	ret->freed_use->offset = once->seen->offset;
	ret->freed_use->write = f->write;
	ret->freed_use->poison = f->poison;
	ret->freed_use->fenced = f->fenced;
	ret->freed_use->unpointed = f->unpointed;
	if (once->example)
		home_copy(&ret->freed_use->from, &f->from);
	ret->freed_use->first = came_first(report, once);
	ret->freed_use->width = f->fenced ? f->length : 0;
	ret->freed_use->instruction = cstr_dup(f->instruction);
	stack_copy(&ret->freed_use->user, &f->seen_at);
}

static enum evidence_kind kind_of(const struct heap_finding *f)
{
	enum heap_kind kind = f->kind;

	if (kind == HEAP_OVER_READ)
		return EVIDENCE_OVER_READ;
	if (kind == HEAP_WRITE_AFTER_FREE && f->fenced)
		return EVIDENCE_FREED_USE;
	if (kind <= HEAP_WRITE_AFTER_FREE)
		return EVIDENCE_CANARY;
	return kind == HEAP_USE_AFTER_FREE ? EVIDENCE_FREED_USE : EVIDENCE_BAD_FREE;
}

static void note_of(const struct heap_finding *f, bool failing, bool failed, struct said *ret)
{
	const char *test =
		f->when.tests.count == 1 && !f->when.more_tests ? f->when.tests.items[0] : NULL;

	const char *line = cstr_known_same(f->when.check, "output") ? f->when.before : NULL;

	if (test || line || (failing && !failed))
		SAY(ret, "noted:heap", said_text(test), said_flag(failing && !failed),
		    said_text(line));
}

/* Of the trials with fences, whether they came after those with guards or in their place. */
static const struct rate *fence_rate(const struct heap_report *report)
{
	return report->fence_rate.trials > 0 ? &report->fence_rate : &report->heap;
}

static void tell_finding(const struct heap_report *report, const struct heap_finding *f,
			 struct evidence_list *ret)
{
	/* What guards and fences show is there, whatever becomes of it later; so is what came out.
	 */
	bool damage = f->kind <= HEAP_WRITE_AFTER_FREE || f->fenced ||
		      (f->poison && f->seen_at.count == 0);
	const struct rate *rate = f->fenced ? fence_rate(report) : &report->heap;

	VEC_FOREACH (&f->seen, seen) {
		struct seen_once once = { f, seen, seen->trial == f->trial };
		bool failing = seen->failed || (damage && rate->failed == 0);
		struct evidence e = evidence_new(kind_of(f), seen->trial, failing);

		if (e.kind == EVIDENCE_CANARY)
			tell_damage(&once, &e);
		else if (e.kind != EVIDENCE_BAD_FREE)
			tell_use(report, &once, &e);
		else
			tell_free(&once, &e);
		if (once.example)
			note_of(f, failing, seen->failed, &e.note);
		VEC_PUSH(&ret->list, e);
	}
}

static bool lasts(const struct heap_holder *holder)
{
	return strcmp(holder->kind, "block") == 0 || strcmp(holder->kind, "global") == 0;
}

/* Where the crash has only what was read from the block, and not the pointer to it any more: the
 * only one that lasts and pointed there. */
static const struct heap_holder *only_holder(const struct heap_dangling *dangling)
{
	const struct heap_holder *only = NULL;

	VEC_FOREACH (&dangling->holders, holder) {
		if (!lasts(holder) || holder->there_in.list.count == 0)
			continue;
		if (only)
			return NULL;
		only = holder;
	}
	return only;
}

/* The one whose pointer the crash went through. A register has it from somewhere, and so may a
 * stack: it saves registers, and what calls left there earlier. Memory that is no block's may be
 * one, too: CPython has the variables of its frames there. So the one that lasts is told
 * before all that are on stacks, with a doubt; of several that last, nobody knows which it was. */
static const struct heap_holder *used_holder(const struct heap_dangling *dangling,
					     bool *ret_contested)
{
	const struct heap_holder *lasting = NULL, *stack = NULL;
	size_t lasting_count = 0, stacks = 0;

	VEC_FOREACH (&dangling->holders, holder) {
		if (holder->used_in.list.count == 0 || strcmp(holder->kind, "register") == 0)
			continue;
		if (!lasts(holder)) {
			stack = holder;
			stacks++;
		} else {
			lasting = holder;
			lasting_count++;
		}
	}
	if (lasting_count == 0 && stacks == 0) {
		*ret_contested = true;
		return only_holder(dangling);
	}
	*ret_contested = stacks > 0;
	if (lasting_count == 1)
		return lasting;
	return lasting_count == 0 && stacks == 1 ? stack : NULL;
}

static struct block_life *target_of(const struct heap_dangling *dangling,
				    const struct heap_holder *holder)
{
	struct block_life *life = mem_alloc(sizeof(*life));

	*life = (struct block_life){ .key = cstr_dup(dangling->context),
				     .size = dangling->size,
				     .value = (uint64_t)holder->target_offset,
				     .state = BLOCK_FREED };
	stack_copy(&life->allocated, &dangling->allocated);
	stack_copy(&life->freed, &dangling->freed);
	return life;
}

static void tell_home(const struct heap_holder *holder, struct holder_seen *ret)
{
	struct home *home = &ret->home;

	home->len = sizeof(uint64_t);
	if (strcmp(holder->kind, "block") == 0) {
		home->kind = HOME_BLOCK;
		home->key = cstr_dup(holder->key);
		home->offset = (int64_t)holder->offset;
		ret->holder = mem_alloc(sizeof(*ret->holder));
		*ret->holder =
			(struct block_life){ .key = cstr_dup(holder->key), .size = holder->size };
		stack_copy(&ret->holder->allocated, &holder->stack);
	} else if (strcmp(holder->kind, "global") == 0) {
		home->kind = HOME_GLOBAL;
		home->name = cstr_dup(holder->name);
		home->module = cstr_dup(holder->module);
		home->offset =
			(int64_t)(holder->name ? holder->name_offset : holder->module_offset);
	} else {
		home->kind = strcmp(holder->kind, "stack") == 0 ? HOME_STACK : HOME_ADDRESS;
	}
}

static void tell_dangling(const struct heap_dangling *dangling, struct evidence_list *ret)
{
	bool contested;
	const struct heap_holder *holder = used_holder(dangling, &contested);
	const struct heap_trials *in;

	if (!holder)
		return;
	in = holder->used_in.list.count > 0 ? &holder->used_in : &holder->there_in;
	VEC_FOREACH (&in->list, trial) {
		/* It was used by a crash: that trial failed. */
		struct evidence e = evidence_new(EVIDENCE_HOLDER, *trial, true);

		tell_home(holder, e.holder);
		e.holder->target = target_of(dangling, holder);
		e.holder->used = true;
		e.holder->exact = log_block_begins(dangling->python ? LOG_API_PYTHON_OBJECT : 0,
						   (uint64_t)holder->target_offset);
		e.holder->on_stack_too = contested && e.holder->home.kind != HOME_STACK;
		VEC_PUSH(&ret->list, e);
	}
}

static void tell_rest(struct heap_report *report, struct evidence_list *ret)
{
	VEC_FOREACH (&report->dangling, dangling)
		tell_dangling(dangling, ret);
	VEC_FOREACH (&report->crashes.list, e)
		VEC_PUSH(&ret->list, *e);
	report->crashes.list.count = 0;
}

void heap_evidence(struct heap_report *report, struct evidence_list *ret)
{
	VEC_FOREACH (&report->findings, finding)
		if (!finding->continued)
			tell_finding(report, finding, ret);
	tell_rest(report, ret);
}

/* Trials in which something was found, each once. */
static void count_shown(const struct heap_report *report, struct experiment_made *ret)
{
	struct heap_trials told = { 0 };

	VEC_FOREACH (&report->findings, finding)
		VEC_FOREACH (&finding->seen, seen) {
			bool known = false;

			VEC_FOREACH (&told.list, trial)
				known |= *trial == seen->trial;
			if (known)
				continue;
			VEC_PUSH(&told.list, seen->trial);
			ret->shown += seen->failed;
			ret->shown_passing += !seen->failed;
		}
	VEC_DEINIT(&told.list);
}

void heap_experiment(const struct heap_report *report, enum experiment_kind kind,
		     struct experiment_made *ret)
{
	uint64_t blocks = report->guarded + report->unguarded;

	*ret = (struct experiment_made){ .kind = kind,
					 .trials = report->heap.trials,
					 .telling = report->heap.failed,
					 .coverage = 1 };
	if (kind != EXPERIMENT_GUARDS) {
		/* Where every trial fails, or none does, nothing goes with anything. */
		bool varies = report->heap.failed > 0 && report->heap.failed < report->heap.trials;

		ret->coverage = varies ? 1 : 0;
		ret->shown = report->suspects.count > 0 ? ret->telling : 0;
		return;
	}
	if (blocks > 0)
		ret->coverage = (double)report->guarded / (double)blocks;
	count_shown(report, ret);
}

void heap_fence_experiment(const struct heap_report *report, struct experiment_made *ret)
{
	const struct rate *rate = fence_rate(report);
	uint64_t blocks = report->fence.fenced + report->fence.passed;

	*ret = (struct experiment_made){ .kind = EXPERIMENT_FENCES,
					 .trials = rate->trials,
					 .telling = rate->failed };
	if (blocks > 0)
		ret->coverage = (double)report->fence.fenced / (double)blocks;
	count_shown(report, ret);
}

static int store(struct case_store *cs, struct evidence_list *list, uint64_t trial, uint64_t *ret,
		 struct err *err)
{
	int r = 0;

	field_names_tell(list);
	VEC_FOREACH (&list->list, e) {
		if (r == 0)
			r = case_add_evidence(cs, e, err);
		if (r == 0 && e->trial == trial)
			*ret = e->id;
	}
	evidence_list_deinit(list);
	*list = (struct evidence_list){ 0 };
	return r;
}

int heap_store_evidence(struct case_store *cs, struct heap_report *report, struct err *err)
{
	struct evidence_list list = { 0 };
	struct experiment_made made;
	uint64_t ignored;
	int r = 0;

	VEC_FOREACH (&report->findings, finding) {
		if (r < 0 || finding->continued)
			continue;
		tell_finding(report, finding, &list);
		r = store(cs, &list, finding->trial, &finding->evidence, err);
	}
	tell_rest(report, &list);
	heap_experiment(report,
			report->poison_chance < 1 ? EXPERIMENT_FILL_FREED : EXPERIMENT_GUARDS,
			&made);
	/* Where all trials had fences, guards around the rest are no experiment of their own. */
	if (report->fence_trials == 0 || report->fence_rate.trials > 0)
		evidence_add_experiment(&list, &made);
	if (report->fence_trials > 0) {
		heap_fence_experiment(report, &made);
		evidence_add_experiment(&list, &made);
	}
	return r == 0 ? store(cs, &list, 0, &ignored, err) : r;
}
