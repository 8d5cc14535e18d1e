#include "read/moments.h"

#include <string.h>

#include "base/strbuf.h"

/* A beginning of a line that says something. */
#define TELLING_TEXT 4
/* How far to look for a line that does not stand where it should, and how often in vain. */
#define LOOK_AHEAD 65536
#define VAIN_MAX 64

void moments_deinit(struct moments *moments)
{
	VEC_DEINIT(&moments->list);
}

void checkpoints_deinit(struct checkpoints *points)
{
	VEC_FOREACH (&points->list, point) {
		mem_free(point->text);
		mem_free(point->inside.text);
	}
	VEC_DEINIT(&points->list);
}

static bool has_kind(const struct milestone *milestones, size_t count, enum milestone_kind kind)
{
	for (size_t i = 0; i < count; i++)
		if (milestones[i].kind == kind)
			return true;
	return false;
}

void moments_from_milestones(const struct milestone *milestones, size_t count, bool chosen,
			     struct moments *ret)
{
	bool ends = has_kind(milestones, count, MILESTONE_TEST_END);
	bool starts = has_kind(milestones, count, MILESTONE_TEST_START);

	ret->basis = ends || starts ? GROWTH_TESTS : chosen ? GROWTH_BREADCRUMBS : GROWTH_LINES;
	for (size_t i = 0; i < count; i++) {
		struct moment moment = { .milestone = &milestones[i], .name = "" };
		bool first = ret->list.count == 0;

		/* Where ends are told, the one start that counts is the first. */
		if (ends && milestones[i].kind == MILESTONE_TEST_START && !first)
			continue;
		if (!first && !ends && starts)
			moment.name = ret->list.items[ret->list.count - 1].milestone->name;
		else if (!first)
			moment.name = milestones[i].name;
		VEC_PUSH(&ret->list, moment);
	}
}

/* What is written at once may end a line and begin the next one: pytest 8 does. */
static void lines_inside(const struct log_checkpoint *record, struct checkpoint_line *ret)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	size_t bytes = record->text_bytes < sizeof(record->text) ? record->text_bytes
								 : sizeof(record->text);
	const char *newline = memrchr(record->text, '\n', bytes);
	size_t from = newline ? (size_t)(newline + 1 - record->text) : bytes;

	*ret = (struct checkpoint_line){ 0 };
	if (from == bytes)
		return;
	strbuf_add_printable(&text, record->text + from, bytes - from);
	ret->offset = from;
	ret->text = strbuf_take(&text);
}

void checkpoints_read(struct event_log *log, struct checkpoints *ret)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		AUTO(strbuf_deinit) struct strbuf text = { 0 };
		struct log_checkpoint record;
		struct checkpoint_line inside;

		if (item.head.type != LOG_CHECKPOINT ||
		    !log_payload(&item, &record, sizeof(record)))
			continue;
		strbuf_add_printable(&text, record.text,
				     record.text_bytes < sizeof(record.text) ? record.text_bytes
									     : sizeof(record.text));
		lines_inside(&record, &inside);
		VEC_PUSH(&ret->list,
			 ((struct checkpoint){
				 .inside = inside,
				 .seq = item.head.seq,
				 .time_ns = item.head.time_ns,
				 .offset = record.stream_bytes,
				 .fd = record.why == LOG_CHECKPOINT_WRITE ? record.fd : -1,
				 .exit = record.why == LOG_CHECKPOINT_EXIT,
				 .text = strbuf_take(&text),
				 .lane = record.lane,
				 .next_id = record.next_id,
				 .ids_given = record.ids_given,
			 }));
	}
}

static bool same_beginning(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return strncmp(a, b, x < y ? x : y) == 0;
}

/* Where the search for lines of one process stands. */
struct moment_search {
	const struct checkpoints *points;
	size_t next;	  /* lines before this checkpoint are found */
	int64_t drift[3]; /* what others wrote to the stream before; by descriptor */
	unsigned int vain;
};

static bool stands_at(const struct moment_search *s, const struct checkpoint *point,
		      const struct milestone *milestone)
{
	return point->fd == milestone->fd &&
	       (int64_t)point->offset + s->drift[milestone->fd] == (int64_t)milestone->start;
}

