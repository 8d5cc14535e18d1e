#include "agent/guards/badfree.h"

#include <string.h>

#include "agent/core/log.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/core/text.h"
#include "agent/guards/canary.h"
#include "agent/ids/glibc_heap.h"

#define JUDGED_MAX 256u /* then it is a program whose blocks we do not see, and only counted */
#define REACH (64ull << 20)
#define ALIGNED 16u

static uint32_t judged; /* atomic */

void badfree_record(struct guard *guard, uint64_t pointer, const struct block_view *hit,
		    const struct log_bad_free *bad, struct caller caller)
{
	struct log_block block = { .via = LOG_VIA_BAD_FREE, .value = pointer };
	struct log_bad_free record = *bad;
	struct log_writer writer;

	record.pointer = pointer;
	record.context = context_find(guard, caller);
	if (record.kind == LOG_INTERIOR_FREE || record.kind == LOG_INVALID_FREE)
		block_misfreed = (struct block_misfreed){ pointer, hit ? hit->start : 0 };
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_BAD_FREE, &record, sizeof(record));
	if (!hit)
		return;
	block_describe_sigsafe(hit, &block);
	(void)log_append_sigsafe(&writer, LOG_BLOCK, &block, sizeof(block), NULL, 0);
}

/* Behind a block, in what we have asked libc for beyond it. */
static bool in_guard(const struct block_view *view, uint64_t pointer)
{
	uint64_t front = canary_front(&view->block);

	return front && pointer < view->start - front + canary_room(front, view->size);
}

/* Into a live block, or one that is kept back. With guards it is what we gave out ourselves. */
static bool interior(struct guard *guard, uint64_t pointer, struct caller caller)
{
	struct log_bad_free bad = { .kind = LOG_INTERIOR_FREE };
	struct block_view view;

	if (!block_find_sigsafe(BLOCKS_HEAP, pointer, REACH, &view, 1) ||
	    (view.block.state != LOG_BLOCK_LIVE && !canary_front(&view.block)) ||
	    (view.relation != LOG_INSIDE && !in_guard(&view, pointer)))
		return false;
	if (canary_front(&view.block))
		bad.evidence = LOG_EVIDENCE_PLACE;
	badfree_record(guard, pointer, &view, &bad, caller);
	return true;
}

/* What was freed is the poison of a freed block: it was read from there. */
static bool poisoned(struct guard *guard, uint64_t pointer, struct caller caller)
{
	struct log_bad_free bad = { .kind = LOG_INVALID_FREE, .evidence = LOG_EVIDENCE_PLACE };
	struct block_view view = { .relation = LOG_INSIDE };
	const struct block *block;

	if (!canary_decode(canary.seed, pointer, CANARY_POISON, &view.start))
		return false;
	block = block_at_sigsafe(BLOCKS_HEAP, view.start);
	if (!block || block->state != LOG_BLOCK_FREED)
		return false;
	view.block = *block;
	view.size = block_size(block);
	badfree_record(guard, pointer, &view, &bad, caller);
	return true;
}

/* In a file's mapping, the zeroed globals behind it, or a stack? The loader's own memory is left
 * out: it gives out parts of it before there is a malloc. */
static bool in_globals_or_stack(uint64_t pointer)
{
	struct maps_buffer *buffer = memory_map_sigsafe(sizeof(*buffer));
	struct maps_walk walk;
	struct maps_line line;
	uint64_t file_end = 0;
	bool found = false, loader = false;

	if (!buffer)
		return false;
	if (maps_begin_sigsafe(&walk, buffer)) {
		while (maps_next_sigsafe(&walk, &line) && line.low <= pointer) {
			bool zeroed = !line.path[0] && line.low == file_end;

			if (line.inode)
				loader = strstr(line.path, "/ld-linux") ||
					 strstr(line.path, "/ld-2.");
			found = pointer < line.high && !loader &&
				((line.inode && line.path[0] == '/' &&
				  memcmp(line.path, "/dev/", 5) != 0) ||
				 zeroed || !strcmp(line.path, "[stack]"));
			file_end = line.inode ? line.high : 0;
		}
		maps_end_sigsafe(&walk);
	}
	memory_unmap_sigsafe(buffer, sizeof(*buffer));
	return found;
}

/* Never a block: no allocator gives out such an address. */
static bool invalid(struct guard *guard, uint64_t pointer, struct caller caller)
{
	struct log_bad_free bad = { .kind = LOG_INVALID_FREE, .evidence = LOG_EVIDENCE_PLACE };
	const struct thread *self = guard->self;
	bool on_stack = pointer >= caller.frame && pointer < self->stack_high;
	bool misaligned = real.glibc_malloc && pointer % ALIGNED;

	/* Without guards nobody has asked for what that costs. */
	if (!on_stack && !misaligned && !(canary.on && in_globals_or_stack(pointer)))
		return false;
	badfree_record(guard, pointer, NULL, &bad, caller);
	return true;
}

/* Of a malloc inside the program: nothing speaks against it that all its blocks are seen. */
static bool all_followed(void)
{
	const uint64_t *drops = log_map.header->drops;

	return builtin_replaced && !drops[LOG_DROP_FOREIGN_FREE] && !drops[LOG_DROP_BLOCK];
}

void badfree_judge(struct guard *guard, uint32_t space, uint64_t pointer, const struct caller *from)
{
	struct caller caller = *from;
	struct log_bad_free bad = { .kind = LOG_DOUBLE_FREE };
	struct block_view view = { .start = pointer, .relation = LOG_INSIDE };
	enum heap_opinion opinion = HEAP_UNKNOWN;
	struct block *block = &view.block;

	if (!block_look_sigsafe(space, pointer, block) || block->state != LOG_BLOCK_FREED) {
		if (space == BLOCKS_HEAP &&
		    __atomic_fetch_add(&judged, 1, __ATOMIC_RELAXED) < JUDGED_MAX &&
		    (interior(guard, pointer, caller) || poisoned(guard, pointer, caller) ||
		     invalid(guard, pointer, caller)))
			return;
		log_drop_sigsafe(LOG_DROP_FOREIGN_FREE);
		return;
	}
	if (space == BLOCKS_HEAP && real.glibc_malloc)
		opinion = glibc_heap_ask_sigsafe(guard->self, pointer, block_size(block));
	/* Given out again where no hook could see it. */
	if (opinion == HEAP_IN_USE) {
		log_drop_sigsafe(LOG_DROP_FOREIGN_FREE);
		return;
	}
	bad.evidence = opinion == HEAP_FREE			? LOG_EVIDENCE_ALLOCATOR
		       : space == BLOCKS_HEAP && all_followed() ? LOG_EVIDENCE_FOLLOWED
								: LOG_EVIDENCE_NONE;
	view.size = block_size(block);
	badfree_record(guard, pointer, &view, &bad, caller);
}
