#include "model/dots.h"

#include "base/mem.h"

void trial_dots_deinit(struct trial_dots *dots)
{
	VEC_FREE(&dots->list, dot, MEM_FREE(dot->summary, dot->crumb));
	VEC_DEINIT(&dots->closing);
	strv_deinit(&dots->nodes);
	strv_deinit(&dots->crumbs);
	*dots = (struct trial_dots){ 0 };
}
