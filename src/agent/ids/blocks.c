#include "agent/ids/blocks.h"

#include <string.h>
#include <sys/resource.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/invariant.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/memory_budget.h"
#include "agent/core/real.h"
#include "agent/python/python_stack.h"

#define POOL_BYTES_MAX (8ull << 30)
#define POOL_BYTES_MIN (16ull << 20)
#define POPULATE_MAX (256u << 10)

struct blocks_state blocks_state;
struct block_misfreed block_misfreed;

static struct {
	uint32_t limit;
	uint32_t used;	    /* atomic; entry 0 is none */
	uint64_t populated; /* bytes; racy, nothing but time depends on it */
} pool;

/* Address space is only reserved, but where the target has a limit on it, what we take is missing
 * there. */
static uint64_t pool_wish(void)
{
	struct rlimit limit = { 0 };
	uint64_t wish = POOL_BYTES_MAX;

	if (agent.plan.flags & PLAN_NO_BLOCKS)
		return POOL_BYTES_MIN;
	if (raw_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return wish;
	while (wish > limit.rlim_cur / 8 && wish > POOL_BYTES_MIN)
		wish /= 2;
	return wish;
}

/* Objects inside of blocks are followed: those of CPython, or of an allocator that is hooked. */
static bool objects_wanted(void)
{
	return blocks_state.hooks_planned ||
	       (agent.plan.flags & PLAN_PYTHON && real.python_get_allocator);
}

/* The index of one kind of blocks; without the flat part it has only its directory. */
static bool space_reserve(unsigned number)
{
	struct blocks_space *space = &blocks_state.spaces[number];
	uint64_t bytes = (uint64_t)sizeof(uint32_t) << (BLOCKS_ADDRESS_BITS - space->shift);

	space->regions = memory_map_sigsafe(1ull << (BLOCKS_ADDRESS_BITS - BLOCKS_REGION_BITS));
	if (!space->regions)
		return false;
	space->flat = memory_reserve_sigsafe(number == BLOCKS_SUB ? MEMORY_SUB_AT : MEMORY_HEAP_AT,
					     bytes + LOG_PAGE);
	if (space->flat)
		space->populated = memory_map_sigsafe(bytes >> BLOCKS_POPULATE_BITS);
	return true;
}

bool blocks_init(void)
{
	size_t directory_bytes = sizeof(uint32_t *) << (BLOCKS_ADDRESS_BITS - BLOCKS_CHUNK_BITS);
	uint64_t bytes;
	unsigned i;

	for (bytes = pool_wish(); bytes >= POOL_BYTES_MIN && !blocks_state.pool; bytes /= 2) {
		blocks_state.pool = memory_map_at_sigsafe(MEMORY_POOL_AT, bytes);
		pool.limit = (uint32_t)(bytes / sizeof(struct block));
	}
	if (!blocks_state.pool)
		return false;
	if (blocks_state.guards_planned) {
		blocks_state.bases = memory_map_sigsafe(pool.limit * sizeof(blocks_state.bases[0]));
		blocks_state.guarded = memory_map_sigsafe(pool.limit / BLOCKS_PIECE);
		if (!blocks_state.bases || !blocks_state.guarded)
			return false;
	}
	for (i = 0; i < BLOCKS_SPACES; i++) {
		blocks_state.spaces[i].directory = memory_map_sigsafe(directory_bytes);
		if (!blocks_state.spaces[i].directory)
			return false;
	}
	/* glibc's smallest chunk is 32 bytes, so two live blocks never share a window of 32. */
	blocks_state.spaces[BLOCKS_HEAP].shift =
		real.glibc_malloc ? BLOCKS_GLIBC_SHIFT : BLOCKS_SHIFT;
	blocks_state.spaces[BLOCKS_SUB].shift = BLOCKS_SHIFT;
	/* Where no block is followed, address space is left as it was. */
	for (i = 0; i < BLOCKS_SPACES && !(agent.plan.flags & PLAN_NO_BLOCKS); i++)
		if ((i != BLOCKS_SUB || objects_wanted()) && !space_reserve(i))
			return false;
	pool.used = BLOCKS_PIECE; /* whole cache lines to each lane */
	return true;
}

/* Not where the tables are not where it looks for them: no address space, or somebody was there
 * before. Of another malloc than libc's it asks where the index is. */
bool blocks_settle(const void *auxiliary_vector)
{
	const struct blocks_space *heap = &blocks_state.spaces[BLOCKS_HEAP];

	if (!context_init(auxiliary_vector))
		return false;
	blocks_state.hot =
		!(agent.plan.flags & PLAN_GROWTH) && agent.plan.ring_records >= LOG_RING_LAPS_MIN &&
		(uint64_t)blocks_state.pool == MEMORY_POOL_AT &&
		(uint64_t)context_ordinals == MEMORY_ORDINALS_AT &&
		(!objects_wanted() ||
		 (uint64_t)blocks_state.spaces[BLOCKS_SUB].flat == MEMORY_SUB_AT) &&
		(heap->shift == BLOCKS_GLIBC_SHIFT ? (uint64_t)heap->flat == MEMORY_HEAP_AT
						   : heap->flat != NULL);
	history_state.group = blocks_state.hot ? LOG_LIFE_GROUP : 1;
	return true;
}

/* All of the region, where memory is not counted before it is used: the hot path goes by regions,
 * and blocks of one program lie in few of them. A page more, for what starts exactly where it ends:
 * block_region_of(). */
static bool chunk_allow(struct blocks_space *space, uint64_t index)
{
	size_t bytes = sizeof(uint32_t) << (BLOCKS_CHUNK_BITS - space->shift);
	uint64_t region = index >> (BLOCKS_REGION_BITS - BLOCKS_CHUNK_BITS);
	size_t all = sizeof(uint32_t) << (BLOCKS_REGION_BITS - space->shift);

	if (__atomic_load_n(&space->regions[region], __ATOMIC_ACQUIRE))
		return true;
	if (memory_allow_sigsafe((char *)space->flat + region * all, all + LOG_PAGE)) {
		__atomic_store_n(&space->regions[region], 1, __ATOMIC_RELEASE);
		return true;
	}
	return memory_allow_sigsafe((char *)space->flat + index * bytes, bytes);
}

static uint32_t *chunk_add(struct blocks_space *space, uint64_t index)
{
	size_t bytes = sizeof(uint32_t) << (BLOCKS_CHUNK_BITS - space->shift);
	uint32_t *fresh, *none = NULL;

	if (space->flat) {
		fresh = space->flat + index * (bytes / sizeof(*fresh));
		if (!chunk_allow(space, index))
			return NULL;
		__atomic_store_n(&space->directory[index], fresh, __ATOMIC_RELEASE);
		return fresh;
	}
	fresh = memory_map_sigsafe(bytes);
	if (!fresh)
		return NULL;
	if (__atomic_compare_exchange_n(&space->directory[index], &none, fresh, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return fresh;
	memory_unmap_sigsafe(fresh, bytes);
	return none;
}

static uint32_t *window_add(struct blocks_space *space, uint64_t start)
{
	if (start >> BLOCKS_ADDRESS_BITS || !chunk_add(space, start >> BLOCKS_CHUNK_BITS))
		return NULL;
	return block_window(space, start);
}

/* More at once as the table grows. */
static void pool_populate(uint64_t used)
{
	uint64_t at = used * sizeof(struct block), step = at / 8;

	if (step > POPULATE_MAX)
		step = POPULATE_MAX;
	step &= ~(uint64_t)(LOG_PAGE - 1);
	at += LOG_PAGE - 1;
	at &= ~(uint64_t)(LOG_PAGE - 1);
	if (step <= LOG_PAGE || at < __atomic_load_n(&pool.populated, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&pool.populated, at + step, __ATOMIC_RELAXED);
	memory_populate_sigsafe((uint64_t)blocks_state.pool + at, step);
}

static bool budget_allows(void)
{
	enum budget_state state;

	if (likely(!blocks_state.guards))
		return true;
	state = budget_look_sigsafe();
	if (state != BUDGET_ENOUGH)
		FEATURES_TELL(process.memory_tight);
	return state != BUDGET_EXHAUSTED;
}

static bool pool_refill(struct thread *self, enum block_space space)
{
	uint32_t at = __atomic_load_n(&pool.used, __ATOMIC_RELAXED);

	if (at > pool.limit - BLOCKS_PIECE || !budget_allows())
		return false;
	at = __atomic_fetch_add(&pool.used, BLOCKS_PIECE, __ATOMIC_RELAXED);
	if (at > pool.limit - BLOCKS_PIECE)
		return false;
	pool_populate(at);
	self->blocks.pool_next[space] = at;
	self->blocks.pool_end[space] = at + BLOCKS_PIECE;
	return true;
}

/* Ids come in blocks per thread: one shared counter would make the threads wait for each other. */
static void ids_refill(struct thread *self)
{
	self->fast.next_id = __atomic_fetch_add(&agent.next_id, BLOCKS_GROUP, __ATOMIC_RELAXED);
	self->blocks.id_end = self->fast.next_id + BLOCKS_GROUP;
	self->blocks.id_group = self->fast.next_id;
	log_map.header->next_id = self->blocks.id_end;
	FEATURES_TELL(block.ids_given, self);
}

/* At the end of each group: everything that need not be done for every event. */
static void group_move(struct thread *self)
{
	bool moved = ring_turn(self);

	if (moved)
		FEATURES_TELL(block.epoch_moved);
	if (unlikely(blocks_state.guards) && !(self->blocks.ring_group % LOG_LIFE_GROUP))
		FEATURES_TELL(block.group_full, &(struct guard){ self });
}

static void ids_move(struct thread *self)
{
	uint32_t groups = ids_groups(self);

	if (groups && epoch_move(self, groups))
		FEATURES_TELL(block.epoch_moved);
	if (self->fast.next_id >= self->blocks.id_end)
		ids_refill(self);
}

uint32_t blocks_entries_sigsafe(void)
{
	return __atomic_load_n(&pool.used, __ATOMIC_RELAXED) < pool.limit ? pool.used : pool.limit;
}

const struct log_life *blocks_recent_sigsafe(const struct thread *self, uint64_t n)
{
	uint64_t position = ring_position(self);

	if (n >= position || n >= agent.plan.ring_records)
		return NULL;
	return &self->blocks.ring[(position - 1 - n) & (agent.plan.ring_records - 1)];
}

void blocks_open_lane(struct thread *self, bool other_stack)
{
	if (other_stack) /* words above a frame that was may not be there */
		sites_forget(self);
	self->blocks.lane_tag = self->lane < THREAD_LANE_SHARED ? self->lane : THREAD_LANE_SHARED;
	self->fast.live_word = (uint64_t)self->blocks.lane_tag << 48 | (uint64_t)LOG_BLOCK_LIVE
									       << 32;
	if (!log_map.rings)
		return;
	self->blocks.ring = log_map.rings + (uint64_t)self->lane * agent.plan.ring_records;
	ids_move(self);
	(void)epoch_move(self, 0);
	ring_aim(self, log_map.threads[self->lane].ring_position);
}

void blocks_close_lane(struct thread *self)
{
	if (log_map.rings)
		self->row->ring_position = ring_position(self);
}

static struct block *entry_take(struct thread *self, enum block_space kind, uint64_t start)
{
	struct blocks_space *space = &blocks_state.spaces[kind];
	uint32_t *window = block_window(space, start);

	if (!window)
		window = window_add(space, start);
	if (!window || (self->blocks.pool_next[kind] >= self->blocks.pool_end[kind] &&
			!pool_refill(self, kind))) {
		log_drop_sigsafe(LOG_DROP_BLOCK);
		return NULL;
	}
	if (!*window && !block_open(kind, start, self))
		return NULL;
	return &blocks_state.pool[*window];
}

/* Its own thread needs no atomic operation. A block from before the fork belongs to a row of the
 * parent's log. */
static void count_end(const struct thread *self, const struct block *block)
{
	struct log_context *row = &log_map.contexts[block->context & BLOCK_CONTEXT_MASK];

	if (!agent_switch.growth || block->id < log_map.id_base)
		return;
	if (block->lane == self->blocks.lane_tag && block->lane != THREAD_LANE_SHARED) {
		row->frees_own++;
		row->free_bytes_own += block_size(block);
		return;
	}
	__atomic_fetch_add(&row->frees_other, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&row->free_bytes_other, block_size(block), __ATOMIC_RELAXED);
}

static void ring_add(struct thread *self, const struct block *block, uint64_t start,
		     enum log_life_op op)
{
	struct log_life life = { .op = (uint8_t)op, .start = start };
	uint64_t at;

	memcpy(&life, block, offsetof(struct log_life, op));
	life.api = block->api & BLOCK_API_MASK;
	life.lane = block->lane;
	life.check = log_life_check(&life);
	/* A signal handler that was turned away has taken a place all the same. */
	while ((at = arch_take(&self->fast.ring_next, sizeof(life))) >= self->blocks.ring_end)
		group_move(self);
	*(struct log_life *)at = life;
}

struct block *block_at_sigsafe(enum block_space space, uint64_t start)
{
	uint32_t *window = block_window(&blocks_state.spaces[space], start);
	struct block *block;

	if (unlikely(!window || !*window))
		return NULL;
	block = &blocks_state.pool[*window];
	/* Bit 0 of what is kept is a mark; no allocator gives out odd addresses. */
	return block_starts_at(block, start) && !(space == BLOCKS_HEAP && start & 1) ? block : NULL;
}

bool block_look_sigsafe(enum block_space space, uint64_t start, struct block *ret)
{
	const struct block *block = block_at_sigsafe(space, start);

	if (block)
		*ret = *block;
	return block;
}

void block_describe_sigsafe(const struct block_view *view, struct log_block *ret)
{
	const struct block *block = &view->block;
	uint32_t context = block->context & BLOCK_CONTEXT_MASK;

	ret->state = block->state;
	ret->relation = (uint8_t)view->relation;
	ret->api = block->api & BLOCK_API_MASK;
	ret->id = block->id;
	ret->start = view->start;
	ret->size = view->size;
	ret->freed_epoch = block->freed_epoch;
	ret->context = context;
	ret->free_context = block->free_context;
	if (context < agent.plan.context_rows) {
		ret->key.stack_hash = log_map.contexts[context].stack_hash;
		ret->key.lane = log_map.contexts[context].lane;
	}
	ret->key.ordinal = block->ordinal;
}

#if AGENT_CHECKS
/* Of a live block's entry, by the thread that has it. */
static const char *blocks_invariant_sigsafe(const struct block *block, uint64_t start)
{
	uint64_t entry = (uint64_t)(block - blocks_state.pool);

	if (!entry || entry >= blocks_entries_sigsafe())
		return "side table: an entry that was never given out";
	if (block->state != LOG_BLOCK_LIVE)
		return "side table: a live block whose entry says otherwise";
	if (!block_starts_at(block, start))
		return "side table: the entry of another start";
	if (!block->id || block->id >= __atomic_load_n(&agent.next_id, __ATOMIC_RELAXED))
		return "side table: an id that was never given out";
	if ((block->context & BLOCK_CONTEXT_MASK) >= agent.plan.context_rows)
		return "side table: a context that is not there";
	return NULL;
}
#endif

/* Its size needs the entry's high byte. */
static void block_write_large(struct thread *self, struct block *block, uint64_t start,
			      uint64_t size, enum log_api api, uint32_t context)
{
	*block = (struct block){
		.id = arch_take(&self->fast.next_id, 1),
		.ordinal = arch_take_one(&context_ordinals[context]),
		.state = LOG_BLOCK_LIVE,
		.api = (uint8_t)api,
		.low = (uint8_t)start ^ BLOCK_MARK,
		.lane = (uint8_t)self->blocks.lane_tag,
	};
	((uint64_t *)block)[1] = block_size_context(size, context);
}

bool block_begin_guarded(struct guard *guard, enum block_space space, uint64_t start, uint64_t size,
			 enum log_api api, struct caller caller)
{
	struct thread *self = guard->self;
	uint32_t *window = block_window(&blocks_state.spaces[space], start);
	uint32_t context = context_find(guard, caller);
	struct block *block;

	if (unlikely(python_stack_on))
		context = context_in_python(guard, context, caller);
	if (size > blocks_state.spaces[space].largest)
		blocks_state.spaces[space].largest = size;
	if (self->fast.next_id >= self->blocks.id_end) {
		ids_move(self);
		if (unlikely(blocks_state.guards))
			FEATURES_TELL(block.group_full, guard);
	}
	block = window && *window ? &blocks_state.pool[*window] : entry_take(self, space, start);
	if (!block)
		return false;
	if (agent_switch.growth) {
		log_map.contexts[context].allocs++;
		log_map.contexts[context].alloc_bytes += size;
	}
	if (api >> BLOCK_FRONT_SHIFT)
		block_mark_guarded((uint32_t)(block - blocks_state.pool));
	if (likely(!(size >> 32))) {
		block_write(self, (uint64_t *)block, arch_take(&self->fast.next_id, 1), start, size,
			    api, context);
	} else {
		block_write_large(self, block, start, size, api, context);
	}
	INVARIANT(blocks_invariant_sigsafe(block, start));
	if (context_marked(context))
		FEATURES_TELL(block.born, guard, block, start);
	if (unlikely(blocks_state.unsettled))
		FEATURES_TELL(block.settles, guard, api);
	return true;
}

void block_end_guarded(struct guard *guard, enum block_space space, uint64_t start,
		       struct caller caller)
{
	struct block *block = block_at_sigsafe(space, start);

	if (block && block->state == LOG_BLOCK_LIVE)
		block_end_known(guard, block, start, caller);
	else
		FEATURES_TELL(block.free_unknown, guard, space, start, &caller);
}

void block_end_known(struct guard *guard, struct block *block, uint64_t start, struct caller caller)
{
	struct thread *self = guard->self;

	INVARIANT(blocks_invariant_sigsafe(block, start));
	block->free_context = context_find(guard, caller);
	block->freed_epoch = (uint32_t)agent.epoch;
	block->state = LOG_BLOCK_FREED;
	if (block->low & 1)
		FEATURES_TELL(block.gone, guard, start, block_size(block));
	count_end(self, block);
	ring_add(self, block, start, LOG_LIFE_FREE);
}

/* What a hook that leaves rbp alone was called with: our own frame has saved it. A hook that has a
 * frame has saved it there; where we were jumped to, ours lies at the same place. */
#if AGENT_BARE
#define HOOKS_RBP(frame) (*(const uint64_t *)__builtin_frame_address(0))
#else
#define HOOKS_RBP(frame) (frame[0])
#endif
#define CALLER_OF_HOOK(frame)                                    \
	{                                                        \
		frame[1], (uint64_t)frame, HOOKS_RBP(frame) ?: 1 \
	}

__attribute__((noinline)) void *block_begin_slow(void *start, uint64_t size, enum block_space space,
						 enum log_api api, const uint64_t *frame)
{
	struct caller caller = CALLER_OF_HOOK(frame);
	struct guard guard;

	if (guard_enter(&guard)) {
		(void)block_begin_guarded(&guard, space, (uint64_t)start, size, api, caller);
		guard_leave(&guard);
	}
	return start;
}

__attribute__((noinline)) void block_end_slow(void *start, enum block_space space,
					      const uint64_t *frame)
{
	struct caller caller = CALLER_OF_HOOK(frame);
	struct guard guard;

	if (guard_enter(&guard)) {
		block_end_guarded(&guard, space, (uint64_t)start, caller);
		guard_leave(&guard);
	}
}

struct block *block_suspend(struct guard *guard, uint64_t start, struct caller caller)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);

	if (!block || block->state != LOG_BLOCK_LIVE) {
		FEATURES_TELL(block.free_unknown, guard, BLOCKS_HEAP, start, &caller);
		return NULL;
	}
	block->free_context = context_find(guard, caller);
	block->freed_epoch = (uint32_t)agent.epoch;
	block->state = LOG_BLOCK_FREED;
	if (block->low & 1)
		FEATURES_TELL(block.suspended, guard, start, block_size(block));
	return block;
}

void block_resume(struct guard *guard, struct block *block, uint64_t start, uint64_t size)
{
	struct thread *self = guard->self;
	uint32_t context = block->context & BLOCK_CONTEXT_MASK;
	uint64_t old = block_size(block);
	struct log_context *row = &log_map.contexts[context];
	struct block resized = *block;
	bool watched = block->low & 1 && FEATURES_ANY(block.resumed, guard, start, size);

	block->free_context = 0;
	block->freed_epoch = 0;
	if (size != old) {
		block->low = (uint8_t)start ^
			     (size >> 32 || watched || context_marked(context) ? BLOCK_MARK : 0);
		((uint64_t *)block)[1] = block_size_context(size, context);
	}
	/* After its size: who looks at live blocks (guard_check.c) finds them with the true one. */
	__atomic_store_n(&block->state, LOG_BLOCK_LIVE, __ATOMIC_RELEASE);
	if (!watched && context_marked(context))
		FEATURES_TELL(block.born, guard, block, start);
	if (size == old)
		return;
	if (agent_switch.growth && block->id >= log_map.id_base) {
		/* The bytes given back are counted as freed, those taken as allocated. */
		__atomic_fetch_add(&row->free_bytes_other, old, __ATOMIC_RELAXED);
		__atomic_fetch_add(&row->alloc_bytes, size, __ATOMIC_RELAXED);
	}
	if (size > blocks_state.spaces[BLOCKS_HEAP].largest)
		blocks_state.spaces[BLOCKS_HEAP].largest = size;
	((uint64_t *)&resized)[1] = block_size_context(size, context);
	ring_add(self, &resized, start, LOG_LIFE_RESIZE);
}

void block_moved(struct guard *guard, const struct block *was, uint64_t start, struct caller caller)
{
	(void)caller;
	count_end(guard->self, was);
	ring_add(guard->self, was, start, LOG_LIFE_FREE);
}

void block_claim(struct guard *guard, uint64_t start, uint64_t size, enum log_api api,
		 struct caller caller)
{
	struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);

	if (!block || block->state != LOG_BLOCK_LIVE)
		(void)block_begin_guarded(guard, BLOCKS_HEAP, start, size, api, caller);
	else if (real.plain_new)
		block->api = (uint8_t)((block->api & ~BLOCK_API_MASK) | api);
}

bool block_claimed(uint64_t start)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, start);
	uint32_t api = block ? block->api & BLOCK_API_MASK : LOG_API_MALLOC;

	return api == LOG_API_NEW || api == LOG_API_NEW_ARRAY;
}

