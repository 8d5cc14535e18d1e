#include "agent/guards/guard_check.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/guards/canary.h"
#include "agent/guards/damage.h"
#include "agent/guards/quarantine.h"
#include "agent/guards/sample.h"
#include "agent/ids/blocks.h"

#define MS 1000000ull
#define LINES_FREE (4 * MS)   /* that lines may cost at once … */
#define LINES_SHARE 400u      /* … and then one part in so many of the run time */
#define ROUNDS_FREE (10 * MS) /* the same for rounds before lines */
#define ROUNDS_SHARE 200u
#define LINE_MAX (200 * MS) /* one round */
#define BIT_SHARE 200u	    /* a bit of a round takes this part of the time between two */
#define END_MAX (1000 * MS)
#define LOOK_AT_CLOCK 256u
#define AHEAD 8u

static struct {
	uint32_t busy; /* atomic */
	uint64_t started_ns;
	uint64_t lines_ns, rounds_ns; /* spent */
	uint64_t last_ns;	      /* the last round before a line: what another will take */
	uint64_t next_bit_ns;
	uint64_t rounds; /* that got through */

	struct damage_stamp now; /* as the one that is under way began */

	/* The walk; here, because a fault in it jumps back. */
	uint32_t at; /* entry of the pool; 0: none under way */
	enum log_check check;
	uint64_t until_ns;
	uint64_t live, quarantined;
	bool late;
} state;

void guard_check_init(void)
{
	memset(&state, 0, sizeof(state));
	memset(&damage_stamps, 0, sizeof(damage_stamps));
	state.started_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
}

static bool affords(uint64_t spent, uint64_t at_once, unsigned share, uint64_t now)
{
	uint64_t since = now > state.started_ns ? now - state.started_ns : 0;

	return spent < at_once || spent - at_once < since / share;
}

bool guard_check_refuses_line_sigsafe(void)
{
	/* Asked for every line: the clock that costs least. */
	return canary.on && !agent_switch.growth &&
	       !affords(state.lines_ns, LINES_FREE, LINES_SHARE,
			clock_ns_sigsafe(CLOCK_MONOTONIC_COARSE));
}

