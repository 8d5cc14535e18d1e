#include "agent/crash/value_search.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/own_stack.h"
#include "agent/ids/blocks.h"

#define VALUES_MAX 8u
#define CROOKED_MAX 3u
#define COMMON_VALUE 0x10000u /* small numbers come last: they stand in many places */
#define TOLD_MAX 256u
#define PIECE (64u << 10)
#define READ_MAX (512ull << 20)
#define REACH (1u << 20)
#define DATA_MAX (256u << 10)
#define DATA_LINES 4u
#define LEAST_VALUE 0x400u /* smaller ones stand everywhere */

/* Too large for a signal stack. */
static struct {
	uint64_t values[VALUES_MAX];
	uint32_t count, told;
	uint64_t read_bytes;
	uint64_t signal_low, signal_high; /* of the target's alternate stack, if it has one */
	struct maps_buffer maps;
	uint64_t words[PIECE / sizeof(uint64_t)];
} look;

static bool is_wild(uint64_t value)
{
	return value >= LEAST_VALUE &&
	       (value >> BLOCKS_ADDRESS_BITS || !memory_readable_sigsafe(value, 1));
}

static void values_add(const struct log_crash *crash, bool small)
{
	uint32_t i, k;

	for (i = 0; i < LOG_GREG_RSP && look.count < VALUES_MAX; i++) {
		uint64_t value = crash->gregs[i];

		for (k = 0; k < look.count && look.values[k] != value; k++)
			;
		if (k == look.count && (value < COMMON_VALUE) == small && is_wild(value))
			look.values[look.count++] = value;
	}
}

/* A pointer into a live block that is no multiple of a word: text has such, and so has a pointer of
 * which a bit or a byte was changed. What is read through that may be anything. */
static bool is_crooked(uint64_t value)
{
	struct block_view view;
	int space;

	if (!(value & 7) || value < LEAST_VALUE || value >> BLOCKS_ADDRESS_BITS)
		return false;
	for (space = BLOCKS_SPACES - 1; space >= 0; space--)
		if (block_find_sigsafe((enum block_space)space, value, REACH, &view, 1) &&
		    view.relation == LOG_INSIDE && view.block.state == LOG_BLOCK_LIVE)
			return true;
	return false;
}

static void crooked_add(const struct log_crash *crash)
{
	uint32_t i, k, added = 0;

	for (i = 0; i < LOG_GREG_RSP && look.count < VALUES_MAX && added < CROOKED_MAX; i++) {
		uint64_t value = crash->gregs[i];

		for (k = 0; k < look.count && look.values[k] != value; k++)
			;
		if (k == look.count && is_crooked(value)) {
			look.values[look.count++] = value;
			added++;
		}
	}
}

/* Who else knows the block tells whose mistake a wrong free is. */
static void freed_add(void)
{
	if (block_misfreed.pointer)
		look.values[look.count++] = block_misfreed.pointer;
	if (block_misfreed.start)
		look.values[look.count++] = block_misfreed.start;
}

static void values_take(const struct log_crash *crash)
{
	look.count = look.told = 0;
	look.read_bytes = 0;
	if (crash->signo == SIGABRT)
		freed_add();
	crooked_add(crash);
	values_add(crash, false);
	values_add(crash, true);
}

static void value_tell(struct log_writer *writer, uint64_t where, uint64_t value)
{
	struct log_value record = { .value = value };
	struct block_view view;
	struct log_block block;
	int space;

	/* Of watched pages the target knows the other view. */
	where = memory_seen_sigsafe(where);
	record.where = where;
	for (space = BLOCKS_SPACES - 1; space >= 0 && !record.id; space--) {
		if (!block_find_sigsafe((enum block_space)space, where, REACH, &view, 1) ||
		    view.relation != LOG_INSIDE || view.block.state != LOG_BLOCK_LIVE)
			continue;
		memset(&block, 0, sizeof(block));
		block_describe_sigsafe(&view, &block);
		record.id = block.id;
		record.start = block.start;
		record.size = block.size;
		record.key = block.key;
		record.context = block.context;
		record.api = block.api;
	}
	look.told++;
	(void)log_append_sigsafe(writer, LOG_VALUE, &record, sizeof(record), NULL, 0);
}

