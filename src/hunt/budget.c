/* What there is to spend: seconds, trials, failing trials. */
#include "base/now.h"
#include "hunt/inquiry.h"

#include <signal.h>
#include <string.h>

#define TRIALS_ALWAYS 4u /* until 'every run' is said */

double hunt_seconds_left(const struct inquiry *inq)
{
	double spent = clock_s() - inq->spending.since_s;

	return inq->request->budget_s > 0 ? inq->request->budget_s - spent : 1e9;
}

uint64_t hunt_trials(const struct inquiry *inq, uint64_t most)
{
	return inq->spending.budget.trials < most ? inq->spending.budget.trials : most;
}

void hunt_allow(struct inquiry *inq, double share)
{
	double budget_s = inq->request->budget_s, now = clock_s();
	double end = inq->spending.since_s + budget_s;

	inq->spending.budget.spent = false;
	inq->spending.budget.deadline_s = 0;
	if (budget_s > 0)
		inq->spending.budget.deadline_s =
			now + share * budget_s < end ? now + share * budget_s : end;
}

bool hunt_over(const struct inquiry *inq)
{
	return inq->ret->interrupted || hunt_seconds_left(inq) <= 0 ||
	       inq->spending.budget.trials == 0 || inq->spending.budget.failures == 0;
}

bool inquiry_over(const struct inquiry *inq)
{
	if (inq->bench && !bench_may_go_on(inq->bench))
		return true;
	return inq->request && hunt_over(inq);
}

void hunt_count(struct inquiry *inq, uint64_t trials, uint64_t failed, uint64_t earlier)
{
	inq->spending.ran += trials;
	inq->spending.ran_failed += failed;
	if (inq->spending.budget.trials != UINT64_MAX)
		inq->spending.budget.trials -= earlier < inq->spending.budget.trials
						       ? earlier
						       : inq->spending.budget.trials;
}

bool hunt_crashes(const struct inquiry *inq)
{
	const struct signature *s = inq->known.target ? &inq->known.target->signature : NULL;

	return s && signature_crashes(s);
}

bool hunt_every_run(const struct inquiry *inq, const struct signature_summary *s)
{
	return s->always && inq->known.summary.rate.trials >= TRIALS_ALWAYS;
}

bool hunt_always(const struct inquiry *inq)
{
	return inq->known.target && hunt_every_run(inq, inq->known.target);
}

bool signature_crashes(const struct signature *s)
{
	if (s->kind != FAILURE_SIGNAL)
		return false;
	switch (s->signal) {
	case SIGABRT:
		return true;
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
		/* One that was sent is no fault of any instruction. */
		return !s->fault || strcmp(s->fault, "sent") != 0;
	default:
		return false;
	}
}

const struct rate *hunt_rate_of_all(const struct inquiry *inq)
{
	return inq->request->signature && inq->how.short_list[0] == '\0' ? &inq->known.summary.rate
									 : &inq->known.rate;
}

double hunt_takes(const struct inquiry *inq, uint64_t trials, unsigned int slots)
{
	return (double)trials * inq->known.summary.use.wall_mean_s / (slots > 0 ? slots : 1);
}
