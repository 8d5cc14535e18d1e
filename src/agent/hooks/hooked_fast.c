/*
 * What a hook does nearly always. Compiled without vector registers (-mgeneral-regs-only): those of
 * the target are not saved on this way. It calls only what is compiled so, too: the rest is left to
 * hooked_slow().
 */
#include "agent/core/agent.h"
#include "agent/core/thread.h"
#include "agent/hooks/hooked.h"
#include "agent/ids/blocks.h"

static uint64_t argument(const struct hooked_call *call, uint32_t number)
{
	switch (number) {
	case 0:
		return call->rdi;
	case 1:
		return call->rsi;
	case 2:
		return call->rdx;
	case 3:
		return call->rcx;
	case 4:
		return call->r8;
	default:
		return call->r9;
	}
}

/* An allocation that has begun: its size is an argument, the object is known when it returns. Found
 * again by the place of its return address; what an exception or longjmp left behind is overwritten
 * in time. */
static bool alloc_enter(struct thread *self, const struct hooked_call *call,
			const struct plan_action *action)
{
	struct thread_pending *pending;
	uint64_t size = action->fixed_size;

	if (unlikely(!self))
		return false;
	if (action->size != PLAN_NO_ARGUMENT)
		size = argument(call, action->size);
	if (action->count != PLAN_NO_ARGUMENT)
		size *= argument(call, action->count);
	pending = &self->calls.pending[self->calls.pending_next++ % THREAD_PENDING];
	pending->frame = (uint64_t)call->frame;
	pending->size = size;
	pending->number = action->number;
	return true;
}

/* As block_begin() in blocks.h, without its way out. */
static bool alloc_leave(struct thread *self, const struct hooked_call *call,
			const struct plan_action *action)
{
	struct caller caller = { call->frame[1], (uint64_t)call->frame, call->frame[0] };
	uint64_t start = call->rax, number, context, id;
	struct thread_pending *pending;

	if (!start)
		return true;
	if (unlikely(!self || self->fast.busy || !block_region(self, BLOCKS_SUB, start)))
		return false;
	pending = &self->calls.pending[(self->calls.pending_next - 1) % THREAD_PENDING];
	if (unlikely(pending->frame != caller.frame || pending->number != action->number ||
		     pending->size >= BLOCKS_LARGE))
		return false;
	number = block_number(BLOCKS_SUB, BLOCKS_SHIFT, start);
	if (unlikely(!number || !context_hit(self, caller, &context)))
		return false;
	id = arch_take(&self->fast.next_id, 1);
	if (unlikely(id >= self->fast.id_stop))
		return false;
	self->calls.pending_next--;
	block_write(self, block_entry(number), id, start, pending->size, LOG_API_HOOKED, context);
	return true;
}

static bool object_free(const struct hooked_call *call, const struct plan_action *action)
{
	struct caller caller = { call->frame[1], (uint64_t)call->frame, call->frame[0] };
	void *object = (void *)argument(call, action->pointer);

	return !object || block_end(BLOCKS_SUB, BLOCKS_SHIFT, object, caller);
}

bool hooked_fast(struct hooked_call *call)
{
	const struct hooked_site *site = &hooked.sites[call->site];
	struct thread *self = thread_self;
	bool done;

	if (unlikely(!agent_switch.crash))
		return true;
	if (unlikely(site->plan->flags & PLAN_HOOK_LOADER))
		return false;
	for (; call->next < site->action_count; call->next++) {
		const struct plan_action *action = &hooked.actions[site->first_action + call->next];

		if (unlikely(!agent_switch.ids || agent_ids_slow()))
			return false;
		switch (action->what) {
		case PLAN_ALLOC_ENTER:
			done = alloc_enter(self, call, action);
			break;
		case PLAN_ALLOC_LEAVE:
			done = alloc_leave(self, call, action);
			break;
		case PLAN_FREE:
			done = object_free(call, action);
			break;
		case PLAN_REPLACE: /* what the stub leads to next */
			done = true;
			break;
		default:
			done = false;
			break;
		}
		if (!done)
			return false;
	}
	return true;
}
