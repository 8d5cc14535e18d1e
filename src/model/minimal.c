#include "model/minimal.h"

void minimize_result_deinit(struct minimize_result *result)
{
	VEC_FOREACH (&result->items, item)
		mem_free(item->name);
	VEC_DEINIT(&result->items);
	VEC_FOREACH (&result->doubtful, item)
		mem_free(item->name);
	VEC_DEINIT(&result->doubtful);
	signature_summaries_deinit(&result->signatures);
	strv_deinit(&result->argv);
	strv_deinit(&result->env);
	mem_free(result->victim);
	mem_free(result->file);
	mem_free(result->advice);
}

void minimal_list_deinit(struct minimal_list *list)
{
	strv_deinit(&list->tests);
	strv_deinit(&list->argv);
	strv_deinit(&list->env);
	mem_free(list->victim);
	mem_free(list->signature);
}
