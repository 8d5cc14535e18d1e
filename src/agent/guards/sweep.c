#include "agent/guards/sweep.h"

#include <string.h>
#include <time.h>

#include "agent/arch/word_search.h"
#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/own_stack.h"
#include "agent/guards/canary.h"
#include "agent/ids/blocks.h"
#include "agent/ids/scan.h"

#define TARGETS_MAX 256u
#define TOLD_MAX 1024u /* holders of one sweep */
#define READ_MAX (4ull << 30)
#define CRASH_READ_MAX (1ull << 30)
#define SAMPLED_SHARE 10u /* sweeps of any block take at most one part in so many of the time */
#define SAMPLED_FREE 20000000ull
#define REACH (64ull << 20)

struct sweep_target {
	uint64_t start, end, id;
};

/* Far too large for somebody else's stack. */
struct pointer_sweep {
	struct sweep_target targets[TARGETS_MAX]; /* ascending */
	uint32_t count;
	uint32_t told;
	uint64_t frame;
	uint64_t handler_low, handler_high; /* what handlers have left there is nobody's */
	struct log_sweep record;
	struct log_writer writer;
	struct scan scan;
};

static struct {
	uint32_t busy; /* atomic */
	uint64_t began_ns, spent_ns;
	/* Freed since the last line, where lines are when to look. */
	struct sweep_target pending[TARGETS_MAX];
	uint32_t pending_count; /* atomic; may run past the end */
} state;

