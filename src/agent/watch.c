#include "agent/watch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/arch/vectors.h"
#include "agent/arch/x86_64.h"
#include "agent/clock.h"
#include "agent/log.h"
#include "agent/memory.h"
#include "agent/modules.h"
#include "agent/pages.h"
#include "agent/watch_registers.h"
#include "wire/checksum.h"

#define LOCK_SPINS 20000u
#define OBJECT_REACH (64u << 10)
#define PIECE_BYTES_MAX 8u
#define SETTLE_STEP_NS 50000
#define SETTLE_STEPS 400u	/* 20 ms for one change… */
#define SETTLE_STEPS_ALL 10000u /* …and half a second for all */

struct watch_state watch_state;
uint16_t *watch_contexts;

/* What a debug register is aimed at. */
struct aim {
	uint64_t address;
	uint32_t bytes; /* 0: parked */
	uint32_t owner; /* index in watch_state.armed; OWNER_NONE: its object has ended */
};

#define OWNER_NONE WATCH_ARMED_MAX

static struct {
	uint32_t lock;	  /* atomic */
	uint64_t numbers; /* objects armed so far */
	uint64_t random;
	uint32_t unplaced; /* bit per watch: a global whose module is not there yet; atomic */
	uint32_t settling; /* steps waited so far; atomic */
	bool reads;	   /* trap, too */
	struct aim aims[WATCH_REGISTERS];
	bool unsure; /* the tracer was killed while a register was being aimed */
} state;

/* ---- the plan ------------------------------------------------------------------------------ */

