#include "read/pointers.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_SHOWN 24
#define BLOCKS_MAX 2000
#define REST_MAX 4096 /* events of a thread that the epoch does not have yet: fewer than that */

/* The order of <sys/ucontext.h>, which is how the agent numbers registers. */
const char *register_at(uint64_t place)
{
	static const char *const names[REGISTER_PLACES] = {
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rdi",
		"rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp", "rip",
	};

	return place < REGISTER_PLACES ? names[place] : "?";
}

static const char *via_text(const struct log_block *block)
{
	switch (block->via) {
	case LOG_VIA_REGISTER:
	case LOG_VIA_POISON: /* what the register holds was read from the freed block */
		return register_at(block->where);
	case LOG_VIA_FAULT:
		return "the address";
	case LOG_VIA_STACK:
		return "the stack";
	case LOG_VIA_MEMORY:
		return "memory behind a register";
	default:
		return "a pointer";
	}
}

/* A block that pointers lead to, before its stacks are read: that is only done for the few that
 * are shown. */
struct pointed {
	struct log_block block;
	char *via;  /* all ways that lead to it */
	int weight; /* small ones first */
};

/* Below this, the fault or its instruction used the pointer. */
#define WEIGHT_TELLING 10
#define WEIGHT_SOURCE 8 /* … or was loaded through it, as a variable of the stack shows */

static bool is_freed(const struct log_block *block)
{
	return block->state == LOG_BLOCK_FREED || block->relation == LOG_FORMER;
}

/* What the fault itself touched, then freed blocks, then live ones; registers before memory, and
 * last what just lies on the stack. */
static int block_weight(const struct pointers *pointers, const struct log_block *block)
{
	const struct fault_operands *operands = pointers->operands;
	static const int by_via[] = { [LOG_VIA_REGISTER] = 10,
				      [LOG_VIA_STACK] = 100,
				      [LOG_VIA_MEMORY] = 20,
				      [LOG_VIA_POISON] = 10 };
	int via = block->via < ARRAY_SIZE(by_via) ? by_via[block->via] : 50;

	/* Nobody meant a block of data to be code: what lies there says nothing about the pointer.
	 */
	if (pointers->jumped && block->value == *pointers->jumped)
		return WEIGHT_TELLING;
	if (block->via == LOG_VIA_FAULT)
		return 0;
	/* Registers that the faulting instruction used come right after the fault's own address. */
	if (block->via == LOG_VIA_REGISTER || block->via == LOG_VIA_POISON)
		for (size_t i = 0; i < operands->count; i++)
			if (strcmp(operands->registers[i], via_text(block)) == 0)
				return 1 + (int)i * 2 + !is_freed(block);
	if (block->via == LOG_VIA_STACK && block->relation == LOG_FORMER && pointers->source &&
	    block->value == *pointers->source)
		return WEIGHT_SOURCE;
	return via + (is_freed(block) ? 0 : 40) + (block->relation == LOG_BEYOND ? 5 : 0);
}

static int by_weight(const void *a, const void *b)
{
	const struct pointed *x = *(struct pointed *const *)a, *y = *(struct pointed *const *)b;

	if (x->weight != y->weight)
		return x->weight - y->weight;
	/* Of two that are gone, whoever had the place last. */
	if ((x->block.relation == LOG_FORMER) != (y->block.relation == LOG_FORMER))
		return x->block.relation == LOG_FORMER ? 1 : -1;
	return x->block.id < y->block.id ? -1 : x->block.id > y->block.id;
}

/* Two pointers lead to the same block: both are named, the more telling one first. */
static void join(struct pointed *p, const struct log_block *block, const char *via, int weight)
{
	if (!strstr(p->via, via) && strlen(p->via) < 60) {
		char *joined =
			mem_printf(weight < p->weight ? "%2$s, %1$s" : "%1$s, %2$s", p->via, via);

		mem_free(p->via);
		p->via = joined;
	}
	if (weight < p->weight) {
		p->weight = weight;
		p->block = *block;
	}
}

