#include "studies/growth/growth_study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "search/stats/rate.h"
#include "search/stats/trend.h"
#include "studies/growth/growth_holders.h"
#include "studies/growth/trial_sites.h"

#define NOTES_MAX 20

struct growth {
	const struct growth_request *request;
	struct runner runner;
	struct growth_report *report;
	unsigned int next; /* position */
	bool looking;	   /* for holders: in one more trial, once it is known of what */
	uint64_t most_tests;
	double started_s;
};

static int growth_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct growth *growth = ctx;

	if (growth->next > growth->request->trials + growth->looking)
		return 0;
	*ret = (struct run){ .position = growth->next++ };
	return 1;
}

static void growth_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct growth *growth = ctx;

	series_fill_job(growth->request->series.program, growth->request->series.slot_env, job);
	job->growth = true;
	if (growth->looking)
		holders_ask(growth->report, job);
}

static void add_notes(struct growth_report *report, const struct said_list *notes)
{
	VEC_FOREACH (&notes->list, note)
		if (report->notes.list.count < NOTES_MAX)
			said_copy(said_new(&report->notes), note);
}

/* What grew before is kept if it grew in this trial, too. */
static void merge(struct growth_report *report, struct trial_sites *sites)
{
	VEC_FOREACH (&report->sites, site) {
		VEC_FOREACH (&sites->list, same) {
			if (strcmp(site->key, same->key) != 0)
				continue;
			site->trials++;
			site->p = same->p > site->p ? same->p : site->p;
		}
	}
	if (report->usable > 1)
		return;
	VEC_FOREACH (&sites->list, site)
		VEC_PUSH(&report->sites, *site);
	sites->list.count = 0;
}

static void growth_examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	struct growth *growth = ctx;
	struct growth_report *report = growth->report;
	AUTO(trial_sites_deinit) struct trial_sites sites = { 0 };

	if (growth->looking) {
		holders_read(reading, report);
		return;
	}
	trial_sites_read(reading, &sites);
	add_notes(report, &sites.notes);
	if (result->end.milestones_full)
		SAY_TOO(&report->notes, "note:many-lines", said_text(reading_name(reading)),
			said_number(result->end.milestones.count));
	if (sites.tests > growth->most_tests)
		growth->most_tests = sites.tests;
	if (sites.tests < TREND_RISES_MIN)
		return;
	report->usable++;
	report->basis = sites.basis;
	if (report->usable == 1)
		report->contexts = sites.contexts;
	if (report->usable == 1 || sites.tests < report->tests)
		report->tests = sites.tests;
	merge(report, &sites);
}

static bool growth_ended(void *ctx, const struct run *run, bool failed)
{
	struct growth *growth = ctx;

	if (growth->looking)
		return false;
	growth->report->trials++;
	growth->report->failed += failed;
	return false;
}

static void growth_tick(void *ctx)
{
	struct growth *growth = ctx;
	const struct growth_request *request = growth->request;

	if (request->series.progress)
		request->series.progress(request->series.progress_ctx,
					 &(struct series_progress_view){
						 .done = growth->report->trials,
						 .wanted = request->trials,
						 .ran = growth->runner.ran,
						 .seconds = clock_s() - growth->started_s,
						 .rate = rate_wilson(growth->report->trials,
								     growth->report->failed,
								     RATE_CONFIDENCE),
					 });
}

static const struct runner_ops growth_ops = {
	.next = growth_next,
	.prepare = growth_prepare,
	.examine = growth_examine,
	.ended = growth_ended,
	.tick = growth_tick,
};

static int evidence(double p)
{
	return p <= 1e-6 ? 0 : p <= 1e-3 ? 1 : 2;
}

/* Does what its stacks share name a line, and not only how an interpreter allocates? */
static bool names_line(const struct growth_site *site)
{
	for (size_t i = 0; i < site->stack.count; i++)
		if (site->stack.frames[i].kind == FRAME_PYTHON)
			return i < site->shared;
	return true;
}

static int remoteness(const struct growth_site *site)
{
	return site->framework ? 2 : !names_line(site);
}

/* The program's before a test framework's; better evidence first; among equals, what costs most. */
static int by_weight(const void *a, const void *b)
{
	const struct growth_site *x = a, *y = b;

	return remoteness(x) - remoteness(y) ?: evidence(x->p) - evidence(y->p) ?: ORDER(y->bytes_per_test, x->bytes_per_test) ?: strcmp(x->key, y->key);
}

static void settle(struct growth_report *report)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->sites.count; i++) {
		struct growth_site *site = &report->sites.items[i];

		if (site->trials == report->usable)
			report->sites.items[kept++] = *site;
		else
			growth_site_deinit(site);
	}
	report->sites.count = kept;
	if (kept > 0)
		qsort(report->sites.items, kept, sizeof(report->sites.items[0]), by_weight);
}

static int nothing_usable(const struct growth *growth, struct err *err)
{
	(void)err_set(err, -ENODATA,
		      "%llu tests were seen in a run, and growth takes at least %d to tell",
		      (unsigned long long)growth->most_tests, TREND_RISES_MIN);
	if (growth->most_tests == 0 && growth->report->failed > 0)
		return err_set_remedy(err,
				      "run the command by itself: it failed, in %llu of %llu runs "
				      "(redhand show 1 tells how the first one ended)",
				      (unsigned long long)growth->report->failed,
				      (unsigned long long)growth->report->trials);
	return err_set_remedy(err,
			      "let the program print a line for each test (--breadcrumb REGEX says "
			      "which), run more tests in one process, or repeat them");
}

int growth_run(struct case_store *cs, const struct growth_request *request,
	       struct growth_report *ret, struct err *err)
{
	struct growth growth = {
		.request = request,
		.report = ret,
		.next = 1,
		.started_s = clock_s(),
	};
	struct series_start start = { 0 };
	int r;

	growth.runner.settings = request->series.settings;
	growth.runner.observer = OBSERVE_IDS;
	growth.runner.slots = request->series.jobs;
	growth.runner.ops = &growth_ops;
	growth.runner.ctx = &growth;
	r = series_resume(cs, &request->series.identity, true, 0, &growth.runner, &start, err);
	if (r == 0)
		r = runner_run(&growth.runner, err);
	if (r == 0)
		settle(ret);
	if (r == 0 && ret->sites.count > 0 && !growth.runner.interrupted) {
		growth.looking = true;
		r = runner_run(&growth.runner, err);
	}
	ret->case_dir = case_dir(cs);
	ret->program = request->series.program;
	ret->seconds = clock_s() - growth.started_s;
	ret->interrupted = growth.runner.interrupted;
	runner_deinit(&growth.runner);
	if (r < 0)
		return r;
	return ret->usable == 0 && !ret->interrupted ? nothing_usable(&growth, err) : 0;
}