static void view_fill(struct block_view *view, const struct block *block, uint64_t window_start,
		      uint32_t shift)
{
	view->block = *block;
	view->size = block_size(block);
	view->start = window_start | (block->low & ((1u << shift) - 1));
	view->start &= ~(uint64_t)1;
}

/* The n-th youngest former owner stays sorted in by its end. */
static unsigned former_insert(struct block_view *ret, unsigned from, unsigned count, unsigned cap,
			      const struct block_view *view)
{
	unsigned at = count;

	while (at > from && (int32_t)(view->block.freed_epoch - ret[at - 1].block.freed_epoch) > 0)
		at--;
	if (at == cap)
		return count;
	if (count < cap)
		count++;
	memmove(ret + at + 1, ret + at, (count - at - 1) * sizeof(*ret));
	ret[at] = *view;
	return count;
}

/* What a search has met so far, from an address downwards. */
struct blocks_met {
	struct block_view live, nearest; /* of no state: none */
	struct block_view *former;
	unsigned count, cap;
};

static inline void block_meet(struct blocks_met *met, struct block_view *view, uint64_t address,
			      uint64_t beyond)
{
	if (address - view->start >= (view->size ? view->size : 1)) {
		if (!met->nearest.block.state && address - view->start - view->size < beyond)
			met->nearest = *view;
	} else if (view->block.state == LOG_BLOCK_LIVE) {
		/* Nothing below can overlap a live block, former ones aside. */
		met->live = *view;
	} else {
		view->relation = LOG_INSIDE;
		met->count = former_insert(met->former, 0, met->count, met->cap, view);
	}
}

