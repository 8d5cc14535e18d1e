/*
 * `repro` and `compare` as JSON; docs/json.md describes every field.
 */
#include "report/report_series.h"

#include "report/json.h"
#include "report/signature_json.h"

static json_t *slots_json(const struct series_summary *summary)
{
	json_t *array = json_array();

	VEC_FOREACH (&summary->slots, s) {
		json_t *object = json_object();

		PUT(object, s, slot);
		json_add_rate(object, &s->rate);
		PUT(object, s, p);
		set(object, "odd",
		    json_boolean(summary->odd_slot == (int)(s - summary->slots.items)));
		(void)json_array_append_new(array, object);
	}
	return array;
}

/* Machines that trials ran on, when that was not this one alone. */
static json_t *nodes_json(const struct series_summary *summary)
{
	json_t *array = json_array();

	VEC_FOREACH (&summary->nodes, n) {
		json_t *object = json_object();

		set(object, "node", n->node[0] != '\0' ? json_text(n->node) : json_null());
		json_add_rate(object, &n->rate);
		PUT(object, n, p);
		set(object, "odd",
		    json_boolean(summary->odd_node == (int)(n - summary->nodes.items)));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *use_json(const struct resource_use *use)
{
	json_t *object = json_object();

	PUT(object, use, wall_mean_s, wall_max_s, user_mean_s, system_mean_s, peak_kib);
	return object;
}

void report_repro_json(const struct repro_result *result, FILE *out)
{
	const struct series_summary *summary = &result->summary;
	json_t *object = json_document("redhand/repro/1", result->case_dir, result->program,
				       result->seconds, result->interrupted);

	json_add_rate(object, &summary->rate);
	set(object, "counted", json_text(summary->intermittent ? "intermittent" : "all"));
	PUT(object, summary, failed_any);
	set(object, "clean_runs_for_99",
	    summary->clean_runs_for_99 > 0 ? count(summary->clean_runs_for_99) : json_null());
	set(object, "clean_runs_for_99_at_low",
	    summary->clean_runs_at_low > 0 ? count(summary->clean_runs_at_low) : json_null());
	set(object, "rate_below",
	    summary->failed_any == 0 ? json_number(summary->clean_bound) : json_null());
	PUT(object, result, earlier, jobs);
	set(object, "signatures", signatures_json(&summary->signatures));
	set(object, "families", families_json(&summary->families));
	set(object, "slots", slots_json(summary));
	set(object, "nodes", nodes_json(summary));
	set(object, "odd_slot",
	    summary->odd_slot >= 0 ? json_integer(summary->slots.items[summary->odd_slot].slot)
				   : json_null());
	set(object, "cut_short", count(summary->crashes));
	set(object, "places", count(summary->crash_places));
	set(object, "moves", json_boolean(summary->crash_places > 1));
	PUT(object, summary, buffered);
	set(object, "left_processes", count(summary->leftovers));
	set(object, "use", use_json(&summary->use));
	json_print(object, out);
}

static json_t *times_json(const struct arm_times *t)
{
	json_t *object = json_object();

	PUT(object, t, trials);
	set(object, "median_s", t->trials > 0 ? json_number(t->median_s) : json_null());
	set(object, "ratio", t->compared ? json_number(t->ratio) : json_null());
	set(object, "low", t->compared ? json_number(t->low) : json_null());
	set(object, "high", t->compared ? json_number(t->high) : json_null());
	set(object, "p", t->compared ? json_number(t->p) : json_null());
	return object;
}

void report_compare_json(const struct compare_result *result, FILE *out)
{
	json_t *object = json_document("redhand/compare/1", result->case_dir, result->program,
				       result->seconds, result->interrupted);
	AUTO(mem_freep) char *sentence = compare_sentence(result);
	json_t *arms = json_array();

	VEC_FOREACH (&result->arms, arm) {
		bool first = arm == result->arms.items;
		json_t *a = json_object();

		PUT(a, arm, name);
		json_add_rate(a, &arm->rate);
		set(a, "p", first ? json_null() : json_number(arm->p));
		set(a, "difference", first ? json_null() : json_number(arm->difference));
		set(a, "difference_low", first ? json_null() : json_number(arm->difference_low));
		set(a, "difference_high", first ? json_null() : json_number(arm->difference_high));
		set(a, "times", times_json(&arm->times));
		(void)json_array_append_new(arms, a);
	}
	set(object, "arms", arms);
	PUT(object, result, p);
	set(object, "sentence", json_text(sentence));
	PUT(object, result, seed);
	set(object, "shared_files", json_strv(&result->shared));
	PUT(object, result, stopped_early, stop_reason, earlier);
	set(object, "signatures", signatures_json(&result->signatures));
	json_print(object, out);
}
