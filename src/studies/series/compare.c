#include "studies/series/compare.h"

#include <math.h>
#include <string.h>

#include "base/now.h"
#include "base/strbuf.h"
#include "search/stats/fisher.h"
#include "search/stats/holm.h"
#include "search/stats/rate.h"
#include "search/stats/safe_test.h"
#include "search/stats/shift.h"
#include "search/stats/strata.h"
#include "studies/series/schedule.h"
#include "studies/series/series_findings.h"
#include "studies/series/shared_files.h"

/* With --stop-early the sequential test and, at the end, Fisher's may both
 * say yes; each gets half of the error that is allowed, so p counts double. */
#define LOOKS 2.0

#define BATCH_TURNS 4u /* trials of each slot in a batch, at most */
#define ROUNDS_WANTED 8u

struct compare {
	const struct compare_request *request;
	struct runner runner;
	struct schedule schedule;
	bool turns;    /* arms take turns in batches */
	uint64_t next; /* next position to look at */
	uint64_t in_flight;
	uint64_t flying_batch;
	struct shared_files files;
	uint64_t check_at;	 /* --stop-early: number of trials at the next look */
	double *sequential_p;	 /* per arm, against the first */
	const char *stop_reason; /* an id of report/words_notes.c; NULL: not stopped early */
	double started_s;
	struct err *err; /* what went wrong inside a callback */
};

static unsigned int arm_jobs(const struct compare_request *request, unsigned int arm)
{
	unsigned int jobs = request->arms[arm].jobs;

	return jobs > 0 ? jobs : request->series.jobs;
}

static unsigned int slots_needed(const struct compare_request *request)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < request->arm_count; i++)
		most = arm_jobs(request, i) > most ? arm_jobs(request, i) : most;
	return most;
}

/*
 * May this run start on this slot now? An arm that uses fewer slots than there are
 * goes through all of them in turn: else 'alone' would always mean 'on slot 0', and two
 * differences would be mixed up.
 */
static bool may_start(const struct compare *c, const struct schedule_place *place,
		      unsigned int slot)
{
	unsigned int jobs = arm_jobs(c->request, place->arm);

	if (c->in_flight > 0 && c->turns && place->batch != c->flying_batch)
		return false;
	if (jobs == c->runner.slots)
		return true;
	return c->in_flight < jobs && slot == place->index % c->runner.slots;
}

static int compare_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct compare *c = ctx;

	for (; c->next <= schedule_runs(&c->schedule); c->next++) {
		struct schedule_place place;
		bool done;
		int r = case_position_done(c->runner.cs, c->runner.series, c->next, &done, err);

		if (r < 0)
			return r;
		if (done)
			continue;
		place = schedule_at(&c->schedule, c->next);
		if (!may_start(c, &place, slot))
			return 0;
		*ret = (struct run){ .position = c->next++, .arm = place.arm };
		c->flying_batch = place.batch;
		if (c->in_flight++ == 0)
			shared_files_begin(&c->files);
		return 1;
	}
	return 0;
}

/* {arm} is the arm's name, so that each can have a directory, a port or a cache of its own. */
static void name_arm(struct strv *words, const char *name)
{
	for (size_t i = 0; i < words->count; i++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		const char *at = words->items[i], *found;

		while ((found = strstr(at, "{arm}")) != NULL) {
			strbuf_add(&sb, at, (size_t)(found - at));
			strbuf_adds(&sb, name);
			at = found + strlen("{arm}");
		}
		if (at == words->items[i])
			continue;
		strbuf_adds(&sb, at);
		mem_free(words->items[i]);
		words->items[i] = strbuf_take(&sb);
	}
}

static void compare_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct compare *c = ctx;
	const struct arm *arm = &c->request->arms[run->arm];

	series_fill_job(arm->cmd.count > 0 ? arm->cmd.items : c->request->series.program,
			c->request->series.slot_env, job);
	if (arm->observed)
		job->observer = arm->observer;
	if (job->observer == OBSERVE_WATCH && c->request->watch)
		strbuf_add(&job->plan_items, c->request->watch->data, c->request->watch->len);
	if (arm->disturbed)
		job->chaos.knobs = arm->chaos;
	for (size_t i = 0; i < arm->args.count; i++)
		strv_take(&job->argv, trial_substitute(arm->args.items[i], job->slot, job->number));
	for (size_t i = 0; i < arm->env.count; i++)
		strv_take(&job->env, trial_substitute(arm->env.items[i], job->slot, job->number));
	name_arm(&job->argv, arm->name);
	name_arm(&job->env, arm->name);
}

