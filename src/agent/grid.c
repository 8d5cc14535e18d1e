#include "agent/grid.h"

#include <string.h>

#include "agent/log.h"

#define RECORDS_PER_REGION (1ull << (BLOCKS_REGION_BITS - GRID_POOL_BITS))
#define KINDS (PYMALLOC_LARGEST / PYMALLOC_ALIGN)
#define WORDS (256u << 20) /* objects of 16 GiB, if they are small */
#define WORDS_STEP (64u << 10)

static struct {
	bool on;
	uint32_t next;	    /* word that no run has yet; 0 is none */
	uint32_t populated; /* words asked for */
	/* Runs that no pool has any more, by kind: each leads to the next. All of this under the
	 * interpreter's lock. */
	uint32_t spare[KINDS];
} grid;

bool grid_init(void)
{
	size_t records = sizeof(uint64_t) << (BLOCKS_ADDRESS_BITS - GRID_POOL_BITS);

	if (agent.plan.context_rows > 1u << GRID_CONTEXT_BITS)
		return false;
	grid.on = memory_reserve_sigsafe(MEMORY_GRID_AT, records + LOG_PAGE) == grid_record(0) &&
		  memory_map_at_sigsafe(MEMORY_GRID_WORDS_AT, WORDS * sizeof(uint64_t)) ==
			  grid_word(0) &&
		  memory_map_at_sigsafe(MEMORY_GRID_ENDS_AT, WORDS * sizeof(uint64_t)) ==
			  grid_end_word(0);
	return grid.on;
}

bool grid_allow(uint64_t region)
{
	return !grid.on || memory_allow_sigsafe(grid_record(region << BLOCKS_REGION_BITS),
						RECORDS_PER_REGION * sizeof(uint64_t) + LOG_PAGE);
}

static uint64_t forks_of(const struct thread *self)
{
	return self->forks < GRID_FORKS_MAX ? self->forks : GRID_FORKS_MAX;
}

uint64_t grid_lane_word(const struct thread *self)
{
	return GRID_LIVE | forks_of(self) << GRID_FORKS_SHIFT;
}

/* With those that addresses in the head lead to. */
static uint32_t run_length(uint64_t units)
{
	return (uint32_t)(PYMALLOC_POOL / PYMALLOC_ALIGN / units) + 1;
}

/* The word before a run is no object's: it is the record that the pool had before, or, of a spare
 * run, the next one. */
static uint64_t *run_head(uint64_t record)
{
	return grid_word((uint32_t)record - 1);
}

/* More at once as it grows. */
static void words_populate(uint32_t upto)
{
	uint32_t step = grid.populated / 4 < WORDS_STEP ? grid.populated / 4 : WORDS_STEP;

	step = (step + 511) & ~511u;
	if (upto <= grid.populated || upto + step > WORDS)
		return;
	memory_populate_sigsafe((uint64_t)grid_word(grid.populated),
				(upto + step - grid.populated) * sizeof(uint64_t));
	grid.populated = (upto + step) & ~511u;
}

static uint32_t run_take(uint64_t units)
{
	uint32_t length = run_length(units), first = grid.spare[units - 1];

	if (first) {
		grid.spare[units - 1] = (uint32_t)*run_head(first);
		memset(grid_word(first - 1), 0, (length + 1) * sizeof(uint64_t));
		return first;
	}
	if (grid.next > WORDS - length - 8)
		return 0;
	first = grid.next + 1;
	grid.next += (length + 8) & ~7u; /* whole lines */
	words_populate(grid.next);
	return first;
}

static void run_leave(uint64_t record)
{
	uint64_t kind = (record >> GRID_UNITS_SHIFT) - 1;

	*run_head(record) = grid.spare[kind];
	grid.spare[kind] = (uint32_t)record;
}

/* A pool of this size that has room is known to be one. */
static bool is_pool(uint64_t start, uint64_t units)
{
	return agent_switch.pymalloc[units - 1].next == pymalloc_pool_of((const void *)start);
}

