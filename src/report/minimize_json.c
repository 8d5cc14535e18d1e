/*
 * `minimize` as JSON; docs/json.md describes every field.
 */
#include <string.h>

#include "report/json.h"
#include "report/report_minimize.h"
#include "report/signature_json.h"

/* Rates of runs that were never asked for are unknown, not zero. */
static json_t *rate_or_null(const struct rate *rate)
{
	return OR_NULL(rate->trials > 0, *rate);
}

static json_t *without_json(const struct minimal_item *item)
{
	return OBJECT(KEY("test", item->name), RATE(&item->without), MEMBERS(item, wider));
}

void report_minimize_json(const struct minimize_result *r, FILE *out)
{
	static const char *const verdicts[] = { [MINIMAL_SEARCHING] = "searching",
						[MINIMAL_FOUND] = "minimal",
						[MINIMAL_COUNT_MATTERS] = "count-matters",
						[MINIMAL_NOT_BY_ITSELF] = "not-by-itself" };
	static const char *const orders[] = { [MINIMAL_ORDER_UNKNOWN] = NULL,
					      [MINIMAL_ORDER_SAME] = "no-difference",
					      [MINIMAL_ORDER_MATTERS] = "matters" };
	static const char *const others[] = { [MINIMAL_OTHERS_UNKNOWN] = NULL,
					      [MINIMAL_OTHERS_NONE] = "none",
					      [MINIMAL_OTHERS_SOME] = "some",
					      [MINIMAL_OTHERS_ANY] = "any" };
	const struct signature_summary *target =
		VEC_FIND(&r->signatures.list, s, strcmp(s->signature.id, r->target) == 0);

	json_print(
		OBJECT(DOCUMENT("redhand/minimize/1", r), KEY("verdict", verdicts[r->verdict]),
		       MEMBERS(r, framework, noun, total),
		       KEY("tests", EACH(&r->items, item, item->name)),
		       MEMBERS(r, victim, confidence), KEY("wanted_confidence", r->wanted),
		       MEMBERS(r, trials, other_failures, no_information, earlier, rollbacks),
		       KEY("trials_to_go", r->to_go),
		       KEY("left", EACH(&r->doubtful, item,
					OBJECT(KEY("test", item->name), MEMBERS(item, needed)))),
		       MEMBERS(r, full, minimal),
		       KEY("without", EACH_IF(&r->items, item, !item->victim, without_json(item))),
		       KEY("stand_ins", others[r->others]),
		       KEY("full_without_one", rate_or_null(&r->stand_ins)),
		       KEY("reversed", rate_or_null(&r->reversed)),
		       KEY("shuffled", rate_or_null(&r->shuffled)), KEY("order", orders[r->order]),
		       KEY("order_p", OR_NULL(r->order_checked, r->order_p)),
		       KEY("signature", OR_NULL(target, signature_json(target))),
		       KEY("other_signatures",
			   EACH_IF(&r->signatures.list, s, strcmp(s->signature.id, r->target) != 0,
				   signature_json(s))),
		       KEY("command", json_command(r->argv.items)),
		       KEY("environment", json_command(r->env.items)), MEMBERS(r, cwd),
		       KEY("plain", json_boolean(!r->plain_differs)),
		       MEMBERS(r, advice, file, jobs, seed)),
		out);
}
