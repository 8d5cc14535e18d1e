#include "read/block_damage.h"

#include <inttypes.h>
#include <string.h>

#include "base/cstr.h"
#include "read/block_damage_inside.h"
#include "read/damage_runs.h"
#include "wire/guard_word.h"

#define NOTES_MAX 20
#define FINDINGS_MAX 4096 /* of each kind, in one process */

static const char *const apis[] = {
	[LOG_API_MALLOC] = "malloc",
	[LOG_API_ALIGNED] = "aligned_alloc",
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

void damage_tell_block(const struct log_findings *r, const struct log_block *block,
		       struct heap_finding *ret)
{
	struct event_log *home = event_logs_owner(r->of->logs, r->log, block->id);
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
		(void)event_log_allocation(home, block->context, r->of->symbols, &ret->allocated);
	}
	if (!ret->live && block->free_context != 0 && (freed_here || home))
		(void)event_log_freeing(freed_here ? r->log : home, block->free_context,
					r->of->symbols, &ret->freed);
}

bool damage_owned_block(const struct log_findings *r, const struct log_item *owner,
			struct log_block *ret)
{
	struct log_item item = *owner;

	while (log_next_owned(&r->log->reader, owner->head.seq, &item))
		if (item.head.type == LOG_BLOCK && log_payload(&item, ret, sizeof(*ret)))
			return true;
	return false;
}

struct heap_finding damage_finding(const struct log_findings *r, enum heap_kind kind)
{
	return (struct heap_finding){
		.kind = kind,
		.trial = r->of->trial,
		.pid = (int)r->log->reader.header.pid,
		.program = cstr_dup(r->log->program),
		.sampled = r->sampled,
		.gap = r->gap,
	};
}

static void read_damage(struct log_findings *r, const struct log_item *item)
{
	static const enum heap_kind kinds[] = { [LOG_DAMAGE_BEFORE] = HEAP_UNDERFLOW,
						[LOG_DAMAGE_BEHIND] = HEAP_OVERFLOW,
						[LOG_DAMAGE_FREED] = HEAP_WRITE_AFTER_FREE };
	struct log_heap_damage damage;
	struct heap_finding finding;
	struct log_block block;

	if (!log_payload(item, &damage, sizeof(damage)) || damage.kind < LOG_DAMAGE_BEFORE ||
	    damage.kind > LOG_DAMAGE_FREED || !damage_owned_block(r, item, &block) ||
	    r->damages.count >= FINDINGS_MAX)
		return;
	finding = damage_finding(r, kinds[damage.kind]);
	finding.offset = damage.offset;
	finding.length = damage.length;
	finding.bytes = damage.bytes < HEAP_BYTES ? damage.bytes : HEAP_BYTES;
	memcpy(finding.expected, damage.expected, finding.bytes);
	memcpy(finding.found, damage.found, finding.bytes);
	damage_tell_block(r, &block, &finding);
	if (damage.context != 0)
		(void)event_log_context(r->log, damage.context, r->of->symbols, &finding.seen_at);
	timeline_place(&r->timeline, item, &damage, &block, &finding.when);
	finding.when.check = mem_strdup(named(checks, ARRAY_SIZE(checks), damage.check));
	VEC_PUSH(&r->damages, finding);
}

static void add_damages(struct log_findings *r)
{
	runs_mark(r->damages.items, r->damages.count);
	VEC_FREE(&r->damages, finding, VEC_PUSH(&r->ret->findings, *finding));
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

static void read_bad_free(struct log_findings *r, const struct log_item *item)
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
	    bad.kind > LOG_INVALID_FREE || r->frees >= FINDINGS_MAX)
		return;
	/* On the word of the side table alone nobody is accused. */
	if (bad.kind != LOG_MISMATCHED_FREE &&
	    (bad.evidence == LOG_EVIDENCE_NONE || bad.evidence == LOG_EVIDENCE_FOLLOWED))
		return;
	has_block = damage_owned_block(r, item, &block);
	if (!has_block && bad.kind != LOG_INVALID_FREE)
		return;
	finding = damage_finding(r, kinds[bad.kind]);
	finding.freed_by = named(freers, ARRAY_SIZE(freers), bad.by);
	finding.address = bad.pointer;
	if (has_block) {
		damage_tell_block(r, &block, &finding);
		finding.offset = (int64_t)(bad.pointer - block.start);
	}
	/* What was read from a freed block was freed: that read was the wrong one. */
	if (has_block && bad.kind == LOG_INVALID_FREE) {
		finding.kind = HEAP_USE_AFTER_FREE;
		finding.poison = true;
		finding.address = block.start;
		finding.offset = 0;
	}
	(void)event_log_context(r->log, bad.context, r->of->symbols, &finding.seen_at);
	timeline_place_record(&r->timeline, item, &finding.when);
	finding.when.check = mem_strdup("free");
	if (bad.kind == LOG_MISMATCHED_FREE && !is_mismatch(&finding)) {
		heap_finding_deinit(&finding);
		return;
	}
	VEC_PUSH(&r->ret->findings, finding);
	r->frees++;
}

static void read_round(const struct log_findings *r, const struct log_item *item)
{
	struct log_round round;

	if (!log_payload(item, &round, sizeof(round)))
		return;
	r->ret->blocks += round.live + round.quarantined;
	r->ret->guarded += round.guarded;
	r->ret->unguarded += round.passed;
	if (!round.whole && r->ret->notes.list.count < NOTES_MAX)
		SAY_TOO(&r->ret->notes, "note:blocks-left", said_number(r->log->reader.header.pid));
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
	fences_read(r);
	VEC_DEINIT(&items);
}

void damage_read(const struct damage_source *of, struct damage *ret)
{
	VEC_FOREACH (&of->logs->list, log) {
		struct log_findings r = { .of = of, .log = log, .ret = ret };

		timeline_init(&r.timeline, log, of->moments, of->end);
		read_log(&r);
		timeline_deinit(&r.timeline);
	}
}

void damage_deinit(struct damage *damage)
{
	VEC_FREE(&damage->findings, finding, heap_finding_deinit(finding));
	said_list_deinit(&damage->notes);
	home_deinit(&damage->fence.nowhere);
}
