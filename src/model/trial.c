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
	MEM_FREE(end->matched, end->running_test, end->last_crumb);
	strv_deinit(&end->failed_tests);
	VEC_FREE(&end->pairs, pair, MEM_FREE(pair->from, pair->to));
	VEC_FREE(&end->milestones, milestone, milestone_deinit(milestone));
}
