#include "studies/sentinel/check.h"

#include <string.h>

#include "base/now.h"
#include "search/stats/rate.h"
#include "studies/sentinel/certainty.h"
#include "studies/sentinel/source.h"

/* Trials that failed in other ways are made up for, up to so many times what is needed. */
#define OTHERS_FACTOR 2
#define OTHERS_MIN 50

struct check {
	const struct check_request *request;
	struct runner runner;
	struct target target;
	struct certificate *c;
	uint64_t next; /* position */
	uint64_t flying;
	double started_s;

	/* Between record() and ended(). */
	struct strbuf signatures;
	bool cut_short;
	uint64_t trial;

	int failed; /* an error that a callback could not return */
	struct err err;
};

static uint64_t others_max(const struct check *check)
{
	return OTHERS_MIN + OTHERS_FACTOR * check->c->needed;
}

/* Nothing that is still to come can change the answer. */
static bool decided(const struct check *check)
{
	const struct certificate *c = check->c;

	return c->shown > 0 || c->shown + c->clean >= c->needed || c->others > others_max(check) ||
	       (c->expect == EXPECT_FIXED && c->others > 0 && !c->allow_others);
}

static int check_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct check *check = ctx;

	if (check->failed < 0) {
		*err = check->err;
		return check->failed;
	}
	if (decided(check) || check->c->clean + check->flying >= check->c->needed)
		return 0;
	check->flying++;
	*ret = (struct run){ .position = check->next++ };
	return 1;
}

static void check_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct check *check = ctx;

	series_fill_job(check->request->sentinel->trial.program.items, check->request->env, job);
}

static void check_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct check *check = ctx;

	strbuf_clear(&check->signatures);
	VEC_FOREACH (&record->signatures->list, s)
		strbuf_addf(&check->signatures, "%s%s", check->signatures.len > 0 ? " " : "",
			    s->id);
	check->cut_short = trial_end_cut_short(record->end);
	check->trial = record->number.value;
}

static bool check_ended(void *ctx, const struct run *run, bool failed)
{
	struct check *check = ctx;
	struct certificate *c = check->c;
	enum target_outcome outcome;

	check->flying--;
	check->failed =
		target_outcome(&check->target, check->runner.cs, &check->request->sentinel->known,
			       strbuf_str(&check->signatures), check->cut_short, &outcome,
			       &check->err);
	if (check->failed < 0)
		return true;
	c->shown += outcome == OUTCOME_SHOWN;
	c->clean += outcome == OUTCOME_CLEAN;
	c->others += outcome == OUTCOME_OTHER;
	if (outcome == OUTCOME_SHOWN && (c->shown_trial == 0 || check->trial < c->shown_trial))
		c->shown_trial = check->trial;
	return decided(check);
}

static void check_tick(void *ctx)
{
	struct check *check = ctx;
	const struct certificate *c = check->c;
	uint64_t trials = c->shown + c->clean;
	struct series_progress_view view = {
		.done = trials,
		.wanted = c->needed,
		.rate = rate_wilson(trials, c->shown, RATE_CONFIDENCE),
		.ran = check->runner.ran,
		.seconds = clock_s() - check->started_s,
		.news_trial = check->runner.news_trial,
		.news_summary = check->runner.news_summary,
	};

	if (check->request->progress)
		check->request->progress(check->request->progress_ctx, &view);
}

static const struct runner_ops check_ops = {
	.next = check_next,
	.prepare = check_prepare,
	.record = check_record,
	.ended = check_ended,
	.tick = check_tick,
};

/* The target as the sentinel tells it; the case need not have met it before. */
static void set_target(struct check *check)
{
	const struct sentinel *sentinel = check->request->sentinel;

	check->target.known = true;
	check->target.lenient = sentinel->tests.count > 0;
	signature_copy(&check->target.signature, &sentinel->signature);
}

static int list_others(struct check *check, struct err *err)
{
	int r = 0;

	VEC_FOREACH (&check->runner.tally.signatures, t) {
		AUTO(signature_deinit) struct signature signature = { 0 };
		struct other_failure other = { .count = t->count,
					       .trial = t->trial,
					       .known = strv_has(&check->request->sentinel->known,
								 t->id) };
		bool shown = false;

		r = target_shown(&check->target, check->runner.cs, t->id, &shown, err);
		if (r == 0 && !shown)
			r = case_signature(check->runner.cs, t->id, &signature, err);
		if (r < 0)
			return r;
		if (shown)
			continue;
		memcpy(other.id, t->id, sizeof(other.id));
		other.summary = mem_strdup(signature.summary);
		VEC_PUSH(&check->c->other_failures, other);
	}
	return 0;
}

static void check_deinit(struct check *check)
{
	target_deinit(&check->target);
	strbuf_deinit(&check->signatures);
	runner_deinit(&check->runner);
}

static int run(struct check *check, struct err *err)
{
	const struct check_request *request = check->request;
	struct series_start start = { 0 };
	int r;

	check->runner.settings = request->settings;
	check->runner.observer = request->observer;
	check->runner.slots = (unsigned int)request->sentinel->trial.jobs;
	check->runner.ops = &check_ops;
	check->runner.ctx = check;
	r = series_resume(check->runner.cs, &request->identity, false, 0, &check->runner, &start,
			  err);
	if (r == 0)
		r = runner_run(&check->runner, err);
	if (r == 0 && check->failed < 0) {
		*err = check->err;
		r = check->failed;
	}
	return r < 0 ? r : list_others(check, err);
}

int check_run(struct case_store *cs, const struct check_request *request, struct certificate *ret,
	      struct err *err)
{
	const struct sentinel *sentinel = request->sentinel;
	struct certificate c = { .expect = request->expect,
				 .confidence = request->confidence,
				 .careful = request->careful,
				 .allow_others = request->allow_others,
				 .before = rate_wilson(sentinel->trials, sentinel->failed,
						       RATE_CONFIDENCE) };
	AUTO(check_deinit)
	struct check check = { .request = request,
			       .c = &c,
			       .next = 1,
			       .started_s = clock_s(),
			       .runner = { .cs = cs } };
	int r;

	c.needed = certificate_needed(&c.before, request->confidence, request->careful);
	set_target(&check);
	r = run(&check, err);
	if (r < 0) {
		certificate_deinit(&c);
		return r;
	}
	c.interrupted = check.runner.interrupted;
	c.seconds = clock_s() - check.started_s;
	c.program = sentinel->trial.program.items;
	c.summary = sentinel->signature.summary;
	c.signature = sentinel->signature.id;
	certificate_conclude(&c);
	*ret = c;
	return 0;
}
