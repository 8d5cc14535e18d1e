#include "agent/watch/watch.h"

#include <string.h>

#include "agent/arch/vectors.h"
#include "agent/arch/x86_64.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/watch/registers_assign.h"
#include "agent/watch/unexplained_changes.h"
#include "agent/watch/watch_registers.h"
#include "agent/watch/watched.h"
#include "wire/checksum.h"

#define OBJECT_REACH (64u << 10)

static struct {
	uint64_t random;
	uint32_t unplaced; /* bit per watch: a global whose module is not there yet; atomic */
} state;

bool watch_plan(const struct plan_watch *item)
{
	uint64_t ranges = (item->item.bytes - sizeof(*item)) / sizeof(struct plan_range);

	if (watch_state.count == PLAN_WATCHES_MAX || item->range_count > ranges ||
	    item->place_count > item->range_count || item->python_type[63] ||
	    item->step_count > PLAN_STEPS_MAX || !item->bytes || item->bytes > PLAN_WATCH_BYTES_MAX)
		return false;
	watch_state.plans[watch_state.count++] = item;
	agent.watches = watch_state.count;
	return true;
}

static const struct plan_range *plan_ranges(const struct plan_watch *plan)
{
	return (const void *)(plan + 1);
}

static bool takes_blocks(const struct plan_watch *plan)
{
	return plan->kind == PLAN_WATCH_CONTEXT || plan->kind == PLAN_WATCH_KEY;
}

static uint64_t random_next(void)
{
	state.random = state.random * 6364136223846793005ull + 1442695040888963407ull;
	return state.random >> 33;
}

/* Whom to give up for one more object; NULL: nobody. What was to be kept (PLAN_WATCH_OLDEST) is
 * kept, and goes before what another watch has only as its newest. */
static struct watch_armed *displaceable(const struct plan_watch *plan, uint64_t objects)
{
	struct watch_armed *oldest = NULL, *list[WATCH_ARMED_MAX];
	unsigned i, count = 0;

	for (i = 0; i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (!armed->number || armed->fixed ||
		    watch_state.plans[armed->watch]->policy == PLAN_WATCH_OLDEST)
			continue;
		list[count++] = armed;
		if (!oldest || armed->number < oldest->number)
			oldest = armed;
	}
	if (!count)
		return NULL;
	if (plan->policy != PLAN_WATCH_SAMPLE)
		return oldest;
	return random_next() % (objects ? objects : 1) < count ? list[random_next() % count] : NULL;
}

static struct watch_armed *armed_unused(void)
{
	unsigned i;

	for (i = 0; i < WATCH_ARMED_MAX; i++)
		if (!watch_state.armed[i].number)
			return &watch_state.armed[i];
	return NULL;
}

/* What to watch. */
struct watched_object {
	uint32_t watch;
	uint64_t base; /* the object's start; the plan's offset is added */
	uint64_t id, start, size;
	struct block_key key;
	uint32_t context;
};

static bool same_place(uint64_t address, enum log_watched_end why)
{
	bool found = false;
	unsigned i;

	for (i = 0; i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (armed->number && armed->address == address && !armed->fixed) {
			watch_end(armed, why);
			found = true;
		}
	}
	return found;
}

/* Any number of them, as long as they were placed there when they were allocated. */
static bool arm_paged(const struct watched_object *object, uint64_t address)
{
	const struct plan_watch *plan = watch_state.plans[object->watch];
	struct log_watch_row *row = &watch_state.area->rows[object->watch];
	struct watch_armed armed = { .address = address,
				     .bytes = plan->bytes,
				     .watch = object->watch,
				     .paged = true,
				     .id = object->id,
				     .start = object->start,
				     .size = object->size,
				     .key = object->key };

	__atomic_fetch_add(&row->objects, 1, __ATOMIC_RELAXED);
	if (!watch_pages.holds(address))
		return false;
	if (plan->kind == PLAN_WATCH_HOOK)
		watch_pages.disarm(address, 1, LOG_WATCHED_AGAIN);
	if (!watch_pages.arm(&armed, object->context))
		return false;
	__atomic_fetch_add(&row->armed, 1, __ATOMIC_RELAXED);
	return true;
}

