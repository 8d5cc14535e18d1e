#include "model/dots.h"

#include "base/mem.h"

void trial_dots_deinit(struct trial_dots *dots)
{
	VEC_FOREACH (&dots->list, dot) {
		mem_free(dot->summary);
		mem_free(dot->crumb);
	}
	VEC_DEINIT(&dots->list);
	VEC_DEINIT(&dots->closing);
	strv_deinit(&dots->nodes);
	strv_deinit(&dots->crumbs);
	*dots = (struct trial_dots){ 0 };
}
