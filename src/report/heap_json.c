/*
 * Findings of the heap observer as JSON; docs/json.md describes every field.
 */
#include "report/report_heap.h"

#include "report/json.h"

static json_t *when_json(const struct heap_when *when)
{
	json_t *object = json_object();

	PUT(object, when, check, after, before, since_birth, tests, more_tests, by_time);
	return object;
}

static json_t *finding_block_json(const struct heap_finding *f)
{
	json_t *object;

	if (!f->key)
		return json_null();
	object = json_object();
	PUT(object, f, id, key, size);
	set(object, "address", json_hex(f->address));
	set(object, "state", json_text(f->live ? "live" : "freed"));
	PUT(object, f, allocated_by, allocated, freed);
	return object;
}

/* What a fence saw. */
static json_t *access_json(const struct heap_finding *f)
{
	json_t *object;

	if (!f->fenced)
		return json_null();
	object = json_object();
	PUT(object, f, write);
	set(object, "width", f->length > 0 ? count(f->length) : json_null());
	set(object, "distance",
	    !f->live	    ? json_null()
	    : f->offset < 0 ? json_integer(f->offset)
			    : json_integer(f->offset - (int64_t)f->size));
	PUT(object, f, instruction);
	return object;
}

static json_t *finding_json(const struct heap_finding *f)
{
	json_t *object = json_object();
	bool damage = f->kind <= HEAP_WRITE_AFTER_FREE && !f->fenced, freed = f->freed_by != NULL;

	set(object, "kind", json_text(heap_kind_name(f->kind)));
	PUT(object, f, trial);
	set(object, "evidence", f->evidence != 0 ? count(f->evidence) : json_null());
	PUT(object, f, trials, count, pid, program, context);
	set(object, "block", finding_block_json(f));
	set(object, "pointer",
	    freed ? json_hex(f->address + (f->key ? (uint64_t)f->offset : 0)) : json_null());
	set(object, "offset", f->key ? json_integer(f->offset) : json_null());
	set(object, "length", damage ? count(f->length) : json_null());
	set(object, "expected", damage ? json_bytes(f->expected, f->bytes) : json_null());
	set(object, "found", damage ? json_bytes(f->found, f->bytes) : json_null());
	PUT(object, f, continued, sampled);
	set(object, "access", access_json(f));
	PUT(object, f, freed_by, seen_at);
	set(object, "when", when_json(&f->when));
	return object;
}

static json_t *holder_json(const struct heap_holder *holder)
{
	bool block = holder->stack.count > 0 || holder->size > 0;
	json_t *object = json_object();

	PUT(object, holder, kind, name, module);
	set(object, "module_offset",
	    holder->module ? json_hex(holder->module_offset) : json_null());
	PUT(object, holder, key);
	set(object, "size", block ? count(holder->size) : json_null());
	set(object, "offset", block ? count(holder->offset) : json_null());
	set(object, "lane", holder->lane >= 0 ? json_integer(holder->lane) : json_null());
	set(object, "points_to", json_integer(holder->target_offset));
	PUT(object, holder, used, count, trials);
	set(object, "allocated", json_site(&holder->stack));
	return object;
}

static json_t *dangling_json(const struct heap_dangling *d)
{
	json_t *object = json_object();

	PUT(object, d, context, key, size, trial, blocks, used, allocated, freed);
	set(object, "holders", JSON_LIST(&d->holders, holder_json));
	return object;
}

static json_t *suspect_json(const struct heap_suspect *suspect)
{
	json_t *object = json_object();

	PUT(object, suspect, context, p);
	set(object, "overwritten", json_rate(&suspect->poisoned));
	set(object, "left_alone", json_rate(&suspect->clear));
	set(object, "allocated", json_site(&suspect->stack));
	return object;
}

static json_t *observer_json(const struct heap_report *report)
{
	json_t *object = json_object();

	set(object, "crash", json_rate(&report->plain));
	PUT(object, report, heap, p, sentence);
	return object;
}

static json_t *fence_json(const struct heap_report *report)
{
	const struct heap_fence *fence = &report->fence;
	json_t *object = json_object();

	set(object, "trials", count(report->fence_trials));
	PUT(object, fence, fenced, passed);
	set(object, "turns", count(1ull << fence->level));
	PUT(object, fence, let_through, processes);
	set(object, "processes_without", count(fence->without));
	set(object, "processes_untold", count(fence->untold));
	return object;
}

void report_heap_json(const struct heap_report *report, FILE *out)
{
	json_t *object = json_document("redhand/heap/1", report->case_dir, report->program,
				       report->seconds, report->interrupted);

	set(object, "trials", count(report->heap.trials));
	set(object, "failed", count(report->heap.failed));
	PUT(object, report, seed, quarantine_mib, poison_chance, blocks, sampled_trials, guarded,
	    unguarded);
	set(object, "fence", report->fence_trials > 0 ? fence_json(report) : json_null());
	set(object, "observer", report->compared ? observer_json(report) : json_null());
	set(object, "findings", JSON_LIST(&report->findings, finding_json));
	PUT(object, report, swept, sweep_bytes);
	set(object, "dangling", JSON_LIST(&report->dangling, dangling_json));
	PUT(object, report, contexts);
	set(object, "failing_needed", count(report->needed));
	set(object, "suspects", JSON_LIST(&report->suspects, suspect_json));
	PUT(object, report, notes);
	json_print(object, out);
}
