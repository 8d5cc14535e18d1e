/*
 * How little of it? The shortest list of tests that still fails.
 *
 * Worth it when what is hunted is a crash and there are tests to choose from. Costs hundreds of
 * trials, but ever shorter ones. So it comes when it is known who did it; where it is not, that is
 * asked again of the shorter list.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "judge/judge.h"
#include "search/stats/rate.h"

#define FAILURES_LEAST 8 /* of the search, however short the list */
#define FAILURES_HALVING 3
#define CONFIDENCE 0.999 /* later stages run what it finds, and say "needed" of it */
/* Clean runs of the full list after which it is given up: what the rate makes no chance, or as many
 * as a rate that is hardly known needs. */
#define HOLDS_CONFIDENCE 0.9999
#define SHARE_HOLDS 0.1
#define BASELINE_LEAST 20u
#define BASELINE_MOST 200u

static bool applies(struct inquiry *inq, struct said *why)
{
	if (!hunt_crashes(inq))
		return false;
	if (inq->request->framework)
		return true;
	if (inq->request->no_framework)
		said_as_text(why, inq->request->no_framework);
	else
		SAY(why, "why:no-tests");
	return false;
}

/* Halving what is left takes some failures each time. Lists get shorter and so do trials, so it is
 * reckoned with few. */
static void price(const struct inquiry *inq, struct price *ret)
{
	double halvings = log2((double)inq->request->framework->items.count);

	price_of_failures(inq, FAILURES_LEAST + FAILURES_HALVING * halvings, 1, ret);
}

/* What was run before, when the shorter list does not hold. */
struct longer {
	struct rate rate, target_rate;
	struct series_id ids_series;
	unsigned int ids_arm;
};

/* The shorter list will be chased, and ids are known to be harmless: its failing trial is read
 * then.
 */
static bool will_be_read(const struct inquiry *inq)
{
	return !inquiry_firm(inq) && inq->known.ids.trial != 0 && !inq->known.ids.unusable &&
	       !inq->known.ids.hide_it && inq->how.close.observer != OBSERVE_NONE;
}

/* From here on the short list is run, unless only redhand itself can keep its order. Keys of blocks
 * are others there, so nothing that was read before leads on. */
static void take_list(struct inquiry *inq, const struct minimize_result *result)
{
	uint64_t hash = 0xcbf29ce484222325u;

	if (result->verdict != MINIMAL_FOUND || result->plain_differs || result->argv.count == 0)
		return;
	strv_copy(&inq->how.short_program, result->argv.items);
	for (size_t i = 0; i < inq->request->slot_env->count; i++)
		strv_add(&inq->how.short_env, inq->request->slot_env->items[i]);
	for (size_t i = 0; i < result->env.count; i++)
		strv_add(&inq->how.short_env, result->env.items[i]);
	inq->how.program = inq->how.short_program.items;
	inq->how.env = &inq->how.short_env;
	inq->known.rate = inq->known.target_rate = result->minimal;
	inq->known.ids.series.value = 0;
	VEC_FOREACH (&result->items, item)
		for (const char *c = item->name;; c++) {
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
			if (*c == '\0')
				break;
		}
	(void)snprintf(inq->how.short_list, sizeof(inq->how.short_list), "%016" PRIx64, hash);
}

/* The search runs many lists side by side. Where trials share something, a longer list in another
 * slot may be what made the short one fail: it must fail when every slot runs it. */
static int holds(struct inquiry *inq, const struct minimize_result *result, bool *ret)
{
	const char *const arms[] = { will_be_read(inq) ? "shorter:observe=ids" : "shorter" };
	uint64_t clean = rate_clean_runs(result->minimal.rate, HOLDS_CONFIDENCE);
	struct arms_outcome seen;
	int r;

	*ret = true;
	if (result->verdict != MINIMAL_FOUND || inq->how.jobs < 2 || hunt_over(inq))
		return 0;
	hunt_allow(inq, SHARE_HOLDS);
	r = hunt_compare(inq,
			 &(struct arms_request){ .arms = arms,
						 .count = ARRAY_SIZE(arms),
						 .trials = clean < BASELINE_LEAST  ? BASELINE_LEAST
							   : clean < BASELINE_MOST ? clean
										   : BASELINE_MOST,
						 .target = true,
						 .until_failures = 1,
						 .list = inq->how.short_list,
						 .program = inq->how.program,
						 .env = inq->how.env },
			 &seen);
	if (r == 0 && seen.arms[0].failed > 0 && will_be_read(inq)) {
		inq->known.ids.series = seen.series;
		inq->known.ids.arm = 0;
	}
	if (r < 0 || seen.interrupted || seen.arms[0].failed > 0 || inq->spending.budget.spent)
		return r;
	*ret = false;
	return DECIDE(inq, "minimize:not-alone", said_number(result->items.count),
		      said_number(result->total), said_number(result->minimal.failed),
		      said_number(result->minimal.trials), said_number(seen.arms[0].trials));
}