/* The outcomes of each arm in the order in which its runs were planned, up to the first that is
 * still missing. The order in which they ended would favour the quick ones, and crashes are quick.
 */
struct outcomes {
	const struct compare *compare;
	uint64_t expected; /* next position; anything else is a gap */
	bool *failed;	   /* [arm * per_arm + index] */
	uint64_t *counts;  /* per arm */
};

static void take_outcome(void *ctx, const struct run_row *row)
{
	struct outcomes *o = ctx;
	uint64_t per_arm = o->compare->schedule.per_arm;

	if (row->position != o->expected || row->arm >= o->compare->request->arm_count)
		return;
	o->expected++;
	if (o->counts[row->arm] < per_arm)
		o->failed[row->arm * per_arm + o->counts[row->arm]++] =
			tally_counts(&o->compare->runner.tally, row->signatures);
}

static double sequential_p(const struct outcomes *o, unsigned int arm)
{
	uint64_t per_arm = o->compare->schedule.per_arm;
	struct safe_test test;

	safe_test_init(&test);
	for (uint64_t i = 0; i < o->counts[0] && i < o->counts[arm]; i++)
		safe_test_add(&test, o->failed[i], o->failed[arm * per_arm + i]);
	return safe_test_p(&test);
}

/* What each round brought on each machine, of the first arm and one other. A machine that is slow,
 * or another one, is no cause: arms are compared where they met. */
struct rounds {
	const struct compare *compare;
	unsigned int arm;
	struct strv nodes;
	VEC(struct fisher_table) list; /* the rounds of one machine, then of the next */
};

/* What is beyond them is one stratum. */
#define NODES_MOST 64u

static void rounds_deinit(struct rounds *rounds)
{
	strv_deinit(&rounds->nodes);
	VEC_DEINIT(&rounds->list);
}

static size_t node_number(struct rounds *rounds, const char *node)
{
	size_t i = 0;

	while (i < rounds->nodes.count && strcmp(rounds->nodes.items[i], node) != 0)
		i++;
	if (i == rounds->nodes.count && i < NODES_MOST - 1)
		strv_add(&rounds->nodes, node);
	return i;
}

static void take_round(void *ctx, const struct run_row *row)
{
	struct rounds *rounds = ctx;
	const struct compare *c = rounds->compare;
	bool failed = tally_counts(&c->runner.tally, row->signatures);
	struct fisher_table *t;
	uint64_t size, round, place;

	if ((row->arm != 0 && row->arm != rounds->arm) || row->position == 0 ||
	    row->position > schedule_runs(&c->schedule))
		return;
	/* Only arms that take turns have rounds. */
	size = c->schedule.batch * c->schedule.arms;
	round = c->turns ? (row->position - 1) / size : 0;
	place = node_number(rounds, row->node) *
			(c->turns ? schedule_runs(&c->schedule) / size + 1 : 1) +
		round;
	while (rounds->list.count <= place)
		VEC_PUSH(&rounds->list, ((struct fisher_table){ 0 }));
	t = &rounds->list.items[place];
	*(row->arm == 0 ? &t->trials_a : &t->trials_b) += 1;
	*(row->arm == 0 ? &t->failed_a : &t->failed_b) += failed;
}

static int read_rounds(const struct compare *c, struct rounds *ret)
{
	return case_runs(c->runner.cs, c->runner.series, take_round, ret, c->err);
}

/* Neither end of what the rest may bring is significant: all of the one arm's trials fail and none
 * of the other's. */