static bool record_make(uint64_t *record, uint64_t units)
{
	uint64_t before = *record, oldest;
	uint32_t first = run_take(units);

	if (!first)
		return false;
	if (before) {
		oldest = *run_head(before);
		*run_head(before) = 0;
		if (oldest)
			run_leave(oldest);
	}
	*run_head(first) = before;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*record = first | ((1u << GRID_ONE_BITS) + units - 1) / units << GRID_FACTOR_SHIFT |
		  units << GRID_UNITS_SHIFT;
	return true;
}

static bool is_readable(uint64_t start)
{
	return grid.on && start && !(start >> BLOCKS_ADDRESS_BITS) &&
	       blocks_state.spaces[BLOCKS_SUB].regions[block_region_of(start)];
}

bool grid_begin_guarded(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
			uint32_t context)
{
	uint64_t *record, number;

	if ((api != LOG_API_PYTHON_MEMORY && api != LOG_API_PYTHON_OBJECT) ||
	    !agent_switch.pymalloc || size - 1 >= PYMALLOC_LARGEST || !is_readable(start))
		return false;
	record = grid_record(start);
	if (*record >> GRID_UNITS_SHIFT != grid_units(size) &&
	    !(is_pool(start, grid_units(size)) && record_make(record, grid_units(size))))
		return false;
	number = grid_number(*record, start);
	if (!number)
		return false;
	grid_write(guard->self, number, size, api, context);
	(void)arch_take(&guard->self->next_id, 1);
	return true;
}

bool grid_look_sigsafe(uint64_t start, bool before, struct block *ret)
{
	uint64_t record = is_readable(start) ? *grid_record(start) : 0, number, word, id;

	if (record && before)
		record = *run_head(record);
	number = record ? grid_number(record, start) : 0;
	word = number ? *grid_word(number) : 0;
	/* What the pool had before it changed is gone, also where nobody saw it go. */
	if (!word || (before && word & GRID_LIVE))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->context = word & ((1u << GRID_CONTEXT_BITS) - 1);
	ret->ordinal = (uint32_t)(word >> GRID_ORDINAL_SHIFT);
	ret->size_low = (uint32_t)((record >> GRID_UNITS_SHIFT) * PYMALLOC_ALIGN -
				   (word >> GRID_SHORT_SHIFT & (PYMALLOC_ALIGN - 1)));
	ret->api = (uint8_t)(LOG_API_PYTHON_OBJECT + (word >> GRID_MEMORY_SHIFT & 1));
	ret->lane = THREAD_LANE_SHARED;
	ret->low = (uint8_t)start;
	ret->state = LOG_BLOCK_LIVE;
	if (!(word & GRID_LIVE)) {
		ret->state = LOG_BLOCK_FREED;
		ret->free_context = (uint32_t)*grid_end_word(number);
		ret->freed_epoch = (uint32_t)(*grid_end_word(number) >> 32);
	}
	/* Where it came with a fork, so does its id. */
	id = (uint64_t)ret->context << 32 | ret->ordinal;
	ret->id = thread_self && word >> GRID_FORKS_SHIFT == forks_of(thread_self)
			  ? ALLOC_ID_PAIR | id
			  : 1 + id % (log_map.id_base > 1 ? log_map.id_base - 1 : 1);
	return true;
}

bool grid_end_guarded(struct guard *guard, uint64_t start, struct caller caller)
{
	uint64_t number;
	struct block block;

	if (!grid_look_sigsafe(start, false, &block) || block.state != LOG_BLOCK_LIVE)
		return false;
	number = grid_number(*grid_record(start), start);
	block.state = LOG_BLOCK_FREED;
	block.free_context = context_find(guard, caller);
	block.freed_epoch = (uint32_t)agent.epoch;
	*grid_word(number) ^= GRID_LIVE;
	*grid_end_word(number) = block.free_context | (uint64_t)block.freed_epoch << 32;
	block_record_end(guard, &block, start);
	return true;
}
