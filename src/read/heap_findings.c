#include "read/heap_findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "read/damage_runs.h"
#include "read/timeline.h"
#include "wire/canary.h"

#define FINDINGS_MAX 200
#define NOTES_MAX 20
#define DAMAGES_MAX 4096 /* of one process */

static const char *const apis[] = {
	[LOG_API_MALLOC] = "malloc",
	[LOG_API_ALIGNED] = "an aligned malloc",
	[LOG_API_NEW] = "new",
	[LOG_API_NEW_ARRAY] = "new[]",
	[LOG_API_HOOKED] = "its own",
	[LOG_API_PYTHON_OBJECT] = "PyObject_Malloc",
	[LOG_API_PYTHON_MEMORY] = "PyMem_Malloc",
};
static const char *const freers[] = {
	[LOG_BY_FREE] = "free",
	[LOG_BY_DELETE] = "delete",
	[LOG_BY_DELETE_ARRAY] = "delete[]",
	[LOG_BY_REALLOC] = "realloc",
};
static const char *const checks[] = {
	[LOG_CHECK_FREE] = "free",	   [LOG_CHECK_REALLOC] = "realloc",
	[LOG_CHECK_LINE] = "line",	   [LOG_CHECK_EXIT] = "exit",
	[LOG_CHECK_CRASH] = "crash",	   [LOG_CHECK_TIME] = "timer",
	[LOG_CHECK_EVICTION] = "eviction",
};

static const char *named(const char *const *names, size_t count, uint32_t number)
{
	return number < count && names[number] ? names[number] : "?";
}

/* What one log is read with. */
struct log_findings {
	const struct heap_trial *trial;
	struct event_log *log;
	struct timeline timeline;
	struct heap_report *report;
	VEC(struct heap_finding) damages; /* until all are known: one may go on at the next */
	bool sampled;			  /* not all of its blocks had guards */
	uint64_t gap;			  /* between its blocks */
};

struct event_log *event_logs_owner(struct event_logs *logs, struct event_log *log, uint64_t id)
{
	/* From child to parent, as often as it was forked; the count bounds a circle. */
	for (size_t steps = 0; steps < logs->list.count; steps++) {
		const struct log_header *header = &log->reader.header;
		struct event_log *parent = NULL;

		if (!header->forked || id >= header->id_base)
			return log;
		VEC_FOREACH (&logs->list, other)
			if (other->reader.header.pid == header->ppid &&
			    other->reader.header.image == header->parent_image)
				parent = other;
		if (!parent)
			return NULL;
		log = parent;
	}
	return NULL;
}

static void tell_block(const struct log_findings *r, const struct log_block *block,
		       struct heap_finding *ret)
{
	struct event_log *home = event_logs_owner(r->trial->logs, r->log, block->id);
	/* Freed after the fork: that context is the child's own. */
	bool freed_here = block->freed_epoch >= r->log->reader.header.epoch_base;
	struct log_context row;

	ret->id = block->id;
	ret->size = block->size;
	ret->address = block->start;
	ret->live = block->state == LOG_BLOCK_LIVE;
	ret->allocated_by = named(apis, ARRAY_SIZE(apis), block->api);
	ret->python = block->api == LOG_API_PYTHON_OBJECT;
	if (home) {
		struct log_block own = *block;

		if (home != r->log) /* the key was made from the wrong table */
			own.key.stack_hash = 0;
		ret->key = event_log_key(home, &own.key, own.context);
		if (log_context_row(&home->reader, block->context, &row))
			ret->context = mem_printf("%016" PRIx64, row.stack_hash);
		(void)event_log_allocation(home, block->context, r->trial->symbols,
					   &ret->allocated);
	}
	if (!ret->live && block->free_context != 0 && (freed_here || home))
		(void)event_log_context(freed_here ? r->log : home, block->free_context,
					r->trial->symbols, &ret->freed);
}

static bool owned_block(const struct log_findings *r, const struct log_item *owner,
			struct log_block *ret)
{
	struct log_item item = *owner;

	while (log_next_owned(&r->log->reader, owner->head.seq, &item))
		if (item.head.type == LOG_BLOCK && log_payload(&item, ret, sizeof(*ret)))
			return true;
	return false;
}

/* ---- alike ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Where the call stands; offsets in files are the same in every run. */
static uint64_t place(const struct stack *stack)
{
	return stack->count > 0 ? stack->frames[0].offset : 0;
}

static bool alike(const struct heap_finding *a, const struct heap_finding *b)
{
	if (a->kind != b->kind || a->continued != b->continued ||
	    !same_text(a->context, b->context))
		return false;
	if (a->kind <= HEAP_WRITE_AFTER_FREE) {
		/* Behind a block whose size varies, what is the same is how far. */
		int64_t x = a->kind == HEAP_OVERFLOW ? (int64_t)a->size : 0;
		int64_t y = b->kind == HEAP_OVERFLOW ? (int64_t)b->size : 0;

		return a->offset - x == b->offset - y;
	}
	return place(&a->seen_at) == place(&b->seen_at);
}

