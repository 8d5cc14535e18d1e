#include "read/census.h"

#include <string.h>

#include "base/auto.h"

#define ROWS_MAX (1u << 20)

struct taking {
	struct event_log *log;
	struct census *census;
	uint32_t rows;
	uint32_t *place; /* by row: 1 + index in census->contexts; 0 for none */
	struct live {
		uint64_t blocks, bytes;
	} * live, *told; /* by index: now, and at the last moment */
	size_t room;
	VEC(uint32_t) touched; /* indexes that may have changed since the last moment */
};

void census_deinit(struct census *census)
{
	VEC_FREE(&census->contexts, context, VEC_DEINIT(&context->changes));
	mem_free(census->names);
	census->names = NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* A return address as it is in every run: its module's file name and its place in there. */
static uint64_t place_of(const struct event_log *log, uint64_t address)
{
	for (size_t i = 0; i < log->modules.count; i++) {
		const struct mapping *module = &log->modules.items[i];
		const char *slash = strrchr(module->path, '/');
		uint64_t hash = 1;

		if (address < module->start || address >= module->end)
			continue;
		for (const char *c = slash ? slash + 1 : module->path; *c; c++)
			hash = mix(hash, (unsigned char)*c);
		return mix(hash, address - module->bias);
	}
	return mix(0, address);
}

static void add_place(struct census_context *context, uint64_t place)
{
	if (context->frame_count < ARRAY_SIZE(context->frames))
		context->frames[context->frame_count++] = place;
}

static void lay_frames(const struct event_log *log, const struct log_context_seen *seen,
		       struct census_context *context)
{
	struct log_python_frame python[LOG_PYTHON_FRAMES];
	size_t count = python_stacks_frames(&log->python, &log->reader, context->row, python);

	for (uint32_t i = 0; i < seen->frame_count && i < LOG_CONTEXT_FRAMES; i++) {
		for (size_t k = 0; k < count; k++)
			if (python[k].native == i) {
				context->inside = context->inside > 0 ? context->inside
								      : context->frame_count;
				add_place(context, python_stacks_place(&log->python, &python[k]));
			}
		add_place(context, place_of(log, seen->frames[i]));
	}
}

static void take_frames(const struct event_log *log, struct census_context *context)
{
	size_t low = VEC_HOLDS_FOR(&log->contexts, row, row->context < context->row);
	struct log_context_seen seen;
	struct log_item item;

	if (low < log->contexts.count && log->contexts.items[low].context == context->row &&
	    log_record_at(&log->reader, log->contexts.items[low].offset, &item) &&
	    log_payload(&item, &seen, sizeof(seen)))
		lay_frames(log, &seen, context);
	/* Without a stack it is a place of its own. */
	if (context->frame_count == 0)
		context->frames[context->frame_count++] = context->stack_hash;
}

static uint32_t index_of(struct taking *t, uint32_t row)
{
	struct census_context context = { .row = row };
	struct log_context found;

	if (row >= t->rows)
		return 0;
	if (t->place[row] > 0)
		return t->place[row];
	if (!log_context_row(&t->log->reader, row, &found))
		return 0;
	context.stack_hash = found.stack_hash;
	take_frames(t->log, &context);
	VEC_PUSH(&t->census->contexts, context);
	if (t->census->contexts.count > t->room) {
		size_t room = t->room > 0 ? t->room * 2 : 256;

		t->live = mem_resize(t->live, room, sizeof(t->live[0]));
		t->told = mem_resize(t->told, room, sizeof(t->told[0]));
		memset(t->live + t->room, 0, (room - t->room) * sizeof(t->live[0]));
		memset(t->told + t->room, 0, (room - t->room) * sizeof(t->told[0]));
		t->room = room;
	}
	t->place[row] = (uint32_t)t->census->contexts.count;
	return t->place[row];
}

static void take_rows(struct taking *t, const struct log_item *item)
{
	const struct log_growth *rows = item->payload;
	size_t count = item->head.bytes / sizeof(rows[0]);

	for (size_t i = 0; i < count; i++) {
		struct log_growth row;
		uint32_t place;

		memcpy(&row, &rows[i], sizeof(row));
		place = index_of(t, row.context);
		if (place == 0)
			continue;
		t->live[place - 1] = (struct live){ row.live_blocks, row.live_bytes };
		VEC_PUSH(&t->touched, place - 1);
	}
}

static void tell_moment(struct taking *t, uint32_t moment)
{
	VEC_FOREACH (&t->touched, at) {
		struct live *live = &t->live[*at], *told = &t->told[*at];

		if (live->blocks == told->blocks && live->bytes == told->bytes)
			continue;
		VEC_PUSH(&t->census->contexts.items[*at].changes,
			 ((struct census_change){
				 .moment = moment,
				 .blocks = (int64_t)(live->blocks - told->blocks),
				 .bytes = (int64_t)(live->bytes - told->bytes),
			 }));
		*told = *live;
		t->census->contexts.items[*at].blocks = live->blocks;
		t->census->contexts.items[*at].bytes = live->bytes;
	}
	t->touched.count = 0;
}

/* `at[i]` is the checkpoint of the i-th seen moment, ascending. */
static void replay(struct taking *t, const size_t *at, size_t count)
{
	struct log_item item;
	size_t checkpoint = SIZE_MAX, moment = 0; /* the one whose rows are being read */

	log_reader_rewind(&t->log->reader);
	while (moment < count && log_reader_next(&t->log->reader, &item)) {
		if (item.head.type == LOG_GROWTH) {
			take_rows(t, &item);
			continue;
		}
		if (item.head.type != LOG_CHECKPOINT || item.head.bytes == 0)
			continue;
		for (; moment < count && checkpoint != SIZE_MAX && at[moment] <= checkpoint;
		     moment++)
			tell_moment(t, (uint32_t)moment);
		checkpoint++; /* from SIZE_MAX to 0 */
	}
	for (; moment < count; moment++)
		tell_moment(t, (uint32_t)moment);
}

void census_take(struct event_log *log, const struct moments *moments, struct census *ret)
{
	AUTO(checkpoints_deinit) struct checkpoints points = { 0 };
	struct taking t = { .log = log, .census = ret, .rows = log_context_count(&log->reader) };
	AUTO(mem_freep) size_t *at = mem_alloc((moments->list.count + 1) * sizeof(at[0]));
	size_t seen = 0;

	if (t.rows > ROWS_MAX)
		t.rows = ROWS_MAX;
	checkpoints_read(log, &points);
	if (moments_locate(moments, &points, log->reader.header.start_monotonic_ns, at) < 2)
		return;
	ret->tests = moments->basis == GROWTH_TESTS;
	ret->names = mem_alloc(moments->list.count * sizeof(ret->names[0]));
	for (size_t i = 0; i < moments->list.count; i++) {
		/* A log out of order would be one that was damaged. */
		if (at[i] == MOMENT_UNSEEN || (seen > 0 && at[i] < at[seen - 1]))
			continue;
		ret->names[seen] = moments->list.items[i].name;
		at[seen++] = at[i];
	}
	ret->moments = seen;
	for (size_t i = 0; seen > 0 && i <= at[seen - 1]; i++)
		ret->lines += points.list.items[i].fd >= 0;
	t.place = mem_alloc(((size_t)t.rows + 1) * sizeof(t.place[0]));
	replay(&t, at, seen);
	MEM_FREE(t.place, t.live, t.told);
	VEC_DEINIT(&t.touched);
}
