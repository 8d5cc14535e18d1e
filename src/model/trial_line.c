#include "model/trial_line.h"

#include "base/mem.h"

void trial_lines_deinit(struct trial_lines *lines)
{
	VEC_FOREACH (&lines->list, line) {
		MEM_FREE(line->command, line->signatures, line->summaries, line->chaos, line->crumb,
			 line->items, line->node);
	}
	VEC_DEINIT(&lines->list);
}
