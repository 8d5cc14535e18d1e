#include "model/bisected.h"

void bisect_result_deinit(struct bisect_result *result)
{
	VEC_FOREACH (&result->commits, commit) {
		mem_free(commit->hash);
		mem_free(commit->author);
		mem_free(commit->date);
		mem_free(commit->subject);
		mem_free(commit->untested);
	}
	VEC_DEINIT(&result->commits);
	signature_summaries_deinit(&result->signatures);
	mem_free(result->good);
	mem_free(result->bad);
	mem_free(result->builds_dir);
}
