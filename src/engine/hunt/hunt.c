#include "engine/hunt/hunt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/growth/growth.h"
#include "engine/stats/fisher.h"
#include "engine/stats/rate.h"
#include "engine/verdict/verdict.h"

/* Stage 1: enough failures to tell which one it is, or so many clean runs. */
#define RATE_FAILURES 8u
#define RATE_TRIALS 60u
#define RATE_TRIALS_RARE 400u
#define RATE_TRIALS_PLAIN 40u /* before an error that every run shows is all there is */
#define RATE_STEP 8u
#define CHASE_TRIALS 1500u
#define CHASE_WANTED 3u
#define CHASE_HOPS 3u
#define GROWTH_TRIALS 3u
#define MINIMIZE_CONFIDENCE 0.999 /* later stages run what it finds, and say "needed" of it */

struct hunt {
	struct case_store *cs;
	const struct hunt_request *request;
	struct hunt_result *ret;
	struct err *err;
	double started_s;
	uint64_t ran; /* trials */
	struct series_summary summary;
	const struct signature_summary *target;
	struct evidence_list evidence;
	/* What later stages run: the command itself, or the short list's. */
	char *const *program;
	const struct strv *env;
	struct strv short_program, short_env;
};

/* ---- words ------------------------------------------------------------------------------------
 */

static int decide(struct hunt *hunt, const char *stage, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int decide(struct hunt *hunt, const char *stage, const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&sb, fmt, args);
	va_end(args);
	if (hunt->request->say)
		hunt->request->say(hunt->request->say_ctx, stage, strbuf_str(&sb));
	return case_add_decision(hunt->cs, stage, strbuf_str(&sb), hunt->err);
}

static double seconds_left(const struct hunt *hunt)
{
	double spent = series_now_s() - hunt->started_s;

	return hunt->request->budget_s > 0 ? hunt->request->budget_s - spent : 1e9;
}

static uint64_t trials_left(const struct hunt *hunt, uint64_t most)
{
	uint64_t budget = hunt->request->budget_trials;

	if (budget == 0)
		return most;
	return budget <= hunt->ran ? 0 : budget - hunt->ran < most ? budget - hunt->ran : most;
}

static bool over(const struct hunt *hunt)
{
	return hunt->ret->interrupted || seconds_left(hunt) <= 0 || trials_left(hunt, 1) == 0;
}

/* ---- does it fail
 * -------------------------------------------------------------------------------- */

static int run_plain(struct hunt *hunt, uint64_t trials, uint64_t failures, bool fresh)
{
	const struct hunt_request *request = hunt->request;
	struct repro_request repro = { .identity = request->plain.identity,
				       .settings = request->plain.settings,
				       .observer = request->plain.observer,
				       .program = request->program,
				       .slot_env = request->slot_env,
				       .jobs = request->jobs,
				       .trials = trials,
				       .failures = failures,
				       .fresh = fresh,
				       .progress = request->progress,
				       .progress_ctx = request->progress_ctx };
	struct repro_result result = { 0 };
	int r = repro_run(hunt->cs, &repro, &result, hunt->err);

	if (r < 0)
		return r;
	hunt->ret->interrupted |= result.interrupted;
	series_summary_deinit(&hunt->summary);
	hunt->summary = result.summary;
	hunt->ran = result.summary.rate.trials;
	return 0;
}

/* The crash that comes and goes most often; else what comes and goes; else what always crashes. */
static int weight(const struct signature_summary *s)
{
	return (s->signature.kind == FAILURE_SIGNAL ? 2 : 0) + (s->always ? 0 : 4);
}

static void choose_target(struct hunt *hunt)
{
	hunt->target = NULL;
	VEC_FOREACH (&hunt->summary.signatures.list, s) {
		if (hunt->request->signature) {
			if (strcmp(s->signature.id, hunt->request->signature) == 0)
				hunt->target = s;
			continue;
		}
		if (!hunt->target || weight(s) > weight(hunt->target) ||
		    (weight(s) == weight(hunt->target) &&
		     s->rate.failed > hunt->target->rate.failed))
			hunt->target = s;
	}
}