static void range_read(struct log_writer *writer, uint64_t at, uint64_t end)
{
	while (at < end && look.told < TOLD_MAX && look.read_bytes < READ_MAX) {
		size_t want = end - at < PIECE ? end - at : PIECE, i;
		size_t have = memory_read_sigsafe(look.words, at, want);

		for (i = 0; i < have / sizeof(look.words[0]) && look.told < TOLD_MAX; i++) {
			uint64_t word = look.words[i];
			uint32_t k;

			for (k = 0; k < look.count; k++)
				if (unlikely(word == look.values[k]))
					value_tell(writer, at + i * sizeof(word), word);
		}
		look.read_bytes += want;
		at += want;
	}
}

/* A signal stack may be a block like any other, or a variable: registers are on it as they were at
 * the crash. */
static void range_read_around(struct log_writer *writer, uint64_t at, uint64_t end)
{
	if (at < look.signal_high && end > look.signal_low) {
		range_read(writer, at, look.signal_low);
		at = look.signal_high;
	}
	range_read(writer, at, end);
}

static void signal_stack_take(void)
{
	uint64_t low = 0, bytes = own_stack_targets_sigsafe(&low);

	look.signal_low = low & ~7ull;
	look.signal_high = low + bytes;
}

/* Not in what is ours, nor on stacks, where the crash itself has left copies. */
static void line_read(struct log_writer *writer, const struct maps_line *line,
		      const struct log_crash *crash)
{
	uint64_t at = line->low, low, rsp = crash->gregs[LOG_GREG_RSP];

	if (!line->readable || !line->writable || log_holds_sigsafe(line->low) ||
	    maps_is_device(line) || (rsp >= line->low && rsp < line->high) ||
	    !strcmp(line->path, "[stack]"))
		return;
	while (memory_next_foreign_sigsafe(&at, line->high, &low))
		range_read_around(writer, low, at);
}

/* Memory without a file. */
static bool is_memory_at(const struct maps_line *line, uint64_t low)
{
	return !line->inode && !line->path[0] && line->low == low;
}

/* Pointers that a program keeps in its own variables lead from there to what failed, and the
 * register that held one may hold something else by now. The main program comes first in the list,
 * but for our log; zeroed variables lie behind its file's mapping. */
static void data_write(struct log_writer *writer)
{
	struct maps_walk walk;
	struct maps_line line;
	uint64_t inode = 0, device = 0, behind = 0, left = DATA_MAX;
	uint32_t lines = 0;

	if (!maps_begin_sigsafe(&walk, &look.maps))
		return;
	while (lines < DATA_LINES && left && maps_next_sigsafe(&walk, &line)) {
		bool same;

		if (!inode && line.inode && !log_holds_sigsafe(line.low)) {
			inode = line.inode;
			device = line.device;
		}
		same = line.inode == inode && line.device == device;
		if (inode && (same || is_memory_at(&line, behind)) && line.readable &&
		    line.writable)
			left -= log_memory_sigsafe(
				writer, LOG_BLOB_DATA, lines++, line.low,
				line.high - line.low < left ? line.high - line.low : left);
		behind = same ? line.high : behind;
	}
	maps_end_sigsafe(&walk);
}

void value_search_write_sigsafe(struct log_writer *writer, const struct log_crash *crash)
{
	struct maps_walk walk;
	struct maps_line line;

	if (!(agent.plan.flags & PLAN_WILD_VALUES) || !agent_switch.ids)
		return;
	data_write(writer);
	values_take(crash);
	signal_stack_take();
	if (!look.count || !maps_begin_sigsafe(&walk, &look.maps))
		return;
	while (maps_next_sigsafe(&walk, &line))
		line_read(writer, &line, crash);
	maps_end_sigsafe(&walk);
}
