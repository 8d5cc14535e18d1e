#include "agent/holders.h"

#include <stdbool.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/blocks.h"
#include "agent/log.h"
#include "agent/maps.h"
#include "agent/memory.h"

#define SAMPLE 16u /* blocks per context */
#define PIECE (64u << 10)
#define READ_MAX (4ull << 30)
#define TOLD_MAX 4096u
#define PAGE 4096u
/* Below the frame of whoever looks: what the looking itself left on the stack. */
#define OWN_STACK (256u << 10)

struct sample {
	uint64_t start, size, id;
	uint32_t wanted; /* index of its context in the plan; NOT_WANTED: it holds one that is */
};

#define NOT_WANTED UINT32_MAX
#define CHAIN_MAX 64u /* holding blocks whose own holders are looked for */
#define PASSES 3u

/* Far too large for somebody else's stack. */
struct look {
	struct sample samples[PLAN_HOLDERS_MAX * SAMPLE];
	uint32_t count;
	uint64_t live[PLAN_HOLDERS_MAX];
	uint32_t taken[PLAN_HOLDERS_MAX];
	uint64_t low, high;	    /* all samples lie in here */
	uint64_t all_low, all_high; /* and all blocks of the contexts in here */
	struct sample chain[CHAIN_MAX];
	uint32_t chained;
	uint64_t file_end; /* of the line before, if it was a file: zeroed globals follow */
	uint64_t frame;	   /* of the looking thread */
	uint64_t read_bytes;
	uint32_t told;
	bool cut_short;
	struct log_writer writer;
	struct maps_buffer maps;
	uint64_t words[PIECE / sizeof(uint64_t)];
};

static struct plan_holders wanted;
static bool looked;

/* The linker's: the end of the agent's own globals. */
extern char _end[] __attribute__((visibility("hidden")));

void holders_plan(const struct plan_holders *plan)
{
	memcpy(&wanted, plan, sizeof(wanted));
	if (wanted.count > PLAN_HOLDERS_MAX)
		wanted.count = PLAN_HOLDERS_MAX;
}

static uint32_t wanted_index(uint32_t row)
{
	uint64_t hash = row < agent.plan.context_rows ? log_map.contexts[row].stack_hash : 0;
	uint32_t i;

	for (i = 0; hash && i < wanted.count; i++)
		if (wanted.stack_hashes[i] == hash)
			return i;
	return NOT_WANTED;
}

/* Every block has the same chance to be in the sample. */
static void sample_add(struct look *look, const struct block *block, uint64_t start)
{
	uint32_t index = wanted_index(block->context & BLOCK_CONTEXT_MASK), slot;
	uint64_t seen;

	if (index == NOT_WANTED)
		return;
	if (!look->all_low || start < look->all_low)
		look->all_low = start;
	if (start > look->all_high)
		look->all_high = start;
	seen = look->live[index]++;
	slot = look->taken[index];
	if (slot == SAMPLE) {
		slot = (uint32_t)((block->id * 0x9e3779b97f4a7c15ull >> 32) % (seen + 1));
		if (slot >= SAMPLE)
			return;
	} else {
		look->taken[index]++;
	}
	look->samples[index * SAMPLE + slot] = (struct sample){
		.start = start, .size = block_size(block), .id = block->id, .wanted = index
	};
}

static void sample_chunk(struct look *look, const struct blocks_space *space, uint64_t base)
{
	const uint32_t *chunk = space->directory[base >> BLOCKS_CHUNK_BITS];
	uint64_t windows = 1ull << (BLOCKS_CHUNK_BITS - space->shift), i;

	for (i = 0; i < windows; i++) {
		const struct block *block = &blocks_state.pool[chunk[i]];

		if (chunk[i] && block->state == LOG_BLOCK_LIVE)
			sample_add(look, block,
				   ((base + (i << space->shift)) & ~31ull) | block->low);
	}
}