/* A test that fails in every run makes for failures enough, and says nothing about the crash that
 * comes now and then beside it. */
static int look_beside(struct hunt *hunt)
{
	int r = 0;

	for (choose_target(hunt); r == 0 && !over(hunt) && hunt->target && hunt->target->always &&
				  hunt->target->signature.kind != FAILURE_SIGNAL &&
				  hunt->summary.rate.trials < RATE_TRIALS_PLAIN;
	     choose_target(hunt)) {
		uint64_t before = hunt->summary.rate.trials;

		r = run_plain(hunt, before + trials_left(hunt, RATE_STEP), 0, false);
		if (r < 0 || hunt->summary.rate.trials == before)
			return r;
	}
	if (r < 0 || !hunt->target || hunt->target->always || over(hunt) || hunt->ran > RATE_TRIALS)
		return r;
	return run_plain(hunt, hunt->ran + trials_left(hunt, RATE_TRIALS - hunt->ran),
			 RATE_FAILURES, false);
}

static int stage_rate(struct hunt *hunt)
{
	int r = run_plain(hunt, trials_left(hunt, RATE_TRIALS), RATE_FAILURES,
			  hunt->request->fresh);

	if (r == 0 && hunt->summary.failed_any == 0 && !over(hunt))
		r = run_plain(hunt, trials_left(hunt, RATE_TRIALS_RARE), RATE_FAILURES, false);
	if (r == 0)
		r = look_beside(hunt);
	if (r < 0)
		return r;
	choose_target(hunt);
	hunt->ret->failed = hunt->summary.failed_any > 0;
	if (hunt->target)
		return decide(hunt, "rate",
			      "%" PRIu64 " of %" PRIu64 " trials failed; the hunt is for %s: %s",
			      hunt->summary.failed_any, hunt->summary.rate.trials,
			      hunt->target->signature.id, hunt->target->signature.summary);
	return decide(hunt, "rate", "none of %" PRIu64 " trials failed", hunt->summary.rate.trials);
}

/* ---- what is it, if no crash --------------------------------------------------------------------
 */

static void add_growth(struct hunt *hunt, const struct growth_report *report)
{
	VEC_FOREACH (&report->sites, site) {
		struct evidence e = evidence_new(EVIDENCE_GROWTH, 0, false);

		e.growth->key = mem_strdup(site->key);
		stack_copy(&e.growth->site, &site->stack);
		e.growth->blocks_per_test = site->blocks_per_test;
		e.growth->bytes_per_test = site->bytes_per_test;
		e.growth->p = site->p;
		e.growth->tests = site->tests;
		e.growth->rises = site->rises;
		e.growth->trials = site->trials;
		e.growth->usable = report->usable;
		if (site->holders.count > 0)
			e.growth->holder = mem_strdup(site->holders.items[0].name
							      ? site->holders.items[0].name
							      : site->holders.items[0].kind);
		VEC_PUSH(&hunt->evidence.list, e);
		if (hunt->evidence.list.count >= 3)
			break;
	}
}

/* Nothing dies: does something grow from test to test? */
static int stage_growth(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	struct growth_report report = { 0 };
	struct err ignored = { 0 };
	struct growth_request growth = { .identity = request->close.identity,
					 .settings = request->close.settings,
					 .program = request->program,
					 .slot_env = request->slot_env,
					 .jobs = request->jobs,
					 .trials = GROWTH_TRIALS,
					 .progress = request->progress,
					 .progress_ctx = request->progress_ctx };
	int r = growth_run(hunt->cs, &growth, &report, &ignored);

	hunt->ret->interrupted |= report.interrupted;
	if (r == 0 && report.sites.count > 0) {
		add_growth(hunt, &report);
		r = decide(hunt, "growth",
			   "%zu allocation site%s grow%s from test to test, in %u of %u runs",
			   report.sites.count, report.sites.count == 1 ? "" : "s",
			   report.sites.count == 1 ? "s" : "", report.usable, report.usable);
	} else if (r == 0) {
		r = decide(hunt, "growth", "no allocation site grows from test to test");
	} else {
		r = decide(hunt, "growth", "growth cannot be told: %s", ignored.message);
	}
	growth_report_deinit(&report);
	return r;
}

