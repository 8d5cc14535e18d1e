#include "agent/ids/scan.h"

#include <signal.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/ids/blocks.h"

#define PIECE_PAGES (SCAN_PIECE / PAGE)
/* Below the frame of whoever looks: what the looking itself left on the stack. */
#define OWN_STACK (256u << 10)

/* Which of the next pages were ever touched (mincore(2)); unknown is taken for yes. */
static void residency_read(struct scan *scan, uint64_t at, uint64_t end)
{
	uint64_t pages = (end - at + PAGE - 1) / PAGE;

	if (pages > sizeof(scan->resident))
		pages = sizeof(scan->resident);
	if (raw_syscall3(SYS_mincore, at, pages * PAGE, scan->resident))
		memset(scan->resident, 1, sizeof(scan->resident));
}

static bool any_resident(const struct scan *scan, size_t from, size_t pages)
{
	return memchr(scan->resident + from, 1, pages) != NULL;
}

/* The kernel ends a process that faults where the signal is blocked, as it is in a handler of it.
 */
static bool faults_are_final(void)
{
	uint64_t blocked = 0, faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);

	return raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, 0, &blocked, sizeof(blocked)) ||
	       (blocked & faults);
}

struct piece_scan {
	struct scan *scan;
	const struct scan_piece *piece;
};

static void look_at_piece(void *ctx)
{
	const struct piece_scan *look = ctx;

	look->scan->piece(look->scan->ctx, look->piece);
}

/* Memory of the process's own is looked at where it lies: copying it costs more than looking. What
 * another thread unmaps meanwhile faults: the rest of its piece is left out. Files may be shorter
 * than their mapping: those are copied by the kernel, as far as they go. */
static void piece_look(struct scan *scan, struct scan_piece *piece, size_t bytes)
{
	struct piece_scan look = { scan, piece };

	if (thread_self && !scan->by_copy && !piece->line->inode &&
	    !(piece->at % sizeof(uint64_t))) {
		piece->words = (const uint64_t *)piece->at;
		piece->count = bytes / sizeof(uint64_t);
		(void)memory_attempt_sigsafe(look_at_piece, &look);
		return;
	}
	piece->words = scan->words;
	piece->count = memory_read_sigsafe(scan->words, piece->at, bytes) / sizeof(uint64_t);
	scan->piece(scan->ctx, piece);
}

static void range_read(struct scan *scan, const struct maps_line *line, uint64_t at, uint64_t end,
		       bool globals)
{
	size_t page = sizeof(scan->resident);

	while (at < end && !scan->cut_short) {
		size_t want = end - at < SCAN_PIECE ? end - at : SCAN_PIECE;
		struct scan_piece piece = { .line = line, .at = at, .globals = globals };

		if (page >= sizeof(scan->resident)) {
			residency_read(scan, at, end);
			page = 0;
		}
		if (any_resident(scan, page, (want + PAGE - 1) / PAGE)) {
			piece_look(scan, &piece, want);
			scan->read_bytes += want;
			scan->cut_short |= scan->read_bytes > scan->read_max;
		}
		page += PIECE_PAGES;
		at += want;
	}
}

static void line_read(struct scan *scan, const struct maps_line *line)
{
	uint64_t at = line->low, low;
	bool zeroed = scan->file_end == line->low && !line->path[0];
	bool globals = line->writable && (line->inode || zeroed);

	scan->file_end = line->inode ? line->high : 0;
	if (!line->readable || !line->writable || log_holds_sigsafe(line->low) ||
	    maps_is_device(line))
		return;
	while (memory_next_foreign_sigsafe(&at, line->high, &low))
		range_read(scan, line, low, at, globals);
}

void scan_memory_sigsafe(struct scan *scan)
{
	struct maps_walk walk;
	struct maps_line line;

	scan->by_copy = faults_are_final();
	if (!maps_begin_sigsafe(&walk, &scan->maps))
		return;
	while (maps_next_sigsafe(&walk, &line))
		line_read(scan, &line);
	maps_end_sigsafe(&walk);
}

/* The live block that the word lies in. False: in none. *ret_stale: in memory that was freed. */
static bool holding_block(uint64_t where, struct log_holder *ret, bool *ret_stale)
{
	int space;

	for (space = BLOCKS_SPACES - 1; space >= 0; space--) {
		uint64_t reach = blocks_state.spaces[space].largest;
		struct block_view view;

		if (reach < BLOCKS_LARGE)
			reach = BLOCKS_LARGE;
		if (!block_find_sigsafe((enum block_space)space, where, reach, &view, 1))
			continue;
		if (where - view.start >= view.size)
			continue;
		if (view.block.state != LOG_BLOCK_LIVE) {
			*ret_stale = true;
			continue;
		}
		ret->kind = LOG_HELD_BY_BLOCK;
		ret->start = view.start;
		ret->size = view.size;
		ret->id = view.block.id;
		ret->context = view.block.context & BLOCK_CONTEXT_MASK;
		ret->number = view.block.ordinal + 1;
		return true;
	}
	return false;
}

bool scan_holder_sigsafe(const struct scan_piece *piece, uint64_t where, uint64_t frame,
			 struct log_holder *ret)
{
	const struct maps_line *line = piece->line;
	bool stale = false;
	uint32_t lane;

	if (where < frame && frame - where < OWN_STACK)
		return false;
	if (holding_block(where, ret, &stale))
		return true;
	/* A library may be mapped where a freed block's pages once were. */
	if ((stale && !piece->globals) || !strcmp(line->path, "[heap]"))
		return false;
	ret->kind = line->inode ? LOG_HELD_BY_FILE : LOG_HELD_BY_MEMORY;
	if (!line->inode && thread_by_stack_sigsafe(line->low, line->high, &lane)) {
		ret->kind = LOG_HELD_BY_STACK;
		ret->id = lane;
	} else if (!strcmp(line->path, "[stack]")) {
		ret->kind = LOG_HELD_BY_STACK;
	}
	return true;
}