static void add_sighting(struct heap_finding *known, const struct heap_trial *trial,
			 const struct heap_finding *here)
{
	known->count++;
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
	if (!*rival || same_text(*rival, finding->rival) || same_text(*rival, finding->through))
		return;
	mem_free(*rival);
	*rival = NULL;
}

static void add(const struct heap_trial *trial, struct heap_report *report,
		struct heap_finding finding)
{
	VEC_FOREACH (&report->findings, known) {
		if (!alike(known, &finding))
			continue;
		forget_rival(&known->rival, &finding);
		forget_rival(&known->through, &finding);
		add_sighting(known, trial, &finding);
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

static struct heap_finding finding_of(const struct log_findings *r, enum heap_kind kind)
{
	return (struct heap_finding){
		.kind = kind,
		.trial = r->trial->number,
		.pid = (int)r->log->reader.header.pid,
		.program = r->log->program ? mem_strdup(r->log->program) : NULL,
		.sampled = r->sampled,
		.gap = r->gap,
	};
}

/* ---- records ---- */

static void read_damage(struct log_findings *r, const struct log_item *item)
{
	static const enum heap_kind kinds[] = { [LOG_DAMAGE_BEFORE] = HEAP_UNDERFLOW,
						[LOG_DAMAGE_BEHIND] = HEAP_OVERFLOW,
						[LOG_DAMAGE_FREED] = HEAP_WRITE_AFTER_FREE };
	struct log_heap_damage damage;
	struct heap_finding finding;
	struct log_block block;

	if (!log_payload(item, &damage, sizeof(damage)) || damage.kind < LOG_DAMAGE_BEFORE ||
	    damage.kind > LOG_DAMAGE_FREED || !owned_block(r, item, &block) ||
	    r->damages.count >= DAMAGES_MAX)
		return;
	finding = finding_of(r, kinds[damage.kind]);
	finding.offset = damage.offset;
	finding.length = damage.length;
	finding.bytes = damage.bytes < HEAP_BYTES ? damage.bytes : HEAP_BYTES;
	memcpy(finding.expected, damage.expected, finding.bytes);
	memcpy(finding.found, damage.found, finding.bytes);
	tell_block(r, &block, &finding);
	if (damage.context != 0)
		(void)event_log_context(r->log, damage.context, r->trial->symbols,
					&finding.seen_at);
	timeline_place(&r->timeline, item, &damage, &block, &finding.when);
	finding.when.check = mem_strdup(named(checks, ARRAY_SIZE(checks), damage.check));
	VEC_PUSH(&r->damages, finding);
}

static void add_damages(struct log_findings *r)
{
	runs_mark(r->damages.items, r->damages.count);
	VEC_FOREACH (&r->damages, finding)
		add(r->trial, r->report, *finding);
	VEC_DEINIT(&r->damages);
}

/* A copy of operator new or delete inside a program is not seen by any hook: the call of malloc or
 * free that it makes is. Only a call that certainly is none speaks for a mismatch. */
static bool calls_itself(const struct stack *stack, const char *operator_name)
{
	const char *function = stack->count > 0 ? stack->frames[0].function : NULL;

	return function && !strstr(function, operator_name);
}

static bool is_mismatch(const struct heap_finding *finding)
{
	bool made = strncmp(finding->allocated_by, "new", 3) == 0 ||
		    calls_itself(&finding->allocated, "operator new");
	bool freed = strncmp(finding->freed_by, "delete", 6) == 0 ||
		     calls_itself(&finding->seen_at, "operator delete");

	return made && freed;
}

static void read_bad_free(const struct log_findings *r, const struct log_item *item)
{
	static const enum heap_kind kinds[] = { [LOG_DOUBLE_FREE] = HEAP_DOUBLE_FREE,
						[LOG_INTERIOR_FREE] = HEAP_INTERIOR_FREE,
						[LOG_MISMATCHED_FREE] = HEAP_MISMATCHED_FREE,
						[LOG_INVALID_FREE] = HEAP_INVALID_FREE };
	struct heap_finding finding;
	struct log_bad_free bad;
	struct log_block block;
	bool has_block;

	if (!log_payload(item, &bad, sizeof(bad)) || bad.kind < LOG_DOUBLE_FREE ||
	    bad.kind > LOG_INVALID_FREE)
		return;
	/* On the word of the side table alone nobody is accused. */
	if (bad.kind != LOG_MISMATCHED_FREE &&
	    (bad.evidence == LOG_EVIDENCE_NONE || bad.evidence == LOG_EVIDENCE_FOLLOWED))
		return;
	has_block = owned_block(r, item, &block);
	if (!has_block && bad.kind != LOG_INVALID_FREE)
		return;
	finding = finding_of(r, kinds[bad.kind]);
	finding.freed_by = named(freers, ARRAY_SIZE(freers), bad.by);
	finding.address = bad.pointer;
	if (has_block) {
		tell_block(r, &block, &finding);
		finding.offset = (int64_t)(bad.pointer - block.start);
	}
	/* What was read from a freed block was freed: that read was the wrong one. */
	if (has_block && bad.kind == LOG_INVALID_FREE) {
		finding.kind = HEAP_USE_AFTER_FREE;
		finding.poison = true;
		finding.address = block.start;
		finding.offset = 0;
	}
	(void)event_log_context(r->log, bad.context, r->trial->symbols, &finding.seen_at);
	timeline_place_record(&r->timeline, item, &finding.when);
	finding.when.check = mem_strdup("free");
	if (bad.kind == LOG_MISMATCHED_FREE && !is_mismatch(&finding)) {
		heap_finding_deinit(&finding);
		return;
	}
	add(r->trial, r->report, finding);
}

static void read_round(const struct log_findings *r, const struct log_item *item)
{
	struct log_round round;

	if (!log_payload(item, &round, sizeof(round)))
		return;
	r->report->blocks += round.live + round.quarantined;
	r->report->guarded += round.guarded;
	r->report->unguarded += round.passed;
	if (!round.whole && r->report->notes.count < NOTES_MAX)
		strv_take(&r->report->notes,
			  mem_printf("trial %" PRIu64 ": process %u had so many blocks at its end "
				     "that not all of them were looked at",
				     r->trial->number, r->log->reader.header.pid));
}

/* Records that name others walk the log themselves: first all of them are found. */
static void read_log(struct log_findings *r)
{
	VEC(struct log_item) items = { 0 };
	struct log_item item;

	log_reader_rewind(&r->log->reader);
	while (log_reader_next(&r->log->reader, &item)) {
		struct log_heap heap;
		struct log_round round;

		if (item.head.type == LOG_HEAP && log_payload(&item, &heap, sizeof(heap))) {
			r->sampled = heap.sampled;
			r->gap = canary_gap(heap.seed, heap.sampled);
		}
		/* Short programs have guards around every block all the same. */
		if (item.head.type == LOG_ROUND && log_payload(&item, &round, sizeof(round)))
			r->sampled = r->sampled && round.passed > 0;
		if (item.head.type == LOG_HEAP_DAMAGE || item.head.type == LOG_BAD_FREE ||
		    item.head.type == LOG_ROUND)
			VEC_PUSH(&items, item);
	}
	VEC_FOREACH (&items, found) {
		if (found->head.type == LOG_HEAP_DAMAGE)
			read_damage(r, found);
		else if (found->head.type == LOG_BAD_FREE)
			read_bad_free(r, found);
		else
			read_round(r, found);
	}
	add_damages(r);
	VEC_DEINIT(&items);
}

void findings_read(const struct heap_trial *trial, struct heap_report *report)
{
	VEC_FOREACH (&trial->logs->list, log) {
		struct log_findings reading = { .trial = trial, .log = log, .report = report };

		timeline_init(&reading.timeline, log, trial->moments, trial->end);
		read_log(&reading);
		timeline_deinit(&reading.timeline);
	}
	for (size_t i = 0; i < trial->logs->notes.count && report->notes.count < NOTES_MAX; i++)
		strv_take(&report->notes, mem_printf("trial %" PRIu64 ": %s", trial->number,
						     trial->logs->notes.items[i]));
}

/* The block that the faulting instruction's pointer leads to, or came from. */
static const struct block_life *freed_block(const struct crash *crash)
{
	VEC_FOREACH (&crash->blocks, block)
		if (block->telling && (block->state == BLOCK_FREED || block->former) && block->key)
			return block;
	return NULL;
}

void findings_add_crash(const struct heap_trial *trial, const struct crash *crash,
			struct heap_report *report)
{
	const struct block_life *block = freed_block(crash);
	struct heap_finding finding = { .kind = HEAP_USE_AFTER_FREE,
					.trial = trial->number,
					.pid = crash->pid,
					.allocated_by = "?" };

	if (!block || (crash->fault != FAULT_FREED && crash->fault != FAULT_RECYCLED))
		return;
	finding.program = crash->program ? mem_strdup(crash->program) : NULL;
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
	finding.instruction = crash->instruction ? mem_strdup(crash->instruction) : NULL;
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

static int by_weight(const void *a, const void *b)
{
	const struct heap_finding *x = a, *y = b;

	if (x->continued != y->continued)
		return x->continued ? 1 : -1;
	if (x->trials != y->trials)
		return x->trials > y->trials ? -1 : 1;
	if (x->trial != y->trial)
		return x->trial < y->trial ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
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
	if (report->findings.count > 1)
		qsort(report->findings.items, report->findings.count,
		      sizeof(report->findings.items[0]), by_weight);
}