/* A failure without a crash is an error of another kind. */
static int stage_plain(struct hunt *hunt)
{
	const struct signature_summary *target = hunt->target;
	struct evidence e = evidence_new(EVIDENCE_PLAIN, target->trial, true);

	(void)snprintf(e.plain->signature, sizeof(e.plain->signature), "%s", target->signature.id);
	e.plain->always = target->always;
	e.plain->summary = mem_strdup(target->signature.summary);
	e.plain->trials = hunt->summary.rate.trials;
	e.plain->failed = target->rate.failed;
	VEC_PUSH(&hunt->evidence.list, e);
	return decide(hunt, "kind", "it is no crash: %s", target->signature.summary);
}

/* ---- how little of it
 * ----------------------------------------------------------------------------- */

static int stage_minimize(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	struct minimize_request minimize = { .identity = request->minimize,
					     .settings = request->plain.settings,
					     .framework = request->framework,
					     .slot_env = request->slot_env,
					     .observer = request->plain.observer,
					     .jobs = request->jobs,
					     .confidence = MINIMIZE_CONFIDENCE,
					     .signature = NULL,
					     .baseline = 200,
					     .seed = request->seed,
					     .progress = request->minimize_progress,
					     .progress_ctx = request->progress_ctx };
	AUTO(minimize_result_deinit) struct minimize_result result = { 0 };
	struct err ignored = { 0 };
	int r = decide(hunt, "tests", "%s lists %zu %s: which of them does it take? (--framework "
		       "none runs them all)",
		       request->framework->ops->name, request->framework->items.count,
		       request->framework->ops->nouns);

	if (r < 0)
		return r;
	r = minimize_run(hunt->cs, &minimize, &result, &ignored);

	if (r < 0)
		return decide(hunt, "minimize", "the list of tests was not made shorter: %s",
			      ignored.message);
	hunt->ret->interrupted |= result.interrupted;
	if (result.verdict == MINIMAL_FOUND && !result.plain_differs && result.argv.count > 0) {
		strv_copy(&hunt->short_program, result.argv.items);
		strv_copy(&hunt->short_env, request->slot_env->items);
		for (size_t i = 0; i < result.env.count; i++)
			strv_add(&hunt->short_env, result.env.items[i]);
		hunt->program = hunt->short_program.items;
		hunt->env = &hunt->short_env;
	}
	return decide(hunt, "minimize", "%zu of %zu %s %s", result.items.count, result.total,
		      result.nouns ? result.nouns : "tests",
		      result.verdict == MINIMAL_FOUND
			      ? "are needed, each of them"
			      : "bring it out; shorter lists were not found");
}

/* ---- who did it
 * ----------------------------------------------------------------------------------- */

static void chase_says(void *ctx, const char *line)
{
	struct hunt *hunt = ctx;

	(void)decide(hunt, "chase", "%s", line);
}

static int compare_rates(struct hunt *hunt, const struct chase_result *result)
{
	double p;

	if (result->watched_trials == 0)
		return 0;
	p = fisher_two_sided(
		&(struct fisher_table){ hunt->summary.rate.trials, hunt->summary.failed_any,
					result->watched_trials, result->watched_failed });
	return decide(hunt, "observers",
		      "with watchpoints %" PRIu64 " of %" PRIu64 " trials failed, without %" PRIu64
		      " of %" PRIu64 ": %s (p = %.2g)",
		      result->watched_failed, result->watched_trials, hunt->summary.failed_any,
		      hunt->summary.rate.trials,
		      p < 0.01 ? "watching changes the rate" : "no sign that watching changes it",
		      p);
}

