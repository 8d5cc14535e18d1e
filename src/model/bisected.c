#include "model/bisected.h"

void bisect_result_deinit(struct bisect_result *result)
{
	VEC_FOREACH (&result->commits, commit) {
		MEM_FREE(commit->hash, commit->author, commit->date, commit->subject,
			 commit->untested);
	}
	VEC_DEINIT(&result->commits);
	signature_summaries_deinit(&result->signatures);
	MEM_FREE(result->good, result->bad, result->builds_dir);
}
