/*
 * Where an inquiry begins: `hunt` at the first question, `chase` at "who did it?".
 */
#include "hunt/inquiry.h"
#include "base/now.h"
#include "read/field_names.h"

static void begin(struct inquiry *inq)
{
	const struct hunt_request *request = inq->request;
	struct how *how = &inq->how;

	inq->spending.since_s = clock_s();
	inq->spending.budget.trials =
		request->budget_trials > 0 ? request->budget_trials : UINT64_MAX;
	inq->spending.budget.failures =
		request->budget_failures > 0 ? request->budget_failures : UINT64_MAX;
	inq->spending.budget.always = &inq->known.others.always;
	how->plain = request->plain;
	how->close = request->close;
	how->plain.settings->shared.budget = how->close.settings->shared.budget =
		&inq->spending.budget;
	how->plain_settings = mem_strdup(request->plain.identity.settings);
	how->close_settings = mem_strdup(request->close.identity.settings);
	how->minimize_settings = mem_strdup(request->minimize.settings);
	how->plain.identity.settings = how->plain_settings;
	how->close.identity.settings = how->close_settings;
	how->jobs = request->jobs;
	how->program = request->program;
	how->env = request->slot_env;
}

struct series_request hunt_series(const struct inquiry *inq, const struct hunt_look *look)
{
	return (struct series_request){ .identity = look->identity,
					.settings = look->settings,
					.observer = look->observer,
					.program = inq->how.program,
					.slot_env = inq->how.env,
					.jobs = inq->how.jobs,
					.fresh = inq->request->fresh,
					.progress = inq->request->show.progress,
					.progress_ctx = inq->request->show.ctx };
}

static void end(struct inquiry *inq)
{
	inq->how.plain.settings->shared.budget = inq->how.close.settings->shared.budget = NULL;
	evidence_list_deinit(&inq->evidence);
	series_summary_deinit(&inq->known.summary);
	target_deinit(&inq->known.match);
	bystanders_deinit(&inq->known.others);
	strv_deinit(&inq->how.short_program);
	strv_deinit(&inq->how.short_env);
	MEM_FREE(inq->how.plain_settings, inq->how.close_settings, inq->how.minimize_settings);
}

int hunt_run(struct case_store *cs, const struct hunt_request *request, struct hunt_result *ret,
	     struct err *err)
{
	struct inquiry inq = { .cs = cs, .request = request, .ret = ret, .err = err };
	int r;

	runner_hold_signals();
	begin(&inq);
	r = case_clear_evidence(cs, err);
	if (r == 0)
		r = questions_ask(&inq);
	ret->seconds = clock_s() - inq.spending.since_s;
	end(&inq);
	return r;
}

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err)
{
	struct bench bench;
	struct inquiry inq = {
		.cs = cs, .err = err, .asking = questions[QUESTION_WHO].name, .bench = &bench
	};
	int r = bench_open(&bench, cs, request, ret, err);

	if (r == 0)
		r = strategist_ask(&inq, QUESTION_WHO);
	bench_close(&bench);
	field_names_tell(&ret->evidence);
	return r;
}

void chase_result_deinit(struct chase_result *result)
{
	evidence_list_deinit(&result->evidence);
	said_deinit(&result->outcome);
}
