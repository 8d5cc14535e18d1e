/*
 * What the agent consists of: the one file that knows all of it.
 *
 * It stands above all folders, so that none of them need include what lies above it: core/ tells
 * what happens (feature.h), and the rows here say who listens. What one part of the agent needs of
 * another that lies higher (where a block may lie besides the heap, who records a fault) is a
 * table that is bound below, at link time: nothing is registered while the target runs, and nothing
 * can be overwritten there.
 *
 * A new feature has a row here, or an entry in one, and its folder's line in tools/check-includes.
 * Rows are in the order in which they begin: who needs another stands behind it. alloc comes last,
 * because it switches on the hooks.
 */
#include "agent/core/feature.h"

#include "agent/alloc/builtin_malloc.h"
#include "agent/alloc/hooks_python.h"
#include "agent/alloc/policy.h"
#include "agent/alloc/tcache.h"
#include "agent/calls/call.h"
#include "agent/calls/calls.h"
#include "agent/chaos/chaos.h"
#include "agent/core/signals.h"
#include "agent/core/told.h"
#include "agent/crash/fault_record.h"
#include "agent/crash/hooks_file.h"
#include "agent/crash/jit_code.h"
#include "agent/fence/fence.h"
#include "agent/growth/checkpoint.h"
#include "agent/growth/holders.h"
#include "agent/guards/badfree.h"
#include "agent/guards/canary_heap.h"
#include "agent/guards/guard_check.h"
#include "agent/guards/sample.h"
#include "agent/guards/sweep.h"
#include "agent/hooks/hooked.h"
#include "agent/ids/blocks.h"
#include "agent/ids/context.h"
#include "agent/ids/history.h"
#include "agent/pages/pages.h"
#include "agent/process/hooks_process.h"
#include "agent/process/rlimits.h"
#include "agent/python/python_stack.h"
#include "agent/watch/hit.h"
#include "agent/watch/watch.h"
#include "agent/watch/watch_ptrace.h"
#include "agent/watch/watched.h"
#include "wire/plan.h"

/* clang-format off */
const struct feature features[] = {
	{
		.name = "crash",
		.start.switch_on = file_switch_on,
		.end.exiting = crash_exiting_sigsafe,
		.end.exited = jit_code_write_sigsafe,
	},
	{
		.name = "chaos",
		.start.begin = chaos_init,
		.start.switch_on = chaos_switch_on,
		.fork.forked = chaos_after_fork,
		.block.watch_armed = chaos_watch_armed_sigsafe,
	},
	{
		.name = "process",
		.start.begin = limits_begin,
		.end.exiting = process_exiting_sigsafe,
	},
	{
		.name = "ids",
		.with_ids = true,
		.start.map = blocks_init,
		.start.main_thread = blocks_settle,
		.thread.lane_open = blocks_open_lane,
		.thread.gone = blocks_close_lane,
		.fork.lane_forget = history_forget_lane,
		.fork.forget = context_forget,
		.block.free_unknown = badfree_judge,
	},
	{
		.name = "growth",
		.with_ids = true,
		.start.map = checkpoint_init,
		.start.switch_on = checkpoint_switch_on,
		.fork.forked = checkpoint_forget,
		.end.exiting = checkpoint_exit_sigsafe,
		.line.begin = checkpoint_line_begin_sigsafe,
		.line.write = checkpoint_write_sigsafe,
		.line.end = checkpoint_line_end_sigsafe,
		.block.context_made = checkpoint_note_context,
		.block.epoch_moved = checkpoint_time_sigsafe,
	},
	{
		.name = "watch",
		.with_ids = true,
		.start.init = watch_init,
		.start.switch_on = watch_switch_on,
		.thread.born = watch_thread_born,
		.thread.gone = watch_thread_gone,
		.fork.forked = watch_after_fork,
		.end.exiting = watch_exiting_sigsafe,
		.end.crashing = watch_check_sigsafe,
		.end.leave = watch_leave_sigsafe,
		.process.signal = hit_signal_sigsafe,
		.process.modules_changed = watch_modules_changed_sigsafe,
		.process.traced = watch_traced_sigsafe,
		.line.begin = watch_line_sigsafe,
		.line.write = watch_line_sigsafe,
		.block.context_made = watch_context_made,
		.block.born = watch_block_born,
		.block.gone = watch_block_gone,
		.block.suspended = watch_block_suspend,
		.block.resumed = watch_block_resume,
		.target.object_seen = watch_object,
		.target.frame_left = watch_frame_left,
		.target.python_type_wanted = watch_wants_python,
	},
	{
		.name = "guards",
		.with_ids = true,
		.start.init = canary_init,
		.start.switch_on = canary_switch_on,
		.fork.forked = canary_after_fork,
		.fork.orphaned = canary_orphaned,
		.end.exiting = guard_check_exit_sigsafe,
		.end.crashed = guard_check_crash_sigsafe,
		.end.leave = guard_check_exit_sigsafe,
		.line.refused = guard_check_refuses_line_sigsafe,
		.line.cost = guard_check_spent_sigsafe,
		.line.told = guard_check_line_sigsafe,
		.block.group_full = guard_check_time,
		.block.ids_given = sample_group,
		.process.memory_tight = canary_tight,
	},
	{
		.name = "fences",
		.with_ids = true,
		.start.init = fence_init,
		.fork.forked = fence_after_fork,
		.end.exiting = fence_exiting_sigsafe,
		.end.crashed = fence_crashed_sigsafe,
		.end.leave = fence_left_sigsafe,
		.process.signal = fence_signal_sigsafe,
		.process.call_taken = fence_call_sigsafe,
	},
	{
		.name = "sweep",
		.end.crashed = sweep_crash_sigsafe,
		.line.told = sweep_line_sigsafe,
	},
	{
		.name = "pages",
		.end.exiting = pages_exiting_sigsafe,
		.end.crashing = pages_crashing_sigsafe,
		.process.signal = pages_signal_sigsafe,
	},
	{
		.name = "calls",
		.thread.wanted = told_before_thread,
		.thread.known = told_thread_sigsafe,
		.process.signal = calls_signal_sigsafe,
		.process.calls_told = call_cancel_take_sigsafe,
	},
	{
		.name = "python allocators",
		.with_ids = true,
		.start.init = python_init, /* guards or none: it must be known */
		.block.settles = python_settle,
	},
	{
		.name = "python",
		.with_ids = true,
		.start.init = python_stack_init,
		.fork.forked = python_stack_forget,
	},
	{
		.name = "hooks",
		.start.init = hooked_init,
		.fork.forked = hooked_after_fork,
		.process.signal = hooked_signal_sigsafe,
	},
	{
		.name = "tracer",
		.process.signal = watch_ptrace_signal_sigsafe,
	},
	{
		.name = "alloc",
		.with_ids = true,
		.start.init = tcache_init,
		.start.switch_on = policy_switch_on,
	},
};
/* clang-format on */

