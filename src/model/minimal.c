#include "model/minimal.h"

void minimize_result_deinit(struct minimize_result *result)
{
	VEC_FREE(&result->items, item, mem_free(item->name));
	VEC_FREE(&result->doubtful, item, mem_free(item->name));
	signature_summaries_deinit(&result->signatures);
	strv_deinit(&result->argv);
	strv_deinit(&result->env);
	MEM_FREE(result->victim, result->file);
	said_deinit(&result->advice);
}

void minimal_list_deinit(struct minimal_list *list)
{
	strv_deinit(&list->tests);
	strv_deinit(&list->argv);
	strv_deinit(&list->env);
	mem_free(list->victim);
	mem_free(list->signature);
}
