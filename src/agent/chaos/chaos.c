#include "agent/chaos/chaos.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"

#define HOLD_LEAST_NS 1000u
#define HOLD_MOST_NS 10000000u
/* nanosleep comes back 50 us late and more (prctl(2), PR_SET_TIMERSLACK): shorter holds spin. */
#define SPIN_NS 60000u
/* A thread that is alone has nobody to be late for but other processes: most of the time that may
 * be spent is kept for when there are two. */
#define ALONE_SHARE 4u
#define WEIGHT_ONE 16u /* plan_chaos.hold_weight */

static struct plan_chaos plan;

static struct {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t held_ns;  /* atomic; with what a hold took longer than it should have */
	uint64_t threads;  /* atomic: that were ever seen */
} state;

void chaos_plan(const struct plan_chaos *wanted)
{
	plan = *wanted;
	if (!plan.hold_share)
		plan.hold_share = PLAN_CHAOS_SHARE;
}

void chaos_switch_on(void)
{
	agent_switch.chaos = (plan.hold_weight ? CHAOS_HOLD : 0) | (plan.arm_us ? CHAOS_ARM : 0);
}

void chaos_after_fork(void)
{
	state.start_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	state.held_ns = 0;
}

/* splitmix64; each thread has its own sequence, so that they need not share one. */
static uint64_t draw(struct thread *self)
{
	uint64_t z = self->chaos.stream += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* low .. high - 1, every doubling as likely as every other, and evenly within it. */
static uint64_t draw_wide(struct thread *self, uint64_t low, uint64_t high)
{
	uint64_t octaves = 1, from, value;

	while (octaves < 40 && low << octaves < high)
		octaves++;
	do {
		from = low << draw(self) % octaves;
		value = from + draw(self) % from;
	} while (value >= high);
	return value;
}

/* The n-th thread that comes here draws the same numbers in every run with this seed. */
static void thread_begin(struct thread *self)
{
	uint64_t number = __atomic_add_fetch(&state.threads, 1, __ATOMIC_RELAXED);

	self->chaos.stream = plan.seed + number * 0xd1b54a32d192ed03u;
	if (!self->chaos.stream)
		self->chaos.stream = 1;
	self->chaos.ease = (uint32_t)(draw(self) % 3);
}

static void wait_ns(uint64_t begun, uint64_t ns)
{
	struct timespec pause = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	if (ns >= SPIN_NS)
		(void)raw_syscall2(SYS_nanosleep, &pause, 0); /* a signal may end it early */
	else
		while (clock_ns_sigsafe(CLOCK_MONOTONIC) - begun < ns)
			arch_relax();
}

/* Never more than the plan's share of the time since start, all threads together: asked for, and
 * as far as it can be known, taken. */
static void hold(uint64_t ns)
{
	uint64_t begun = clock_ns_sigsafe(CLOCK_MONOTONIC), took;
	uint64_t held = __atomic_load_n(&state.held_ns, __ATOMIC_RELAXED);
	uint64_t budget = (begun - state.start_ns) / plan.hold_share;

	if (thread_lanes_in_use_sigsafe() < 2)
		budget /= ALONE_SHARE;
	if (budget < held + 2 * HOLD_LEAST_NS)
		return;
	/* One long hold must not leave nothing for the next. */
	if (ns > (budget - held) / 2)
		ns = (budget - held) / 2;
	/* Another thread has just taken from it: one of the two is enough. */
	if (!__atomic_compare_exchange_n(&state.held_ns, &held, held + ns, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	wait_ns(begun, ns);
	took = clock_ns_sigsafe(CLOCK_MONOTONIC) - begun;
	if (took > ns)
		(void)__atomic_add_fetch(&state.held_ns, took - ns, __ATOMIC_RELAXED);
	if (log_map.header) {
		(void)__atomic_add_fetch(&log_map.header->chaos_holds, 1, __ATOMIC_RELAXED);
		(void)__atomic_add_fetch(&log_map.header->chaos_held_ns, ns, __ATOMIC_RELAXED);
	}
}

/* What the loader does not move of an address tells places apart, the same way in every run. */
static uint32_t place_of(uint64_t address)
{
	return (uint32_t)(address & 0xfff) * 0x9e3779b1u >> (32 - THREAD_PLACES_BITS);
}

/* Held back are not all allocations alike, or a loop would get all the holds and the one place that
 * matters none: a place that has been passed n times is held with a chance of weight / n, so that
 * each gets its turn. */
void chaos_pass(uint64_t return_address)
{
	uint32_t place = place_of(return_address), n;
	struct thread *self = thread_self;

	if (!self)
		return;
	if (!self->chaos.stream)
		thread_begin(self);
	n = self->chaos.places[place];
	if (n < UINT16_MAX)
		self->chaos.places[place] = (uint16_t)++n;
	if (draw(self) % (n * WEIGHT_ONE) < plan.hold_weight >> self->chaos.ease)
		hold(draw_wide(self, HOLD_LEAST_NS, HOLD_MOST_NS));
}

void chaos_watch_armed_sigsafe(void)
{
	struct thread *self = thread_self;

	if (likely(!(agent_switch.chaos & CHAOS_ARM)) || !self)
		return;
	if (!self->chaos.stream)
		thread_begin(self);
	hold(draw_wide(self, HOLD_LEAST_NS, HOLD_LEAST_NS * (plan.arm_us + 1ull)));
}

void chaos_init(void)
{
	chaos_after_fork();
	if (plan.gap_bytes)
		(void)raw_syscall6(SYS_mmap, 0, (long)plan.gap_bytes, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* Refused or not: then the heap begins where it would. */
	if (plan.heap_bytes)
		(void)sbrk((intptr_t)(plan.heap_bytes & ~15u));
}