bool watch_plan(const struct plan_watch *item)
{
	uint64_t ranges = (item->item.bytes - sizeof(*item)) / sizeof(struct plan_range);

	if (watch_state.count == PLAN_WATCHES_MAX || item->range_count > ranges ||
	    item->place_count > item->range_count || item->python_type[63] ||
	    item->step_count > PLAN_STEPS_MAX || !item->bytes || item->bytes > PLAN_WATCH_BYTES_MAX)
		return false;
	watch_state.plans[watch_state.count++] = item;
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

/* ---- the lock ------------------------------------------------------------------------------ */

/* False when somebody has it for too long: then this object is not watched, and counted so. */
static bool lock_take(void)
{
	uint32_t spins, none;

	for (spins = 0; spins < LOCK_SPINS; spins++) {
		none = 0;
		if (__atomic_compare_exchange_n(&state.lock, &none, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		if (spins % 64 == 63)
			(void)raw_syscall0(SYS_sched_yield);
		else
			__builtin_ia32_pause();
	}
	return false;
}

static void lock_give(void)
{
	__atomic_store_n(&state.lock, 0, __ATOMIC_RELEASE);
}

/* ---- reading what is watched ----------------------------------------------------------------- */

/* Not inlined: without a call the compiler sees no way back to __builtin_setjmp. Our own
 * instruction: recovery is for faults in our code only. */
static __attribute__((noinline)) void copy_out(void *to, uint64_t from, uint32_t bytes)
{
	arch_copy(to, (const void *)from, bytes);
}

static __attribute__((noinline)) bool read_guarded(struct thread *self, void *to, uint64_t from,
						   uint32_t bytes)
{
	uint64_t outer[5];
	uint32_t was = self->recovery_armed;

	memcpy(outer, self->recovery, sizeof(outer));
	if (__builtin_setjmp((void **)self->recovery)) {
		self = thread_self;
		memcpy(self->recovery, outer, sizeof(outer));
		self->recovery_armed = was;
		return false;
	}
	self->recovery_armed = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	copy_out(to, from, bytes);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->recovery_armed = was;
	memcpy(self->recovery, outer, sizeof(outer));
	return true;
}

bool watch_read_sigsafe(void *to, uint64_t from, uint32_t bytes)
{
	struct thread *self = thread_self;

	/* Where reads trap, our own may not be one: the kernel's goes by another address. */
	if (self && !state.reads)
		return read_guarded(self, to, from, bytes);
	return memory_read_sigsafe(to, from, bytes) == bytes;
}

static bool value_read(const struct watch_armed *armed, uint64_t words[WATCH_WORDS])
{
	memset(words, 0, WATCH_WORDS * sizeof(words[0]));
	return watch_read_sigsafe(words, armed->address, armed->bytes);
}

/* ---- rows in the log ------------------------------------------------------------------------- */

static void row_seal(struct log_watched *row)
{
	struct log_watched sealed = *row;

	/* Hits are counted without sealing it anew. */
	sealed.hits = 0;
	sealed.check = 0;
	row->check = checksum_add(CHECKSUM_SEED, &sealed, sizeof(sealed));
}

static void row_begin(struct watch_armed *armed, uint64_t number, uint32_t context)
{
	struct log_watched *row = &watch_state.area->watched[number % LOG_WATCHED];

	memset(row, 0, sizeof(*row));
	row->number = number;
	row->address = armed->address;
	row->id = armed->id;
	row->start = armed->start;
	row->size = armed->size;
	row->key = armed->key;
	row->watch = armed->watch;
	row->begin_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	row->context = context;
	row->lane = thread_self ? thread_self->lane : UINT32_MAX;
	row->first_value = row->last_value = row->last_seen = armed->last[0];
	row_seal(row);
	armed->row = row;
	watch_state.area->watched_count = number;
}

/* ---- changes that nobody was caught at ----------------------------------------------------------
 */

static bool differs(const struct watch_armed *armed, const uint64_t words[WATCH_WORDS])
{
	return memcmp(words, armed->last, sizeof(armed->last)) != 0 &&
	       memcmp(words, armed->noted, sizeof(armed->noted)) != 0;
}

/* Another thread may be between its store and our handler, and not even on a CPU. It is waited for,
 * a little: where a hit comes in, that was it. False: so it was. */
static bool settled(const struct watch_armed *armed, uint64_t number)
{
	static const struct timespec step = { .tv_nsec = SETTLE_STEP_NS };
	uint64_t hits = __atomic_load_n(&armed->row->hits, __ATOMIC_RELAXED);
	uint32_t i;

	for (i = 0; i < SETTLE_STEPS; i++) {
		if (__atomic_fetch_add(&state.settling, 1, __ATOMIC_RELAXED) >= SETTLE_STEPS_ALL)
			break;
		(void)raw_syscall2(SYS_nanosleep, &step, 0);
		if (__atomic_load_n(&armed->row->hits, __ATOMIC_RELAXED) != hits ||
		    (armed->number && armed->number != number))
			return false;
	}
	return true;
}

static void changed_write(struct watch_armed *armed, uint64_t number,
			  const uint64_t words[WATCH_WORDS])
{
	struct log_watch_changed changed = { .watched = number,
					     .address = armed->address,
					     .hit = watch_state.hit_count,
					     .watch = armed->watch,
					     .bytes = armed->bytes };
	struct log_writer writer;

	if (!differs(armed, words))
		return;
	if (!armed->paged && memcmp(words, armed->beside, sizeof(armed->beside)) != 0 &&
	    !settled(armed, number))
		return;
	memcpy(armed->noted, words, sizeof(armed->noted));
	memcpy(changed.expected, armed->last, sizeof(changed.expected));
	memcpy(changed.found, words, sizeof(changed.found));
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, LOG_WATCH_CHANGED, &changed, sizeof(changed), NULL, 0);
}

void watch_check_sigsafe(void)
{
	uint64_t words[WATCH_WORDS], number;
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		number = __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE);
		if (number && value_read(armed, words))
			changed_write(armed, number, words);
	}
}

