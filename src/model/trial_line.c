#include "model/trial_line.h"

#include "base/mem.h"

void trial_lines_deinit(struct trial_lines *lines)
{
	VEC_FOREACH (&lines->list, line) {
		mem_free(line->command);
		mem_free(line->signatures);
		mem_free(line->summaries);
		mem_free(line->chaos);
		mem_free(line->crumb);
		mem_free(line->items);
		mem_free(line->node);
	}
	VEC_DEINIT(&lines->list);
}