/* Under the lock. */
static bool arm(const struct watched_object *object, bool fixed)
{
	const struct plan_watch *plan = watch_state.plans[object->watch];
	struct log_watch_row *row = &watch_state.area->rows[object->watch];
	struct aim pieces[WATCH_REGISTERS];
	struct watch_armed *armed, *gone;
	uint64_t address = object->base + (uint64_t)plan->offset;
	unsigned count = registers_cut(address, plan->bytes, pieces);
	int trouble;

	row->objects++;
	if (address >> BLOCKS_ADDRESS_BITS)
		return false;
	(void)same_place(address, LOG_WATCHED_AGAIN);
	while (registers_free() < count || !armed_unused()) {
		gone = displaceable(plan, row->objects);
		if (!gone)
			return false;
		watch_end(gone, LOG_WATCHED_DISPLACED);
	}
	armed = armed_unused();
	armed->suspended = 0;
	registers_disown((uint32_t)(armed - watch_state.armed));
	armed->address = address;
	armed->bytes = plan->bytes;
	armed->watch = object->watch;
	armed->fixed = fixed;
	armed->id = object->id;
	armed->start = object->start;
	armed->size = object->size;
	armed->key = object->key;
	/* A fixed address may come to be mapped later. */
	if (!watched_read(armed, armed->last) && !fixed)
		return false;
	memcpy(armed->noted, armed->last, sizeof(armed->noted));
	memcpy(armed->beside, armed->last, sizeof(armed->beside));
	watched_row_begin(armed, ++watch_state.numbers, object->context);
	__atomic_store_n(&armed->number, watch_state.numbers, __ATOMIC_RELEASE);
	trouble = registers_set((uint32_t)(armed - watch_state.armed), pieces, count);
	if (trouble) {
		row->trouble = trouble;
		__atomic_store_n(&armed->number, 0, __ATOMIC_RELEASE);
		armed->row->number = 0;
		return false;
	}
	row->armed++;
	return true;
}

static void arm_locked(const struct watched_object *object)
{
	bool armed = false;

	if (agent.plan.flags & PLAN_PAGES) {
		armed = arm_paged(
			object, object->base + (uint64_t)watch_state.plans[object->watch]->offset);
	} else if (registers_lock()) {
		armed = arm(object, false);
		registers_unlock();
	} else {
		watch_state.area->rows[object->watch].objects++;
	}
	if (armed)
		FEATURES_TELL(block.watch_armed);
}

static bool block_wanted(const struct plan_watch *plan, uint64_t size, uint32_t ordinal,
			 const struct log_context *context)
{
	uint32_t wanted = plan->key.ordinal;
	uint32_t apart = ordinal > wanted ? ordinal - wanted : wanted - ordinal;

	if (plan->size_high && (size < plan->size_low || size > plan->size_high))
		return false;
	if (plan->kind != PLAN_WATCH_KEY)
		return true;
	if (!(plan->flags & PLAN_WATCH_ANY_LANE) && context->lane != plan->key.lane)
		return false;
	return apart <= plan->ordinal_reach;
}

static void fence_note(uint32_t watch, uint64_t start)
{
	struct log_watch_row *row = &watch_state.area->rows[watch];

	__atomic_fetch_add(&row->objects, 1, __ATOMIC_RELAXED);
	if (watch_pages.holds(start))
		__atomic_fetch_add(&row->armed, 1, __ATOMIC_RELAXED);
}

void watch_block_born(struct guard *guard, struct block *block, uint64_t start)
{
	uint32_t row = block->context & BLOCK_CONTEXT_MASK, mask = context_marks[row], i;
	const struct log_context *context = &log_map.contexts[row];
	struct watched_object object = { .base = start,
					 .id = block->id,
					 .start = start,
					 .size = block_size(block),
					 .key = { context->stack_hash, context->lane,
						  block->ordinal },
					 .context = row };

	(void)guard;
	for (i = 0; i < watch_state.count; i++) {
		if (!(mask & 1u << i) || !takes_blocks(watch_state.plans[i]) ||
		    !block_wanted(watch_state.plans[i], block_size(block), block->ordinal, context))
			continue;
		object.watch = i;
		block_mark(block);
		if (watch_fences())
			fence_note(i, start);
		else
			arm_locked(&object);
	}
}

bool watch_places(uint32_t context, uint64_t size)
{
	uint32_t i;

	for (i = 0; i < watch_state.count; i++)
		if (context_marks[context] & 1u << i &&
		    (!takes_blocks(watch_state.plans[i]) ||
		     block_wanted(watch_state.plans[i], size, context_ordinals[context],
				  &log_map.contexts[context])))
			return true;
	return false;
}

bool watch_fences(void)
{
	return watch_state.count && watch_state.plans[0]->flags & PLAN_WATCH_FENCE;
}