void pointers_note(struct pointers *pointers, const struct log_block *block)
{
	const char *via = via_text(block);
	int weight = block_weight(pointers, block);
	struct pointed *new;

	VEC_FOREACH (&pointers->list, p) {
		if ((*p)->block.id == block->id &&
		    ((*p)->block.relation == block->relation || block->relation == LOG_FORMER)) {
			join(*p, block, via, weight);
			return;
		}
	}
	if (pointers->list.count >= BLOCKS_MAX)
		return;
	new = mem_alloc(sizeof(*new));
	*new = (struct pointed){ .block = *block, .via = mem_strdup(via), .weight = weight };
	VEC_PUSH(&pointers->list, new);
}

static bool is_source(const struct pointers *pointers, const struct log_block *block)
{
	return pointers->source && block->relation == LOG_INSIDE && block->via != LOG_VIA_POISON &&
	       *pointers->source - block->start < (block->size > 0 ? block->size : 1);
}

void pointers_note_source(struct pointers *pointers)
{
	VEC_FOREACH (&pointers->list, p) {
		struct log_block block = (*p)->block;

		if (!is_source(pointers, &block))
			continue;
		block.via = LOG_VIA_STACK;
		block.value = *pointers->source;
		join(*p, &block, via_text(&block), WEIGHT_SOURCE + !is_freed(&block));
	}
}

/* At most so many allocations and frees since that epoch; 0: not known. */
static uint64_t events_since(const struct event_log *log, uint64_t epoch)
{
	const struct log_header *header = &log->reader.header;
	uint32_t ago = (uint32_t)header->epoch - (uint32_t)epoch;
	uint64_t rest = REST_MAX * header->threads_seen;

	if (header->epoch_rest > 0 && header->epoch_rest <= rest)
		rest = header->epoch_rest - 1;
	/* Half of what the counter holds is no age but a damaged header. */
	return ago < UINT32_MAX / 2 ? (uint64_t)ago * LOG_LIFE_GROUP + rest : 0;
}

void block_life_read(struct event_log *log, const struct log_block *block, const char *via,
		     struct symbols *symbols, struct block_life *ret)
{
	*ret = (struct block_life){
		.via = mem_strdup(via),
		.value = block->value,
		.id = block->id,
		.key = event_log_key(log, &block->key, block->context),
		.start = block->start,
		.size = block->size,
		.state = block->state == LOG_BLOCK_FREED ? BLOCK_FREED : BLOCK_LIVE,
		.former = block->relation == LOG_FORMER,
		.poison = block->via == LOG_VIA_POISON,
		.beyond = block->relation == LOG_BEYOND,
		.python =
			block->api == LOG_API_PYTHON_OBJECT || block->api == LOG_API_PYTHON_MEMORY,
	};

	if (ret->poison) /* the value is no pointer into it; where in it, it cannot be told */
		ret->value = ret->start;
	if (ret->state == BLOCK_FREED)
		ret->freed_events = events_since(log, block->freed_epoch);
	(void)event_log_allocation(log, block->context, symbols, &ret->allocated);
	if (block->free_context != 0)
		(void)event_log_freeing(log, block->free_context, symbols, &ret->freed);
}

static void add_life(struct event_log *log, const struct pointed *pointed, struct symbols *symbols,
		     struct crash *ret)
{
	struct block_life life;

	block_life_read(log, &pointed->block, pointed->via, symbols, &life);
	life.telling = pointed->weight < WEIGHT_TELLING;
	VEC_PUSH(&ret->blocks, life);
}

/* Does this pointer matter enough to ask who lived there before? */
static bool asks_for_history(const struct pointers *pointers, const struct log_block *block)
{
	const struct fault_operands *operands = pointers->operands;

	if (block->via == LOG_VIA_FAULT)
		return true;
	if (block->via == LOG_VIA_STACK && is_source(pointers, block))
		return true;
	if (block->via != LOG_VIA_REGISTER || block->relation != LOG_INSIDE)
		return false;
	for (size_t i = 0; i < operands->count; i++)
		if (strcmp(operands->registers[i], via_text(block)) == 0)
			return true;
	return operands->count == 0;
}

