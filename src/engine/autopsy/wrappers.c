#include "engine/autopsy/wrappers.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 3u /* wrappers around wrappers */
#define CALLERS_MIN 4u
#define SIZES_MIN 3u

/* One context, seen from one of its frames: a way to malloc, who came that way, and for how much. */
struct use {
	uint64_t way; /* over the return addresses so far */
	uint64_t caller;
	uint64_t size; /* on average */
};

struct wrappers {
	VEC(uint64_t) ways; /* ascending: those that are wrappers */
};

static uint64_t way_add(uint64_t way, uint64_t address)
{
	return (way ^ address) * 0x9e3779b97f4a7c15u + 1;
}

static int by_way(const void *a, const void *b)
{
	const struct use *x = a, *y = b;

	if (x->way != y->way)
		return x->way < y->way ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct uses {
	VEC(struct use) list;
};

static void add_context(struct event_log *log, uint32_t context, uint64_t offset, struct uses *ret)
{
	const struct log_header *header = &log->reader.header;
	struct log_context_seen seen;
	struct log_context row;
	struct log_item item;
	uint64_t way = 0;
	unsigned int depth = 0;

	if (!log_record_at(&log->reader, offset, &item) || !log_payload(&item, &seen, sizeof(seen)) ||
	    !log_context_row(&log->reader, context, &row) || row.allocs == 0)
		return;
	for (size_t i = 0; i + 1 < seen.frame_count && i + 1 < LOG_CONTEXT_FRAMES; i++) {
		if (seen.frames[i] >= header->agent_base && seen.frames[i] < header->agent_end)
			continue;
		if (depth++ == DEPTH_MAX)
			break;
		way = way_add(way, seen.frames[i]);
		VEC_PUSH(&ret->list, ((struct use){ .way = way,
						    .caller = seen.frames[i + 1],
						    .size = row.alloc_bytes / row.allocs }));
	}
}

/* Sizes of one way, which are not in order. */
static bool many_sizes(const struct use *uses, size_t count)
{
	uint64_t known[SIZES_MIN];
	size_t found = 0;

	for (size_t i = 0; i < count && found < SIZES_MIN; i++) {
		bool old = false;

		for (size_t k = 0; k < found; k++)
			old |= known[k] == uses[i].size;
		if (!old)
			known[found++] = uses[i].size;
	}
	return found == SIZES_MIN;
}

static bool is_wrapper(const struct use *uses, size_t count)
{
	size_t callers = 0;

	for (size_t i = 0; i < count; i++)
		callers += i == 0 || uses[i].caller != uses[i - 1].caller;
	return callers >= CALLERS_MIN && many_sizes(uses, count);
}

struct wrappers *wrappers_new(struct event_log *log)
{
	struct wrappers *wrappers = mem_alloc(sizeof(*wrappers));
	struct uses uses = { 0 };

	*wrappers = (struct wrappers){ 0 };
	VEC_FOREACH (&log->contexts, entry)
		add_context(log, entry->context, entry->offset, &uses);
	if (uses.list.count > 0)
		qsort(uses.list.items, uses.list.count, sizeof(uses.list.items[0]), by_way);
	for (size_t from = 0, to; from < uses.list.count; from = to) {
		for (to = from + 1;
		     to < uses.list.count && uses.list.items[to].way == uses.list.items[from].way;)
			to++;
		if (is_wrapper(&uses.list.items[from], to - from))
			VEC_PUSH(&wrappers->ways, uses.list.items[from].way);
	}
	VEC_DEINIT(&uses.list);
	return wrappers;
}

void wrappers_free(struct wrappers *wrappers)
{
	if (wrappers)
		VEC_DEINIT(&wrappers->ways);
	mem_free(wrappers);
}

void wrappers_mark(const struct wrappers *wrappers, struct stack *stack)
{
	uint64_t way = 0;
	size_t i = 0;

	for (unsigned int depth = 0; depth < DEPTH_MAX && i < stack->count; depth++) {
		size_t to = i;

		/* What left by a jump has no return address of its own. */
		while (to < stack->count && stack->frames[to].flags & FRAME_TAIL)
			to++;
		if (to == stack->count)
			return;
		way = way_add(way, stack->frames[to].address);
		if (wrappers->ways.count == 0 ||
		    !bsearch(&way, wrappers->ways.items, wrappers->ways.count, sizeof(way),
			     by_value))
			return;
		for (uint64_t address = stack->frames[to].address;
		     to < stack->count && stack->frames[to].address == address;)
			to++;
		if (to == stack->count) /* nobody is left to be named */
			return;
		for (; i < to; i++)
			stack->frames[i].flags |= FRAME_WRAPPER;
	}
}
