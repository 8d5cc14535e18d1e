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
	return rate->trials > 0 ? json_rate(rate) : json_null();
}

static json_t *without_json(const struct minimize_result *result)
{
	json_t *array = json_array();

	VEC_FOREACH (&result->items, item) {
		json_t *object;

		if (item->victim)
			continue;
		object = json_object();
		set(object, "test", json_text(item->name));
		json_add_rate(object, &item->without);
		PUT(object, item, wider);
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *left_json(const struct minimize_result *result)
{
	json_t *array = json_array();

	VEC_FOREACH (&result->doubtful, item) {
		json_t *object = json_object();

		set(object, "test", json_text(item->name));
		PUT(object, item, needed);
		(void)json_array_append_new(array, object);
	}
	return array;
}

static void add_signatures(const struct minimize_result *result, json_t *object)
{
	json_t *others = json_array(), *target = NULL;

	VEC_FOREACH (&result->signatures.list, s) {
		if (strcmp(s->signature.id, result->target) == 0)
			target = signature_json(s);
		else
			(void)json_array_append_new(others, signature_json(s));
	}
	set(object, "signature", target ? target : json_null());
	set(object, "other_signatures", others);
}

void report_minimize_json(const struct minimize_result *result, FILE *out)
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
	json_t *object = json_document("redhand/minimize/1", result->case_dir, result->program,
				       result->seconds, result->interrupted),
	       *tests = json_array();

	set(object, "verdict", json_text(verdicts[result->verdict]));
	PUT(object, result, framework, noun, total);
	VEC_FOREACH (&result->items, item)
		(void)json_array_append_new(tests, json_text(item->name));
	set(object, "tests", tests);
	PUT(object, result, victim, confidence);
	set(object, "wanted_confidence", json_number(result->wanted));
	PUT(object, result, trials, other_failures, no_information, earlier, rollbacks);
	set(object, "trials_to_go", json_number(result->to_go));
	set(object, "left", left_json(result));
	PUT(object, result, full, minimal);
	set(object, "without", without_json(result));
	set(object, "stand_ins", json_text(others[result->others]));
	set(object, "full_without_one", rate_or_null(&result->stand_ins));
	set(object, "reversed", rate_or_null(&result->reversed));
	set(object, "shuffled", rate_or_null(&result->shuffled));
	set(object, "order", json_text(orders[result->order]));
	set(object, "order_p", result->order_checked ? json_number(result->order_p) : json_null());
	add_signatures(result, object);
	set(object, "command", json_command(result->argv.items));
	set(object, "environment", json_command(result->env.items));
	PUT(object, result, cwd);
	set(object, "plain", json_boolean(!result->plain_differs));
	PUT(object, result, advice, file, jobs, seed);
	json_print(object, out);
}