static void samples_bound(struct look *look)
{
	uint32_t i;

	look->low = look->high = 0;
	for (i = 0; i < look->count; i++) {
		const struct sample *s = &look->samples[i];

		if (!look->low || s->start < look->low)
			look->low = s->start;
		if (s->start + s->size > look->high)
			look->high = s->start + s->size;
	}
}

static void samples_sort(struct look *look)
{
	uint32_t i, k;

	/* Closes the gaps, then insertion: a few hundred. */
	for (i = 0; i < PLAN_HOLDERS_MAX * SAMPLE; i++) {
		struct sample sample = look->samples[i];

		if (!sample.id)
			continue;
		for (k = look->count++; k > 0 && look->samples[k - 1].start > sample.start; k--)
			look->samples[k] = look->samples[k - 1];
		look->samples[k] = sample;
	}
	samples_bound(look);
}

static void samples_take(struct look *look)
{
	uint64_t chunks = 1ull << (BLOCKS_ADDRESS_BITS - BLOCKS_CHUNK_BITS), i;
	unsigned space;

	for (space = 0; space < BLOCKS_SPACES; space++)
		for (i = 0; i < chunks; i++)
			if (blocks_state.spaces[space].directory[i])
				sample_chunk(look, &blocks_state.spaces[space],
					     i << BLOCKS_CHUNK_BITS);
	samples_sort(look);
}

static struct sample *sample_at(struct look *look, uint64_t value)
{
	uint32_t low = 0, high = look->count;
	struct sample *sample;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (look->samples[middle].start <= value)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	sample = &look->samples[low - 1];
	return value - sample->start < sample->size || value == sample->start ? sample : NULL;
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
		return true;
	}
	return false;
}

/* Who holds the holder? Not asked of blocks that are looked for themselves: a list holds its own.
 */
static void chain_add(struct look *look, const struct log_holder *holder)
{
	uint32_t i;

	if (look->chained == CHAIN_MAX || wanted_index(holder->context) != NOT_WANTED)
		return;
	for (i = 0; i < look->chained; i++)
		if (look->chain[i].id == holder->id)
			return;
	look->chain[look->chained++] = (struct sample){
		.start = holder->start, .size = holder->size, .id = holder->id, .wanted = NOT_WANTED
	};
}

static void tell(struct look *look, const struct maps_line *line, struct log_holder *holder,
		 const struct sample *sample)
{
	bool stale = false;

	if (holder->where < look->frame && look->frame - holder->where < OWN_STACK)
		return;
	if (holding_block(holder->where, holder, &stale)) {
		chain_add(look, holder);
	} else {
		if (stale || !strcmp(line->path, "[heap]"))
			return;
		holder->kind = !strcmp(line->path, "[stack]") ? LOG_HELD_BY_STACK
			       : line->inode		      ? LOG_HELD_BY_FILE
							      : LOG_HELD_BY_MEMORY;
	}
	if (look->told == TOLD_MAX) {
		look->cut_short = true;
		return;
	}
	look->told++;
	holder->stack_hash = sample->wanted == NOT_WANTED ? 0 : wanted.stack_hashes[sample->wanted];
	holder->target_id = sample->id;
	holder->target_start = sample->start;
	(void)log_append_sigsafe(&look->writer, LOG_HOLDER, holder, sizeof(*holder), NULL, 0);
}

static void word_told(struct look *look, const struct maps_line *line, uint64_t where,
		      uint64_t value)
{
	struct sample *sample = sample_at(look, value);
	struct log_holder holder = { .where = where, .value = value };

	if (sample && where - sample->start >= sample->size)
		tell(look, line, &holder, sample);
}

/* Globals are few: there, the start of any block of the contexts counts. So the head of a list is
 * found, which points to one of them only. */