/* A guard of the block is watched until then, too. */
static bool ends_with_block(const struct watch_armed *armed, uint64_t start, uint64_t size)
{
	return !armed->fixed &&
	       (armed->address - start < (size ? size : 1) ||
		(armed->id && armed->start == start)) &&
	       !(watch_state.plans[armed->watch]->flags & PLAN_WATCH_AFTER_FREE);
}

void watch_block_gone(struct guard *guard, uint64_t start, uint64_t size)
{
	unsigned i;

	(void)guard;
	if (watch_pages.holds(start)) {
		watch_pages.disarm(start, size, LOG_WATCHED_FREED);
		return;
	}
	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (armed->number && ends_with_block(armed, start, size))
			watch_end(armed, LOG_WATCHED_FREED);
	}
}

/* On watched pages nothing happens to a block that stays: see watch_block_resume(). */
void watch_block_suspend(struct guard *guard, uint64_t start, uint64_t size)
{
	unsigned i;

	(void)guard;
	for (i = 0; watch_state.area && !watch_pages.holds(start) && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		uint64_t number = armed->number;

		if (!number || !ends_with_block(armed, start, size))
			continue;
		watch_end(armed, LOG_WATCHED_MOVED);
		armed->suspended = number;
		__atomic_fetch_add(&watch_state.area->rows[armed->watch].moved, 1,
				   __ATOMIC_RELAXED);
	}
}

/* Under the lock. Its row is taken up again; what another thread wrote meanwhile is nobody's
 * change: nobody was looking. */
static bool armed_resume(struct watch_armed *armed, uint64_t size)
{
	uint64_t number = armed->suspended;
	struct aim pieces[WATCH_REGISTERS];
	unsigned count = registers_cut(armed->address, armed->bytes, pieces);

	armed->suspended = 0;
	if (armed->row->number != number || armed->address >= armed->start + size ||
	    registers_free() < count)
		return false;
	watched_take_value(armed);
	armed->size = size;
	armed->row->size = size;
	armed->row->end = LOG_WATCHED_STILL;
	armed->row->end_ns = 0;
	watched_row_seal(armed->row);
	__atomic_store_n(&armed->number, number, __ATOMIC_RELEASE);
	if (registers_set((uint32_t)(armed - watch_state.armed), pieces, count)) {
		watch_end(armed, LOG_WATCHED_DISPLACED);
		return false;
	}
	watch_state.area->rows[armed->watch].moved--;
	return true;
}

bool watch_block_resume(struct guard *guard, uint64_t start, uint64_t size)
{
	bool any = false;
	unsigned i;

	(void)guard;
	if (!watch_state.area)
		return false;
	if (watch_pages.holds(start))
		return watch_pages.resized(start, size);
	if (!registers_lock())
		return false;
	for (i = 0; i < WATCH_ARMED_MAX; i++)
		if (watch_state.armed[i].suspended && watch_state.armed[i].start == start)
			any |= armed_resume(&watch_state.armed[i], size);
	registers_unlock();
	return any;
}

/* PyObject and PyTypeObject begin the same in all versions that we know: reference count, type; and
 * of a type, reference count, type, size, tp_name. */
#define PYTHON_OB_TYPE 8u
#define PYTHON_TP_NAME 24u

static bool python_type_is(uint64_t type, const char *wanted)
{
	char name[160], *last;
	uint64_t at;
	uint32_t have = 0;

	if (!watch_read_sigsafe(&at, type + PYTHON_TP_NAME, 8))
		return false;
	while (have < sizeof(name) && watch_read_sigsafe(name + have, at + have, 1) && name[have])
		have++;
	if (have == sizeof(name))
		return false;
	name[have] = 0;
	last = strrchr(name, '.');
	if (!last && strrchr(wanted, '.')) /* of a class made in Python, the name has no module */
		return !strcmp(name, strrchr(wanted, '.') + 1);
	return !strcmp(name, wanted) || (last && !strcmp(last + 1, wanted));
}

bool watch_wants_python(uint32_t watch, uint64_t type)
{
	return watch_state.area && watch < watch_state.count &&
	       watch_state.plans[watch]->python_type[0] &&
	       python_type_is(type, watch_state.plans[watch]->python_type);
}

static bool python_object_is(uint64_t object, const char *wanted)
{
	uint64_t type;

	return watch_read_sigsafe(&type, object + PYTHON_OB_TYPE, 8) &&
	       python_type_is(type, wanted);
}