/* Back to the whole list. */
static int give_back(struct inquiry *inq, const struct longer *before, struct series_id series)
{
	inq->how.program = inq->request->program;
	inq->how.env = inq->request->slot_env;
	inq->known.rate = before->rate;
	inq->known.target_rate = before->target_rate;
	inq->known.ids.series = before->ids_series;
	inq->known.ids.arm = before->ids_arm;
	inq->how.short_list[0] = '\0';
	return case_set_minimal_verdict(inq->cs, series, MINIMAL_NOT_BY_ITSELF, inq->err);
}

/* The search sees for itself which crash stands out; of two that are about as frequent it may be
 * the other. */
static bool same_failure(struct inquiry *inq, const struct minimize_result *result)
{
	AUTO(signature_deinit) struct signature signature = { 0 };

	return result->target[0] == '\0' ||
	       case_signature(inq->cs, result->target, &signature, NULL) < 0 ||
	       target_is(&inq->known.match, &signature);
}

static uint64_t baseline(const struct inquiry *inq)
{
	uint64_t clean = rate_clean_runs(inq->known.target_rate.low, 0.999);

	return clean < BASELINE_LEAST  ? BASELINE_LEAST
	       : clean < BASELINE_MOST ? clean
				       : BASELINE_MOST;
}

/* Hundreds of trials, none of which is read closely. */
static enum observer observer_of(const struct inquiry *inq)
{
	return inq->how.plain.observer == OBSERVE_IDS ? inq->request->plain.observer
						      : inq->how.plain.observer;
}

static int tell(struct inquiry *inq, const struct minimize_result *result)
{
	int r;

	if (result->verdict == MINIMAL_FOUND)
		r = DECIDE(inq, "minimize:found", said_number(result->items.count),
			   said_number(result->total), said_text(result->nouns),
			   said_number(result->minimal.failed), said_number(result->minimal.trials),
			   said_number(result->full.failed), said_number(result->full.trials));
	else
		r = DECIDE(inq, "minimize:shorter", said_number(result->items.count),
			   said_number(result->total), said_text(result->nouns),
			   said_flag(inq->spending.budget.spent));
	if (r == 0 && result->order_checked)
		r = DECIDE(inq, "minimize:order", said_number(result->reversed.failed),
			   said_number(result->reversed.trials),
			   said_number(result->shuffled.failed),
			   said_number(result->shuffled.trials));
	return r;
}

/* Whoever reads along need not wait for the list. */
static int tell_known(struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&inq->evidence, &verdict);
	return verdict.firm ? DECIDE(inq, "minimize:known", said_class(verdict.class)) : 0;
}

static int run(struct inquiry *inq)
{
	const struct hunt_request *request = inq->request;
	AUTO(strbuf_deinit) struct strbuf identity = { 0 };
	AUTO(minimize_result_deinit) struct minimize_result result = { 0 };
	struct minimize_request minimize = { .settings = inq->how.plain.settings,
					     .framework = request->framework,
					     .slot_env = request->slot_env,
					     .observer = observer_of(inq),
					     .jobs = inq->how.jobs,
					     .confidence = CONFIDENCE,
					     .signature = request->signature,
					     .among = &inq->known.match,
					     .baseline = baseline(inq),
					     .seed = request->seed,
					     .fresh = request->fresh,
					     .progress = request->show.minimize_progress,
					     .progress_ctx = request->show.ctx };
	struct longer before = { inq->known.rate, inq->known.target_rate, inq->known.ids.series,
				 inq->known.ids.arm };
	struct series_found found;
	struct err why = { 0 };
	bool holding;
	int r;

	strbuf_adds(&identity, inq->how.minimize_settings);
	minimize_identify(request->framework,
			  &(struct minimize_question){ .confidence = CONFIDENCE,
						       .signature = request->signature },
			  &identity);
	minimize.identity = (struct series_identity){ .command = "minimize",
						      .settings = strbuf_str(&identity),
						      .program = request->minimize.program };
	r = tell_known(inq);
	if (r < 0)
		return r;
	r = minimize_run(inq->cs, &minimize, &result, &why);
	if (r < 0)
		return DECIDE(inq, "minimize:failed", said_text(why.message));
	hunt_count(inq, result.trials + result.no_information,
		   result.full.failed + result.minimal.failed, result.earlier);
	inq->ret->interrupted |= result.interrupted;
	if (result.interrupted)
		return 0;
	if (!same_failure(inq, &result))
		return DECIDE(inq, "minimize:other", said_text(result.target));
	take_list(inq, &result);
	r = case_series(inq->cs, &minimize.identity, 0, &found, inq->err);
	if (r == 0)
		r = holds(inq, &result, &holding);
	if (r == 0 && !holding)
		return give_back(inq, &before, found.id);
	if (r < 0)
		return r;
	if (result.verdict == MINIMAL_FOUND)
		inq->how.minimal_series = found.id;
	return tell(inq, &result);
}

EXPERIMENT(minimize, .name = "minimize", .question = QUESTION_FEWER, .kind = EXPERIMENT_RUN,
	   .chance = 0.8, .share = 0.4, .applies = applies, .price = price, .run = run);
