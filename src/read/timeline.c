#include "read/timeline.h"

#define TESTS_TOLD 10

/* A place in the run: the order of records where that is known, else the time. */
struct instant {
	uint64_t seq, time_ns;
};

void timeline_init(struct timeline *timeline, struct event_log *log, const struct moments *moments,
		   const struct trial_end *end)
{
	size_t seen = 0;

	*timeline = (struct timeline){
		.moments = moments,
		.running = end->running_test,
		.at = mem_alloc((moments->list.count + 1) * sizeof(timeline->at[0])),
	};
	checkpoints_read(log, &timeline->points);
	if (timeline->points.list.count > 0)
		seen = moments_locate(moments, &timeline->points,
				      log->reader.header.start_monotonic_ns, timeline->at);
	timeline->by_time = seen == 0;
}

void timeline_deinit(struct timeline *timeline)
{
	checkpoints_deinit(&timeline->points);
	mem_free(timeline->at);
}

/* Had the line been written at this instant? */
static bool is_past(const struct timeline *t, size_t moment, const struct instant *instant)
{
	if (t->by_time)
		return t->moments->list.items[moment].milestone->arrived_ns <= instant->time_ns;
	return t->at[moment] != MOMENT_UNSEEN &&
	       t->points.list.items[t->at[moment]].seq <= instant->seq;
}

static bool is_known(const struct timeline *t, size_t moment)
{
	return t->by_time || t->at[moment] != MOMENT_UNSEEN;
}

static char *line_text(const struct timeline *t, size_t moment)
{
	return mem_strdup(t->moments->list.items[moment].milestone->text);
}

/* The latest checkpoint that the block is certainly younger than. */
static const struct checkpoint *birth(const struct timeline *t, const struct log_block *block)
{
	const struct checkpoint *latest = NULL;

	VEC_FOREACH (&t->points.list, point)
		if (point->ids_given > 0 &&
		    (block->id >= point->ids_given ||
		     (block->key.lane == point->lane && block->id >= point->next_id)))
			latest = point;
	return latest;
}

static void tell_test(const char *name, struct heap_when *ret)
{
	if (ret->tests.count == TESTS_TOLD)
		ret->more_tests = true;
	else
		strv_add(&ret->tests, name);
}

/* From the last line before `from` to the first one after `to`. */
static void tell_between(const struct timeline *t, const struct instant *from,
			 const struct instant *to, struct heap_when *ret)
{
	size_t count = t->moments->list.count, first = SIZE_MAX, next = count;

	for (size_t i = 0; i < count; i++) {
		if (is_past(t, i, from))
			first = i;
		if (next == count && is_known(t, i) && !is_past(t, i, to))
			next = i;
	}
	if (first != SIZE_MAX)
		ret->after = line_text(t, first);
	if (next < count)
		ret->before = line_text(t, next);
	for (size_t i = first == SIZE_MAX ? 0 : first + 1; i < count && i <= next; i++) {
		const char *name = t->moments->list.items[i].name;

		if (t->moments->basis == GROWTH_TESTS && name[0] != '\0')
			tell_test(name, ret);
	}
	/* The test that it did not come to the end of. */
	if (next == count && t->running && ret->tests.count < TESTS_TOLD)
		strv_add(&ret->tests, t->running);
	ret->by_time = t->by_time;
}

void timeline_place(const struct timeline *timeline, const struct log_item *item,
		    const struct log_heap_damage *damage, const struct log_block *block,
		    struct heap_when *ret)
{
	struct instant from = { .seq = damage->good_checkpoint, .time_ns = damage->good_ns };
	/* What a look before a line sees happened before that line: the record comes after it. */
	struct instant to = { .seq = item->head.seq, .time_ns = item->head.time_ns };
	const struct checkpoint *born = birth(timeline, block);

	if (damage->check == LOG_CHECK_LINE && damage->checkpoint > 0)
		to.seq = damage->checkpoint - 1;
	if (born && born->seq >= from.seq) {
		from = (struct instant){ .seq = born->seq, .time_ns = born->time_ns };
		ret->since_birth = true;
	}
	tell_between(timeline, &from, &to, ret);
}

void timeline_place_record(const struct timeline *timeline, const struct log_item *item,
			   struct heap_when *ret)
{
	struct instant now = { .seq = item->head.seq, .time_ns = item->head.time_ns };

	tell_between(timeline, &now, &now, ret);
}
