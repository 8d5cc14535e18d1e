/* Which scheduler a fusion goes to. */
#ifndef FUSER_SCHEDULER_H
#define FUSER_SCHEDULER_H

#include "ir.h"

enum scheduler {
	SCHED_NO_OP, /* outputs are inputs or views of them */
	SCHED_POINTWISE,
	SCHED_REDUCTION,
	SCHED_GATHER,
	SCHED_RESIZE,	 /* some extent is only known at launch */
	SCHED_EXPR_EVAL, /* scalars alone: no kernel, the host does it */
	SCHED_COUNT,
};

enum scheduler scheduler_for(const struct ir_container *fusion);
const char *scheduler_name(enum scheduler s);

#endif
