#include "scheduler.h"

static const char *const names[SCHED_COUNT] = {
	[SCHED_NO_OP] = "no_op",   [SCHED_POINTWISE] = "pointwise", [SCHED_REDUCTION] = "reduction",
	[SCHED_GATHER] = "gather", [SCHED_RESIZE] = "resize",	    [SCHED_EXPR_EVAL] = "expr_eval",
};

const char *scheduler_name(enum scheduler s)
{
	return names[s];
}

static bool scalars_only(const struct ir_container *fusion)
{
	for (size_t i = 0; i < fusion->storage->vals.count; i++)
		if (fusion->storage->vals.at[i]->is_tensor)
			return false;
	return true;
}

static bool has_class(const struct ir_container *fusion, enum op_class class)
{
	for (size_t i = 0; i < fusion->storage->exprs.count; i++)
		if (op_info(fusion->storage->exprs.at[i]->op)->class == class)
			return true;
	return false;
}

static bool views_only(const struct ir_container *fusion)
{
	for (size_t i = 0; i < fusion->storage->exprs.count; i++)
		if (op_info(fusion->storage->exprs.at[i]->op)->class != OPC_VIEW)
			return false;
	return true;
}

enum scheduler scheduler_for(const struct ir_container *fusion)
{
	if (scalars_only(fusion))
		return SCHED_EXPR_EVAL;
	if (ir_container_is_dynamic(fusion))
		return SCHED_RESIZE;
	if (has_class(fusion, OPC_INDEX))
		return SCHED_GATHER;
	if (has_class(fusion, OPC_REDUCTION) || has_class(fusion, OPC_MATMUL))
		return SCHED_REDUCTION;
	if (views_only(fusion))
		return SCHED_NO_OP;
	return SCHED_POINTWISE;
}
