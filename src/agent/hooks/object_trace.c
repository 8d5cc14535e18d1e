/*
 * Only a few objects are followed, from the first time that a function of the plan returns them:
 * what an allocator does it does to all of them, and each sight is a record.
 */
#include "agent/hooks/object_trace.h"

#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/ids/blocks.h"

#define OBJECTS_MAX 32u
#define RECORDS_MAX 16384u
#define ARGUMENTS 4u
#define REACH (1u << 20) /* how far behind its block's start an object may lie */

static struct {
	uint64_t objects[OBJECTS_MAX]; /* atomic; 0: free */
	uint32_t count;		       /* atomic */
	uint32_t records;	       /* atomic */
} state;

static bool is_followed(uint64_t object)
{
	uint32_t i, count = __atomic_load_n(&state.count, __ATOMIC_RELAXED);

	for (i = 0; i < count && i < OBJECTS_MAX; i++)
		if (__atomic_load_n(&state.objects[i], __ATOMIC_RELAXED) == object)
			return true;
	return false;
}

static void follow(uint64_t object)
{
	uint32_t slot;

	if (__atomic_load_n(&state.count, __ATOMIC_RELAXED) >= OBJECTS_MAX || is_followed(object))
		return;
	slot = __atomic_fetch_add(&state.count, 1, __ATOMIC_RELAXED);
	if (slot < OBJECTS_MAX)
		__atomic_store_n(&state.objects[slot], object, __ATOMIC_RELAXED);
}

/* The live block around it, if it is of the wanted context. */
static bool find(uint64_t object, uint64_t stack_hash, struct block_view *ret)
{
	uint32_t row;

	if (object < 4096 || object >> BLOCKS_ADDRESS_BITS ||
	    !block_find_sigsafe(BLOCKS_HEAP, object, REACH, ret, 1) ||
	    ret->relation != LOG_INSIDE || ret->block.state != LOG_BLOCK_LIVE)
		return false;
	row = ret->block.context & BLOCK_CONTEXT_MASK;
	return row < agent.plan.context_rows && log_map.contexts[row].stack_hash == stack_hash;
}

/* Frames that an exception or longjmp left behind lie below. */
static uint8_t running(struct thread *self, uint64_t frame)
{
	uint8_t inside = 0;
	uint32_t i;

	for (i = 0; i < PLAN_SIGHT_MAKERS; i++) {
		if (self->calls.makers[i] && self->calls.makers[i] < frame)
			self->calls.makers[i] = 0;
		if (self->calls.makers[i] > frame)
			inside |= (uint8_t)(1u << i);
	}
	return inside;
}

static void tell(const struct plan_action *action, uint64_t object, uint8_t argument,
		 uint8_t inside, const struct block_view *view)
{
	struct log_sight record = { .object = object,
				    .start = view->start,
				    .size = view->size,
				    .function = action->number,
				    .argument = argument,
				    .inside = inside };

	if (__atomic_fetch_add(&state.records, 1, __ATOMIC_RELAXED) >= RECORDS_MAX)
		return;
	log_event_sigsafe(LOG_SIGHT, &record, sizeof(record));
}

void object_trace_enter(struct guard *guard, const struct plan_action *action,
			const struct hooked_call *call)
{
	const uint64_t arguments[ARGUMENTS] = { call->rdi, call->rsi, call->rdx, call->rcx };
	uint64_t frame = (uint64_t)call->frame;
	uint8_t inside = running(guard->self, frame);
	struct block_view view;
	uint32_t i;

	for (i = 0; i < ARGUMENTS; i++)
		if (is_followed(arguments[i]) && find(arguments[i], action->fixed_size, &view))
			tell(action, arguments[i], (uint8_t)i, inside, &view);
	if (action->number < PLAN_SIGHT_MAKERS && !guard->self->calls.makers[action->number])
		guard->self->calls.makers[action->number] = frame;
}

void object_trace_leave(struct guard *guard, const struct plan_action *action,
			const struct hooked_call *call)
{
	uint64_t frame = (uint64_t)call->frame;
	struct block_view view;

	if (find(call->rax, action->fixed_size, &view)) {
		follow(call->rax);
		if (is_followed(call->rax))
			tell(action, call->rax, LOG_SIGHT_RESULT, running(guard->self, frame),
			     &view);
	}
	if (action->number < PLAN_SIGHT_MAKERS &&
	    guard->self->calls.makers[action->number] <= frame)
		guard->self->calls.makers[action->number] = 0;
}
