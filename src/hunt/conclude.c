/*
 * The end: what the evidence says, a sentinel that can tell when it is fixed, and where nothing was
 * found, what was excluded and what to try next.
 *
 * Never left out, even when the budget is spent or the user interrupts.
 */
#include "hunt/inquiry.h"

#include <stdio.h>

#include "judge/judge.h"
#include "read/field_names.h"
#include "studies/sentinel/make.h"

static unsigned int obstacles(const struct inquiry *inq)
{
	return (inq->how.close.observer == OBSERVE_NONE ? OBSTACLE_NO_AGENT : 0) |
	       (inq->known.agent_hides_it ? OBSTACLE_AGENT_HIDES : 0) |
	       (inq->known.ids.unusable ? OBSTACLE_IDS_HIDE : 0) |
	       (inq->known.too_slow ? OBSTACLE_TOO_SLOW : 0) |
	       (inq->ret->spent ? OBSTACLE_BUDGET : 0) |
	       (inq->ret->interrupted ? OBSTACLE_INTERRUPTED : 0) |
	       (inq->known.chased ? 0 : OBSTACLE_NOT_CHASED);
}

static void add_failure(struct inquiry *inq)
{
	const struct signature_summary *target = inq->known.target;
	struct evidence e =
		evidence_new(EVIDENCE_FAILURE, target ? target->trial : 0, target != NULL);
	struct failure_seen *f = e.failure;

	*f = (struct failure_seen){ .trials = target ? inq->known.summary.rate.trials
					      : inq->spending.ran_failed > 0
						      ? inq->known.summary.rate.trials
						      : inq->spending.ran - inq->known.clashed,
				    .ran = inq->spending.ran,
				    .ran_failed = inq->spending.ran_failed,
				    .obstacles = obstacles(inq),
				    .limit_s = inq->request->hangs_s };
	if (target) {
		(void)snprintf(f->signature, sizeof(f->signature), "%s", target->signature.id);
		f->kind = target->signature.kind;
		f->signal = target->signature.signal;
		f->fault = hunt_crashes(inq);
		f->always = hunt_always(inq);
		f->summary = mem_strdup(target->signature.summary);
		f->trials = target->rate.trials;
		f->failed = target->rate.failed;
	}
	VEC_PUSH(&inq->evidence.list, e);
}

static int write_sentinel(struct inquiry *inq, const char *dir, struct err *err)
{
	AUTO(sentinel_source_deinit) struct sentinel_source source = { 0 };
	AUTO(sentinel_made_deinit) struct sentinel_made made = { 0 };
	bool minimal = inq->how.minimal_series.value != 0;
	struct series_found plain = { .id = inq->how.minimal_series };
	int r = 0;

	if (!minimal)
		r = case_series(inq->cs, &inq->how.plain.identity, 0, &plain, err);
	if (r == 0)
		r = sentinel_source_init(&source, inq->cs, plain.id,
					 minimal ? NULL : inq->known.target->signature.id, err);
	if (r == 0)
		r = sentinel_make(inq->cs, &source,
				  &(struct sentinel_request){ .dir = dir,
							      .words = inq->request->sentinel_words,
							      .replace = true },
				  &made, err);
	if (r == 0)
		r = sentinel_remember(inq->cs, dir, &source, err);
	if (r < 0)
		return r;
	return DECIDE(inq, "sentinel:made", said_text(dir), said_number(source.failed),
		      said_number(source.trials), said_flag(made.sentinel.tests.count > 0),
		      said_flag(made.sentinel.trial.chaos != 0));
}

static int make_sentinel(struct inquiry *inq)
{
	AUTO(mem_freep) char *own = mem_printf("%s/sentinel", case_dir(inq->cs));
	const char *dir = inq->request->sentinel_dir ? inq->request->sentinel_dir : own;
	struct err why = { 0 };

	if (!inq->known.target || inq->ret->interrupted)
		return 0;
	if (write_sentinel(inq, dir, &why) < 0)
		return DECIDE(inq, "sentinel:none", said_text(why.message));
	return 0;
}

int conclude(struct inquiry *inq, int r)
{
	struct verdict verdict = { 0 };

	if (r < 0)
		return r;
	inq->ret->blind = inq->spending.ran == 0 || inq->known.too_slow;
	hit_tell_record(inq);
	r = machine_tell_node(inq);
	add_failure(inq);
	field_names_tell(&inq->evidence);
	VEC_FOREACH (&inq->evidence.list, evidence)
		if (r == 0)
			r = case_add_evidence(inq->cs, evidence, inq->err);
	if (r < 0)
		return r;
	judge_evidence(&inq->evidence, &verdict);
	/* Whoever is accused was seen at it, whether by guards or at a fence. */
	inq->ret->failed |= verdict.class != VERDICT_NOT_CAUGHT &&
			    verdict.class != VERDICT_NOT_MEMORY &&
			    verdict.class != VERDICT_LEAK_GROWTH;
	r = DECIDE(inq, "concluded",
		   said_flag(inq->known.target && !verdict.firm &&
			     verdict.class != VERDICT_NOT_CAUGHT),
		   !inq->known.target && verdict.class == VERDICT_NOT_CAUGHT
			   ? said_word("class:nothing-failed")
			   : said_class(verdict.class),
		   said_text(verdict_class_name(verdict.class)));
	if (r == 0)
		r = case_add_verdict(inq->cs, &verdict, inq->err);
	verdict_deinit(&verdict);
	return r == 0 ? make_sentinel(inq) : r;
}