static bool rounds_hopeless(const struct compare *c, unsigned int arm, uint64_t left_a,
			    uint64_t left_b, double alpha)
{
	struct rounds rounds = { .compare = c, .arm = arm };
	bool hopeless = read_rounds(c, &rounds) == 0;

	VEC_PUSH(&rounds.list, ((struct fisher_table){ left_a, left_a, left_b, 0 }));
	hopeless &= strata_two_sided(rounds.list.items, rounds.list.count) > alpha;
	rounds.list.items[rounds.list.count - 1] =
		(struct fisher_table){ left_a, 0, left_b, left_b };
	hopeless &= strata_two_sided(rounds.list.items, rounds.list.count) > alpha;
	rounds_deinit(&rounds);
	return hopeless;
}

/* Are there rounds, or several machines? */
static bool has_strata(const struct compare *c)
{
	bool several = c->turns;

	VEC_FOREACH (&c->runner.tally.counts, count)
		several |= strcmp(count->node, c->runner.tally.counts.items[0].node) != 0;
	return several;
}

static bool hopeless(const struct compare *c, unsigned int arm)
{
	struct fisher_table t;
	uint64_t left_a, left_b;
	double alpha;

	tally_failed(&c->runner.tally, 0, TALLY_ALL, &t.trials_a, &t.failed_a);
	tally_failed(&c->runner.tally, arm, TALLY_ALL, &t.trials_b, &t.failed_b);
	alpha = COMPARE_ALPHA / LOOKS / (c->request->arm_count - 1);
	left_a = c->schedule.per_arm - t.trials_a;
	left_b = c->schedule.per_arm - t.trials_b;
	return fisher_curtailed(&t, left_a, left_b, alpha) &&
	       (!has_strata(c) || rounds_hopeless(c, arm, left_a, left_b, alpha));
}

/* True when every arm has its answer. */
static bool answered(struct compare *c)
{
	unsigned int arms = c->request->arm_count, found = 0, open = 0;
	AUTO(mem_freep) bool *failed = mem_alloc(arms * c->schedule.per_arm);
	AUTO(mem_freep) uint64_t *counts = mem_alloc(arms * sizeof(*counts));
	struct outcomes o = { .compare = c, .expected = 1, .failed = failed, .counts = counts };

	if (case_runs(c->runner.cs, c->runner.series, take_outcome, &o, c->err) < 0)
		return true; /* compare_run() sees the error */
	for (unsigned int arm = 1; arm < arms; arm++) {
		c->sequential_p[arm] = sequential_p(&o, arm);
		if (c->sequential_p[arm] * LOOKS * (arms - 1) < COMPARE_ALPHA)
			found++;
		else if (!hopeless(c, arm))
			open++;
	}
	if (open > 0)
		return false;
	c->stop_reason = found > 0 ? "stopped:answer" : "stopped:hopeless";
	return true;
}

static bool compare_ended(void *ctx, const struct run *run, bool failed)
{
	struct compare *c = ctx;
	uint64_t trials = c->runner.tally.trials;

	if (--c->in_flight == 0 && c->request->apart)
		shared_files_end(&c->files, run->arm);
	if (c->request->enough)
		return c->request->enough(c->request->enough_ctx, &c->runner.tally);
	if (!c->request->stop_early || trials < c->check_at ||
	    trials >= schedule_runs(&c->schedule))
		return false;
	/* Each look reads all runs so far; looking less often later keeps that cheap. */
	c->check_at = trials + 1 + trials / 50;
	return answered(c);
}