static bool take(void)
{
	uint32_t idle = 0;

	return __atomic_compare_exchange_n(&state.busy, &idle, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static const struct sweep_target *target_at(const struct pointer_sweep *sweep, uint64_t value)
{
	uint32_t low = 0, high = sweep->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sweep->targets[middle].start <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low && value < sweep->targets[low - 1].end ? &sweep->targets[low - 1] : NULL;
}

static void tell(struct pointer_sweep *sweep, const struct sweep_target *target,
		 struct log_holder *holder)
{
	if (sweep->told == TOLD_MAX) {
		sweep->scan.cut_short = true;
		return;
	}
	sweep->told++;
	holder->target_id = target->id;
	holder->target_start = target->start;
	(void)log_append_sigsafe(&sweep->writer, LOG_HOLDER, holder, sizeof(*holder), NULL, 0);
}

static void piece_read(void *ctx, const struct scan_piece *piece)
{
	struct pointer_sweep *sweep = ctx;
	uint64_t low = sweep->targets[0].start, high = sweep->targets[sweep->count - 1].end;
	size_t i;

	for (i = 0; i < piece->count; i++) {
		const struct sweep_target *target;
		struct log_holder holder;
		uint64_t value;

		i = words_find(piece->words, i, piece->count, low, high);
		if (i == piece->count)
			return;
		value = __atomic_load_n(&piece->words[i], __ATOMIC_RELAXED);
		target = target_at(sweep, value);
		if (!target)
			continue;
		memset(&holder, 0, sizeof(holder));
		holder.where = piece->at + i * sizeof(uint64_t);
		holder.value = value;
		if (holder.where >= target->start && holder.where < target->end)
			continue; /* its own */
		if (holder.where >= sweep->handler_low && holder.where < sweep->handler_high)
			continue;
		if (scan_holder_sigsafe(piece, holder.where, sweep->frame, &holder))
			tell(sweep, target, &holder);
	}
}

/* The registers that a call keeps; what is in others is over when it returns. */
static void registers_read(struct pointer_sweep *sweep,
			   const struct log_callee_registers *registers)
{
	static const uint8_t numbers[] = { 10, 11, 4, 5, 6, 7 }; /* in gregs */
	const uint64_t values[] = { registers->rbp, registers->rbx, registers->r12,
				    registers->r13, registers->r14, registers->r15 };
	unsigned i;

	for (i = 0; i < sizeof(numbers); i++) {
		const struct sweep_target *target = target_at(sweep, values[i]);
		struct log_holder holder = { .where = numbers[i],
					     .value = values[i],
					     .kind = LOG_HELD_BY_REGISTER };

		if (target)
			tell(sweep, target, &holder);
	}
}

static struct pointer_sweep *sweep_open(enum plan_sweep_at at, uint64_t read_max)
{
	struct pointer_sweep *sweep = memory_map_sigsafe(sizeof(*sweep));

	if (!sweep)
		return NULL;
	sweep->record.at = at;
	sweep->scan.piece = piece_read;
	sweep->scan.ctx = sweep;
	sweep->scan.read_max = read_max;
	return sweep;
}

static void target_add(struct pointer_sweep *sweep, const struct sweep_target *target)
{
	uint32_t k;

	for (k = 0; k < sweep->count; k++)
		if (sweep->targets[k].start == target->start)
			return;
	if (sweep->count == TARGETS_MAX)
		return;
	for (k = sweep->count++; k > 0 && sweep->targets[k - 1].start > target->start; k--)
		sweep->targets[k] = sweep->targets[k - 1];
	sweep->targets[k] = *target;
}

static void targets_write(struct pointer_sweep *sweep)
{
	uint32_t i;

	for (i = 0; i < sweep->count; i++) {
		struct block *block = block_at_sigsafe(BLOCKS_HEAP, sweep->targets[i].start);
		struct block_view view = { .start = sweep->targets[i].start,
					   .relation = LOG_INSIDE };
		struct log_block record = { .via = LOG_VIA_SWEEP };

		if (!block || block->id != sweep->targets[i].id)
			continue;
		view.block = *block;
		view.size = block_size(block);
		record.where = record.value = view.start;
		block_describe_sigsafe(&view, &record);
		(void)log_append_sigsafe(&sweep->writer, LOG_BLOCK, &record, sizeof(record), NULL,
					 0);
	}
}

/* The record comes first with what is looked for and again at the end with how it went: its owner
 * is the first. */
static void sweep_run(struct pointer_sweep *sweep, const struct log_callee_registers *registers)
{
	uint64_t began = clock_ns_sigsafe(CLOCK_MONOTONIC);

	sweep->record.blocks = sweep->count;
	log_writer_init_sigsafe(&sweep->writer, LOG_TO_EVENTS);
	if (!log_begin_sigsafe(&sweep->writer, LOG_SWEEP, &sweep->record, sizeof(sweep->record)))
		return;
	targets_write(sweep);
	if (registers)
		registers_read(sweep, registers);
	scan_memory_sigsafe(&sweep->scan);
	sweep->record.read_bytes = sweep->scan.read_bytes;
	sweep->record.cut_short |= sweep->scan.cut_short;
	sweep->record.sweep_ns = clock_ns_sigsafe(CLOCK_MONOTONIC) - began;
	(void)log_append_sigsafe(&sweep->writer, LOG_SWEEP, &sweep->record, sizeof(sweep->record),
				 NULL, 0);
	state.spent_ns += sweep->record.sweep_ns;
}

static bool is_wanted(const struct block *block)
{
	uint32_t row = block->context & BLOCK_CONTEXT_MASK, i;
	uint64_t hash;

	if (canary.plan.sweep != PLAN_SWEEP_CONTEXTS)
		return true;
	if (row >= agent.plan.context_rows || block->id < log_map.id_base)
		return false;
	hash = log_map.contexts[row].stack_hash;
	for (i = 0; i < canary.plan.sweep_count; i++)
		if (canary.plan.sweep_hashes[i] == hash)
			return true;
	return false;
}

static bool affords(void)
{
	uint64_t now;

	if (canary.plan.sweep != PLAN_SWEEP_SAMPLED || state.spent_ns < SAMPLED_FREE)
		return true;
	now = clock_ns_sigsafe(CLOCK_MONOTONIC);
	if (!state.began_ns)
		state.began_ns = now - SAMPLED_FREE;
	return state.spent_ns < (now - state.began_ns) / SAMPLED_SHARE;
}

static __attribute__((noinline)) void sweep_now(uint64_t frame, const struct sweep_target *target,
						uint32_t context)
{
	struct log_callee_registers registers;
	struct pointer_sweep *sweep;

	if (!take())
		return;
	arch_callee_registers(&registers);
	sweep = sweep_open(PLAN_SWEEP_AT_FREE, READ_MAX);
	if (sweep) {
		sweep->frame = frame;
		sweep->record.context = context;
		target_add(sweep, target);
		sweep_run(sweep, &registers);
		memory_unmap_sigsafe(sweep, sizeof(*sweep));
	}
	__atomic_store_n(&state.busy, 0, __ATOMIC_RELEASE);
}

void sweep_free(struct guard *guard, const struct block *block, uint64_t start,
		struct caller caller)
{
	uint64_t size = block_size(block);
	struct sweep_target target = { start, start + (size ? size : 1), block->id };
	uint32_t at;

	(void)guard;
	if (!is_wanted(block))
		return;
	if (canary.plan.sweep_at == PLAN_SWEEP_AT_FREE && affords())
		sweep_now(caller.frame, &target, block->free_context);
	if (canary.plan.sweep_at != PLAN_SWEEP_AT_LINES)
		return;
	at = __atomic_fetch_add(&state.pending_count, 1, __ATOMIC_RELAXED);
	if (at < TARGETS_MAX)
		state.pending[at] = target;
}

/* Of those that are still in quarantine: the others' memory has new owners. */
static void pending_add(struct pointer_sweep *sweep)
{
	uint32_t count = __atomic_exchange_n(&state.pending_count, 0, __ATOMIC_ACQ_REL), i;

	for (i = 0; i < count && i < TARGETS_MAX; i++) {
		const struct sweep_target *target = &state.pending[i];
		const struct block *block = block_at_sigsafe(BLOCKS_HEAP, target->start);

		if (block && block->id == target->id && block->state == LOG_BLOCK_FREED &&
		    canary_front(block))
			target_add(sweep, target);
	}
	sweep->record.cut_short = count > TARGETS_MAX;
}

static void pending_sweep(void)
{
	struct pointer_sweep *sweep;

	if (canary.plan.sweep_at != PLAN_SWEEP_AT_LINES || !state.pending_count || !affords() ||
	    !take())
		return;
	sweep = sweep_open(PLAN_SWEEP_AT_LINES, READ_MAX);
	if (sweep) {
		sweep->frame = (uint64_t)__builtin_frame_address(0);
		pending_add(sweep);
		if (sweep->count)
			sweep_run(sweep, NULL);
		memory_unmap_sigsafe(sweep, sizeof(*sweep));
	}
	__atomic_store_n(&state.busy, 0, __ATOMIC_RELEASE);
}

void sweep_line_sigsafe(uint64_t checkpoint)
{
	struct guard guard;

	(void)checkpoint;
	if (!canary.on || !guard_enter(&guard))
		return;
	pending_sweep();
	guard_leave(&guard);
}

/* The freed block that a value points into, or whose poison it is. */
static void value_add(struct pointer_sweep *sweep, uint64_t value)
{
	struct block_view view;
	struct sweep_target target;

	if (canary_decode(canary.seed, value, CANARY_POISON, &target.start)) {
		const struct block *block = block_at_sigsafe(BLOCKS_HEAP, target.start);

		if (!block || block->state != LOG_BLOCK_FREED)
			return;
		target.end = target.start + block_size(block);
		target.id = block->id;
	} else {
		if (value < 0x10000 || value >> 47 ||
		    !block_find_sigsafe(BLOCKS_HEAP, value, REACH, &view, 1) ||
		    view.relation != LOG_INSIDE || view.block.state != LOG_BLOCK_FREED)
			return;
		target = (struct sweep_target){ view.start, view.start + view.size, view.block.id };
	}
	target.end += target.end == target.start;
	target_add(sweep, &target);
}

/* The stack that this thread's handlers run on, unless it is the one that the crash was on: a block
 * of the target's, mostly, where whoever handled the crash before us, and we, have put copies of
 * its registers. */
static void handler_stack_find(struct pointer_sweep *sweep, uint64_t rsp)
{
	uint64_t low = 0, bytes = own_stack_targets_sigsafe(&low);

	if (rsp - low < bytes)
		return;
	sweep->handler_low = low;
	sweep->handler_high = low + bytes;
}

void sweep_crash_sigsafe(const struct log_crash *crash, const uint64_t *starts, unsigned count)
{
	struct pointer_sweep *sweep;
	unsigned i;

	if (!canary.on || !agent_switch.ids || !take())
		return;
	sweep = sweep_open(PLAN_SWEEP_AT_CRASH, CRASH_READ_MAX);
	if (!sweep)
		return;
	/* The handler's frames may be on the same stack, below. */
	sweep->frame = crash->gregs[LOG_GREG_RSP];
	handler_stack_find(sweep, sweep->frame);
	if (!(crash->flags & LOG_CRASH_SENT))
		value_add(sweep, crash->fault_address);
	for (i = 0; i < LOG_GREG_RSP; i++)
		value_add(sweep, crash->gregs[i]);
	for (i = 0; i < count; i++)
		value_add(sweep, starts[i]);
	if (sweep->count)
		sweep_run(sweep, NULL);
}
