/*
 * What is asked, in the order that costs least: what makes the later questions cheaper comes first.
 * Whatever is found out, the next trials are run as it was settled on: fewer tests, other slots,
 * chaos.
 *
 * Who did it takes a handful of failing trials, a shorter list dozens. So it is asked of the whole
 * list first; where that has not told, once more of the shorter one.
 */
#include "hunt/inquiry.h"

#include "judge/judge.h"

/* Of the budget, what may go to the whole list where there may be a shorter one. */
#define SHARE_WHOLE 0.5

const struct question_ops questions[QUESTIONS] = {
	[QUESTION_FAILS] = { .name = "rate", .share = 0.3 },
	[QUESTION_SETTINGS] = { .name = "causes", .share = 0.15 },
	[QUESTION_OBSERVER] = { .name = "observers", .share = 0.1 },
	[QUESTION_HIT] = { .name = "hit", .share = 1 },
	[QUESTION_WHO] = { "chase", 1, who_begin, who_between, who_end },
	[QUESTION_FEWER] = { .name = "minimize", .share = 0.4 },
	[QUESTION_MACHINE] = { .name = "machine", .share = 0.1 },
	[QUESTION_VERDICT] = { .name = "verdict", .share = 1, .end = conclude },
};

void question_show(struct inquiry *inq, enum question question)
{
	const struct hunt_show *show = inq->request ? &inq->request->show : NULL;

	if (show && show->begin)
		show->begin(show->ctx, (unsigned int)question + 1, QUESTIONS,
			    questions[question].name);
}

static double share_of(const struct inquiry *inq, enum question question)
{
	return question == QUESTION_WHO && inq->request->framework && inq->how.short_list[0] == '\0'
		       ? SHARE_WHOLE
		       : questions[question].share;
}

/* When it is answered who did it, or cannot be, nothing more is expected on the way to a verdict.
 */
static int ask(struct inquiry *inq, enum question question)
{
	const struct question_ops *ops = &questions[question];
	AUTO(said_deinit) struct said why = { 0 };
	int r = 0;

	inq->strategy.question = question;
	inq->strategy.begun = false;
	hunt_allow(inq, share_of(inq, question));
	if (ops->begin && !ops->begin(inq, &why, &r)) {
		if (r == 0 && said_anything(&why))
			r = DECIDE(inq, "left-out", said_part(&why));
		return r;
	}
	if (r == 0 && (question == QUESTION_WHO || question == QUESTION_VERDICT)) {
		inq->strategy.begun = true;
		question_show(inq, question);
	}
	if (r == 0)
		r = strategist_ask(inq, question);
	r = ops->end ? ops->end(inq, r) : r;
	if (question == QUESTION_WHO && inq->request->show.expect)
		inq->request->show.expect(inq->request->show.ctx, 0, 0, 0);
	return r;
}

bool inquiry_firm(const struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&inq->evidence, &verdict);
	return verdict.firm;
}

/* What was seen of the whole list has not told who did it: of the shorter one it may. */
static int ask_again(struct inquiry *inq)
{
	if (inq->how.short_list[0] == '\0' || hunt_over(inq) || inquiry_firm(inq))
		return 0;
	inq->asking = questions[QUESTION_WHO].name;
	return ask(inq, QUESTION_WHO);
}

/* The last one is never left out: what was seen so far is judged. */
int questions_ask(struct inquiry *inq)
{
	int r = 0;

	for (unsigned int i = 0; i < QUESTIONS && r == 0; i++) {
		bool last = i + 1 == QUESTIONS;

		inq->asking = questions[i].name;
		/* What finds its trials in the case runs none that could notice. */
		inq->ret->interrupted |= !last && runner_stop_pending();
		if (!last && hunt_over(inq)) {
			if (!inq->ret->interrupted && !inq->ret->spent)
				r = DECIDE(inq, "budget:spent");
			inq->ret->spent |= !inq->ret->interrupted;
			continue;
		}
		/* How little of it shows that is worth knowing all the same. */
		if (inq->known.reported && !last && i != QUESTION_FEWER)
			continue;
		r = ask(inq, i);
		if (r == 0 && i == QUESTION_FEWER)
			r = ask_again(inq);
		if (r == 0 && i == QUESTION_FAILS)
			r = reported_look(inq);
	}
	return r;
}
