#include "agent/calls/call.h"

#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/calls/calls_table.h"
#include "agent/core/memory.h"
#include "agent/watch/hit.h"

#define ARCH_GATES 2048u
#define GATE_BYTES 8u
#define SYSCALL_BYTES 2u
#define BUSY_MOST 64u

extern uint64_t arch_gate_targets[ARCH_GATES] __attribute__((visibility("hidden")));
extern const char arch_gates[] __attribute__((visibility("hidden")));

void call_let_go(long address)
{
	if (call_held(address))
		(void)pages_let_go_sigsafe((uint64_t)address);
}

long call_make(const struct call *call)
{
	return raw_syscall6(call->number, call->made[0], call->made[1], call->made[2],
			    call->made[3], call->made[4], call->made[5]);
}

void call_answer(struct call *call, long value)
{
	call->context->uc_mcontext.gregs[REG_RAX] = value;
}

void call_pass(struct call *call)
{
	uint64_t back = call_register(call->context, REG_RIP);
	uint32_t at = (uint32_t)(back * 0x9e3779b97f4a7c15ull >> 40), i;

	for (i = 0; i < ARCH_GATES; i++, at++) {
		uint64_t *target = &arch_gate_targets[at % ARCH_GATES], none = 0;

		if (__atomic_load_n(target, __ATOMIC_RELAXED) != back &&
		    !__atomic_compare_exchange_n(target, &none, back, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED) &&
		    none != back)
			continue;
		call->context->uc_mcontext.gregs[REG_RIP] =
			(greg_t)(arch_gates + GATE_BYTES * (at % ARCH_GATES));
		return;
	}
	call_answer(call, call_wait(call, NULL));
}

bool call_leave_gate(ucontext_t *context)
{
	greg_t *rip = &context->uc_mcontext.gregs[REG_RIP];
	uint64_t from = (uint64_t)*rip - (uint64_t)arch_gates;

	if (from >= (uint64_t)GATE_BYTES * ARCH_GATES)
		return false;
	/* Not made yet, or to be made again; or just made. */
	*rip = (greg_t)(arch_gate_targets[from / GATE_BYTES] -
			(from % GATE_BYTES ? 0 : SYSCALL_BYTES));
	return true;
}

/* Objects that a call may write to while it is being made: meanwhile they change without a hit. */
struct busy {
	struct {
		uint32_t object;
		uint64_t number;
	} list[BUSY_MOST];
	uint32_t count;
};

void outputs_add(struct outputs *outputs, long low, uint64_t bytes, bool exact)
{
	struct pages_slot *slot;
	uint64_t end;

	if (!call_held(low) || outputs->count == OUTPUTS_MOST || !bytes)
		return;
	slot = pages_slot_sigsafe((uint64_t)low);
	end = slot ? pages_slot_end_sigsafe((uint64_t)low) : (uint64_t)low + 1;
	/* How much is not known: to the end of its block. */
	if (bytes != UINT64_MAX)
		end = (uint64_t)low + bytes;
	if (end > pages.top || end < (uint64_t)low)
		end = pages.top;
	outputs->list[outputs->count++] = (struct written_range){ (uint64_t)low, end, exact };
}

static void busy_begin(const struct outputs *outputs, struct busy *busy)
{
	uint64_t at, mask = pages_signals_block();
	struct pages_locks locks;
	uint32_t i, next;

	busy->count = 0;
	for (i = 0; i < outputs->count; i++) {
		const struct written_range *output = &outputs->list[i];

		locks = pages_lock_sigsafe(output->low, output->high);
		for (at = output->low; at < output->high; at = pages_slot_end_sigsafe(at)) {
			struct pages_slot *slot = pages_slot_sigsafe(at);

			for (next = slot ? slot->armed : 0; next && busy->count < BUSY_MOST;
			     next = pages.objects[next - 1].next) {
				struct pages_armed *object = &pages.objects[next - 1];

				object->calls++;
				busy->list[busy->count].object = next - 1;
				busy->list[busy->count++].number = object->armed.number;
			}
		}
		pages_unlock_sigsafe(locks);
	}
	pages_signals_restore(mask);
}

