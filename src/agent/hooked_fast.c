/*
 * What a hook does nearly always. Compiled without vector registers (-mgeneral-regs-only): those of
 * the target are not saved on this way. It calls nothing: all that needs a call is left to
 * hooked_slow().
 */
#include "agent/agent.h"
#include "agent/blocks.h"
#include "agent/hooked.h"
#include "agent/thread.h"

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
	pending = &self->pending[self->pending_next++ % THREAD_PENDING];
	pending->frame = (uint64_t)call->frame;
	pending->size = size;
	pending->number = action->number;
	return true;
}

/* As block_begin() in blocks.h, without its way out. */
static bool alloc_leave(struct thread *self, const struct hooked_call *call,
			const struct plan_action *action)
{
	struct caller caller = { call->frame[1], (uint64_t)call->frame };
	uint64_t start = call->rax, size;
	struct thread_pending *pending;
	struct thread_site *site;
	uint32_t *window;

	if (!start)
		return true;
	if (unlikely(!self || self->busy))
		return false;
	pending = &self->pending[(self->pending_next - 1) % THREAD_PENDING];
	if (unlikely(pending->frame != caller.frame || pending->number != action->number))
		return false;
	size = pending->size;
	window = block_window(&blocks_state.spaces[BLOCKS_SUB], start);
	site = context_hit(self, caller);
	if (unlikely(!site || !window || !*window || size >= BLOCKS_LARGE ||
		     self->ring_next == self->ring_stop))
		return false;
	self->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->pending_next--;
	block_write(self, (uint64_t *)&blocks_state.pool[*window], start, size, LOG_API_HOOKED,
		    site->context);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->busy = 0;
	return true;
}

/* As block_end(). */
static bool object_free(struct thread *self, const struct hooked_call *call,
			const struct plan_action *action)
{
	struct caller caller = { call->frame[1], (uint64_t)call->frame };
	uint64_t start = argument(call, action->pointer);
	struct thread_site *site;
	struct block *block;
	uint32_t *window, epoch;

	if (!start)
		return true;
	if (unlikely(!self || self->busy))
		return false;
	window = block_window(&blocks_state.spaces[BLOCKS_SUB], start);
	block = window ? &blocks_state.pool[*window] : blocks_state.pool;
	site = context_hit(self, caller);
	if (unlikely(block->state != LOG_BLOCK_LIVE || block->low != (uint8_t)start || !site ||
		     self->ring_next == self->ring_stop))
		return false;
	self->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	epoch = (uint32_t)__atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	block->free_context = site->context;
	block->freed_epoch = epoch;
	block->state = LOG_BLOCK_FREED;
	block_ring_add(self, block->id,
		       start | (uint64_t)LOG_LIFE_FREE << 48 | (uint64_t)block->api << 52,
		       block->size_low | (uint64_t)site->context << 32, epoch);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->busy = 0;
	return true;
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

		if (unlikely(!agent_switch.ids))
			return false;
		switch (action->what) {
		case PLAN_ALLOC_ENTER:
			done = alloc_enter(self, call, action);
			break;
		case PLAN_ALLOC_LEAVE:
			done = alloc_leave(self, call, action);
			break;
		case PLAN_FREE:
			done = object_free(self, call, action);
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
