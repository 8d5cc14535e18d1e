/*
 * Findings of the heap observer as JSON; docs/json.md describes every field.
 */
#include "report/report_heap.h"

#include "report/json.h"

static json_t *when_json(const struct heap_when *when)
{
	return OBJECT(MEMBERS(when, check, after, before, since_birth, tests, more_tests, by_time));
}

static json_t *finding_block_json(const struct heap_finding *f)
{
	return OBJECT(MEMBERS(f, id, key, size), KEY("address", json_hex(f->address)),
		      KEY("state", f->live ? "live" : "freed"),
		      MEMBERS(f, allocated_by, allocated, freed));
}

/* What a fence saw. */
static json_t *access_json(const struct heap_finding *f)
{
	int64_t distance = f->offset < 0 ? f->offset : f->offset - (int64_t)f->size;

	return OBJECT(MEMBERS(f, write), KEY("width", UNLESS_0(f->length)),
		      KEY("distance", OR_NULL(f->live, distance)), MEMBERS(f, instruction));
}

static json_t *finding_json(const struct heap_finding *f)
{
	bool damage = f->kind <= HEAP_WRITE_AFTER_FREE && !f->fenced;
	uint64_t pointer = f->address + (f->key ? (uint64_t)f->offset : 0);

	return OBJECT(KEY("kind", heap_kind_name(f->kind)), MEMBERS(f, trial),
		      KEY("evidence", UNLESS_0(f->evidence)),
		      MEMBERS(f, trials, count, pid, program, context),
		      KEY("block", OR_NULL(f->key, finding_block_json(f))),
		      KEY("pointer", OR_NULL(f->freed_by, json_hex(pointer))),
		      KEY("offset", OR_NULL(f->key, f->offset)),
		      KEY("length", OR_NULL(damage, f->length)),
		      KEY("expected", OR_NULL(damage, json_bytes(f->expected, f->bytes))),
		      KEY("found", OR_NULL(damage, json_bytes(f->found, f->bytes))),
		      MEMBERS(f, continued, sampled),
		      KEY("access", OR_NULL(f->fenced, access_json(f))),
		      MEMBERS(f, freed_by, seen_at), KEY("when", when_json(&f->when)));
}

static json_t *holder_json(const struct heap_holder *h)
{
	bool block = h->stack.count > 0 || h->size > 0;

	return OBJECT(MEMBERS(h, kind, name, module),
		      KEY("module_offset", OR_NULL(h->module, json_hex(h->module_offset))),
		      MEMBERS(h, key), KEY("size", OR_NULL(block, h->size)),
		      KEY("offset", OR_NULL(block, h->offset)),
		      KEY("lane", OR_NULL(h->lane >= 0, h->lane)),
		      KEY("points_to", h->target_offset), MEMBERS(h, used, count, trials),
		      KEY("allocated", h->stack));
}

static json_t *observer_json(const struct heap_report *report)
{
	return OBJECT(KEY("crash", report->plain), MEMBERS(report, heap, p, sentence));
}

static json_t *fence_json(const struct heap_report *report)
{
	const struct heap_fence *fence = &report->fence;

	return OBJECT(KEY("trials", report->fence_trials), MEMBERS(fence, fenced, passed),
		      KEY("turns", (uint64_t)1 << fence->level),
		      MEMBERS(fence, let_through, processes),
		      KEY("processes_without", fence->without),
		      KEY("processes_untold", fence->untold));
}

void report_heap_json(const struct heap_report *report, FILE *out)
{
	json_print(
		OBJECT(DOCUMENT("redhand/heap/1", report), MEMBERS(&report->heap, trials, failed),
		       MEMBERS(report, seed, quarantine_mib, poison_chance, blocks, sampled_trials,
			       guarded, unguarded),
		       KEY("fence", OR_NULL(report->fence_trials > 0, fence_json(report))),
		       KEY("observer", OR_NULL(report->compared, observer_json(report))),
		       KEY("findings", JSON_LIST(&report->findings, finding_json)),
		       MEMBERS(report, swept, sweep_bytes),
		       KEY("dangling",
			   EACH(&report->dangling, d,
				OBJECT(MEMBERS(d, context, key, size, trial, blocks, used,
					       allocated, freed),
				       KEY("holders", JSON_LIST(&d->holders, holder_json))))),
		       MEMBERS(report, contexts), KEY("failing_needed", report->needed),
		       KEY("suspects",
			   EACH(&report->suspects, s,
				OBJECT(MEMBERS(s, context, p), KEY("overwritten", s->poisoned),
				       KEY("left_alone", s->clear), KEY("allocated", s->stack)))),
		       MEMBERS(report, notes)),
		out);
}
