#include "hunt/inquiry.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

/*
 * In the order that costs least: what makes the later ones cheaper comes first. Whatever a stage
 * finds out, the next one runs what it settled on: fewer tests, other slots, chaos.
 */
static const struct stage stages[] = {
	{ .name = "rate", .title = "Does it fail?", .share = 0.3, .run = stage_rate },
	{ .name = "causes",
	  .title = "What makes it fail?",
	  .share = 0.15,
	  .worth = causes_worth,
	  .cost_s = causes_cost,
	  .run = stage_causes },
	{ .name = "minimize",
	  .title = "How little of it?",
	  .share = 0.4,
	  .worth = fewer_worth,
	  .cost_s = fewer_cost,
	  .run = stage_fewer },
	{ .name = "observers",
	  .title = "Which observer does it stand?",
	  .share = 0.1,
	  .worth = observers_worth,
	  .cost_s = observers_cost,
	  .run = stage_observers },
	{ .name = "hit", .title = "What was hit?", .share = 1, .run = stage_hit },
	{ .name = "chase",
	  .title = "Who did it?",
	  .share = 1,
	  .worth = culprit_worth,
	  .run = stage_culprit },
	{ .name = "machine",
	  .title = "Is it the machine?",
	  .share = 0.1,
	  .worth = machine_worth,
	  .run = stage_machine },
	{ .name = "verdict", .title = "Verdict", .share = 1, .run = stage_conclude },
};

/* ---- for the stages ---- */

static int vdecide(struct hunt *hunt, const char *stage, const char *fmt, va_list args)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	const struct hunt_show *show = &hunt->request->show;

	strbuf_vaddf(&sb, fmt, args);
	if (show->say)
		show->say(show->ctx, stage, strbuf_str(&sb));
	return case_add_decision(hunt->cs, stage, strbuf_str(&sb), hunt->err);
}

int decide(struct hunt *hunt, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = vdecide(hunt, hunt->stage, fmt, args);
	va_end(args);
	return r;
}

int decide_in(struct hunt *hunt, const char *stage, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = vdecide(hunt, stage, fmt, args);
	va_end(args);
	return r;
}

double hunt_seconds_left(const struct hunt *hunt)
{
	double spent = series_now_s() - hunt->started_s;

	return hunt->request->budget_s > 0 ? hunt->request->budget_s - spent : 1e9;
}

uint64_t hunt_trials(const struct hunt *hunt, uint64_t most)
{
	return hunt->budget.trials < most ? hunt->budget.trials : most;
}

void hunt_allow(struct hunt *hunt, double share)
{
	double budget_s = hunt->request->budget_s, now = series_now_s();
	double end = hunt->started_s + budget_s;

	hunt->budget.spent = false;
	hunt->budget.deadline_s = 0;
	if (budget_s > 0)
		hunt->budget.deadline_s =
			now + share * budget_s < end ? now + share * budget_s : end;
}

bool hunt_over(const struct hunt *hunt)
{
	return hunt->ret->interrupted || hunt_seconds_left(hunt) <= 0 || hunt->budget.trials == 0;
}

void hunt_count(struct hunt *hunt, uint64_t trials, uint64_t failed, uint64_t earlier)
{
	hunt->ran += trials;
	hunt->ran_failed += failed;
	if (hunt->budget.trials != UINT64_MAX)
		hunt->budget.trials -=
			earlier < hunt->budget.trials ? earlier : hunt->budget.trials;
}

bool hunt_crashes(const struct hunt *hunt)
{
	const struct signature *s = hunt->target ? &hunt->target->signature : NULL;

	if (!s || s->kind != FAILURE_SIGNAL)
		return false;
	switch (s->signal) {
	case SIGABRT:
		return true;
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
		/* One that was sent is no fault of any instruction. */
		return !s->fault || strcmp(s->fault, "sent") != 0;
	default:
		return false;
	}
}

const struct rate *hunt_rate_of_all(const struct hunt *hunt)
{
	return hunt->request->signature && hunt->short_list[0] == '\0' ? &hunt->summary.rate
								       : &hunt->rate;
}