/* The live one first. */
static unsigned blocks_order(struct blocks_met *met)
{
	unsigned i;

	if (met->live.block.state) {
		for (i = 0; i < met->count; i++)
			met->former[i].relation = LOG_FORMER;
		if (met->count == met->cap)
			met->count--;
		memmove(met->former + 1, met->former, met->count * sizeof(*met->former));
		met->live.relation = LOG_INSIDE;
		met->former[0] = met->live;
		met->count++;
	} else if (!met->count && met->nearest.block.state) {
		met->nearest.relation = LOG_BEYOND;
		met->former[met->count++] = met->nearest;
	}
	return met->count;
}

unsigned block_find_sigsafe(enum block_space kind, uint64_t address, uint64_t reach_bytes,
			    struct block_view *ret, unsigned cap)
{
	const struct blocks_space *space = &blocks_state.spaces[kind];
	uint64_t at = address & ~((1ull << space->shift) - 1), step = 1ull << space->shift;
	struct blocks_met met = { .former = ret, .cap = cap };
	struct block_view view;
	/* How far behind a block a pointer is still told to be: whoever runs on behind the last
	 * block of the heap meets its end only there, up to 132 KiB later. */
	uint64_t beyond = reach_bytes / 256 > 4096 ? reach_bytes / 256 : 4096;
	uint64_t windows = (space->largest + beyond) / step;

	if (!space->directory || !cap || address >> BLOCKS_ADDRESS_BITS)
		return 0;
	if (windows > reach_bytes / step)
		windows = reach_bytes / step;
	for (; windows && at >= step && !met.live.block.state; windows--, at -= step) {
		const uint32_t *window = block_window(space, at);

		if (!window) { /* nothing in this 64 MiB: go to the one below */
			uint64_t skip = (at & ((1ull << BLOCKS_CHUNK_BITS) - 1)) >> space->shift;

			if (skip >= windows)
				break;
			windows -= skip;
			at -= skip << space->shift;
			continue;
		}
		if (!*window)
			continue;
		view_fill(&view, &blocks_state.pool[*window], at, space->shift);
		if (view.start <= address && view.block.state)
			block_meet(&met, &view, address, beyond);
	}
	return blocks_order(&met);
}