static void armed_end(struct watch_armed *armed, enum log_watched_end why)
{
	uint64_t number = __atomic_exchange_n(&armed->number, 0, __ATOMIC_ACQ_REL);
	uint64_t words[WATCH_WORDS];
	struct log_watched *row = armed->row;

	if (!number)
		return;
	if (value_read(armed, words))
		changed_write(armed, number, words);
	else
		memcpy(words, armed->last, sizeof(words));
	if (row->number != number)
		return;
	row->end = why;
	row->end_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	row->last_seen = armed->last[0];
	row->last_value = words[0];
	row_seal(row);
	if (why == LOG_WATCHED_DISPLACED)
		watch_state.area->rows[armed->watch].displaced++;
}

void watch_exiting_sigsafe(void)
{
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++)
		armed_end(&watch_state.armed[i], LOG_WATCHED_EXIT);
	if (watch_state.area && pages.bytes)
		pages_check_sigsafe(true);
}

/* ---- for watched pages ------------------------------------------------------------------------ */

static void last_read(struct watch_armed *armed)
{
	(void)value_read(armed, armed->last);
	memcpy(armed->noted, armed->last, sizeof(armed->noted));
	memcpy(armed->beside, armed->last, sizeof(armed->beside));
}

void watch_begin(struct watch_armed *armed, uint32_t context)
{
	uint64_t number = __atomic_add_fetch(&state.numbers, 1, __ATOMIC_RELAXED);

	last_read(armed);
	row_begin(armed, number, context);
	__atomic_store_n(&armed->number, number, __ATOMIC_RELEASE);
}

void watch_look(struct watch_armed *armed)
{
	uint64_t words[WATCH_WORDS];

	if (value_read(armed, words))
		changed_write(armed, armed->number, words);
}

void watch_end(struct watch_armed *armed, enum log_watched_end why)
{
	armed_end(armed, why);
}

bool watch_outlives(const struct watch_armed *armed)
{
	return watch_state.plans[armed->watch]->flags & PLAN_WATCH_AFTER_FREE;
}

/* ---- arming -------------------------------------------------------------------------------- */

/* Cuts [address, +bytes) into what a register can cover. */
static unsigned pieces_cut(uint64_t address, uint32_t bytes, struct aim pieces[WATCH_REGISTERS])
{
	unsigned count = 0;

	while (bytes && count < WATCH_REGISTERS) {
		uint32_t piece = PIECE_BYTES_MAX;

		while (piece > bytes || address % piece)
			piece /= 2;
		pieces[count++] = (struct aim){ .address = address, .bytes = piece };
		address += piece;
		bytes -= piece;
	}
	return count;
}

static bool register_free(unsigned n)
{
	const struct aim *aim = &state.aims[n];

	return !aim->bytes || aim->owner == OWNER_NONE || !watch_state.armed[aim->owner].number;
}

/* An entry is used anew: registers that its last object had are nobody's, though still aimed. */
static void registers_disown(uint32_t owner)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++)
		if (state.aims[i].owner == owner)
			state.aims[i].owner = OWNER_NONE;
}

static unsigned registers_free(void)
{
	unsigned i, count = 0;

	for (i = 0; i < WATCH_REGISTERS; i++)
		count += register_free(i);
	return count;
}