static void global_told(struct look *look, const struct maps_line *line, uint64_t where,
			uint64_t value)
{
	struct log_holder holder = { .where = where, .value = value };
	unsigned space;

	if (sample_at(look, value))
		return;
	for (space = 0; space < BLOCKS_SPACES; space++) {
		const struct block *block = block_at_sigsafe((enum block_space)space, value);
		struct sample sample;

		if (!block || block->state != LOG_BLOCK_LIVE)
			continue;
		sample = (struct sample){ .start = value,
					  .size = block_size(block),
					  .id = block->id,
					  .wanted = wanted_index(block->context &
								 BLOCK_CONTEXT_MASK) };
		if (sample.wanted != NOT_WANTED)
			tell(look, line, &holder, &sample);
	}
}

static void range_read(struct look *look, const struct maps_line *line, uint64_t at, uint64_t end,
		       bool globals)
{
	while (at < end && !look->cut_short) {
		size_t want = end - at < PIECE ? end - at : PIECE;
		size_t have = memory_read_sigsafe(look->words, at, want), i;

		for (i = 0; i < have / sizeof(look->words[0]); i++) {
			uint64_t word = look->words[i], where = at + i * sizeof(word);

			if (word - look->low < look->high - look->low)
				word_told(look, line, where, word);
			if (globals && word - look->all_low <= look->all_high - look->all_low)
				global_told(look, line, where, word);
		}
		look->read_bytes += want;
		look->cut_short |= look->read_bytes > READ_MAX;
		at += want;
	}
}

/* What is ours is full of addresses of blocks, and much of it is only reserved. */
static void line_read(struct look *look, const struct maps_line *line)
{
	uint64_t at = line->low, low, high;
	bool zeroed = look->file_end == line->low && !line->path[0];
	bool globals = line->writable && (line->inode || zeroed);

	look->file_end = line->inode ? line->high : 0;
	if (!line->readable || !line->writable || log_holds_sigsafe(line->low) ||
	    !memcmp(line->path, "/dev/", 5))
		return;
	while (at < line->high) {
		uint64_t end = line->high;

		if (at >= agent.text_low && at < (uint64_t)_end) {
			at = ((uint64_t)_end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
			continue;
		}
		if (memory_next_own_sigsafe(at, &low, &high)) {
			if (at >= low) {
				at = high;
				continue;
			}
			end = low < end ? low : end;
		}
		/* The holders' own holders are looked for as they are. */
		range_read(look, line, at, end, globals && look->samples[0].wanted != NOT_WANTED);
		at = end;
	}
}

static void memory_pass(struct look *look)
{
	struct maps_walk walk;
	struct maps_line line;

	if (!maps_begin_sigsafe(&walk, &look->maps))
		return;
	while (maps_next_sigsafe(&walk, &line))
		line_read(look, &line);
	maps_end_sigsafe(&walk);
}

static void look_through(struct look *look)
{
	uint32_t pass, i, first = 0;

	log_writer_init_sigsafe(&look->writer, LOG_TO_EVENTS);
	for (pass = 0; pass < PASSES && look->count && !look->cut_short; pass++) {
		memory_pass(look);
		/* Those that this pass has found are next. */
		memset(look->samples, 0, sizeof(look->samples));
		look->count = 0;
		for (i = 0; first < look->chained; i++)
			look->samples[i] = look->chain[first++];
		samples_sort(look);
	}
	for (i = 0; i < wanted.count; i++) {
		struct log_holders record = { .stack_hash = wanted.stack_hashes[i],
					      .live = look->live[i],
					      .looked_for = look->taken[i],
					      .read_bytes = look->read_bytes,
					      .cut_short = look->cut_short };

		(void)log_append_sigsafe(&look->writer, LOG_HOLDERS, &record, sizeof(record), NULL,
					 0);
	}
}

void holders_look_sigsafe(uint32_t lines)
{
	struct look *look;

	if (!wanted.count || looked || lines < wanted.after_lines)
		return;
	looked = true;
	look = memory_map_sigsafe(sizeof(*look));
	if (!look)
		return;
	look->frame = (uint64_t)__builtin_frame_address(0);
	samples_take(look);
	if (look->count)
		look_through(look);
	memory_unmap_sigsafe(look, sizeof(*look));
}
