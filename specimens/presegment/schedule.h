/*
 * Schedulers: who can generate a kernel for a fusion, and with which parameters.
 */
#ifndef PRESEGMENT_SCHEDULE_H
#define PRESEGMENT_SCHEDULE_H

#include "ir.h"
#include "plan.h"

/* In the order in which they are asked. */
enum scheduler {
	SCHED_NO_OP,
	SCHED_POINTWISE,
	SCHED_RESIZE,
	SCHED_INNER_PERSISTENT,
	SCHED_REDUCTION,
	SCHED_COUNT,
};

const char *scheduler_name(enum scheduler s);

/* Can this scheduler take the whole fusion as one kernel? */
bool scheduler_accepts(enum scheduler s, const struct fusion *f, const int *order, int norder);

/* Bytes that a persistent kernel must keep on chip per row: each tensor that is computed from the
 * inputs before a reduction and used again after it. */
int64_t persistent_buffer_bytes(const struct fusion *f, const int *order, int norder);

/*
 * Chooses scheduler and parameters. `wanted` is a scheduler to insist on, or SCHED_COUNT to take
 * the first that accepts; a fusion that none takes whole is cut into segments at its reductions.
 */
int schedule_choose(const struct fusion *f, const int *order, int norder, enum scheduler wanted,
		    struct plan_schedule *ret, struct diag *diag);
/* True when a schedule from elsewhere is one that could have been chosen for the fusion. */
bool schedule_fits(const struct plan_schedule *s, const struct fusion *f, const int *order,
		   int norder, enum scheduler wanted);

#endif