/* The lives of one address range, as far as the rings still have them. */
struct past {
	uint64_t below;		/* only blocks older than this id */
	uint64_t value;		/* must have covered this */
	struct log_block found; /* id 0: nothing yet */
};

static void look_into_past(const struct log_life *life, struct past *past)
{
	uint64_t size = log_life_size(life);
	struct log_block *found = &past->found;

	if (life->op != LOG_LIFE_FREE || life->id >= past->below || life->id < found->id ||
	    past->value < life->start || past->value - life->start >= (size > 0 ? size : 1))
		return;
	*found = (struct log_block){
		.id = life->id,
		.start = life->start,
		.size = size,
		.api = life->api,
		.context = life->context & LOG_CONTEXT_MASK,
		.free_context = life->free_context,
		.freed_epoch = life->epoch,
	};
}

bool block_former(struct event_log *log, const struct log_block *now, struct log_block *ret)
{
	struct past past = { .below = now->id, .value = now->value };

	for (uint32_t lane = 0; lane < log_lane_count(&log->reader); lane++) {
		struct log_ring_cursor cursor;
		struct log_life life;

		if (!log_ring_begin(&log->reader, lane, &cursor))
			continue;
		while (log_ring_next(&log->reader, &cursor, &life))
			look_into_past(&life, &past);
	}
	if (past.found.id == 0)
		return false;
	*ret = past.found;
	ret->via = now->via;
	ret->where = now->where;
	ret->value = now->value;
	ret->state = LOG_BLOCK_FREED;
	ret->relation = LOG_FORMER;
	return true;
}

/* Adds the block that had this place before, when it is still known. */
static void note_former(struct pointers *pointers, const struct log_block *now)
{
	struct log_block former;

	if (block_former(pointers->log, now, &former))
		pointers_note(pointers, &former);
}

void pointers_note_former(struct pointers *pointers)
{
	/* Those that are added meanwhile are former ones themselves. */
	for (size_t i = 0, known = pointers->list.count; i < known; i++) {
		struct log_block now = pointers->list.items[i]->block;

		if (asks_for_history(pointers, &now))
			note_former(pointers, &now);
	}
}

/* Neither lies inside the other, as an object does in its arena: they cannot have lived at the same
 * time. */
static bool overlap_partly(const struct log_block *a, const struct log_block *b)
{
	uint64_t a_end = a->start + a->size, b_end = b->start + b->size;

	return a->start < b_end && b->start < a_end && a->start != b->start &&
	       (a->start < b->start) == (a_end < b_end);
}

/* The agent forgets a freed block when its start is another's; one that began elsewhere it still
 * has. */
static void mark_former(struct pointers *pointers)
{
	VEC_FOREACH (&pointers->list, old)
		VEC_FOREACH (&pointers->list, new)
			if ((*old)->block.state == LOG_BLOCK_FREED &&
			    (*old)->block.relation == LOG_INSIDE &&
			    (*new)->block.relation == LOG_INSIDE &&
			    (*old)->block.id < (*new)->block.id &&
			    overlap_partly(&(*old)->block, &(*new)->block))
				(*old)->block.relation = LOG_FORMER;
}

void pointers_tell(struct pointers *pointers, struct symbols *symbols, struct crash *ret)
{
	mark_former(pointers);
	VEC_SORT(&pointers->list, by_weight);
	for (size_t i = 0; i < pointers->list.count && i < BLOCKS_SHOWN; i++)
		add_life(pointers->log, pointers->list.items[i], symbols, ret);
}

void pointers_deinit(struct pointers *pointers)
{
	VEC_FOREACH (&pointers->list, p) {
		mem_free((*p)->via);
		mem_free(*p);
	}
	VEC_DEINIT(&pointers->list);
}
