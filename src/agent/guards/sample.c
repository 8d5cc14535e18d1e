#include "agent/guards/sample.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/guards/canary.h"
#include "wire/checksum.h"

#define EARLY_GROUPS 1024u /* of a lane, a million blocks: of these one in so many is guarded … */
#define SAMPLE_EARLY 32u
#define SAMPLE_LATE 128u /* … and of all others one in so many */
#define LEVEL_MAX 4096u	 /* blocks of a context that are guarded without exception … */
#define LEVEL_MIN 16u	 /* … and however many contexts there are */
#define LEVEL_HALVINGS 8u
#define FREE_BLOCKS (32u << 10) /* of a lane, before its part of the whole counts */
#define PART 16u		/* one in so many of all blocks is enough … */
#define SLACK 4u		/* … and with this part of it more the level is at its lowest */
#define LOOK_AGAIN 64u

_Static_assert(LEVEL_MAX >> LEVEL_HALVINGS == LEVEL_MIN, "the level falls from one to the other");

struct sample_state sample;

static size_t table_bytes(void)
{
	return (size_t)agent.plan.context_rows * sizeof(sample.hot_until[0]);
}

bool sample_init(void)
{
	if (!(canary.plan.item.flags & PLAN_HEAP_SAMPLED))
		return true;
	sample.hot_until = memory_map_sigsafe(table_bytes());
	sample.on = sample.hot_until;
	return sample.on;
}

void sample_after_fork(void)
{
	if (!sample.on)
		return;
	(void)raw_syscall3(SYS_madvise, sample.hot_until, table_bytes(), MADV_DONTNEED);
	memset(sample.lanes, 0, sizeof(sample.lanes));
	if (thread_self)
		thread_self->blocks.burst = 0;
}

/* One of each so many, anywhere among them. */
void sample_group(struct thread *self)
{
	struct sample_lane *lane = &sample.lanes[self->lane % PLAN_THREAD_SLOTS];
	uint32_t group, among;
	uint64_t drawn;

	if (!sample.on)
		return;
	group = lane->groups++;
	among = group < EARLY_GROUPS ? SAMPLE_EARLY : SAMPLE_LATE;
	drawn = checksum_mix(checksum_mix(canary.seed, self->lane), group / among);
	self->blocks.burst = drawn % among == group % among;
}

/* No state of its own, so it finds its level wherever it was. */
static uint32_t level_of(const struct sample_lane *lane)
{
	uint64_t part = FREE_BLOCKS + (uint64_t)lane->groups * BLOCKS_GROUP / PART;
	uint64_t above = lane->guarded > part ? lane->guarded - part : 0;
	uint64_t halvings = above * LEVEL_HALVINGS * SLACK / part;

	return halvings < LEVEL_HALVINGS ? LEVEL_MAX >> halvings : LEVEL_MIN;
}

static bool choose(const struct thread *self, uint32_t context)
{
	struct sample_lane *lane = &sample.lanes[self->lane % PLAN_THREAD_SLOTS];
	uint32_t *hot_until = &sample.hot_until[context], ordinal = sample_ordinal(context);

	if (sample.always && sample.always(context))
		return true; /* each of them is asked for */
	if (ordinal < *hot_until && !self->blocks.burst)
		return false;
	lane->guarded++;
	if (ordinal >= *hot_until)
		*hot_until = ordinal < level_of(lane) || context_marked(context)
				     ? ordinal
				     : ordinal + ordinal / 2 + LOOK_AGAIN;
	*hot_until += !*hot_until; /* it has been met */
	return true;
}

bool sample_takes_slow(struct caller caller)
{
	struct guard guard;
	bool takes;

	if (!guard_enter(&guard))
		return true;
	takes = choose(guard.self, context_find(&guard, caller));
	guard_leave(&guard);
	return takes;
}

void sample_count_sigsafe(uint64_t *ret_guarded, uint64_t *ret_passed)
{
	uint64_t guarded = 0, all = 0;
	uint32_t rows = context_rows_sigsafe(), i;

	for (i = 0; i < PLAN_THREAD_SLOTS; i++)
		guarded += sample.lanes[i].guarded;
	for (i = 0; sample.on && i < rows; i++)
		all += sample.hot_until[i] ? sample_ordinal(i) : 0;
	*ret_guarded = sample.on ? guarded : 0;
	*ret_passed = all > guarded ? all - guarded : 0;
}