/* Where somebody is arming right now, the register is left to him. */
void watch_retire_register_sigsafe(unsigned n, uint64_t address)
{
	uint32_t none = 0;

	if (n >= WATCH_REGISTERS)
		return;
	if (!__atomic_compare_exchange_n(&state.lock, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	if (register_free(n) && state.aims[n].address == address &&
	    !watch_registers_park_sigsafe(n)) {
		state.aims[n].bytes = 0;
		state.aims[n].address = 0;
	}
	lock_give();
}

bool watch_register_lingers_sigsafe(void)
{
	unsigned i;

	for (i = 0; i < WATCH_REGISTERS; i++)
		if (register_free(i) && state.aims[i].bytes)
			return true;
	return state.unsure;
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

/* A register for this piece, best the one that is aimed there already. */
static unsigned register_choose(const struct aim *piece, unsigned taken)
{
	unsigned i, best = WATCH_REGISTERS;

	for (i = 0; i < WATCH_REGISTERS; i++) {
		if ((taken & 1u << i) || !register_free(i))
			continue;
		if (state.aims[i].address == piece->address && state.aims[i].bytes == piece->bytes)
			return i;
		if (best == WATCH_REGISTERS)
			best = i;
	}
	return best;
}

/* 0, or an errno. */
static int armed_aim(uint32_t owner, const struct aim *pieces, unsigned count)
{
	unsigned i, n, taken = 0, chosen[WATCH_REGISTERS];
	int trouble;

	for (i = 0; i < count; i++) {
		chosen[i] = register_choose(&pieces[i], taken);
		if (chosen[i] == WATCH_REGISTERS)
			return ENOSPC;
		taken |= 1u << chosen[i];
	}
	for (i = 0; i < count; i++) {
		struct aim *aim = &state.aims[chosen[i]];

		n = chosen[i];
		if (aim->address != pieces[i].address || aim->bytes != pieces[i].bytes) {
			trouble = watch_registers_aim_sigsafe(n, pieces[i].address, pieces[i].bytes,
							 n + 1);
			state.unsure |= trouble == ENOTCONN;
			if (trouble)
				return trouble;
		}
		*aim = pieces[i];
		aim->owner = owner;
	}
	return 0;
}

/* What to watch. */
struct object {
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
			armed_end(armed, why);
			found = true;
		}
	}
	return found;
}

/* Any number of them, as long as they were placed there when they were allocated. */
static void arm_paged(const struct object *object, uint64_t address)
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
	if (!pages_hold(address))
		return;
	if (plan->kind == PLAN_WATCH_HOOK)
		pages_disarm(address, 1, LOG_WATCHED_AGAIN);
	if (pages_arm(&armed, object->context))
		__atomic_fetch_add(&row->armed, 1, __ATOMIC_RELAXED);
}

/* Under the lock. */
static void arm(const struct object *object, bool fixed)
{
	const struct plan_watch *plan = watch_state.plans[object->watch];
	struct log_watch_row *row = &watch_state.area->rows[object->watch];
	struct aim pieces[WATCH_REGISTERS];
	struct watch_armed *armed, *gone;
	uint64_t address = object->base + (uint64_t)plan->offset;
	unsigned count = pieces_cut(address, plan->bytes, pieces);
	int trouble;

	row->objects++;
	if (address >> BLOCKS_ADDRESS_BITS)
		return;
	(void)same_place(address, LOG_WATCHED_AGAIN);
	while (registers_free() < count || !armed_unused()) {
		gone = displaceable(plan, row->objects);
		if (!gone)
			return;
		armed_end(gone, LOG_WATCHED_DISPLACED);
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
	if (!value_read(armed, armed->last) && !fixed)
		return;
	memcpy(armed->noted, armed->last, sizeof(armed->noted));
	memcpy(armed->beside, armed->last, sizeof(armed->beside));
	row_begin(armed, ++state.numbers, object->context);
	__atomic_store_n(&armed->number, state.numbers, __ATOMIC_RELEASE);
	trouble = armed_aim((uint32_t)(armed - watch_state.armed), pieces, count);
	if (trouble) {
		row->trouble = trouble;
		__atomic_store_n(&armed->number, 0, __ATOMIC_RELEASE);
		armed->row->number = 0;
		return;
	}
	row->armed++;
}

static void arm_locked(const struct object *object)
{
	if (agent.plan.flags & PLAN_PAGES) {
		arm_paged(object, object->base +
					  (uint64_t)watch_state.plans[object->watch]->offset);
		return;
	}
	if (!lock_take()) {
		watch_state.area->rows[object->watch].objects++;
		return;
	}
	arm(object, false);
	lock_give();
}

/* ---- objects ------------------------------------------------------------------------------- */

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

void watch_block_born(struct guard *guard, struct block *block, uint64_t start)
{
	uint32_t row = block->context & BLOCK_CONTEXT_MASK, mask = watch_contexts[row], i;
	const struct log_context *context = &log_map.contexts[row];
	struct object object = { .base = start,
				 .id = block->id,
				 .start = start,
				 .size = block_size(block),
				 .key = { context->stack_hash, context->lane, block->ordinal },
				 .context = row };

	(void)guard;
	for (i = 0; i < watch_state.count; i++) {
		if (!(mask & 1u << i) || !takes_blocks(watch_state.plans[i]) ||
		    !block_wanted(watch_state.plans[i], block_size(block), block->ordinal, context))
			continue;
		object.watch = i;
		block->low |= 1;
		arm_locked(&object);
	}
}

bool watch_places(uint32_t context, uint64_t size)
{
	uint32_t i;

	for (i = 0; i < watch_state.count; i++)
		if (watch_contexts[context] & 1u << i &&
		    (!takes_blocks(watch_state.plans[i]) ||
		     block_wanted(watch_state.plans[i], size, (uint32_t)(context_ordinals[context] >> 32),
				  &log_map.contexts[context])))
			return true;
	return false;
}

static bool ends_with_block(const struct watch_armed *armed, uint64_t start, uint64_t size)
{
	return !armed->fixed && armed->address - start < (size ? size : 1) &&
	       !(watch_state.plans[armed->watch]->flags & PLAN_WATCH_AFTER_FREE);
}

void watch_block_gone(struct guard *guard, uint64_t start, uint64_t size, enum log_watched_end why)
{
	unsigned i;

	(void)guard;
	if (pages_hold(start)) {
		pages_disarm(start, size, why);
		return;
	}
	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (armed->number && ends_with_block(armed, start, size))
			armed_end(armed, why);
	}
}