void call_busy_end(const struct busy *busy)
{
	uint64_t mask = pages_signals_block();
	uint32_t i;

	for (i = 0; i < busy->count; i++) {
		struct pages_armed *object = &pages.objects[busy->list[i].object];
		struct pages_locks locks =
			pages_lock_sigsafe(object->armed.address, object->armed.address + 1);

		if (object->armed.number == busy->list[i].number && object->calls)
			object->calls--;
		pages_unlock_sigsafe(locks);
	}
	pages_signals_restore(mask);
}

/* An object in the range: was it written to? Under the lock. */
static bool object_written(struct pages_armed *object, const struct written_range *output,
			   uint64_t old[WATCH_WORDS], uint64_t new[WATCH_WORDS])
{
	struct watch_armed *armed = &object->armed;

	if (!armed->number || armed->address >= output->high ||
	    armed->address + armed->bytes <= output->low)
		return false;
	memset(new, 0, WATCH_WORDS * sizeof(new[0]));
	memcpy(new, (const void *)(armed->address + pages.distance), armed->bytes);
	memcpy(old, armed->last, WATCH_WORDS * sizeof(old[0]));
	if (!output->exact && !memcmp(old, new, WATCH_WORDS * sizeof(old[0])))
		return false;
	memcpy(armed->last, new, sizeof(armed->last));
	return true;
}

static void slot_tell(struct pages_slot *slot, const struct written_range *output,
		      struct call *call)
{
	uint64_t old[WATCH_WORDS], new[WATCH_WORDS];
	struct watch_armed copy;
	struct pages_locks locks;
	uint32_t next, skip, i;
	bool written;

	/* One at a time: told without the lock, by their place in the list. */
	for (skip = 0;; skip++) {
		locks = pages_lock_sigsafe(slot->start, slot->start + 1);
		next = slot->armed;
		for (i = 0; i < skip && next; i++)
			next = pages.objects[next - 1].next;
		written = next && object_written(&pages.objects[next - 1], output, old, new);
		if (written)
			copy = pages.objects[next - 1].armed;
		pages_unlock_sigsafe(locks);
		if (!next)
			return;
		if (written)
			hit_store_sigsafe(&copy, old, new, (int)call->number, call->context);
	}
}

void outputs_tell(const struct outputs *outputs, struct call *call)
{
	uint64_t at, mask = pages_signals_block();
	uint32_t i;

	for (i = 0; i < outputs->count; i++) {
		const struct written_range *output = &outputs->list[i];

		for (at = output->low; at < output->high; at = pages_slot_end_sigsafe(at)) {
			struct pages_slot *slot = pages_slot_sigsafe(at);

			if (slot && slot->armed)
				slot_tell(slot, output, call);
		}
	}
	pages_signals_restore(mask);
}

void call_redirect(struct call *call, call_outputs_fn outputs_of)
{
	struct outputs outputs = { .count = 0 };
	struct busy busy;
	long result;

	outputs_of(call, CALL_NOT_MADE, &outputs);
	busy_begin(&outputs, &busy);
	result = call_wait(call, &busy);
	outputs.count = 0;
	outputs_of(call, result, &outputs);
	call_answer(call, result);
	outputs_tell(&outputs, call);
	call_busy_end(&busy);
}

void call_plain_outputs(const struct call *call, long result, struct outputs *ret)
{
	const struct call_output *row;
	bool known[6] = { false };
	uint32_t i;

	for (row = call_outputs(call->number); row && row->number == call->number; row++) {
		uint64_t bytes = row->bytes;

		known[row->argument] = true;
		if (result < 0 && result > -4096)
			continue;
		if (row->how == CALL_RETURNS_BYTES)
			bytes *= (uint64_t)result;
		/* recv can return more than there was room for. */
		if (row->how == CALL_RETURNS_BYTES && row->bytes == 1 &&
		    bytes > (uint64_t)call->given[row->argument + 1])
			bytes = (uint64_t)call->given[row->argument + 1];
		if (result == CALL_NOT_MADE) /* not made yet */
			bytes = UINT64_MAX;
		outputs_add(ret, call->given[row->argument], bytes, result != CALL_NOT_MADE);
	}
	for (i = 0; i < 6; i++)
		if (!known[i])
			outputs_add(ret, call->given[i], UINT64_MAX, false);
}

void call_plain(struct call *call)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < 6; i++)
		any |= call_held(call->given[i]);
	if (!any || call_only_reads(call->number)) {
		call_pass(call);
		return;
	}
	for (i = 0; i < 6; i++)
		call->made[i] = call_writable(call->given[i]);
	call_redirect(call, call_plain_outputs);
}
