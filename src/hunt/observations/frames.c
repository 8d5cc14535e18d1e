/*
 * Pointers to variables of functions that have returned.
 *
 * Frames have no ids. But a frame is told by its function and where it ends: the store of the
 * pointer shows which frame it led into, the crash shows which frames are there. What lies below
 * the stack pointer, or in a frame that is another one, had its function return in between. The
 * same function at the same place may be the same call: nothing is said then.
 */
#include "hunt/bench.h"

#include "arch/arch.h"

#define FRAMES_MAX 24u
#define RED_ZONE 128u

/* Is the address in no frame any more, or in another one? */
static bool is_gone(const struct crash_reading *crashed, struct symbols *symbols, uint64_t address,
		    taddr function, uint64_t end)
{
	struct machine_frame frames[FRAMES_MAX];
	struct snapshot snapshot;
	size_t count, now;
	bool gone;

	if (address < crashed->record.raw.gregs[LOG_GREG_RSP] - RED_ZONE)
		return true;
	crash_record_snapshot(&crashed->record, &snapshot);
	count = symbols_machine_frames(symbols, &snapshot, frames, FRAMES_MAX);
	/* Right below the stack pointer is room of the innermost function. */
	now = address < crashed->record.raw.gregs[LOG_GREG_RSP]
		      ? 0
		      : backtrack_frame_of(frames, count, address);
	gone = now < count && frames[now].start != 0 && frames[now].cfa != 0 &&
	       (frames[now].start != function || frames[now].cfa != end);
	machine_frames_free(frames, count);
	return gone;
}

/* The stack without the frames that are called from that function: those with a smaller address of
 * their own. */
static void take_stack(const struct hit *stored, const struct machine_frame *frames, size_t from,
		       size_t count, struct symbols *symbols, struct stack *ret)
{
	struct snapshot snapshot = event_log_snapshot(stored->log);

	snapshot.tid = (int)stored->hit->tid;
	for (size_t i = from; i < count; i++)
		symbols_name(symbols, &snapshot, frames[i].pc, frames[i].exact ? FRAME_EXACT : 0,
			     ret);
}

bool frames_outlived(const struct crash_reading *crashed, const struct hit *stored, uint64_t value,
		     struct symbols *symbols, struct frame_life *ret)
{
	const struct log_hit *hit = stored->hit;
	uint64_t sp = hit->gregs[LOG_GREG_RSP];
	struct machine_frame frames[FRAMES_MAX];
	bool gone = false;
	size_t count, then;

	/* Of another thread's stack nothing was kept. */
	if (!crashed->has_record || hit->tid != crashed->record.raw.tid || value < sp - RED_ZONE ||
	    value >= hit->stack_high)
		return false;
	count = watchset_frames(stored, symbols, frames, FRAMES_MAX);
	/* A function that calls nobody has its variables below the stack pointer. */
	then = value < sp ? 0 : backtrack_frame_of(frames, count, value);
	if (then < count && frames[then].start != 0) {
		ret->low = value < sp ? value : frames[then].registers.value[arch_native()->sp];
		ret->end = frames[then].cfa;
		gone = is_gone(crashed, symbols, value, frames[then].start, ret->end);
		if (gone)
			take_stack(stored, frames, then, count, symbols, &ret->stack);
	}
	machine_frames_free(frames, count);
	return gone;
}
