/*
 * The ledger of decisions: a line for whatever was decided, and for each experiment that was chosen
 * why, what it was expected to take, what it took and what it brought.
 */
#include "hunt/inquiry.h"

#include "base/now.h"
#include "judge/judge.h"

struct choice {
	uint64_t id;
	uint64_t ran, failed; /* before it */
	double since_s;
	size_t evidence;
};

int decide(struct inquiry *inq, const char *stage, const struct said *said)
{
	const struct hunt_show *show = inq->request ? &inq->request->show : NULL;

	if (!inq->request) {
		bench_say(inq->bench, said);
		return 0;
	}
	if (show->say)
		show->say(show->ctx, stage, said);
	return case_add_decision(inq->cs, stage, said, inq->err);
}

int decide_values(struct inquiry *inq, const char *stage, const char *id, struct said_value *values)
{
	AUTO(said_deinit) struct said said = { 0 };

	said_make(&said, id, values);
	return decide(inq, stage, &said);
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

/* What the evidence says by now; none where it says nothing. */
static struct said_value so_far(const struct verdict *verdict)
{
	return verdict->class != VERDICT_NOT_CAUGHT ? said_class(verdict->class) : said_none();
}

static int begin(struct inquiry *inq, const struct experiment_ops *ops, const struct price *price,
		 struct choice *ret)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	struct choice_record choice = { .question = (char *)questions[ops->question].name,
					.experiment = (char *)ops->name,
					.expected_trials = price->trials,
					.expected_failures = price->failures,
					.expected_s = price->seconds };
	size_t others;
	int r;

	*ret = (struct choice){ .since_s = clock_s(), .evidence = evidence_of(inq)->list.count };
	count(inq, &ret->ran, &ret->failed);
	judge_evidence(evidence_of(inq), &verdict);
	SAY(&choice.why, "choice:why",
	    said_number(verdict_count(&verdict, LEDGER_UNTESTED, &others)),
	    said_number(verdict_count(&verdict, LEDGER_OPEN, &others)),
	    said_real(ops->chance * 100), said_flag(!verdict.firm), so_far(&verdict));
	r = case_add_choice(inq->cs, &choice, &ret->id, inq->err);
	said_deinit(&choice.why);
	return r;
}

static int end(struct inquiry *inq, const struct choice *choice)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	struct choice_record ended = { .seconds = clock_s() - choice->since_s };
	int r;

	count(inq, &ended.trials, &ended.failures);
	ended.trials -= choice->ran;
	ended.failures -= choice->failed;
	judge_evidence(evidence_of(inq), &verdict);
	SAY(&ended.brought, "choice:brought",
	    said_number(evidence_of(inq)->list.count > choice->evidence
				? evidence_of(inq)->list.count - choice->evidence
				: 0),
	    said_flag(!verdict.firm), so_far(&verdict));
	r = case_end_choice(inq->cs, choice->id, &ended, inq->err);
	said_deinit(&ended.brought);
	return r;
}

int choice_run(struct inquiry *inq, const struct experiment_ops *ops, const struct price *price,
	       int (*run)(struct inquiry *inq))
{
	struct price own = { 0 };
	struct choice choice;
	int r;

	if (!price && ops->price)
		ops->price(inq, &own);
	r = begin(inq, ops, price ? price : &own, &choice);
	if (r == 0)
		r = run(inq);
	return r == 0 ? end(inq, &choice) : r;
}
