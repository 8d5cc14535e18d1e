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
#include "agent/crash/crash.h"
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
		.switch_on = file_switch_on,
		.exiting = crash_exiting_sigsafe,
		.exited = jit_code_write_sigsafe,
	},
	{
		.name = "chaos",
		.begin = chaos_init,
		.switch_on = chaos_switch_on,
		.forked = chaos_after_fork,
		.watch_armed = chaos_watch_armed_sigsafe,
	},
	{
		.name = "process",
		.begin = limits_begin,
		.exiting = process_exiting_sigsafe,
	},
	{
		.name = "ids",
		.with_ids = true,
		.map = blocks_init,
		.main_thread = blocks_settle,
		.lane_open = blocks_open_lane,
		.thread_gone = blocks_close_lane,
		.lane_forget = history_forget_lane,
		.forget = context_forget,
		.free_unknown = badfree_judge,
	},
	{
		.name = "growth",
		.with_ids = true,
		.map = checkpoint_init,
		.switch_on = checkpoint_switch_on,
		.forked = checkpoint_forget,
		.exiting = checkpoint_exit_sigsafe,
		.line_begin = checkpoint_line_begin_sigsafe,
		.line_write = checkpoint_write_sigsafe,
		.line_end = checkpoint_line_end_sigsafe,
		.context_made = checkpoint_note_context,
		.epoch_moved = checkpoint_time_sigsafe,
	},
	{
		.name = "watch",
		.with_ids = true,
		.init = watch_init,
		.switch_on = watch_switch_on,
		.thread_born = watch_thread_born,
		.thread_gone = watch_thread_gone,
		.forked = watch_after_fork,
		.exiting = watch_exiting_sigsafe,
		.crashing = watch_check_sigsafe,
		.leave = watch_leave_sigsafe,
		.signal = hit_signal_sigsafe,
		.modules_changed = watch_modules_changed_sigsafe,
		.traced = watch_ptrace_yield_sigsafe,
		.line_begin = watch_line_sigsafe,
		.line_write = watch_line_sigsafe,
		.context_made = watch_context_made,
		.block_born = watch_block_born,
		.block_gone = watch_block_gone,
		.block_suspended = watch_block_suspend,
		.block_resumed = watch_block_resume,
		.object_seen = watch_object,
		.frame_left = watch_frame_left,
		.python_type_wanted = watch_wants_python,
	},
	{
		.name = "guards",
		.with_ids = true,
		.init = canary_init,
		.switch_on = canary_switch_on,
		.forked = canary_after_fork,
		.orphaned = canary_orphaned,
		.exiting = guard_check_exit_sigsafe,
		.crashed = guard_check_crash_sigsafe,
		.leave = guard_check_exit_sigsafe,
		.line_refused = guard_check_refuses_line_sigsafe,
		.line_cost = guard_check_spent_sigsafe,
		.line_told = guard_check_line_sigsafe,
		.group_full = guard_check_time,
		.ids_given = sample_group,
		.memory_tight = canary_tight,
	},
	{
		.name = "fences",
		.with_ids = true,
		.init = fence_init,
		.forked = fence_after_fork,
		.exiting = fence_exiting_sigsafe,
		.crashed = fence_crashed_sigsafe,
		.signal = fence_signal_sigsafe,
		.call_taken = fence_call_sigsafe,
	},
	{
		.name = "sweep",
		.crashed = sweep_crash_sigsafe,
		.line_told = sweep_line_sigsafe,
	},
	{
		.name = "pages",
		.exiting = pages_exiting_sigsafe,
		.crashing = pages_crashing_sigsafe,
		.signal = pages_signal_sigsafe,
	},
	{
		.name = "calls",
		.thread_wanted = told_before_thread,
		.thread_known = told_thread_sigsafe,
		.signal = calls_signal_sigsafe,
		.calls_told = call_cancel_take_sigsafe,
	},
	{
		.name = "python allocators",
		.with_ids = true,
		.init = python_init, /* guards or none: it must be known */
		.block_settles = python_settle,
	},
	{
		.name = "python",
		.with_ids = true,
		.init = python_stack_init,
		.forked = python_stack_forget,
	},
	{
		.name = "hooks",
		.init = hooked_init,
		.forked = hooked_after_fork,
		.signal = hooked_signal_sigsafe,
	},
	{
		.name = "tracer",
		.signal = watch_ptrace_signal_sigsafe,
	},
	{
		.name = "alloc",
		.with_ids = true,
		.init = tcache_init,
		.switch_on = policy_switch_on,
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

/* ---- what lower parts ask of higher ones ------------------------------------------------------
 */

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
