/*
 * `repro` and `compare` as JSON; docs/json.md describes every field.
 */
#include "report/report_series.h"

#include "report/json.h"

static void set(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *window_json(const struct window *window)
{
	json_t *object = json_object();

	set(object, "last", json_text(window->last));
	set(object, "next", json_text(window->next));
	set(object, "count", count(window->count));
	set(object, "trial", count(window->trial));
	return object;
}

static json_t *signature_json(const struct signature_summary *s)
{
	const struct signature *signature = &s->signature;
	json_t *object = json_object(), *windows = json_array(), *breadcrumb = json_object();

	set(object, "id", json_text(signature->id));
	set(object, "count", count(s->rate.failed));
	set(object, "rate", json_number(s->rate.rate));
	set(object, "low", json_number(s->rate.low));
	set(object, "high", json_number(s->rate.high));
	set(object, "always", json_boolean(s->always));
	set(object, "kind", json_text(failure_kind_name(signature->kind)));
	set(object, "signal",
	    signature->signal != 0 ? json_text(signal_name(signature->signal)) : json_null());
	set(object, "exit",
	    signature->exit_status >= 0 ? json_integer(signature->exit_status) : json_null());
	set(object, "child", json_boolean(signature->stray));
	set(object, "test", json_text(signature->test));
	set(object, "summary", json_text(signature->summary));
	set(object, "trial", count(s->trial));
	set(object, "site", json_text(signature->site));
	set(object, "fault", s->crash ? json_fault(s->crash) : json_null());
	set(object, "stack", s->crash ? json_stack(&s->crash->stack) : json_array());
	set(breadcrumb, "last", json_text(s->windows.count > 0 ? s->windows.items[0].last : NULL));
	set(breadcrumb, "next", json_text(s->windows.count > 0 ? s->windows.items[0].next : NULL));
	set(object, "breadcrumb", breadcrumb);
	VEC_FOREACH (&s->windows, window)
		(void)json_array_append_new(windows, window_json(window));
	set(object, "windows", windows);
	set(object, "places", count(s->places));
	set(object, "moves", json_boolean(s->places > 1));
	return object;
}

static json_t *signatures_json(const struct signature_summaries *signatures)
{
	json_t *array = json_array();

	VEC_FOREACH (&signatures->list, s)
		(void)json_array_append_new(array, signature_json(s));
	return array;
}

static json_t *slots_json(const struct series_summary *summary)
{
	json_t *array = json_array();

	VEC_FOREACH (&summary->slots, s) {
		json_t *object = json_object();

		set(object, "slot", json_integer(s->slot));
		json_add_rate(object, &s->rate);
		set(object, "p", json_number(s->p));
		set(object, "odd",
		    json_boolean(summary->odd_slot == (int)(s - summary->slots.items)));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *use_json(const struct resource_use *use)
{
	json_t *object = json_object();

	set(object, "wall_mean_s", json_number(use->wall_mean_s));
	set(object, "wall_max_s", json_number(use->wall_max_s));
	set(object, "user_mean_s", json_number(use->user_mean_s));
	set(object, "system_mean_s", json_number(use->system_mean_s));
	set(object, "peak_kib", count(use->peak_kib));
	return object;
}

static json_t *document(const char *schema, const char *case_dir, char *const *program,
			double seconds, bool interrupted)
{
	json_t *object = json_object();

	set(object, "schema", json_text(schema));
	set(object, "case", json_text(case_dir));
	set(object, "program", json_strings(program));
	set(object, "seconds", json_number(seconds));
	set(object, "interrupted", json_boolean(interrupted));
	return object;
}

void report_repro_json(const struct repro_result *result, FILE *out)
{
	const struct series_summary *summary = &result->summary;
	json_t *object = document("redhand/repro/1", result->case_dir, result->program,
				  result->seconds, result->interrupted);

	json_add_rate(object, &summary->rate);
	set(object, "counted", json_text(summary->intermittent ? "intermittent" : "all"));
	set(object, "failed_any", count(summary->failed_any));
	set(object, "clean_runs_for_99",
	    summary->clean_runs_for_99 > 0 ? count(summary->clean_runs_for_99) : json_null());
	set(object, "rate_below",
	    summary->failed_any == 0 ? json_number(summary->clean_bound) : json_null());
	set(object, "earlier", count(result->earlier));
	set(object, "jobs", json_integer(result->jobs));
	set(object, "signatures", signatures_json(&summary->signatures));
	set(object, "slots", slots_json(summary));
	set(object, "odd_slot",
	    summary->odd_slot >= 0 ? json_integer(summary->slots.items[summary->odd_slot].slot)
				   : json_null());
	set(object, "cut_short", count(summary->crashes));
	set(object, "places", count(summary->crash_places));
	set(object, "moves", json_boolean(summary->crash_places > 1));
	set(object, "buffered", json_boolean(summary->buffered));
	set(object, "left_processes", count(summary->leftovers));
	set(object, "use", use_json(&summary->use));
	json_print(object, out);
}

void report_compare_json(const struct compare_result *result, FILE *out)
{
	json_t *object = document("redhand/compare/1", result->case_dir, result->program,
				  result->seconds, result->interrupted);
	json_t *arms = json_array();

	VEC_FOREACH (&result->arms, arm) {
		bool first = arm == result->arms.items;
		json_t *a = json_object();

		set(a, "name", json_text(arm->name));
		json_add_rate(a, &arm->rate);
		set(a, "p", first ? json_null() : json_number(arm->p));
		set(a, "difference", first ? json_null() : json_number(arm->difference));
		set(a, "difference_low", first ? json_null() : json_number(arm->difference_low));
		set(a, "difference_high", first ? json_null() : json_number(arm->difference_high));
		(void)json_array_append_new(arms, a);
	}
	set(object, "arms", arms);
	set(object, "p", json_number(result->p));
	set(object, "sentence", json_text(result->sentence));
	set(object, "seed", count(result->seed));
	set(object, "stopped_early", json_boolean(result->stopped_early));
	set(object, "stop_reason", json_text(result->stop_reason));
	set(object, "earlier", count(result->earlier));
	set(object, "signatures", signatures_json(&result->signatures));
	json_print(object, out);
}
