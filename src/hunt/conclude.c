/*
 * The end: what the evidence says, a sentinel that can tell when it is fixed, and where nothing was
 * found, what was excluded and what to try next.
 *
 * Never left out, even when the budget is spent or the user interrupts.
 */
#include "hunt/inquiry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "engine/sentinel/make.h"
#include "judge/judge.h"

/* ---- what the judge is told about the failure itself ---- */

static unsigned int obstacles(const struct hunt *hunt)
{
	return (hunt->close.observer == OBSERVE_NONE ? OBSTACLE_NO_AGENT : 0) |
	       (hunt->agent_hides_it ? OBSTACLE_AGENT_HIDES : 0) |
	       (hunt->without_ids ? OBSTACLE_IDS_HIDE : 0) |
	       (hunt->too_slow ? OBSTACLE_TOO_SLOW : 0) | (hunt->ret->spent ? OBSTACLE_BUDGET : 0) |
	       (hunt->ret->interrupted ? OBSTACLE_INTERRUPTED : 0) |
	       (hunt->chased ? 0 : OBSTACLE_NOT_CHASED);
}

static void add_failure(struct hunt *hunt)
{
	const struct signature_summary *target = hunt->target;
	struct evidence e =
		evidence_new(EVIDENCE_FAILURE, target ? target->trial : 0, target != NULL);
	struct failure_seen *f = e.failure;

	*f = (struct failure_seen){ .trials = hunt->summary.rate.trials,
				    .ran = hunt->ran,
				    .ran_failed = hunt->ran_failed,
				    .obstacles = obstacles(hunt),
				    .limit_s = hunt->request->hangs_s };
	if (target) {
		(void)snprintf(f->signature, sizeof(f->signature), "%s", target->signature.id);
		f->kind = target->signature.kind;
		f->signal = target->signature.signal;
		f->fault = hunt_crashes(hunt);
		f->always = target->always;
		f->summary = mem_strdup(target->signature.summary);
		f->trials = target->rate.trials;
		f->failed = target->rate.failed;
	}
	VEC_PUSH(&hunt->evidence.list, e);
}

/* ---- a sentinel ---- */

static int write_sentinel(struct hunt *hunt, const char *dir, struct err *err)
{
	AUTO(sentinel_source_deinit) struct sentinel_source source = { 0 };
	AUTO(sentinel_made_deinit) struct sentinel_made made = { 0 };
	bool minimal = hunt->minimal_series.value != 0;
	struct series_found plain = { .id = hunt->minimal_series };
	int r = 0;

	if (!minimal)
		r = case_series(hunt->cs, &hunt->plain.identity, 0, &plain, err);
	if (r == 0)
		r = sentinel_source_init(&source, hunt->cs, plain.id,
					 minimal ? NULL : hunt->target->signature.id, err);
	if (r == 0)
		r = sentinel_make(hunt->cs, &source,
				  &(struct sentinel_request){ .dir = dir,
							      .redhand = hunt->request->version,
							      .replace = true },
				  &made, err);
	if (r == 0)
		r = sentinel_remember(hunt->cs, dir, &source, err);
	if (r < 0)
		return r;
	return decide(
		hunt,
		"a sentinel is in %s: the failure came in %" PRIu64 " of %" PRIu64 " trials%s%s",
		dir, source.failed, source.trials,
		made.sentinel.tests.count > 0 ? " of the shorter list" : "",
		made.sentinel.trial.chaos != 0 ? ", disturbed (--chaos), as the sentinel runs it"
					       : "");
}

static int make_sentinel(struct hunt *hunt)
{
	AUTO(mem_freep) char *own = mem_printf("%s/sentinel", case_dir(hunt->cs));
	const char *dir = hunt->request->sentinel_dir ? hunt->request->sentinel_dir : own;
	struct err why = { 0 };

	if (!hunt->target || hunt->ret->interrupted)
		return 0;
	if (write_sentinel(hunt, dir, &why) < 0)
		return decide(hunt, "no sentinel: %s", why.message);
	return 0;
}

int stage_conclude(struct hunt *hunt)
{
	struct verdict verdict = { 0 };
	int r = 0;

	hunt->ret->blind = hunt->summary.rate.trials == 0 || hunt->too_slow;
	hit_tell_record(hunt);
	add_failure(hunt);
	VEC_FOREACH (&hunt->evidence.list, evidence)
		if (r == 0)
			r = case_add_evidence(hunt->cs, evidence, hunt->err);
	if (r < 0)
		return r;
	judge_evidence(&hunt->evidence, &verdict);
	hunt->ret->failed |= hunt->damaged && verdict.class != VERDICT_NOT_CAUGHT &&
			     verdict.class != VERDICT_LEAK_GROWTH;
	r = decide(hunt, "%s%s [%s]",
		   !hunt->target || verdict.firm || verdict.class == VERDICT_NOT_CAUGHT
			   ? ""
			   : "probably ",
		   !hunt->target && verdict.class == VERDICT_NOT_CAUGHT
			   ? "nothing failed and nobody is accused"
			   : verdict_class_words(verdict.class),
		   verdict_class_name(verdict.class));
	if (r == 0)
		r = case_add_verdict(hunt->cs, &verdict, hunt->err);
	verdict_deinit(&verdict);
	return r == 0 ? make_sentinel(hunt) : r;
}
