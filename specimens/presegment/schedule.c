#include "schedule.h"

#include <errno.h>
#include <stdlib.h>

/* What one block may keep in registers between the passes over a row. */
#define PERSISTENT_LIMIT_BYTES (64 << 10)

const char *scheduler_name(enum scheduler s)
{
	static const char *const names[SCHED_COUNT] = { "no_op", "pointwise", "resize",
							"inner_persistent", "reduction" };

	return names[s];
}

static bool is_reduction(const struct op *op)
{
	return op->kind == OP_SUM || op->kind == OP_MAX;
}

static bool is_resize(const struct op *op)
{
	return op->kind == OP_SLICE || op->kind == OP_PAD || op->kind == OP_REPEAT;
}

struct census {
	int inputs, views, resizes, reductions, others;
};

static struct census take_census(const struct fusion *f, const int *order, int norder)
{
	struct census c = { 0 };

	for (int i = 0; i < norder; i++) {
		const struct op *op = &f->ops[order[i]];

		if (op->kind == OP_INPUT)
			c.inputs++;
		else if (is_reduction(op))
			c.reductions++;
		else if (is_resize(op))
			c.resizes++;
		else if (op->alias)
			c.views++;
		else
			c.others++;
	}
	return c;
}

int64_t persistent_buffer_bytes(const struct fusion *f, const int *order, int norder)
{
	/* after[x]: a reduction is among what x was computed from */
	bool *after = calloc((size_t)f->nops + 1, sizeof(*after));
	bool *kept = calloc((size_t)f->nops + 1, sizeof(*kept));
	int64_t bytes = 0;

	if (!after || !kept)
		abort();
	for (int i = 0; i < norder; i++) {
		const struct op *op = &f->ops[order[i]];

		after[order[i]] = is_reduction(op);
		for (int k = 0; k < 2; k++)
			after[order[i]] |= op->in[k] >= 0 && after[op->in[k]];
		for (int k = 0; k < 2; k++) {
			/* Used beside something reduced, so it must have lasted that long. */
			if (op->in[k] >= 0 && !is_reduction(op) && op->in[1 - k] >= 0 &&
			    after[op->in[1 - k]])
				kept[op->in[k]] = true;
		}
	}
	for (int i = 0; i < f->nops; i++) {
		const struct shape *s = &f->ops[i].shape;

		if (kept[i])
			bytes += s->extent[s->rank - 1] * (int64_t)dtype_bytes(f->ops[i].dtype);
	}
	free(after);
	free(kept);
	return bytes;
}

bool scheduler_accepts(enum scheduler s, const struct fusion *f, const int *order, int norder)
{
	struct census c = take_census(f, order, norder);

	switch (s) {
	case SCHED_NO_OP:
		return c.resizes + c.reductions + c.others == 0;
	case SCHED_POINTWISE:
		return c.resizes + c.reductions == 0;
	case SCHED_RESIZE:
		return c.resizes > 0 && c.reductions == 0;
	case SCHED_INNER_PERSISTENT:
		return c.reductions > 0 && c.resizes == 0 &&
		       persistent_buffer_bytes(f, order, norder) <= PERSISTENT_LIMIT_BYTES;
	case SCHED_REDUCTION:
		return c.reductions == 1 && c.resizes == 0;
	default:
		return false;
	}
}

/* Elements per thread and load: the widest that divides every last axis. */
static uint32_t pick_vector(const struct fusion *f, const int *order, int norder)
{
	uint32_t width = 8;

	for (int i = 0; i < norder; i++) {
		const struct shape *s = &f->ops[order[i]].shape;

		while (width > 1 && s->extent[s->rank - 1] > 1 &&
		       s->extent[s->rank - 1] % width != 0)
			width /= 2;
	}
	return width;
}

static uint32_t count_segments(const struct fusion *f, const int *order, int norder)
{
	uint32_t segments = 1;

	for (int i = 0; i + 1 < norder; i++)
		segments += is_reduction(&f->ops[order[i]]);
	return segments;
}

int schedule_choose(const struct fusion *f, const int *order, int norder, enum scheduler wanted,
		    struct plan_schedule *ret, struct diag *diag)
{
	enum scheduler s = wanted == SCHED_COUNT ? SCHED_NO_OP : wanted;

	while (wanted == SCHED_COUNT && s < SCHED_COUNT && !scheduler_accepts(s, f, order, norder))
		s++;
	if (wanted != SCHED_COUNT && !scheduler_accepts(s, f, order, norder))
		return diag_set(diag, -ENOTSUP,
				"Could not schedule fusion with the SchedulerType: %s",
				scheduler_name(s));
	ret->segments = s == SCHED_COUNT ? count_segments(f, order, norder) : 1;
	ret->scheduler = s == SCHED_COUNT ? SCHED_REDUCTION : s;
	ret->vectorize = pick_vector(f, order, norder);
	ret->unroll = norder > 16 ? 2 : 4;
	return 0;
}

bool schedule_fits(const struct plan_schedule *s, const struct fusion *f, const int *order,
		   int norder, enum scheduler wanted)
{
	struct plan_schedule chosen;
	struct diag ignored;

	return schedule_choose(f, order, norder, wanted, &chosen, &ignored) == 0 &&
	       s->scheduler == chosen.scheduler && s->segments == chosen.segments &&
	       s->vectorize > 0 && s->vectorize <= chosen.vectorize && s->unroll > 0 &&
	       s->unroll <= 8;
}