static bool take(void)
{
	uint32_t idle = 0;

	return __atomic_compare_exchange_n(&state.busy, &idle, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void release(void)
{
	__atomic_store_n(&state.busy, 0, __ATOMIC_RELEASE);
}

static bool time_is_up(void)
{
	state.late |= clock_ns_sigsafe(CLOCK_MONOTONIC) >= state.until_ns;
	return state.late;
}

static void fetch_ahead(uint32_t entry)
{
	const struct block *block = &blocks_state.pool[entry];

	if (block->state == LOG_BLOCK_LIVE) {
		const char *start = (const char *)block_start(entry);

		__builtin_prefetch(start - CANARY_FRONT);
		__builtin_prefetch(start + block_size(block));
	}
}

static void look_at_live(void *ctx)
{
	uint32_t used = blocks_entries_sigsafe();

	(void)ctx;
	for (; state.at < used; state.at++) {
		const struct block *block = &blocks_state.pool[state.at];

		if (!(state.at % LOOK_AT_CLOCK) && time_is_up())
			return;
		if (!blocks_state.guarded[state.at / BLOCKS_PIECE]) {
			state.at |= BLOCKS_PIECE - 1;
			continue;
		}
		if (state.at + AHEAD < used)
			fetch_ahead(state.at + AHEAD);
		if (block->state != LOG_BLOCK_LIVE || !canary_front(block))
			continue;
		state.live++;
		(void)damage_look_sigsafe(block, block_start(state.at), state.check, 0,
					  DAMAGE_SHARED);
	}
}

static bool look_at_freed(void *ctx, const struct quarantined *entry)
{
	const struct block *block = quarantined_block_sigsafe(entry);

	(void)ctx;
	if (!block)
		return true;
	state.quarantined++;
	(void)damage_look_sigsafe(block, quarantined_start(entry), state.check, 0,
				  DAMAGE_SHARED | quarantined_flags(entry));
	return state.quarantined % LOOK_AT_CLOCK || !time_is_up();
}

static void look_at_all_freed(void *ctx)
{
	quarantine_walk_sigsafe(look_at_freed, ctx);
}

static void walk_begin(uint64_t now)
{
	state.at = 1;
	state.live = state.quarantined = 0;
	state.now = (struct damage_stamp){ damage_stamps.checkpoint, now };
}

/* True when it got through. */
static bool walk_on(enum log_check check, uint64_t until_ns)
{
	state.check = check;
	state.until_ns = until_ns;
	state.late = false;
	/* A block may be unmapped between the look at its entry and at its bytes: the walk goes on
	 * behind it. */
	while (!memory_attempt_sigsafe(look_at_live, NULL))
		state.at++;
	if (state.late)
		return false;
	state.at = 0;
	damage_stamps.live_good = state.now;
	/* Freed ones are looked at when they leave, too: in between is left to live ones. */
	if (check == LOG_CHECK_TIME)
		return true;
	/* What is in quarantine can only go away while somebody gives it back. One fault ends it.
	 */
	if (!memory_attempt_sigsafe(look_at_all_freed, NULL) || state.late)
		return false;
	state.rounds++;
	damage_stamps.freed_good = state.now;
	return true;
}

static bool look_before_line(uint64_t checkpoint)
{
	uint64_t now = clock_ns_sigsafe(CLOCK_MONOTONIC), began;
	bool whole = false;

	if (take()) {
		damage_stamps.checkpoint = checkpoint;
		if (affords(state.rounds_ns + state.last_ns, ROUNDS_FREE, ROUNDS_SHARE, now)) {
			walk_begin(now);
			began = clock_ns_sigsafe(FEATURE_LINE_COST);
			whole = walk_on(LOG_CHECK_LINE, now + LINE_MAX);
			state.last_ns = clock_ns_sigsafe(FEATURE_LINE_COST) - began;
			state.rounds_ns += state.last_ns;
		}
		release();
	}
	return whole;
}

void guard_check_spent_sigsafe(uint64_t ns)
{
	state.lines_ns += ns;
}

void guard_check_line_sigsafe(uint64_t checkpoint)
{
	struct guard guard;

	if (!canary.on || !guard_enter(&guard))
		return;
	(void)look_before_line(checkpoint);
	guard_leave(&guard);
}

void guard_check_time(struct guard *guard)
{
	uint64_t gap = canary.plan.timer_ms * MS, now;

	if (!canary.on || !gap || clock_ns_sigsafe(CLOCK_MONOTONIC_COARSE) < state.next_bit_ns ||
	    !take())
		return;
	now = clock_ns_sigsafe(CLOCK_MONOTONIC);
	if (!state.at)
		walk_begin(now);
	(void)walk_on(LOG_CHECK_TIME, now + gap / BIT_SHARE);
	state.next_bit_ns = now + gap;
	release();
}

static void last_round(enum log_check check)
{
	uint64_t now = clock_ns_sigsafe(CLOCK_MONOTONIC);
	struct log_round record = { .check = check };

	if (!take())
		return;
	walk_begin(now);
	record.whole = walk_on(check, now + END_MAX);
	record.live = state.live;
	record.quarantined = state.quarantined;
	record.round_ns = clock_ns_sigsafe(CLOCK_MONOTONIC) - now;
	record.damages = damage_count_sigsafe();
	record.rounds = state.rounds;
	record.spent_ns = state.rounds_ns + state.lines_ns;
	sample_count_sigsafe(&record.guarded, &record.passed);
	log_event_sigsafe(LOG_ROUND, &record, sizeof(record));
	release();
}

void guard_check_exit_sigsafe(void)
{
	struct guard guard;

	if (!canary.on || !guard_enter(&guard))
		return;
	last_round(LOG_CHECK_EXIT);
	guard_leave(&guard);
}

/* The handler runs with its own signal blocked, and the kernel ends a process that faults then. */
void guard_check_crash_sigsafe(const struct log_crash *crash, const uint64_t *starts,
			       unsigned count)
{
	struct thread *self = thread_self;
	uint64_t open = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1), before = 0;

	(void)crash;
	(void)starts;
	(void)count;
	if (!canary.on || !agent_switch.ids || !self)
		return;
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &open, &before, sizeof(before));
	last_round(LOG_CHECK_CRASH);
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(before));
}
