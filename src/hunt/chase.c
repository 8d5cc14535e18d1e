/* `chase`: an inquiry that begins with "who did it?". */
#include "hunt/inquiry.h"
#include "read/field_names.h"

int chase_run(struct case_store *cs, const struct chase_request *request, struct chase_result *ret,
	      struct err *err)
{
	struct bench bench;
	struct inquiry inq = {
		.cs = cs, .err = err, .asking = questions[QUESTION_WHO].name, .bench = &bench
	};
	int r = bench_open(&bench, cs, request, ret, err);

	if (r == 0)
		r = strategist_ask(&inq, QUESTION_WHO);
	bench_close(&bench);
	field_names_tell(&ret->evidence);
	return r;
}

void chase_result_deinit(struct chase_result *result)
{
	evidence_list_deinit(&result->evidence);
	mem_free(result->outcome);
}