static void compare_tick(void *ctx)
{
	struct compare *c = ctx;
	AUTO(strbuf_deinit) struct strbuf what = { 0 };
	struct series_progress_view view = {
		.done = c->runner.tally.trials,
		.wanted = schedule_runs(&c->schedule),
		.ran = c->runner.ran,
		.seconds = clock_s() - c->started_s,
		.news_trial = c->runner.news_trial,
		.news_summary = c->runner.news_summary,
	};
	uint64_t trials, failed;

	if (!c->request->series.progress)
		return;
	for (unsigned int i = 0; i < c->request->arm_count; i++) {
		tally_failed(&c->runner.tally, i, TALLY_ALL, &trials, &failed);
		strbuf_addf(&what, "%s%s %llu/%llu", i > 0 ? ", " : "", c->request->arms[i].name,
			    (unsigned long long)failed, (unsigned long long)trials);
	}
	view.what = strbuf_str(&what);
	tally_failed(&c->runner.tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	view.rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	c->request->series.progress(c->request->series.progress_ctx, &view);
}

static const struct runner_ops compare_ops = {
	.next = compare_next,
	.prepare = compare_prepare,
	.ended = compare_ended,
	.tick = compare_tick,
};

/* Newcombe's interval for the difference of two rates, from their Wilson intervals. */
static void set_difference(struct arm_summary *arm, const struct rate *first)
{
	const struct rate *r = &arm->rate;

	arm->difference = r->rate - first->rate;
	arm->difference_low = arm->difference - hypot(r->rate - r->low, first->high - first->rate);
	arm->difference_high = arm->difference + hypot(r->high - r->rate, first->rate - first->low);
}

/* Arms that take turns are compared round by round: between rounds the machine, or what trials
 * leave for each other, may have changed. */
static double exact_p(const struct compare *c, const struct rate *a, const struct rate *b,
		      unsigned int arm)
{
	struct rounds rounds = { .compare = c, .arm = arm };
	double p;

	if (!has_strata(c))
		return fisher_two_sided(&(struct fisher_table){ .trials_a = a->trials,
								.failed_a = a->failed,
								.trials_b = b->trials,
								.failed_b = b->failed });
	p = read_rounds(c, &rounds) < 0 ? 1
					: strata_two_sided(rounds.list.items, rounds.list.count);
	rounds_deinit(&rounds);
	return p;
}

static double final_p(const struct compare *c, const struct compare_result *result,
		      unsigned int arm)
{
	double p = exact_p(c, &result->arms.items[0].rate, &result->arms.items[arm].rate, arm);

	if (!c->request->stop_early)
		return p;
	/* Fisher's p is only valid at the planned end. */
	if (c->stop_reason)
		p = c->sequential_p[arm];
	return p * LOOKS < 1 ? p * LOOKS : 1;
}

struct times {
	unsigned int arm;
	VEC(double) list;
};

/* A trial that failed says nothing about how long the work takes. */
static void take_time(void *ctx, const struct run_row *row)
{
	struct times *times = ctx;

	if (row->arm == times->arm && row->signatures[0] == '\0' && row->wall_ns > 0)
		VEC_PUSH(&times->list, (double)row->wall_ns / 1e9);
}

static int compare_times(const struct compare *c, struct compare_result *ret, struct err *err)
{
	struct times first = { 0 };
	AUTO(mem_freep) double *p = mem_alloc(ret->arms.count * sizeof(*p));
	AUTO(mem_freep) double *adjusted = mem_alloc(ret->arms.count * sizeof(*adjusted));
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < ret->arms.count; i++) {
		struct arm_times *t = &ret->arms.items[i].times;
		struct times own = { .arm = i };
		struct shift shift;

		r = case_runs(c->runner.cs, c->runner.series, take_time, i == 0 ? &first : &own,
			      err);
		if (i == 0)
			own = first;
		t->trials = own.list.count;
		t->median_s = shift_median(own.list.items, own.list.count);
		p[i] = 1;
		if (i == 0)
			continue;
		shift = shift_of(first.list.items, first.list.count, own.list.items,
				 own.list.count);
		*t = (struct arm_times){ t->trials, t->median_s, shift.known, shift.ratio,
					 shift.low, shift.high,	 shift.p };
		p[i] = shift.p;
		VEC_DEINIT(&own.list);
	}
	holm_adjust(p + 1, ret->arms.count - 1, adjusted + 1);
	for (unsigned int i = 1; i < ret->arms.count; i++)
		ret->arms.items[i].times.p = adjusted[i];
	VEC_DEINIT(&first.list);
	return r;
}