double hunt_takes(const struct hunt *hunt, uint64_t trials, unsigned int slots)
{
	return (double)trials * hunt->summary.use.wall_mean_s / (slots > 0 ? slots : 1);
}

/* ---- the way through ---- */

static bool too_dear(struct hunt *hunt, const struct stage *stage, struct strbuf *why)
{
	double budget_s = hunt->request->budget_s, cost_s;

	if (!stage->cost_s || budget_s <= 0)
		return false;
	cost_s = stage->cost_s(hunt);
	if (cost_s <= stage->share * budget_s)
		return false;
	strbuf_addf(why, "it would take about %.0f s, of %.0f s in all", cost_s, budget_s);
	return true;
}

static int run_stage(struct hunt *hunt, const struct stage *stage)
{
	hunt_allow(hunt, stage->share);
	return stage->run(hunt);
}

/* The last stage is never left out: what was seen so far is judged. */
static int walk(struct hunt *hunt)
{
	const struct hunt_show *show = &hunt->request->show;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(stages) && r == 0; i++) {
		AUTO(strbuf_deinit) struct strbuf why = { 0 };
		const struct stage *stage = &stages[i];
		bool last = i + 1 == ARRAY_SIZE(stages);

		hunt->stage = stage->name;
		/* A stage that finds its trials in the case runs none that could notice. */
		hunt->ret->interrupted |= !last && runner_stop_pending();
		if (!last && hunt_over(hunt)) {
			if (!hunt->ret->interrupted && !hunt->ret->spent)
				r = decide(hunt,
					   "not begun, nor what follows: the budget is spent");
			hunt->ret->spent |= !hunt->ret->interrupted;
			continue;
		}
		if ((stage->worth && !stage->worth(hunt, &why)) || too_dear(hunt, stage, &why)) {
			if (why.len > 0)
				r = decide(hunt, "left out: %s", strbuf_str(&why));
			continue;
		}
		if (show->begin)
			show->begin(show->ctx, (unsigned int)i + 1, ARRAY_SIZE(stages),
				    stage->title);
		r = run_stage(hunt, stage);
	}
	return r;
}

static void begin(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;

	hunt->started_s = series_now_s();
	hunt->budget.trials = request->budget_trials > 0 ? request->budget_trials : UINT64_MAX;
	hunt->plain = request->plain;
	hunt->close = request->close;
	hunt->plain.settings->budget = hunt->close.settings->budget = &hunt->budget;
	hunt->plain_settings = mem_strdup(request->plain.identity.settings);
	hunt->close_settings = mem_strdup(request->close.identity.settings);
	hunt->minimize_settings = mem_strdup(request->minimize.settings);
	hunt->plain.identity.settings = hunt->plain_settings;
	hunt->close.identity.settings = hunt->close_settings;
	hunt->jobs = request->jobs;
	hunt->program = request->program;
	hunt->env = request->slot_env;
}

static void end(struct hunt *hunt)
{
	hunt->plain.settings->budget = hunt->close.settings->budget = NULL;
	evidence_list_deinit(&hunt->evidence);
	series_summary_deinit(&hunt->summary);
	target_deinit(&hunt->match);
	bystanders_deinit(&hunt->others);
	strv_deinit(&hunt->short_program);
	strv_deinit(&hunt->short_env);
	mem_free(hunt->plain_settings);
	mem_free(hunt->close_settings);
	mem_free(hunt->minimize_settings);
}

int hunt_run(struct case_store *cs, const struct hunt_request *request, struct hunt_result *ret,
	     struct err *err)
{
	struct hunt hunt = { .cs = cs, .request = request, .ret = ret, .err = err };
	int r;

	runner_hold_signals();
	begin(&hunt);
	r = case_clear_evidence(cs, err);
	if (r == 0)
		r = walk(&hunt);
	ret->seconds = series_now_s() - hunt.started_s;
	end(&hunt);
	return r;
}
