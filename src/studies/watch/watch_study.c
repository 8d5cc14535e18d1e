#include "studies/watch/watch_study.h"

#include "base/now.h"
#include "search/stats/rate.h"
#include "studies/watch/gather.h"
#include "studies/watch/sightings.h"
#include "studies/watch/stop.h"

struct watching {
	const struct watch_request *request;
	struct runner runner;
	struct watch_gather gather;
	uint64_t next;	  /* position */
	uint64_t running; /* with --stop, the trial that runs now */
	double started_s;
};

static int watch_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct watching *watching = ctx;

	if (watching->next > watching->request->trials)
		return 0;
	*ret = (struct run){ .position = watching->next++ };
	return 1;
}

static void watch_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct watching *watching = ctx;

	series_fill_job(watching->request->series.program, watching->request->series.slot_env, job);
	job->examined = true;
	watching->running = job->number.value;
}

static void watch_examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	struct watching *watching = ctx;

	watch_gather_trial(&watching->gather, reading);
}

static bool watch_ended(void *ctx, const struct run *run, bool failed)
{
	struct watching *watching = ctx;
	struct watch_report *report = watching->gather.report;

	watch_gather_settle(&watching->gather, failed);
	report->trials++;
	report->failed += failed;
	return (watching->request->failures > 0 && report->failed >= watching->request->failures) ||
	       report->stop.pid > 0;
}

/* The trial goes on to run, as far as its slot knows: until somebody ends or continues it. */
static void look_for_stop(struct watching *watching)
{
	struct watch_stop *stop = &watching->gather.report->stop;

	if (stop->pid > 0 || !watch_stop_find(watching->runner.cs, watching->running,
					      watching->gather.symbols, stop))
		return;
	stop->trial = watching->running;
	watching->request->stopped(watching->request->series.progress_ctx, stop);
}

static void watch_tick(void *ctx)
{
	struct watching *watching = ctx;
	const struct watch_request *request = watching->request;
	const struct watch_report *report = watching->gather.report;

	if (request->stop && watching->running > 0)
		look_for_stop(watching);
	if (request->series.progress)
		request->series.progress(request->series.progress_ctx,
					 &(struct series_progress_view){
						 .done = report->trials,
						 .wanted = request->trials,
						 .ran = watching->runner.ran,
						 .seconds = clock_s() - watching->started_s,
						 .at_most = request->failures > 0,
						 .rate = rate_wilson(report->trials, report->failed,
								     RATE_CONFIDENCE),
					 });
}

static const struct runner_ops watch_ops = {
	.next = watch_next,
	.prepare = watch_prepare,
	.examine = watch_examine,
	.ended = watch_ended,
	.tick = watch_tick,
};

int watch_run(struct case_store *cs, const struct watch_request *request, struct watch_report *ret,
	      struct err *err)
{
	struct watching watching = {
		.request = request, .gather = { .report = ret }, .next = 1, .started_s = clock_s()
	};
	struct series_start start = { 0 };
	int r;

	watching.runner.settings = request->series.settings;
	watching.runner.cs = cs;
	watching.gather.symbols = runner_symbols(&watching.runner);
	watching.runner.observer = OBSERVE_WATCH;
	watching.runner.slots = request->series.jobs;
	watching.runner.ops = &watch_ops;
	watching.runner.ctx = &watching;
	r = series_resume(cs, &request->series.identity, true, 0, &watching.runner, &start, err);
	if (r == 0)
		r = runner_run(&watching.runner, err);
	if (r == 0)
		watch_gather_finish(&watching.gather);
	if (r == 0)
		r = sightings_store(cs, ret, err);
	ret->case_dir = case_dir(cs);
	ret->program = request->series.program;
	ret->seconds = clock_s() - watching.started_s;
	ret->interrupted = watching.runner.interrupted;
	watch_gather_deinit(&watching.gather);
	runner_deinit(&watching.runner);
	return r;
}
