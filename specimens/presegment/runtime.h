/*
 * A fusion runtime: a fusion compiled for one device, ready to run.
 */
#ifndef PRESEGMENT_RUNTIME_H
#define PRESEGMENT_RUNTIME_H

#include "cache.h"
#include "eval.h"
#include "schedule.h"

struct compiler {
	int device;
	struct cache *cache; /* may be NULL */
};

struct runtime {
	struct fusion *fusion; /* as the passes left it; owned */
	int *order;
	int norder;
	struct plan_schedule schedule;
};

/* The device to compile for: the first of CUDA_VISIBLE_DEVICES, or 0. */
int compiler_device(void);

/* Compiles the fusion, which it takes over whatever happens. `wanted` as for schedule_choose(). */
int runtime_new(struct compiler *cc, struct fusion *f, enum scheduler wanted, struct runtime **ret,
		struct diag *diag);
void runtime_free(struct runtime *rt);

/* Runs it on sample inputs. The caller frees the result with result_deinit(). */
void runtime_run(const struct runtime *rt, struct result *ret);

#endif
