/*
 * Findings of the heap observer as JSON; docs/json.md describes every field.
 */
#include "report/report_heap.h"

#include <inttypes.h>

#include "report/json.h"

static json_t *bytes_json(const uint8_t *bytes, unsigned int len)
{
	char text[2 * HEAP_BYTES + 1] = "";

	for (unsigned int i = 0; i < len; i++)
		(void)snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
	return json_string(text);
}

static json_t *when_json(const struct heap_when *when)
{
	json_t *object = json_object(), *tests = json_array();

	set(object, "check", json_text(when->check));
	set(object, "after", json_text(when->after));
	set(object, "before", json_text(when->before));
	set(object, "since_birth", json_boolean(when->since_birth));
	for (size_t i = 0; i < when->tests.count; i++)
		(void)json_array_append_new(tests, json_text(when->tests.items[i]));
	set(object, "tests", tests);
	set(object, "more_tests", json_boolean(when->more_tests));
	set(object, "by_time", json_boolean(when->by_time));
	return object;
}

static json_t *finding_block_json(const struct heap_finding *f)
{
	json_t *object;

	if (!f->key)
		return json_null();
	object = json_object();
	set(object, "id", count(f->id));
	set(object, "key", json_text(f->key));
	set(object, "size", count(f->size));
	set(object, "address", json_hex(f->address));
	set(object, "state", json_text(f->live ? "live" : "freed"));
	set(object, "allocated_by", json_text(f->allocated_by));
	set(object, "allocated", json_site(&f->allocated));
	set(object, "freed", json_site(&f->freed));
	return object;
}

/* What a fence saw. */
static json_t *access_json(const struct heap_finding *f)
{
	json_t *object;

	if (!f->fenced)
		return json_null();
	object = json_object();
	set(object, "write", json_boolean(f->write));
	set(object, "width", f->length > 0 ? count(f->length) : json_null());
	set(object, "distance",
	    !f->live	    ? json_null()
	    : f->offset < 0 ? json_integer(f->offset)
			    : json_integer(f->offset - (int64_t)f->size));
	set(object, "instruction", json_text(f->instruction));
	return object;
}

static json_t *finding_json(const struct heap_finding *f)
{
	json_t *object = json_object();
	bool damage = f->kind <= HEAP_WRITE_AFTER_FREE && !f->fenced, freed = f->freed_by != NULL;

	set(object, "kind", json_text(heap_kind_name(f->kind)));
	set(object, "trial", count(f->trial));
	set(object, "evidence", f->evidence != 0 ? count(f->evidence) : json_null());
	set(object, "trials", count(f->trials));
	set(object, "count", count(f->count));
	set(object, "pid", json_integer(f->pid));
	set(object, "program", json_text(f->program));
	set(object, "context", json_text(f->context));
	set(object, "block", finding_block_json(f));
	set(object, "pointer",
	    freed ? json_hex(f->address + (f->key ? (uint64_t)f->offset : 0)) : json_null());
	set(object, "offset", f->key ? json_integer(f->offset) : json_null());
	set(object, "length", damage ? count(f->length) : json_null());
	set(object, "expected", damage ? bytes_json(f->expected, f->bytes) : json_null());
	set(object, "found", damage ? bytes_json(f->found, f->bytes) : json_null());
	set(object, "continued", json_boolean(f->continued));
	set(object, "sampled", json_boolean(f->sampled));
	set(object, "access", access_json(f));
	set(object, "freed_by", json_text(f->freed_by));
	set(object, "seen_at", json_site(&f->seen_at));
	set(object, "when", when_json(&f->when));
	return object;
}

static json_t *holder_json(const struct heap_holder *holder)
{
	bool block = holder->stack.count > 0 || holder->size > 0;
	json_t *object = json_object();

	set(object, "kind", json_text(holder->kind));
	set(object, "name", json_text(holder->name));
	set(object, "module", json_text(holder->module));
	set(object, "module_offset",
	    holder->module ? json_hex(holder->module_offset) : json_null());
	set(object, "key", json_text(holder->key));
	set(object, "size", block ? count(holder->size) : json_null());
	set(object, "offset", block ? count(holder->offset) : json_null());
	set(object, "lane", holder->lane >= 0 ? json_integer(holder->lane) : json_null());
	set(object, "points_to", json_integer(holder->target_offset));
	set(object, "used", json_boolean(holder->used));
	set(object, "count", count(holder->count));
	set(object, "trials", count(holder->trials));
	set(object, "allocated", json_site(&holder->stack));
	return object;
}