static void conclude(struct compare *c, struct compare_result *ret)
{
	unsigned int arms = c->request->arm_count;
	AUTO(mem_freep) double *p = mem_alloc(arms * sizeof(*p));
	AUTO(mem_freep) double *adjusted = mem_alloc(arms * sizeof(*adjusted));

	for (unsigned int i = 0; i < arms; i++) {
		struct arm_summary arm = { .name = c->request->arms[i].name, .p = 1 };
		uint64_t trials, failed;

		tally_failed(&c->runner.tally, i, TALLY_ALL, &trials, &failed);
		arm.rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
		VEC_PUSH(&ret->arms, arm);
	}
	for (unsigned int i = 1; i < arms; i++)
		p[i] = final_p(c, ret, i);
	holm_adjust(p + 1, arms - 1, adjusted + 1);
	ret->p = 1;
	for (unsigned int i = 1; i < arms; i++) {
		struct arm_summary *arm = &ret->arms.items[i];

		arm->p = adjusted[i];
		set_difference(arm, &ret->arms.items[0].rate);
		ret->p = arm->p < ret->p ? arm->p : ret->p;
	}
	ret->stopped_early = c->stop_reason != NULL;
	if (c->stop_reason)
		SAY(&ret->stop_reason, c->stop_reason);
}

/* Long enough that the slots are full most of the time, and so short that there are rounds to
 * compare. */
static uint64_t batch_size(const struct compare *c)
{
	uint64_t turns = c->request->trials / (ROUNDS_WANTED * c->runner.slots);

	turns = turns < 1 ? 1 : turns > BATCH_TURNS ? BATCH_TURNS : turns;
	return turns * c->runner.slots;
}

static void plan(struct compare *c)
{
	const struct compare_request *request = c->request;

	c->runner.slots = slots_needed(request);
	c->turns = request->apart && c->runner.slots > 1;
	for (unsigned int i = 1; i < request->arm_count; i++)
		c->turns |= arm_jobs(request, i) != arm_jobs(request, 0);
	c->schedule = (struct schedule){
		.arms = request->arm_count,
		.per_arm = request->trials,
		.batch = c->turns ? batch_size(c) : 1,
		.seed = request->seed,
		.mirrored = request->mirrored,
	};
}

/* A resumed comparison may have its answer. */
static bool known_already(struct compare *c)
{
	const struct compare_request *request = c->request;

	if (c->runner.tally.trials == 0)
		return false;
	if (request->enough)
		return request->enough(request->enough_ctx, &c->runner.tally);
	return request->stop_early && answered(c);
}

int compare_run(struct case_store *cs, const struct compare_request *request,
		struct compare_result *ret, struct err *err)
{
	AUTO(mem_freep) double *sequential = mem_alloc(request->arm_count * sizeof(double));
	struct compare c = {
		.request = request,
		.next = 1,
		.check_at = 2ull * request->arm_count,
		.sequential_p = sequential,
		.started_s = clock_s(),
		.err = err,
	};
	struct series_start start = { 0 };
	int r;

	for (unsigned int i = 0; i < request->arm_count; i++)
		sequential[i] = 1;
	plan(&c);
	c.files.cwd = request->series.settings->cwd;
	c.files.case_dir = case_dir(cs);
	c.runner.settings = request->series.settings;
	c.runner.observer = request->series.observer;
	c.runner.ops = &compare_ops;
	c.runner.ctx = &c;
	r = series_resume(cs, &request->series.identity, request->series.fresh, request->seed,
			  &c.runner, &start, err);
	c.schedule.seed = start.seed;
	if (r == 0 && !known_already(&c))
		r = runner_run(&c.runner, err);
	if (r == 0 && err->code < 0)
		r = err->code;
	if (r == 0)
		r = findings_signatures(
			&(struct findings_source){ .tally = &c.runner.tally,
						   .cs = cs,
						   .series = c.runner.series,
						   .readings = runner_readings(&c.runner) },
			&ret->signatures, err);
	if (r == 0)
		conclude(&c, ret);
	if (r == 0)
		r = compare_times(&c, ret, err);
	shared_files_tell(&c.files, &ret->shared);
	shared_files_deinit(&c.files);
	ret->seed = start.seed;
	ret->case_dir = case_dir(cs);
	ret->program = request->series.program;
	ret->wanted = request->trials;
	ret->earlier = start.earlier;
	ret->program_changed = start.program_changed;
	ret->seconds = clock_s() - c.started_s;
	ret->interrupted = c.runner.interrupted;
	runner_deinit(&c.runner);
	return r;
}