const unsigned features_count = sizeof(features) / sizeof(features[0]);

uint32_t features_plan(const void *bytes)
{
	const struct plan_item *item = NULL;
	uint32_t refused = 0;

	while ((item = plan_next(bytes, item)))
		switch (item->type) {
		case PLAN_ITEM_HOLDERS:
			holders_plan((const struct plan_holders *)item);
			break;
		case PLAN_ITEM_CANARY:
			canary_plan((const struct plan_heap *)item);
			break;
		case PLAN_ITEM_FENCE:
			fence_plan((const struct plan_fence *)item);
			break;
		case PLAN_ITEM_CHAOS:
			chaos_plan((const struct plan_chaos *)item);
			break;
		case PLAN_ITEM_WATCH:
			refused += !watch_plan((const struct plan_watch *)item);
			break;
		case PLAN_ITEM_HOOK:
			refused += !hooked_plan_hook((const struct plan_hook *)item);
			break;
		case PLAN_ITEM_ACTION:
			refused += !hooked_plan_action((const struct plan_action *)item);
			break;
		default:
			refused++;
			break;
		}
	return refused;
}

const struct signals_recorder signals_recorder = {
	.record = crash_record_sigsafe,
	.in_handler = crash_in_handler_sigsafe,
	.handled = crash_handled_sigsafe,
	.survived = crash_survived_sigsafe,
};

const struct canary_annex canary_annex = {
	.allocate = fence_allocate,
	.holds = fence_holds_ptr,
	.free = fence_free,
	.realloc = fence_realloc,
	.usable = fence_usable,
	.leave = fence_leave_sigsafe,
};

const struct watch_pages_ops watch_pages = {
	.init = pages_init,
	.after_fork = pages_after_fork,
	.each = pages_each,
	.yielded = pages_yielded,
	.holds = pages_holds,
	.arm = pages_arm,
	.disarm = pages_disarm,
	.resized = pages_resized,
};

const struct hooked_replacement hooked_replacement = {
	.gate = builtin_gate,
	.bind = builtin_bind,
	.take_over = policy_take_over,
};

uint64_t (*const watch_original_code)(uint64_t rip) = hooked_original_sigsafe;
bool (*const watched_pages_leave)(void) = pages_leave_sigsafe;
