#include "model/trial.h"

void milestone_deinit(struct milestone *milestone)
{
	mem_free(milestone->name);
	mem_free(milestone->text);
}

int trial_end_signal(const struct trial_end *end)
{
	if (end->signal != 0)
		return end->signal;
	return end->stray.signal != 0 ? end->stray.signal : end->observed.signal;
}

void trial_end_deinit(struct trial_end *end)
{
	mem_free(end->matched);
	mem_free(end->running_test);
	mem_free(end->last_crumb);
	strv_deinit(&end->failed_tests);
	VEC_FOREACH (&end->pairs, pair) {
		mem_free(pair->from);
		mem_free(pair->to);
	}
	VEC_DEINIT(&end->pairs);
	VEC_FOREACH (&end->milestones, milestone)
		milestone_deinit(milestone);
	VEC_DEINIT(&end->milestones);
}