/* The last line that begins in what was written. */
static bool holds(const struct moment_search *s, const struct checkpoint *point,
		  const struct milestone *milestone)
{
	return point->inside.text && point->fd == milestone->fd &&
	       (int64_t)(point->offset + point->inside.offset) + s->drift[milestone->fd] ==
		       (int64_t)milestone->start &&
	       same_beginning(point->inside.text, milestone->text);
}

static size_t find_line(struct moment_search *s, const struct milestone *milestone)
{
	size_t count = s->points->list.count, end = s->next + LOOK_AHEAD;

	if (s->vain >= VAIN_MAX)
		return MOMENT_UNSEEN;
	for (size_t i = s->next; i < count && i < end; i++) {
		const struct checkpoint *point = &s->points->list.items[i];

		if (point->time_ns > milestone->arrived_ns)
			break;
		if ((stands_at(s, point, milestone) &&
		     same_beginning(point->text, milestone->text)) ||
		    holds(s, point, milestone))
			return i;
	}
	for (size_t i = s->next; i < count && i < end; i++) {
		const struct checkpoint *point = &s->points->list.items[i];

		if (point->time_ns > milestone->arrived_ns)
			break;
		/* On a terminal both streams come as one, so the descriptor need not be the same.
		 */
		if (point->fd > 0 && strlen(point->text) >= TELLING_TEXT &&
		    same_beginning(point->text, milestone->text)) {
			s->drift[milestone->fd] =
				(int64_t)milestone->start - (int64_t)point->offset;
			return i;
		}
	}
	s->vain++;
	return MOMENT_UNSEEN;
}

/* A result that is written to the end of a line that began with the test: the heap as it was
 * before the result, not before the test. */
static size_t last_in_line(const struct moment_search *s, const struct milestone *milestone,
			   size_t at)
{
	const struct checkpoint *points = s->points->list.items;

	while (milestone->kind == MILESTONE_TEST_END && at + 1 < s->points->list.count) {
		const struct checkpoint *next = &points[at + 1];

		if (next->fd >= 0 &&
		    (next->fd != milestone->fd ||
		     (int64_t)next->offset + s->drift[milestone->fd] >= (int64_t)milestone->end))
			break;
		if (next->exit || next->time_ns > milestone->arrived_ns)
			break;
		/* Between two pieces of the line time may go by. */
		if (next->fd < 0) {
			size_t piece = at + 1;

			while (piece < s->points->list.count && points[piece].fd < 0 &&
			       !points[piece].exit)
				piece++;
			if (piece >= s->points->list.count || points[piece].fd != milestone->fd ||
			    (int64_t)points[piece].offset + s->drift[milestone->fd] >=
				    (int64_t)milestone->end)
				break;
			at = piece;
			continue;
		}
		at++;
	}
	return at;
}

static size_t locate_lines(const struct moments *moments, const struct checkpoints *points,
			   size_t *ret)
{
	struct moment_search s = { .points = points };
	size_t found = 0;

	for (size_t i = 0; i < moments->list.count; i++) {
		const struct milestone *milestone = moments->list.items[i].milestone;

		ret[i] = find_line(&s, milestone);
		if (ret[i] == MOMENT_UNSEEN)
			continue;
		s.next = ret[i] + 1;
		ret[i] = last_in_line(&s, milestone, ret[i]);
		found++;
	}
	return found;
}

static size_t locate_times(const struct moments *moments, const struct checkpoints *points,
			   uint64_t start_ns, size_t *ret)
{
	const struct checkpoint *items = points->list.items;
	size_t at = 0, found = 0, count = points->list.count;

	for (size_t i = 0; i < moments->list.count; i++) {
		uint64_t time = moments->list.items[i].milestone->arrived_ns;

		while (at < count && items[at].time_ns <= time)
			at++;
		/* Before its start, or after its end. */
		ret[i] = at == 0 || time < start_ns || items[at - 1].exit ? MOMENT_UNSEEN : at - 1;
		found += ret[i] != MOMENT_UNSEEN;
	}
	return found;
}

size_t moments_locate(const struct moments *moments, const struct checkpoints *points,
		      uint64_t start_ns, size_t *ret)
{
	size_t lines = locate_lines(moments, points, ret), times;

	/* Most of what it could have written: the rest was lost on the way. */
	if (lines > 1 && lines * 2 >= moments->list.count)
		return lines;
	times = locate_times(moments, points, start_ns, ret);
	return times > lines ? times : locate_lines(moments, points, ret);
}