/* On watched pages nothing happens to a block that stays: see watch_block_resume(). */
void watch_block_suspend(struct guard *guard, uint64_t start, uint64_t size)
{
	unsigned i;

	(void)guard;
	for (i = 0; watch_state.area && !pages_hold(start) && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		uint64_t number = armed->number;

		if (!number || !ends_with_block(armed, start, size))
			continue;
		armed_end(armed, LOG_WATCHED_MOVED);
		armed->suspended = number;
		__atomic_fetch_add(&watch_state.area->rows[armed->watch].moved, 1, __ATOMIC_RELAXED);
	}
}

/* Under the lock. Its row is taken up again; what another thread wrote meanwhile is nobody's change:
 * nobody was looking. */
static bool armed_resume(struct watch_armed *armed, uint64_t size)
{
	uint64_t number = armed->suspended;
	struct aim pieces[WATCH_REGISTERS];
	unsigned count = pieces_cut(armed->address, armed->bytes, pieces);

	armed->suspended = 0;
	if (armed->row->number != number || armed->address >= armed->start + size ||
	    registers_free() < count)
		return false;
	last_read(armed);
	armed->size = size;
	armed->row->size = size;
	armed->row->end = LOG_WATCHED_STILL;
	armed->row->end_ns = 0;
	row_seal(armed->row);
	__atomic_store_n(&armed->number, number, __ATOMIC_RELEASE);
	if (armed_aim((uint32_t)(armed - watch_state.armed), pieces, count)) {
		armed_end(armed, LOG_WATCHED_DISPLACED);
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
	if (pages_hold(start))
		return pages_resized(start, size);
	if (!lock_take())
		return false;
	for (i = 0; i < WATCH_ARMED_MAX; i++)
		if (watch_state.armed[i].suspended && watch_state.armed[i].start == start)
			any |= armed_resume(&watch_state.armed[i], size);
	lock_give();
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

	return watch_read_sigsafe(&type, object + PYTHON_OB_TYPE, 8) && python_type_is(type, wanted);
}

void watch_object(struct guard *guard, uint32_t watch, uint64_t address, struct caller caller)
{
	struct object object = { .watch = watch, .base = address };
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
	object.context = context_find(guard, caller);
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
			block->low |= 1;
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
			armed_end(armed, LOG_WATCHED_RETURNED);
	}
}

