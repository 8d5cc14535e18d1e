#include "studies/series/repro.h"

#include "base/now.h"
#include "search/stats/rate.h"
#include "studies/series/series_findings.h"

#define ALONE_S 0.5 /* that the first trial runs alone at most, where failing ones are spared */

struct repro {
	const struct repro_request *request;
	struct runner runner;
	uint64_t next; /* next position to look at */
	uint64_t limit;
	double started_s;
};

int series_resume(struct case_store *cs, const struct series_identity *identity, bool fresh,
		  uint64_t seed, struct runner *runner, struct series_start *ret, struct err *err)
{
	struct series_found found;
	struct series_progress progress;
	int r = case_series(cs, identity, seed, &found, err);

	if (r == 0 && fresh) {
		r = case_series_clear(cs, found.id, err);
		if (r == 0)
			r = case_series(cs, identity, seed, &found, err);
	}
	if (r == 0)
		r = case_series_progress(cs, found.id, &progress, err);
	if (r == 0)
		r = tally_load(&runner->tally, cs, found.id, err);
	if (r < 0)
		return r;
	runner->cs = cs;
	runner->series = found.id;
	runner->learnt = progress.learnt;
	*ret = (struct series_start){ .seed = found.seed,
				      .earlier = progress.trials,
				      .program_changed = found.program_changed };
	return 0;
}

void series_fill_job(char *const *program, const struct strv *env, struct trial_job *job)
{
	for (; *program; program++)
		strv_take(&job->argv, trial_substitute(*program, job->slot, job->number));
	for (size_t i = 0; i < env->count; i++)
		strv_take(&job->env, trial_substitute(env->items[i], job->slot, job->number));
}

static bool enough(const struct repro *repro)
{
	const struct repro_request *request = repro->request;
	uint64_t trials, failed;
	struct rate rate;

	tally_failed(&repro->runner.tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	if (trials >= repro->limit)
		return true;
	if (request->signature) {
		const struct tally_signature *s =
			tally_find(&repro->runner.tally, request->signature);

		failed = s ? s->count : 0;
	}
	if (request->failures > 0 && failed >= request->failures &&
	    (!request->intermittent || tally_intermittent(&repro->runner.tally)))
		return true;
	rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	return request->precision > 0 && trials > 0 && rate.high - rate.low < request->precision;
}

/* Of a command that fails in every run the first trial tells it, and what runs beside it would fail
 * for nothing. */
static bool spares(const struct repro *repro)
{
	const struct repro_request *request = repro->request;
	uint64_t trials, failed;

	if (!request->sparing)
		return false;
	tally_failed(&repro->runner.tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	if (trials == 0)
		return repro->runner.running > 0 && clock_s() - repro->started_s < ALONE_S;
	return failed < request->failures &&
	       runner_will_do(&repro->runner, trials, failed, request->failures - failed);
}

static int repro_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct repro *repro = ctx;
	bool done;

	if (spares(repro))
		return 0;
	for (; repro->next <= repro->limit; repro->next++) {
		int r = case_position_done(repro->runner.cs, repro->runner.series, repro->next,
					   &done, err);

		if (r < 0)
			return r;
		if (!done) {
			*ret = (struct run){ .position = repro->next++ };
			return 1;
		}
	}
	return 0;
}

static void repro_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct repro *repro = ctx;

	series_fill_job(repro->request->series.program, repro->request->series.slot_env, job);
}

static bool repro_ended(void *ctx, const struct run *run, bool failed)
{
	return enough(ctx);
}

static void repro_tick(void *ctx)
{
	struct repro *repro = ctx;
	const struct repro_request *request = repro->request;
	struct series_progress_view view = {
		.done = repro->runner.tally.trials,
		.wanted = request->trials,
		.ran = repro->runner.ran,
		.seconds = clock_s() - repro->started_s,
		.at_most = request->failures > 0 || request->precision > 0,
		.news_trial = repro->runner.news_trial,
		.news_summary = repro->runner.news_summary,
	};
	uint64_t trials, failed;

	if (!request->series.progress)
		return;
	tally_failed(&repro->runner.tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	view.rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	request->series.progress(request->series.progress_ctx, &view);
}

static const struct runner_ops repro_ops = {
	.next = repro_next,
	.prepare = repro_prepare,
	.ended = repro_ended,
	.tick = repro_tick,
	.ahead = true,
};

/* The first failure ends it: what was sent ahead would fail for nothing. */
static const struct runner_ops repro_sparing_ops = {
	.next = repro_next,
	.prepare = repro_prepare,
	.ended = repro_ended,
	.tick = repro_tick,
};

int repro_run(struct case_store *cs, const struct repro_request *request, struct repro_result *ret,
	      struct err *err)
{
	struct repro repro = {
		.request = request,
		.next = 1,
		.limit = request->trials > 0 ? request->trials : REPRO_OPEN_END,
		.started_s = clock_s(),
	};
	struct series_start start = { 0 };
	int r;

	repro.runner.settings = request->series.settings;
	repro.runner.observer = request->series.observer;
	repro.runner.slots = request->series.jobs;
	repro.runner.ops = request->sparing ? &repro_sparing_ops : &repro_ops;
	repro.runner.ctx = &repro;
	r = series_resume(cs, &request->series.identity, request->series.fresh, 0, &repro.runner,
			  &start, err);
	if (r == 0 && !enough(&repro))
		r = runner_run(&repro.runner, err);
	if (r == 0)
		r = findings_summarise(
			&(struct findings_source){ .tally = &repro.runner.tally,
						   .cs = cs,
						   .series = repro.runner.series,
						   .readings = runner_readings(&repro.runner) },
			&ret->summary, err);
	ret->case_dir = case_dir(cs);
	ret->program = request->series.program;
	ret->wanted = request->trials;
	ret->earlier = start.earlier;
	ret->program_changed = start.program_changed;
	ret->jobs = request->series.jobs;
	ret->seconds = clock_s() - repro.started_s;
	ret->interrupted = repro.runner.interrupted;
	runner_deinit(&repro.runner);
	return r;
}

void repro_result_deinit(struct repro_result *result)
{
	series_summary_deinit(&result->summary);
}