static json_t *dangling_json(const struct heap_dangling *d)
{
	json_t *object = json_object(), *holders = json_array();

	set(object, "context", json_text(d->context));
	set(object, "key", json_text(d->key));
	set(object, "size", count(d->size));
	set(object, "trial", count(d->trial));
	set(object, "blocks", count(d->blocks));
	set(object, "used", json_boolean(d->used));
	set(object, "allocated", json_site(&d->allocated));
	set(object, "freed", json_site(&d->freed));
	VEC_FOREACH (&d->holders, holder)
		(void)json_array_append_new(holders, holder_json(holder));
	set(object, "holders", holders);
	return object;
}

static json_t *suspect_json(const struct heap_suspect *suspect)
{
	json_t *object = json_object();

	set(object, "context", json_text(suspect->context));
	set(object, "p", json_number(suspect->p));
	set(object, "overwritten", json_rate(&suspect->poisoned));
	set(object, "left_alone", json_rate(&suspect->clear));
	set(object, "allocated", json_site(&suspect->stack));
	return object;
}

static json_t *observer_json(const struct heap_report *report)
{
	json_t *object = json_object();

	set(object, "crash", json_rate(&report->plain));
	set(object, "heap", json_rate(&report->heap));
	set(object, "p", json_number(report->p));
	set(object, "sentence", json_said(&report->sentence));
	return object;
}

static json_t *fence_json(const struct heap_report *report)
{
	const struct heap_fence *fence = &report->fence;
	json_t *object = json_object();

	set(object, "trials", count(report->fence_trials));
	set(object, "fenced", count(fence->fenced));
	set(object, "passed", count(fence->passed));
	set(object, "turns", count(1ull << fence->level));
	set(object, "let_through", count(fence->let_through));
	set(object, "processes", count(fence->processes));
	set(object, "processes_without", count(fence->without));
	set(object, "processes_untold", count(fence->untold));
	return object;
}

void report_heap_json(const struct heap_report *report, FILE *out)
{
	json_t *object = json_object(), *findings = json_array(), *dangling = json_array();
	json_t *suspects = json_array();

	set(object, "schema", json_text("redhand/heap/1"));
	set(object, "case", json_text(report->case_dir));
	set(object, "program", json_command(report->program));
	set(object, "seconds", json_number(report->seconds));
	set(object, "interrupted", json_boolean(report->interrupted));
	set(object, "trials", count(report->heap.trials));
	set(object, "failed", count(report->heap.failed));
	set(object, "seed", count(report->seed));
	set(object, "quarantine_mib", count(report->quarantine_mib));
	set(object, "poison_chance", json_number(report->poison_chance));
	set(object, "blocks", count(report->blocks));
	set(object, "sampled_trials", count(report->sampled_trials));
	set(object, "guarded", count(report->guarded));
	set(object, "unguarded", count(report->unguarded));
	set(object, "fence", report->fence_trials > 0 ? fence_json(report) : json_null());
	set(object, "observer", report->compared ? observer_json(report) : json_null());
	VEC_FOREACH (&report->findings, finding)
		(void)json_array_append_new(findings, finding_json(finding));
	set(object, "findings", findings);
	set(object, "swept", count(report->swept));
	set(object, "sweep_bytes", count(report->sweep_bytes));
	VEC_FOREACH (&report->dangling, d)
		(void)json_array_append_new(dangling, dangling_json(d));
	set(object, "dangling", dangling);
	set(object, "contexts", count(report->contexts));
	set(object, "failing_needed", count(report->needed));
	VEC_FOREACH (&report->suspects, suspect)
		(void)json_array_append_new(suspects, suspect_json(suspect));
	set(object, "suspects", suspects);
	set(object, "notes", json_said_list(&report->notes));
	json_print(object, out);
}
