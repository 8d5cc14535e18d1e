#include "model/summary.h"

static void signature_summary_deinit(struct signature_summary *s)
{
	signature_deinit(&s->signature);
	VEC_FREE(&s->windows, window, MEM_FREE(window->last, window->next));
	if (s->crash)
		crash_deinit(s->crash);
	mem_free(s->crash);
}

void signature_summaries_deinit(struct signature_summaries *summaries)
{
	VEC_FREE(&summaries->list, s, signature_summary_deinit(s));
}

void series_summary_deinit(struct series_summary *summary)
{
	signature_summaries_deinit(&summary->signatures);
	failure_families_deinit(&summary->families);
	VEC_DEINIT(&summary->slots);
	VEC_FREE(&summary->nodes, node, mem_free(node->node));
	VEC_DEINIT(&summary->faults);
}

void compare_result_deinit(struct compare_result *result)
{
	signature_summaries_deinit(&result->signatures);
	VEC_DEINIT(&result->arms);
	strv_deinit(&result->shared);
	said_deinit(&result->stop_reason);
}
