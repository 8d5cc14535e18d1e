/*
 * What a hook on a function of the target does, as far as hooked_fast.c leaves it: what asks for
 * the guard. Objects of the target's own allocators, watches and sights.
 */
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/guard.h"
#include "agent/core/log.h"
#include "agent/hooks/hooked.h"
#include "agent/hooks/object_trace.h"
#include "agent/ids/blocks.h"

#define FRAME_END 16u /* from hooked_call.frame: the saved rbp, the return address */

static uint64_t argument(const struct hooked_call *call, uint32_t number)
{
	const uint64_t in_order[PLAN_ARGUMENTS] = { call->rdi, call->rsi, call->rdx,
						    call->rcx, call->r8,  call->r9 };

	return number < PLAN_ARGUMENTS ? in_order[number] : 0;
}

/* The newest call of this allocator at this very frame; those above it in the list never returned.
 */
static struct thread_pending *pending_take(struct thread *self, uint64_t frame, uint32_t number)
{
	uint32_t i;

	for (i = 1; i <= THREAD_PENDING; i++) {
		struct thread_pending *pending =
			&self->calls.pending[(self->calls.pending_next - i) % THREAD_PENDING];

		if (pending->frame != frame || pending->number != number)
			continue;
		self->calls.pending_next -= i;
		pending->frame = 0;
		return pending;
	}
	return NULL;
}

static struct thread_pending *pending_add(struct thread *self, uint64_t frame, uint32_t number)
{
	struct thread_pending *pending =
		&self->calls.pending[self->calls.pending_next++ % THREAD_PENDING];

	pending->frame = frame;
	pending->number = number;
	return pending;
}

static uint64_t size_asked(const struct hooked_call *call, const struct plan_action *action)
{
	uint64_t size = action->size == PLAN_NO_ARGUMENT ? action->fixed_size
							 : argument(call, action->size);

	return action->count == PLAN_NO_ARGUMENT ? size : size * argument(call, action->count);
}

/* The object is over before the function runs: afterwards another thread may have the place. */
static void realloc_enter(struct guard *guard, const struct hooked_call *call,
			  const struct plan_action *action, struct caller caller)
{
	uint64_t start = argument(call, action->pointer);
	struct block *block = start ? block_at_sigsafe(BLOCKS_SUB, start) : NULL;
	struct thread_pending *pending = pending_add(guard->self, caller.frame, action->number);

	pending->size = size_asked(call, action);
	pending->pointer = start;
	pending->old_size = block && block->state == LOG_BLOCK_LIVE ? block_size(block) : 0;
	if (start)
		block_end_guarded(guard, BLOCKS_SUB, start, caller);
}

/* When it failed, the old object lives on, under a new id. */
static void realloc_leave(struct guard *guard, const struct hooked_call *call,
			  const struct thread_pending *pending, struct caller caller)
{
	if (call->rax)
		block_begin_guarded(guard, BLOCKS_SUB, call->rax, pending->size, LOG_API_HOOKED,
				    caller);
	else if (pending->pointer && pending->size && pending->old_size)
		block_begin_guarded(guard, BLOCKS_SUB, pending->pointer, pending->old_size,
				    LOG_API_HOOKED, caller);
}

static void allocator_act(struct guard *guard, const struct hooked_call *call,
			  const struct plan_action *action, struct caller caller)
{
	const struct thread_pending *pending;

	switch (action->what) {
	case PLAN_ALLOC_ENTER:
		pending_add(guard->self, caller.frame, action->number)->size =
			size_asked(call, action);
		return;
	case PLAN_REALLOC_ENTER:
		realloc_enter(guard, call, action, caller);
		return;
	case PLAN_FREE:
		if (argument(call, action->pointer))
			block_end_guarded(guard, BLOCKS_SUB, argument(call, action->pointer),
					  caller);
		return;
	default:
		break;
	}
	pending = pending_take(guard->self, caller.frame, action->number);
	if (!pending)
		log_drop_sigsafe(LOG_DROP_BLOCK); /* its beginning was not seen */
	else if (action->what == PLAN_REALLOC_LEAVE)
		realloc_leave(guard, call, pending, caller);
	else if (call->rax)
		block_begin_guarded(guard, BLOCKS_SUB, call->rax, pending->size, LOG_API_HOOKED,
				    caller);
}

static void act(struct guard *guard, const struct hooked_call *call,
		const struct plan_action *action, struct caller caller)
{
	uint64_t object;

	if (action->what == PLAN_REPLACE)
		return; /* what the stub leads to next */
	if (action->what == PLAN_WATCH_ARGUMENT || action->what == PLAN_WATCH_RESULT) {
		object = action->what == PLAN_WATCH_RESULT ? call->rax
							   : argument(call, action->pointer);
		if (object)
			FEATURES_TELL(target.object_seen, guard, action->number, object, &caller);
		guard->self->calls.place_python = false;
	} else if (action->what == PLAN_WATCH_FRAME) {
		FEATURES_TELL(target.object_seen, guard, action->number, caller.frame + FRAME_END,
			      &caller);
	} else if (action->what == PLAN_FRAME_LEAVE) {
		FEATURES_TELL(target.frame_left, guard, action->number, caller.frame + FRAME_END);
	} else if (action->what == PLAN_PLACE_PYTHON) {
		if (FEATURES_ASK(target.python_type_wanted, action->number,
				 argument(call, action->pointer)))
			guard->self->calls.place_python = true;
	} else if (action->what == PLAN_SIGHT_ENTER) {
		object_trace_enter(guard, action, call);
	} else if (action->what == PLAN_SIGHT_LEAVE) {
		object_trace_leave(guard, action, call);
	} else if (agent_switch.ids) {
		allocator_act(guard, call, action, caller);
	}
}

void hooked_slow(struct hooked_call *call)
{
	const struct hooked_site *site = &hooked.sites[call->site];
	struct caller caller = { call->frame[1], (uint64_t)call->frame, call->frame[0] };
	struct guard guard;

	if (!guard_enter_any(&guard))
		return;
	if (site->plan->flags & PLAN_HOOK_LOADER)
		hooked_libraries_changed();
	for (; call->next < site->action_count; call->next++)
		act(&guard, call, &hooked.actions[site->first_action + call->next], caller);
	guard_leave(&guard);
}