void watch_object(struct guard *guard, uint32_t watch, uint64_t address,
		  const struct caller *caller)
{
	struct watched_object object = { .watch = watch, .base = address };
	struct block_view view;
	struct log_block record = { 0 };
	uint64_t context;
	bool wanted = false;
	int space;

	if (!watch_state.area || watch >= watch_state.count)
		return;
	if (watch_state.plans[watch]->python_type[0] &&
	    !python_object_is(address, watch_state.plans[watch]->python_type))
		return;
	context = watch_state.plans[watch]->key.stack_hash;
	object.context = context_find(guard, *caller);
	for (space = BLOCKS_SUB; space >= BLOCKS_HEAP && !wanted; space--) {
		struct block *block;

		if (!block_find_sigsafe((enum block_space)space, address, OBJECT_REACH, &view, 1) ||
		    view.relation != LOG_INSIDE || view.block.state != LOG_BLOCK_LIVE)
			continue;
		block_describe_sigsafe(&view, &record);
		wanted = !context || record.key.stack_hash == context;
		/* Of an object inside a block of that kind, it is the object's own id that tells
		 * which one it is. */
		if (!object.id) {
			object.id = record.id;
			object.start = record.start;
			object.size = record.size;
			object.key = record.key;
		}
		block = wanted ? block_at_sigsafe((enum block_space)space, view.start) : NULL;
		if (block)
			block_mark(block);
	}
	if (context && !wanted)
		return; /* of another kind than those that are watched */
	arm_locked(&object);
}

/* Only marked, as ever: a frame of the next call lies at the same place more often than not. */
void watch_frame_left(struct guard *guard, uint32_t watch, uint64_t end)
{
	unsigned i;

	(void)guard;
	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (armed->number && armed->watch == watch &&
		    armed->address == end + (uint64_t)watch_state.plans[watch]->offset)
			watch_end(armed, LOG_WATCHED_RETURNED);
	}
}

void watch_thread_born(void)
{
	uint32_t i;

	for (i = 0; watch_state.area && i < watch_state.count; i++) {
		struct watched_object object = { .watch = i,
						 .base = arch_fs_base(),
						 .start = arch_fs_base() };

		if (watch_state.plans[i]->kind == PLAN_WATCH_THREAD)
			arm_locked(&object);
	}
}

void watch_thread_gone(struct thread *self)
{
	unsigned i;

	(void)self;
	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		const struct plan_watch *plan = watch_state.plans[armed->watch];

		if (armed->number && plan->kind == PLAN_WATCH_THREAD &&
		    armed->address == arch_fs_base() + (uint64_t)plan->offset)
			watch_end(armed, LOG_WATCHED_RETURNED);
	}
}

static bool goes_through(const struct plan_watch *plan, const uint64_t *frames, uint32_t count)
{
	const struct plan_range *ranges = plan_ranges(plan);
	uint32_t r, f;

	if (!plan->place_count) /* blocks of any context, by their size */
		return true;
	for (r = 0; r < plan->place_count; r++) {
		uint64_t low = module_place_sigsafe(ranges[r].identity, ranges[r].address);

		/* A return address is behind its call. */
		for (f = 0; low && f < count; f++)
			if (frames[f] - 1 - low < ranges[r].bytes)
				return true;
	}
	return false;
}

/* Objects that a function hands over: on watched pages only if they are placed there when it
 * allocates them. */
static bool places(const struct plan_watch *plan)
{
	return plan->kind == PLAN_WATCH_HOOK && plan->place_count &&
	       (agent.plan.flags & PLAN_PAGES);
}

void watch_context_made(uint32_t row, uint64_t stack_hash, const uint64_t *frames, uint32_t count)
{
	uint16_t mask = 0;
	uint32_t i;

	if (!context_marks)
		return;
	for (i = 0; i < watch_state.count; i++) {
		const struct plan_watch *plan = watch_state.plans[i];

		if (plan->kind == PLAN_WATCH_KEY
			    ? plan->key.stack_hash == stack_hash
			    : (plan->kind == PLAN_WATCH_CONTEXT || places(plan)) &&
				      goes_through(plan, frames, count))
			mask |= (uint16_t)(1u << i);
	}
	context_marks[row] = mask;
}