void watch_thread_born(void)
{
	uint32_t i;

	for (i = 0; watch_state.area && i < watch_state.count; i++) {
		struct object object = { .watch = i,
					 .base = arch_fs_base(),
					 .start = arch_fs_base() };

		if (watch_state.plans[i]->kind == PLAN_WATCH_THREAD)
			arm_locked(&object);
	}
}

void watch_thread_gone(void)
{
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		const struct plan_watch *plan = watch_state.plans[armed->watch];

		if (armed->number && plan->kind == PLAN_WATCH_THREAD &&
		    armed->address == arch_fs_base() + (uint64_t)plan->offset)
			armed_end(armed, LOG_WATCHED_RETURNED);
	}
}

/* ---- contexts ------------------------------------------------------------------------------ */

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

	if (!watch_contexts)
		return;
	for (i = 0; i < watch_state.count; i++) {
		const struct plan_watch *plan = watch_state.plans[i];

		if (plan->kind == PLAN_WATCH_KEY
			    ? plan->key.stack_hash == stack_hash
			    : (plan->kind == PLAN_WATCH_CONTEXT || places(plan)) &&
				      goes_through(plan, frames, count))
			mask |= (uint16_t)(1u << i);
	}
	watch_contexts[row] = mask;
}

/* ---- start and fork ---------------------------------------------------------------------------
 */

static void fixed_arm(uint32_t watch)
{
	const struct plan_watch *plan = watch_state.plans[watch];
	struct object object = { .watch = watch, .base = plan->address };

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
	arm(&object, true);
}

void watch_modules_changed_sigsafe(void)
{
	uint32_t i;

	if (!__atomic_load_n(&state.unplaced, __ATOMIC_RELAXED) || !lock_take())
		return;
	for (i = 0; i < watch_state.count; i++)
		if (state.unplaced & 1u << i)
			fixed_arm(i);
	lock_give();
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
}

static void registers_open(void)
{
	int trouble = watch_registers_open(agent.plan.tracer != 0,
					   &watch_state.area->rows[0].yielded);
	uint32_t i;

	for (i = 0; i < watch_state.count; i++) {
		struct log_watch_row *row = &watch_state.area->rows[i];

		row->trouble = trouble;
		row->mode = watch_registers_mode();
		row->kernel_writes = watch_registers_see_kernel();
	}
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
		state.reads |= (watch_state.plans[i]->flags & PLAN_WATCH_READS) != 0;
	state.reads = state.reads && memory_reads_by_kernel();
	if (state.reads)
		watch_registers_want_reads();
	if (agent.plan.flags & PLAN_PAGES)
		pages_open(pages_init());
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
		watch_contexts = memory_map_sigsafe(agent.plan.context_rows * sizeof(uint16_t));
}

static void row_again(struct watch_armed *armed)
{
	if (!armed->number)
		return;
	row_begin(armed, armed->number, 0);
	watch_state.area->rows[armed->watch].objects++;
	watch_state.area->rows[armed->watch].armed++;
}

void watch_after_fork(void)
{
	unsigned i;

	if (!watch_state.count)
		return;
	area_place();
	state.lock = 0;
	if (watch_contexts)
		memset(watch_contexts, 0, agent.plan.context_rows * sizeof(uint16_t));
	if (agent.plan.flags & PLAN_PAGES) {
		pages_after_fork();
		pages_open(pages.trouble);
		for (i = 0; i < pages.objects_used; i++)
			row_again(&pages.objects[i].armed);
		return;
	}
	watch_registers_after_fork();
	registers_open();
	/* What was watched is watched in the child, too, with rows in its own log. */
	for (i = 0; i < WATCH_REGISTERS; i++)
		if (state.aims[i].bytes)
			(void)watch_registers_aim_sigsafe(i, state.aims[i].address, state.aims[i].bytes,
						     i + 1);
	for (i = 0; i < WATCH_ARMED_MAX; i++)
		row_again(&watch_state.armed[i]);
}