static int stage_chase(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	double left = seconds_left(hunt);
	struct chase_request chase = { .identity = request->close.identity,
				       .settings = request->close.settings,
				       .program = hunt->program,
				       .program_path = request->program_path,
				       .slot_env = hunt->env,
				       .jobs = request->jobs,
				       .signature = NULL,
				       .trials = trials_left(hunt, CHASE_TRIALS),
				       .wanted = CHASE_WANTED,
				       .hops = CHASE_HOPS,
				       .deadline_s =
					       request->budget_s > 0 ? series_now_s() + left : 0,
				       .progress = request->progress,
				       .progress_ctx = request->progress_ctx,
				       .say = chase_says,
				       .say_ctx = hunt };
	struct chase_result result = { 0 };
	int r = chase_run(hunt->cs, &chase, &result, hunt->err);

	if (r == 0) {
		hunt->ret->interrupted |= result.interrupted;
		hunt->ran += result.evidence.trials;
		VEC_FOREACH (&result.evidence.list, e)
			VEC_PUSH(&hunt->evidence.list, *e);
		result.evidence.list.count = 0;
		hunt->evidence.trials = hunt->ran;
		hunt->evidence.failed = hunt->summary.failed_any + result.evidence.failed;
		r = compare_rates(hunt, &result);
	}
	if (r == 0)
		r = decide(hunt, "chase", "%s", result.outcome);
	chase_result_deinit(&result);
	return r;
}

/* ---- the end
 * --------------------------------------------------------------------------------------- */

static int stage_verdict(struct hunt *hunt)
{
	struct verdict verdict = { 0 };
	int r = 0;

	VEC_FOREACH (&hunt->evidence.list, evidence)
		if (r == 0)
			r = case_add_evidence(hunt->cs, evidence, hunt->err);
	if (r < 0)
		return r;
	verdict_judge(&hunt->evidence, &verdict);
	if (hunt->target && verdict.signature[0] == '\0')
		(void)snprintf(verdict.signature, sizeof(verdict.signature), "%s",
			       hunt->target->signature.id);
	r = case_add_verdict(hunt->cs, &verdict, hunt->err);
	verdict_deinit(&verdict);
	return r;
}

static bool crashes(const struct hunt *hunt)
{
	return hunt->target && hunt->target->signature.kind == FAILURE_SIGNAL;
}

static int stages(struct hunt *hunt)
{
	int r = case_clear_evidence(hunt->cs, hunt->err);

	if (r == 0)
		r = stage_rate(hunt);
	if (r < 0 || hunt->ret->interrupted)
		return r;
	if (crashes(hunt) && hunt->request->framework && !hunt->target->always)
		r = stage_minimize(hunt);
	if (r == 0 && crashes(hunt) && !over(hunt))
		r = stage_chase(hunt);
	else if (r == 0 && !hunt->target && !over(hunt))
		r = stage_growth(hunt);
	else if (r == 0 && hunt->target)
		r = stage_plain(hunt);
	return r == 0 ? stage_verdict(hunt) : r;
}

int hunt_run(struct case_store *cs, const struct hunt_request *request, struct hunt_result *ret,
	     struct err *err)
{
	struct hunt hunt = { .cs = cs,
			     .request = request,
			     .ret = ret,
			     .err = err,
			     .started_s = series_now_s(),
			     .program = request->program,
			     .env = request->slot_env };
	int r = stages(&hunt);

	ret->seconds = series_now_s() - hunt.started_s;
	evidence_list_deinit(&hunt.evidence);
	series_summary_deinit(&hunt.summary);
	strv_deinit(&hunt.short_program);
	strv_deinit(&hunt.short_env);
	return r;
}