static void fixed_arm(uint32_t watch)
{
	const struct plan_watch *plan = watch_state.plans[watch];
	struct watched_object object = { .watch = watch, .base = plan->address };

	if (plan->kind == PLAN_WATCH_GLOBAL) {
		const struct plan_range *ranges = plan_ranges(plan);
		uint32_t i;

		/* Programs that one command starts may each have their own. */
		object.base = 0;
		for (i = 0; i < plan->place_count && !object.base; i++)
			object.base = module_place_sigsafe(ranges[i].identity, ranges[i].address);
		watch_state.area->rows[watch].unplaced = !object.base;
		if (!object.base) {
			state.unplaced |= 1u << watch;
			return;
		}
	}
	state.unplaced &= ~(1u << watch);
	(void)arm(&object, true);
}

void watch_modules_changed_sigsafe(void)
{
	uint32_t i;

	if (!__atomic_load_n(&state.unplaced, __ATOMIC_RELAXED) || !registers_lock())
		return;
	for (i = 0; i < watch_state.count; i++)
		if (state.unplaced & 1u << i)
			fixed_arm(i);
	registers_unlock();
}

static void area_place(void)
{
	const struct log_region *region = &log_map.header->regions[LOG_REGION_WATCH];
	uint64_t hits = (sizeof(struct log_watch_area) + LOG_PAGE - 1) & ~(uint64_t)(LOG_PAGE - 1);

	watch_state.area = (void *)(log_map.base + region->offset);
	watch_state.hits = log_map.base + region->offset + hits;
	watch_state.hit_count = 0;
}

static void pages_open(int trouble)
{
	uint32_t i;

	for (i = 0; i < watch_state.count; i++) {
		struct log_watch_row *row = &watch_state.area->rows[i];

		row->trouble = trouble;
		row->mode = trouble ? LOG_WATCH_OFF : LOG_WATCH_PAGES;
		row->kernel_writes = !trouble;
	}
	if (watch_pages.yielded())
		watch_state.area->rows[0].yielded = LOG_YIELDED_TO_KERNEL;
}

static void registers_open(void)
{
	int trouble =
		watch_registers_open(agent.plan.tracer != 0, &watch_state.area->rows[0].yielded);
	uint32_t i;

	for (i = 0; i < watch_state.count; i++) {
		struct log_watch_row *row = &watch_state.area->rows[i];

		row->trouble = trouble;
		row->mode = watch_registers_mode();
		row->kernel_writes = watch_registers_see_kernel();
	}
	unexplained_notes_calls = !trouble && !watch_registers_see_kernel();
}

void watch_init(void)
{
	bool blocks = false;
	uint32_t i;

	if (!watch_state.count)
		return;
	area_place();
	arch_vectors_init();
	state.random = agent.plan.seed | 1;
	for (i = 0; i < watch_state.count; i++)
		watch_state.reads |= (watch_state.plans[i]->flags & PLAN_WATCH_READS) != 0;
	watch_state.reads = watch_state.reads && memory_reads_by_kernel();
	if (watch_state.reads)
		watch_registers_want_reads();
	if (agent.plan.flags & PLAN_PAGES)
		pages_open(watch_pages.init());
	else
		registers_open();
	for (i = 0; i < watch_state.count; i++) {
		const struct plan_watch *plan = watch_state.plans[i];

		blocks |= takes_blocks(plan) || places(plan);
		if (agent.plan.flags & PLAN_PAGES)
			continue;
		if (plan->kind == PLAN_WATCH_ADDRESS || plan->kind == PLAN_WATCH_GLOBAL)
			fixed_arm(i);
	}
	watch_thread_born();
	if (blocks)
		context_marks = memory_map_sigsafe(agent.plan.context_rows * sizeof(uint16_t));
}

static void row_again(struct watch_armed *armed)
{
	if (!armed->number)
		return;
	watched_row_begin(armed, armed->number, 0);
	watch_state.area->rows[armed->watch].objects++;
	watch_state.area->rows[armed->watch].armed++;
}

void watch_after_fork(void)
{
	unsigned i;

	if (!watch_state.count)
		return;
	area_place();
	registers_unlock();
	if (context_marks)
		memset(context_marks, 0, agent.plan.context_rows * sizeof(uint16_t));
	if (agent.plan.flags & PLAN_PAGES) {
		pages_open(watch_pages.after_fork());
		watch_pages.each(row_again);
		return;
	}
	watch_registers_after_fork();
	registers_open();
	/* What was watched is watched in the child, too, with rows in its own log. */
	registers_after_fork();
	for (i = 0; i < WATCH_ARMED_MAX; i++)
		row_again(&watch_state.armed[i]);
}

void watch_switch_on(void)
{
	agent_switch.lines |= agent.plan.observer >= PLAN_OBSERVE_IDS && watch_state.area;
}
