/*
 * Which experiment is next: of those that apply, and that could tell something the judge does not
 * know yet, the one with the best chance of an answer per second.
 *
 * Nothing but what the case holds goes into the choice, so that an inquiry that was ended walks the
 * same way again, finds its trials and goes on where it was.
 */
#include "hunt/inquiry.h"

#include "judge/judge.h"

#define RATE_UNKNOWN 0.2 /* until something is known */
#define TRIAL_S_UNKNOWN 1.0
#define AGAIN 1.4	   /* not every watch leads to somebody at once */
#define SECONDS_LEAST 0.01 /* what reads stored trials only takes some time, too */

static double rate_known(const struct inquiry *inq)
{
	uint64_t trials = inq->known.target_rate.trials, failed = inq->known.target_rate.failed;

	if (inq->bench)
		bench_rate(inq->bench, &trials, &failed);
	return failed > 0 ? (double)failed / (double)trials : RATE_UNKNOWN;
}

void price_of_trials(const struct inquiry *inq, double trials, double slower, struct price *ret)
{
	unsigned int slots = inq->bench ? inq->bench->request->jobs : inq->how.jobs;
	double each = inq->known.trial_s > 0 ? inq->known.trial_s : TRIAL_S_UNKNOWN;

	*ret = (struct price){ .trials = trials,
			       .failures = trials * rate_known(inq),
			       .seconds = trials * each * slower / (slots > 0 ? slots : 1) };
}

void price_of_failures(const struct inquiry *inq, double failures, double slower, struct price *ret)
{
	price_of_trials(inq, failures / rate_known(inq), slower, ret);
	ret->failures = failures;
}

/* It would take more of the budget than its answer is worth. */
static bool too_dear(const struct inquiry *inq, const struct experiment_ops *ops,
		     const struct price *price, struct said *why)
{
	double budget_s = inq->request ? inq->request->budget_s : 0;
	double share = ops->share > 0 ? ops->share : 1;

	if (budget_s <= 0 || share >= 1 || price->seconds <= share * budget_s)
		return false;
	SAY(why, "why:price", said_text(ops->name), said_real(price->seconds), said_real(budget_s));
	return true;
}

/* A firm answer is enough, but for what tells more about the same. */
static bool is_wanted(const struct inquiry *inq, size_t i, const struct verdict *verdict)
{
	const struct experiment_ops *ops = experiments[i];

	if (!ops->repeats && inq->strategy.done & 1ull << i)
		return false;
	if (ops->refines || ops->kind == EXPERIMENT_RUN)
		return true;
	return !(verdict->firm && ops->question == QUESTION_WHO) &&
	       judge_would_tell(verdict, ops->kind);
}

/* Why something was left out is said once. */
static int tell_left_out(struct inquiry *inq, size_t i, struct said *why)
{
	if (!said_anything(why) || inq->strategy.told & 1ull << i)
		return 0;
	inq->strategy.told |= 1ull << i;
	return DECIDE(inq, "left-out", said_part(why));
}

struct candidate {
	const struct experiment_ops *ops;
	size_t place;
	struct price price;
	double worth; /* chance of an answer per second */
	bool known;   /* the verdict is firm: it only tells more about the same */
};

static int choose(struct inquiry *inq, enum question question, struct candidate *ret)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	int r = 0;

	*ret = (struct candidate){ 0 };
	judge_evidence(inq->bench ? &inq->bench->ret->evidence : &inq->evidence, &verdict);
	for (size_t i = 0; i < experiment_count && r == 0; i++) {
		const struct experiment_ops *ops = experiments[i];
		AUTO(said_deinit) struct said why = { 0 };
		struct price price = { 0 };
		double worth;

		if (ops->question != question || !is_wanted(inq, i, &verdict))
			continue;
		if (!ops->applies(inq, &why)) {
			r = tell_left_out(inq, i, &why);
			continue;
		}
		if (ops->price)
			ops->price(inq, &price);
		if (too_dear(inq, ops, &price, &why)) {
			r = tell_left_out(inq, i, &why);
			continue;
		}
		worth = ops->chance /
			(price.seconds > SECONDS_LEAST ? price.seconds : SECONDS_LEAST);
		if (!ret->ops || worth > ret->worth)
			*ret = (struct candidate){ ops, i, price, worth, verdict.firm };
	}
	return r;
}

/* What it is expected to take until it is known who did it: what is run now, and, if that does not
 * tell, a watch after it. Before the first failure nothing can be said. */
static void tell_outlook(const struct inquiry *inq, const struct candidate *best)
{
	const struct hunt_show *show = inq->request ? &inq->request->show : NULL;
	double again = AGAIN;
	struct price watch, now = { 0 };

	if (!show || !show->expect || !inq->known.target)
		return;
	if (best->ops->question > QUESTION_WHO || best->known) {
		show->expect(show->ctx, 0, 0, 0);
		return;
	}
	/* Who did it takes two failing trials at least, whatever comes before. */
	price_of_failures(inq, PROOFS, 1.5, &watch);
	if (best->ops->question == QUESTION_WHO && best->price.trials > 0) {
		now = best->price;
		again = 1 - best->ops->chance;
	}
	show->expect(show->ctx, now.trials + watch.trials * again,
		     now.failures + watch.failures * again, now.seconds + watch.seconds * again);
}

int strategist_ask(struct inquiry *inq, enum question question)
{
	const struct question_ops *ops = &questions[question];
	struct candidate best;
	int r = 0;

	for (size_t i = 0; i < experiment_count; i++)
		if (experiments[i]->question == question)
			inq->strategy.done &= ~(1ull << i);
	while (r == 0) {
		if (ops->between)
			ops->between(inq);
		if (inquiry_over(inq))
			return 0;
		r = choose(inq, question, &best);
		if (r < 0 || !best.ops)
			return r;
		tell_outlook(inq, &best);
		if (!inq->strategy.begun) {
			inq->strategy.begun = true;
			question_show(inq, question);
		}
		r = choice_run(inq, best.ops, &best.price, best.ops->run);
		inq->strategy.done |= 1ull << best.place;
	}
	return r;
}
