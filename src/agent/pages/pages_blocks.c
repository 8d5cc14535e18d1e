/*
 * Blocks in watched pages (pages.h): allocated, resized and freed there in place of libc.
 */
#include <string.h>

#include "agent/core/real.h"
#include "agent/core/told.h"
#include "agent/ids/blocks.h"
#include "agent/pages/pages_inside.h"

#define TAIL_BYTE 0x96 /* what stands behind a block: neither 0, ASCII nor 0xff */
#define TAIL_FILLED 16u

static struct pages_slot *block_take(uint64_t align, uint64_t size)
{
	if (watch_fences())
		return pages_slot_take_fenced(align, size);
	return told_ready() ? pages_slot_take(align, size) : NULL;
}

static bool context_wants(struct guard *guard, uint64_t size, struct caller caller)
{
	uint64_t context;

	/* Places that are known have no watch: context.c. */
	if (context_hit(guard->self, caller, &context))
		return false;
	context = context_find(guard, caller);
	return context_marked((uint32_t)context) && watch_places((uint32_t)context, size);
}

/* What a block is to hold from the start: what is watched begins with it. */
struct content {
	const void *from; /* NULL: zeros */
	uint64_t bytes;
};

/* Whoever writes behind the block changes something there, if that is what is watched. */
static void tail_fill(const struct pages_slot *slot, uint64_t size)
{
	uint64_t room = pages_slot_bytes(slot) - size;

	memset((void *)(slot->start + pages.distance + size), TAIL_BYTE,
	       room < TAIL_FILLED ? room : TAIL_FILLED);
}

static void *block_begin_here(struct guard *guard, struct pages_slot *slot, uint64_t size,
			      struct content content, enum log_api api, struct caller caller)
{
	if (slot) {
		if (content.from)
			memcpy((void *)(slot->start + pages.distance), content.from, content.bytes);
		else
			memset((void *)(slot->start + pages.distance), 0, content.bytes);
		tail_fill(slot, size);
		(void)block_begin_guarded(guard, BLOCKS_HEAP, slot->start, size, api, caller);
	}
	return slot ? (void *)slot->start : NULL;
}

static void *block_place(uint64_t align, uint64_t size, struct content content, enum log_api api,
			 struct caller caller)
{
	struct pages_slot *slot = NULL;
	struct guard guard;
	void *ptr;

	if (!guard_enter(&guard))
		return NULL;
	if (context_wants(&guard, size, caller))
		slot = block_take(align, size);
	ptr = block_begin_here(&guard, slot, size, content, api, caller);
	guard_leave(&guard);
	return ptr;
}

void *pages_allocate_python(uint64_t size, bool zeroed, struct caller caller)
{
	struct guard guard;
	void *ptr;

	if (!thread_self || !thread_self->calls.place_python || !guard_enter(&guard))
		return NULL;
	guard.self->calls.place_python = false;
	ptr = block_begin_here(&guard, block_take(0, size), size,
			       (struct content){ .bytes = zeroed ? size : 0 }, LOG_API_MALLOC,
			       caller);
	guard_leave(&guard);
	return ptr;
}

void *pages_allocate(uint64_t align, uint64_t size, bool zeroed, enum log_api api,
		     struct caller caller)
{
	return block_place(align, size, (struct content){ .bytes = zeroed ? size : 0 }, api,
			   caller);
}

/* What is no block: told as a bad free, and left alone. libc would end the process; that is what
 * its own check says. */
static struct pages_slot *block_known(void *ptr)
{
	struct pages_slot *slot = pages_slot_sigsafe((uint64_t)ptr);

	return slot && slot->start == (uint64_t)ptr && slot->bytes ? slot : NULL;
}

void pages_free(void *ptr, struct caller caller)
{
	struct pages_slot *slot = block_known(ptr);
	struct guard guard;

	if (guard_enter(&guard)) {
		block_end_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, caller);
		guard_leave(&guard);
	}
	if (slot && watch_fences())
		pages_slot_shut(slot);
	else if (slot)
		pages_slot_give(slot);
	else
		real.free(ptr); /* says what it says about a pointer that is not its own */
}

/* Stays where it is if it fits. */
static bool resize_in_place(void *ptr, uint64_t size, struct pages_slot *slot, struct caller caller)
{
	struct block *block = NULL;
	struct guard guard;

	if (!size || size > pages_room(slot))
		return false;
	if (guard_enter(&guard)) {
		block = block_suspend(&guard, (uint64_t)ptr, caller);
		if (block)
			block_resume(&guard, block, (uint64_t)ptr, size);
		guard_leave(&guard);
	}
	slot->bytes = size;
	return true;
}

static void *elsewhere(uint64_t size, struct caller caller)
{
	struct guard guard;
	void *ptr = real.malloc(size);

	if (ptr && guard_enter(&guard)) {
		(void)block_begin_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, size, LOG_API_MALLOC,
					  caller);
		guard_leave(&guard);
	}
	return ptr;
}

void *pages_realloc(void *ptr, uint64_t size, struct caller caller)
{
	struct pages_slot *slot = block_known(ptr);
	uint64_t kept;
	void *moved;

	if (!slot)
		return real.realloc(ptr, size);
	if (!size) { /* as libc has it */
		pages_free(ptr, caller);
		return NULL;
	}
	if (resize_in_place(ptr, size, slot, caller))
		return ptr;
	kept = pages_usable(ptr) < size ? pages_usable(ptr) : size;
	moved = block_place(0, size, (struct content){ ptr, kept }, LOG_API_MALLOC, caller);
	if (!moved) {
		moved = elsewhere(size, caller);
		if (!moved)
			return NULL;
		memcpy(moved, ptr, kept);
	}
	pages_disarm((uint64_t)ptr, slot->bytes, LOG_WATCHED_MOVED);
	pages_free(ptr, caller);
	return moved;
}

void *pages_take_in(void *ptr, uint64_t size, struct caller caller)
{
	uint64_t kept = real.malloc_usable_size ? real.malloc_usable_size(ptr) : 0;
	struct guard guard;
	void *moved;

	if (!kept || !size)
		return NULL;
	moved = block_place(0, size, (struct content){ ptr, kept < size ? kept : size },
			    LOG_API_MALLOC, caller);
	if (!moved)
		return NULL;
	if (guard_enter(&guard)) {
		block_end_guarded(&guard, BLOCKS_HEAP, (uint64_t)ptr, caller);
		guard_leave(&guard);
	}
	real.free(ptr);
	return moved;
}
