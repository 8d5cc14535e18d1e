/*
 * The ledger of decisions: a line for whatever was decided, and for each experiment that was chosen
 * why, what it was expected to take, what it took and what it brought.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <stdarg.h>

#include "judge/judge.h"

static int vdecide(struct inquiry *inq, const char *stage, const char *fmt, va_list args)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	const struct hunt_show *show = inq->request ? &inq->request->show : NULL;

	strbuf_vaddf(&sb, fmt, args);
	if (!inq->request) {
		bench_say(inq->bench, "%s", strbuf_str(&sb));
		return 0;
	}
	if (show->say)
		show->say(show->ctx, stage, strbuf_str(&sb));
	return case_add_decision(inq->cs, stage, strbuf_str(&sb), inq->err);
}

int decide(struct inquiry *inq, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = vdecide(inq, inq->asking, fmt, args);
	va_end(args);
	return r;
}

int decide_in(struct inquiry *inq, const char *stage, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = vdecide(inq, stage, fmt, args);
	va_end(args);
	return r;
}

static const struct evidence_list *evidence_of(const struct inquiry *inq)
{
	return inq->bench ? &inq->bench->ret->evidence : &inq->evidence;
}

/* All that was run, in whichever series; of failing ones those that show what is hunted. */
static void count(const struct inquiry *inq, uint64_t *trials, uint64_t *failed)
{
	*trials = inq->spending.ran;
	*failed = inq->spending.ran_failed;
	if (inq->bench) {
		*trials += inq->bench->ret->evidence.trials;
		*failed += inq->bench->ret->evidence.failed - inq->bench->ret->others;
	}
}

int choice_make(struct inquiry *inq, const struct experiment_ops *ops, const struct price *price,
		struct choice *ret)
{
	AUTO(strbuf_deinit) struct strbuf why = { 0 };
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	size_t others, open, untested;

	*ret = (struct choice){ .since_s = series_now_s(),
				.evidence = evidence_of(inq)->list.count };
	count(inq, &ret->ran, &ret->failed);
	judge_evidence(evidence_of(inq), &verdict);
	open = verdict_count(&verdict, LEDGER_OPEN, &others);
	untested = verdict_count(&verdict, LEDGER_UNTESTED, &others);
	strbuf_addf(&why, "%zu explanations are not tested, %zu open; chance of an answer %.0f %%",
		    untested, open, ops->chance * 100);
	if (verdict.class != VERDICT_NOT_CAUGHT)
		strbuf_addf(&why, "; so far %s%s", verdict.firm ? "" : "probably ",
			    verdict_class_words(verdict.class));
	return case_add_choice(
		inq->cs,
		&(struct choice_record){ .question = (char *)questions[ops->question].name,
					 .experiment = (char *)ops->name,
					 .why = (char *)strbuf_str(&why),
					 .expected_trials = price->trials,
					 .expected_failures = price->failures,
					 .expected_s = price->seconds },
		&ret->id, inq->err);
}

int choice_end(struct inquiry *inq, const struct experiment_ops *ops, const struct choice *choice)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	AUTO(strbuf_deinit) struct strbuf brought = { 0 };
	size_t pieces = evidence_of(inq)->list.count;
	uint64_t ran, failed;

	count(inq, &ran, &failed);
	judge_evidence(evidence_of(inq), &verdict);
	if (pieces > choice->evidence)
		strbuf_addf(&brought, "%zu piece%s of evidence", pieces - choice->evidence,
			    pieces - choice->evidence == 1 ? "" : "s");
	else
		strbuf_adds(&brought, "no evidence");
	if (verdict.class != VERDICT_NOT_CAUGHT)
		strbuf_addf(&brought, "; %s%s", verdict.firm ? "" : "probably ",
			    verdict_class_words(verdict.class));
	return case_end_choice(inq->cs, choice->id,
			       &(struct choice_record){ .trials = ran - choice->ran,
							.failures = failed - choice->failed,
							.seconds = series_now_s() - choice->since_s,
							.brought = (char *)strbuf_str(&brought) },
			       inq->err);
}
