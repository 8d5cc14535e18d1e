/*
 * Objects that are watched in watched pages (pages.h): each is in the list of its slot.
 */
#include "agent/core/memory.h"
#include "agent/core/spin.h"
#include "agent/pages/pages_inside.h"

#define OBJECTS_MOST (1u << 22)

/* Objects that ended, linked by `next`. The lock is taken last, under that of a slot. */
static uint32_t free_lock;  /* atomic */
static uint32_t free_first; /* index + 1 */

bool pages_objects_init(void)
{
	pages.objects = memory_map_sigsafe(OBJECTS_MOST * sizeof(pages.objects[0]));
	return pages.objects != NULL;
}

void pages_objects_unlock_sigsafe(void)
{
	free_lock = 0;
}

/* Under the lock. */
static struct pages_armed *object_take(void)
{
	struct pages_armed *object;

	if (free_first) {
		object = &pages.objects[free_first - 1];
		free_first = object->next;
		return object;
	}
	if (pages.objects_used == OBJECTS_MOST)
		return NULL;
	object = &pages.objects[pages.objects_used];
	__atomic_store_n(&pages.objects_used, pages.objects_used + 1, __ATOMIC_RELEASE);
	return object;
}

bool pages_arm(const struct watch_armed *armed, uint32_t context)
{
	struct pages_slot *slot = pages_slot_sigsafe(armed->address);
	struct pages_armed *object;
	struct pages_locks locks;
	uint64_t mask;

	/* What is watched ends with its slot: stores behind are told of the next one's objects. */
	if (!slot || !slot->bytes || __atomic_load_n(&pages.yielded, __ATOMIC_ACQUIRE) ||
	    armed->address + armed->bytes > slot->start + pages_slot_bytes(slot))
		return false;
	mask = pages_signals_block();
	locks = pages_lock_sigsafe(armed->address, armed->address + 1);
	(void)spin_take_sigsafe(&free_lock, PAGES_LOCK_SPINS);
	object = pages_left_sigsafe(armed->address) ? NULL : object_take();
	spin_give_sigsafe(&free_lock);
	if (object) {
		object->armed = *armed;
		object->slot = (uint32_t)(slot - pages.slots);
		object->calls = 0;
		watch_begin(&object->armed, context);
		object->next = slot->armed;
		slot->armed = (uint32_t)(object - pages.objects) + 1;
	}
	pages_unlock_sigsafe(locks);
	pages_signals_restore(mask);
	return object != NULL;
}

/* A call may be writing to it just now: no change that nobody made. */
static void object_settle(struct pages_armed *object)
{
	if (object->calls)
		(void)watch_read_sigsafe(object->armed.last, object->armed.address,
					 object->armed.bytes);
}

/* Takes an object out of its slot's list; `link` is what points to it. The slot's lock is held. */
static void object_end(uint32_t *link, struct pages_armed *object, enum log_watched_end why)
{
	*link = object->next;
	object_settle(object);
	if (why == LOG_WATCHED_MOVED)
		__atomic_fetch_add(&watch_state.area->rows[object->armed.watch].moved, 1,
				   __ATOMIC_RELAXED);
	watch_end(&object->armed, why);
	(void)spin_take_sigsafe(&free_lock, PAGES_LOCK_SPINS);
	object->next = free_first;
	free_first = (uint32_t)(object - pages.objects) + 1;
	spin_give_sigsafe(&free_lock);
}

static void slot_disarm(struct pages_slot *slot, uint64_t start, uint64_t bytes,
			enum log_watched_end why)
{
	struct pages_locks locks;
	uint64_t mask;
	uint32_t *link;

	if (!slot || !slot->armed)
		return;
	mask = pages_signals_block();
	locks = pages_lock_sigsafe(slot->start, slot->start + 1);
	for (link = &slot->armed; *link;) {
		struct pages_armed *object = &pages.objects[*link - 1];

		if (object->armed.address - start >= (bytes ? bytes : 1) ||
		    (why != LOG_WATCHED_AGAIN && why != LOG_WATCHED_YIELDED &&
		     watch_outlives(&object->armed)))
			link = &object->next;
		else
			object_end(link, object, why);
	}
	pages_unlock_sigsafe(locks);
	pages_signals_restore(mask);
}

void pages_disarm(uint64_t start, uint64_t bytes, enum log_watched_end why)
{
	slot_disarm(pages_slot_sigsafe(start), start, bytes, why);
}

bool pages_resized(uint64_t start, uint64_t size)
{
	struct pages_slot *slot = pages_slot_sigsafe(start);

	if (!slot || !slot->armed)
		return false;
	slot_disarm(slot, start + size, pages_slot_bytes(slot), LOG_WATCHED_MOVED);
	return slot->armed != 0;
}

/* Under the lock of its slot. */
static void objects_visit(void (*visit)(struct pages_armed *object))
{
	uint32_t count = __atomic_load_n(&pages.objects_used, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < count; i++) {
		struct pages_armed *object = &pages.objects[i];
		struct pages_locks locks;

		if (!__atomic_load_n(&object->armed.number, __ATOMIC_ACQUIRE))
			continue;
		locks = pages_lock_sigsafe(object->armed.address, object->armed.address + 1);
		if (object->armed.number)
			visit(object);
		pages_unlock_sigsafe(locks);
	}
}

static void object_look(struct pages_armed *object)
{
	if (!object->calls)
		watch_look(&object->armed);
}

static void object_exit(struct pages_armed *object)
{
	if (!object->calls)
		watch_end(&object->armed, LOG_WATCHED_EXIT);
}

static void object_yield(struct pages_armed *object)
{
	object_settle(object);
	watch_end(&object->armed, LOG_WATCHED_YIELDED);
}

void pages_crashing_sigsafe(void)
{
	if (pages.bytes)
		objects_visit(object_look);
}

void pages_exiting_sigsafe(void)
{
	if (watch_state.area && pages.bytes)
		objects_visit(object_exit);
}

void pages_objects_yield_sigsafe(void)
{
	uint64_t mask = pages_signals_block();

	objects_visit(object_yield);
	pages_signals_restore(mask);
}
