#include "agent/growth/holders.h"

#include <stdbool.h>
#include <string.h>

#include "agent/arch/word_search.h"
#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/ids/blocks.h"
#include "agent/ids/scan.h"

#define SAMPLE 16u /* blocks per context */
#define READ_MAX (4ull << 30)
#define TOLD_MAX 4096u

struct sample {
	uint64_t start, size, id;
	uint32_t wanted; /* index of its context in the plan; NOT_WANTED: it holds one that is */
};

#define NOT_WANTED UINT32_MAX
#define CHAIN_MAX 64u /* holding blocks whose own holders are looked for */
#define PASSES 3u

/* Far too large for somebody else's stack. */
struct holder_look {
	struct sample samples[PLAN_HOLDERS_MAX * SAMPLE];
	uint32_t count;
	uint64_t live[PLAN_HOLDERS_MAX];
	uint32_t taken[PLAN_HOLDERS_MAX];
	uint64_t low, high;	    /* all samples lie in here */
	uint64_t all_low, all_high; /* and all blocks of the contexts in here */
	struct sample chain[CHAIN_MAX];
	uint32_t chained;
	uint64_t frame; /* of the looking thread */
	uint32_t told;
	struct log_writer writer;
	struct scan scan;
};

static struct plan_holders wanted;
static bool looked;

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
static void sample_add(struct holder_look *look, const struct block *block, uint64_t start)
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

static void sample_chunk(struct holder_look *look, const struct blocks_space *space, uint64_t base)
{
	const uint32_t *chunk = space->directory[base >> BLOCKS_CHUNK_BITS];
	uint64_t windows = 1ull << (BLOCKS_CHUNK_BITS - space->shift), i;

	for (i = 0; i < windows; i++) {
		const struct block *block = &blocks_state.pool[chunk[i]];

		if (chunk[i] && block->state == LOG_BLOCK_LIVE)
			sample_add(look, block,
				   ((base + (i << space->shift)) & ~31ull) | block_low(block));
	}
}

static void samples_bound(struct holder_look *look)
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

static void samples_sort(struct holder_look *look)
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

static void samples_take(struct holder_look *look)
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

static struct sample *sample_at(struct holder_look *look, uint64_t value)
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

/* Who holds the holder? Not asked of blocks that are looked for themselves: a list holds its own.
 */
static void chain_add(struct holder_look *look, const struct log_holder *holder)
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

static void tell(struct holder_look *look, const struct scan_piece *piece,
		 struct log_holder *holder, const struct sample *sample)
{
	if (!scan_holder_sigsafe(piece, holder->where, look->frame, holder))
		return;
	if (holder->kind == LOG_HELD_BY_BLOCK)
		chain_add(look, holder);
	if (look->told == TOLD_MAX) {
		look->scan.cut_short = true;
		return;
	}
	look->told++;
	holder->stack_hash = sample->wanted == NOT_WANTED ? 0 : wanted.stack_hashes[sample->wanted];
	holder->target_id = sample->id;
	holder->target_start = sample->start;
	(void)log_append_sigsafe(&look->writer, LOG_HOLDER, holder, sizeof(*holder), NULL, 0);
}

static void word_told(struct holder_look *look, const struct scan_piece *piece, uint64_t where,
		      uint64_t value)
{
	struct sample *sample = sample_at(look, value);
	struct log_holder holder = { .where = where, .value = value };

	if (sample && where - sample->start >= sample->size)
		tell(look, piece, &holder, sample);
}

/* Globals are few: there, the start of any block of the contexts counts. So the head of a list is
 * found, which points to one of them only. */
static void global_told(struct holder_look *look, const struct scan_piece *piece, uint64_t where,
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
			tell(look, piece, &holder, &sample);
	}
}

static void piece_read(void *ctx, const struct scan_piece *piece)
{
	struct holder_look *look = ctx;
	/* The holders' own holders are looked for as they are. */
	bool globals = piece->globals && look->samples[0].wanted != NOT_WANTED;
	size_t i;

	for (i = 0; i < piece->count; i++) {
		i = words_find(piece->words, i, piece->count, look->low, look->high);
		if (i < piece->count)
			word_told(look, piece, piece->at + i * 8,
				  __atomic_load_n(&piece->words[i], __ATOMIC_RELAXED));
	}
	for (i = 0; globals && i < piece->count; i++) {
		i = words_find(piece->words, i, piece->count, look->all_low, look->all_high + 1);
		if (i < piece->count)
			global_told(look, piece, piece->at + i * 8,
				    __atomic_load_n(&piece->words[i], __ATOMIC_RELAXED));
	}
}

static void look_through(struct holder_look *look)
{
	uint32_t pass, i, first = 0;

	log_writer_init_sigsafe(&look->writer, LOG_TO_EVENTS);
	for (pass = 0; pass < PASSES && look->count && !look->scan.cut_short; pass++) {
		scan_memory_sigsafe(&look->scan);
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
					      .read_bytes = look->scan.read_bytes,
					      .cut_short = look->scan.cut_short };

		(void)log_append_sigsafe(&look->writer, LOG_HOLDERS, &record, sizeof(record), NULL,
					 0);
	}
}

void holders_look_sigsafe(uint32_t lines)
{
	struct holder_look *look;

	if (!wanted.count || looked || lines < wanted.after_lines)
		return;
	looked = true;
	look = memory_map_sigsafe(sizeof(*look));
	if (!look)
		return;
	look->frame = (uint64_t)__builtin_frame_address(0);
	look->scan.piece = piece_read;
	look->scan.ctx = look;
	look->scan.read_max = READ_MAX;
	samples_take(look);
	if (look->count)
		look_through(look);
	memory_unmap_sigsafe(look, sizeof(*look));
}
