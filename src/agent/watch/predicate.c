#include "agent/watch/predicate.h"

#include "agent/core/modules.h"

#define DEPTH 32u

/* A module that came lately need not have been noticed by anybody else. */
static uint64_t place(const struct plan_range *range)
{
	uint64_t low = module_place_sigsafe(range->identity, range->address);

	if (low || !modules_grown_sigsafe())
		return low;
	modules_refresh_sigsafe();
	return module_place_sigsafe(range->identity, range->address);
}

static bool in_ranges(const struct plan_watch *plan, const struct plan_step *step, uint64_t rip)
{
	const struct plan_range *ranges = (const void *)(plan + 1);
	uint32_t i;

	for (i = 0; i < step->count && step->first + i < plan->range_count; i++) {
		const struct plan_range *range = &ranges[step->first + i];
		uint64_t low = place(range);

		/* The trap comes after the instruction, which may have been the range's last. */
		if (low && rip - 1 - low < range->bytes)
			return true;
	}
	return false;
}

static uint64_t field_mask(uint32_t bytes)
{
	return bytes >= 8 ? ~0ull : (1ull << bytes * 8) - 1;
}

static bool holds(const struct plan_step *step, uint64_t a, uint64_t b)
{
	switch (step->op) {
	case PLAN_STEP_EQ:
		return a == b;
	case PLAN_STEP_NE:
		return a != b;
	case PLAN_STEP_LT:
		return a < b;
	case PLAN_STEP_LE:
		return a <= b;
	case PLAN_STEP_GT:
		return a > b;
	case PLAN_STEP_GE:
		return a >= b;
	case PLAN_STEP_BOTH:
		return a && b;
	default: /* PLAN_STEP_EITHER */
		return a || b;
	}
}

static uint64_t pair(const struct plan_step *step, uint64_t a, uint64_t b)
{
	switch (step->op) {
	case PLAN_STEP_ADD:
		return a + b;
	case PLAN_STEP_SUB:
		return a - b;
	case PLAN_STEP_AND:
		return a & b;
	case PLAN_STEP_OR:
		return a | b;
	case PLAN_STEP_XOR:
		return a ^ b;
	case PLAN_STEP_SHL:
		return b < 64 ? a << b : 0;
	case PLAN_STEP_SHR:
		return b < 64 ? a >> b : 0;
	default:
		return holds(step, a, b);
	}
}

static bool push(const struct plan_watch *plan, const struct plan_step *step,
		 const struct predicate_input *input, uint64_t *ret)
{
	switch (step->op) {
	case PLAN_STEP_PUSH:
		*ret = step->value;
		return true;
	case PLAN_STEP_OLD:
		*ret = input->old_value;
		return true;
	case PLAN_STEP_NEW:
		*ret = input->new_value;
		return true;
	case PLAN_STEP_SIZE:
		*ret = input->size;
		return true;
	case PLAN_STEP_TID:
		*ret = input->tid;
		return true;
	case PLAN_STEP_AGE:
		*ret = input->age;
		return true;
	case PLAN_STEP_WRITER:
		*ret = in_ranges(plan, step, input->rip);
		return true;
	default:
		return false;
	}
}

bool predicate_holds_sigsafe(const struct plan_watch *plan, const struct predicate_input *input)
{
	uint64_t stack[DEPTH];
	uint32_t depth = 0, i;

	for (i = 0; i < plan->step_count; i++) {
		const struct plan_step *step = &plan->steps[i];

		if (step->op < PLAN_STEP_ADD) {
			if (depth == DEPTH || !push(plan, step, input, &stack[depth]))
				return true;
			depth++;
		} else if (step->op == PLAN_STEP_NOT || step->op == PLAN_STEP_INVERT) {
			if (!depth)
				return true;
			stack[depth - 1] = step->op == PLAN_STEP_NOT
						   ? !stack[depth - 1]
						   : ~stack[depth - 1] & field_mask(input->bytes);
		} else {
			if (depth < 2 || step->op >= PLAN_STEPS)
				return true;
			depth--;
			stack[depth - 1] = pair(step, stack[depth - 1], stack[depth]);
		}
	}
	return depth != 1 || stack[0];
}
