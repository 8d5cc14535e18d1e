/*
 * `repro` and `compare` as JSON; docs/json.md describes every field.
 */
#include "report/report_series.h"

#include "report/json.h"
#include "report/signature_json.h"

static json_t *use_json(const struct resource_use *use)
{
	return OBJECT(MEMBERS(use, wall_mean_s, wall_max_s, user_mean_s, system_mean_s, peak_kib));
}

/* Machines are told when trials ran on others than this one. */
void report_repro_json(const struct repro_result *result, FILE *out)
{
	const struct series_summary *s = &result->summary;
	const struct slot_summary *odd_slot = s->odd_slot < 0 ? NULL : &s->slots.items[s->odd_slot];
	const struct node_summary *odd_node = s->odd_node < 0 ? NULL : &s->nodes.items[s->odd_node];

	json_print(
		OBJECT(DOCUMENT("redhand/repro/1", result), RATE(&s->rate),
		       KEY("counted", s->intermittent ? "intermittent" : "all"),
		       MEMBERS(s, failed_any),
		       KEY("clean_runs_for_99", UNLESS_0(s->clean_runs_for_99)),
		       KEY("clean_runs_for_99_at_low", UNLESS_0(s->clean_runs_at_low)),
		       KEY("rate_below", OR_NULL(s->failed_any == 0, s->clean_bound)),
		       MEMBERS(result, earlier, jobs),
		       KEY("signatures", signatures_json(&s->signatures)),
		       KEY("families", families_json(&s->families)),
		       KEY("slots",
			   EACH(&s->slots, slot,
				OBJECT(MEMBERS(slot, slot), RATE(&slot->rate), MEMBERS(slot, p),
				       KEY("odd", json_boolean(slot == odd_slot))))),
		       KEY("nodes", EACH(&s->nodes, n,
					 OBJECT(KEY("node", OR_NULL(n->node[0] != '\0', n->node)),
						RATE(&n->rate), MEMBERS(n, p),
						KEY("odd", json_boolean(n == odd_node))))),
		       KEY("odd_slot", OR_NULL(odd_slot, odd_slot->slot)),
		       KEY("cut_short", s->crashes), KEY("places", s->crash_places),
		       KEY("moves", json_boolean(s->crash_places > 1)), MEMBERS(s, buffered),
		       KEY("left_processes", s->leftovers), KEY("use", use_json(&s->use))),
		out);
}

static json_t *times_json(const struct arm_times *t)
{
	return OBJECT(MEMBERS(t, trials), KEY("median_s", OR_NULL(t->trials > 0, t->median_s)),
		      KEY("ratio", OR_NULL(t->compared, t->ratio)),
		      KEY("low", OR_NULL(t->compared, t->low)),
		      KEY("high", OR_NULL(t->compared, t->high)),
		      KEY("p", OR_NULL(t->compared, t->p)));
}

static json_t *arm_json(const struct arm_summary *arm, bool first)
{
	return OBJECT(MEMBERS(arm, name), RATE(&arm->rate), KEY("p", OR_NULL(!first, arm->p)),
		      KEY("difference", OR_NULL(!first, arm->difference)),
		      KEY("difference_low", OR_NULL(!first, arm->difference_low)),
		      KEY("difference_high", OR_NULL(!first, arm->difference_high)),
		      KEY("times", times_json(&arm->times)));
}

void report_compare_json(const struct compare_result *result, FILE *out)
{
	AUTO(mem_freep) char *sentence = compare_sentence(result);

	json_print(OBJECT(DOCUMENT("redhand/compare/1", result),
			  KEY("arms",
			      EACH(&result->arms, arm, arm_json(arm, arm == result->arms.items))),
			  MEMBERS(result, p), KEY("sentence", sentence), MEMBERS(result, seed),
			  KEY("shared_files", result->shared),
			  MEMBERS(result, stopped_early, stop_reason, earlier),
			  KEY("signatures", signatures_json(&result->signatures))),
		   out);
}
