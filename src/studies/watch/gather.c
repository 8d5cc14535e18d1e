#include "studies/watch/gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/hits.h"
#include "read/unexplained.h"

#define WRITERS_MAX 500
#define CONFLATIONS_MAX 16
#define INSTANCES_MAX 8
#define OUTSIDE_MAX 16
#define NOTES_MAX 20

/* What was found changed at the trap of another counts if that store covered it, too. */
static bool by_row(const struct hit *caught, const struct log_writer_row *row,
		   struct symbols *symbols)
{
	const struct log_hit *hit = caught->hit;
	bool alongside = (row->watch & LOG_WRITER_ALONGSIDE) != 0;

	return hit->watch == LOG_WRITER_WATCH(row->watch) &&
	       (hit->flags & LOG_HIT_KERNEL ? LOG_WRITER_OF_CALL(hit->last_syscall) : 0) ==
		       LOG_WRITER_CALL(row->watch) << 8 &&
	       hit->gregs[LOG_GREG_RIP] == row->rip &&
	       ((hit->flags & LOG_HIT_ALONGSIDE) != 0) == alongside &&
	       (!alongside || hit_covers(caught, symbols));
}

static const struct hit *find_hit(const struct trial_hits *log, const struct event_log *in,
				  const struct log_writer_row *row, bool last,
				  struct symbols *symbols)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught) {
		if (caught->log != in || !by_row(caught, row, symbols))
			continue;
		found = caught;
		if (!last)
			return found;
	}
	return found;
}

static struct watch_writer *find_writer(struct watch_report *report, const char *key,
					unsigned int watch)
{
	return VEC_FIND(&report->writers, writer,
			writer->watch == watch && strcmp(writer->key, key) == 0);
}

static void add_value(struct watch_writer *writer, uint64_t value, uint64_t count)
{
	for (unsigned int i = 0; i < writer->value_count; i++) {
		if (writer->values[i].value == value) {
			writer->values[i].count += count;
			return;
		}
	}
	if (writer->value_count == WATCH_VALUES) {
		writer->more_values = true;
		return;
	}
	writer->values[writer->value_count++] =
		(struct watch_value){ .value = value, .count = count };
}

static void add_counts(struct watch_writer *writer, const struct log_writer_row *row)
{
	uint64_t told = 0;

	writer->count += row->count;
	writer->changed += row->changed;
	for (unsigned int i = 0; i < LOG_WRITER_VALUES; i++) {
		if (row->value_counts[i] > 0)
			add_value(writer, row->values[i], row->value_counts[i]);
		told += row->value_counts[i];
	}
	writer->more_values |= told < row->count;
}

static void touch(struct watch_gather *gather, size_t index)
{
	VEC_FOREACH (&gather->touched, i)
		if (*i == index)
			return;
	VEC_PUSH(&gather->touched, index);
}

static void add_writer(struct watch_gather *gather, const struct trial_hits *log,
		       const struct event_log *in, const struct log_writer_row *row)
{
	const struct hit *first = find_hit(log, in, row, false, gather->symbols);
	const struct hit *last = find_hit(log, in, row, true, gather->symbols);
	unsigned int watch = LOG_WRITER_WATCH(row->watch);
	struct watch_report *report = gather->report;
	struct write_seen *seen = mem_alloc(sizeof(*seen));
	struct watch_writer *writer;
	struct writer decoded;
	bool sure;
	AUTO(mem_freep) char *key = NULL;

	if (!first) {
		mem_free(seen);
		return;
	}
	sure = hit_decode(first, gather->symbols, &decoded) == 0;
	hit_tell(first, sure ? &decoded : NULL, gather->symbols, seen);
	key = hit_key(first, sure ? &decoded : NULL, seen);
	writer = find_writer(report, key, watch);
	if (!writer && report->writers.count < WRITERS_MAX) {
		VEC_PUSH(&report->writers,
			 ((struct watch_writer){
				 .key = mem_strdup(key),
				 .watch = watch,
				 .certain = sure && decoded.certain,
				 .system_call = sure && decoded.system_call,
				 .first = { .trial = gather->trial, .write = TAKE(seen) } }));
		writer = &report->writers.items[report->writers.count - 1];
	}
	write_seen_free(seen);
	if (!writer)
		return;
	touch(gather, (size_t)(writer - report->writers.items));
	add_counts(writer, row);
	write_seen_free(writer->last.write);
	writer->last =
		(struct watch_moment){ .trial = gather->trial, .write = mem_alloc(sizeof(*seen)) };
	sure = hit_decode(last, gather->symbols, &decoded) == 0;
	hit_tell(last, sure ? &decoded : NULL, gather->symbols, writer->last.write);
	writer->imprecise |= (last->hit->flags & LOG_HIT_IMPRECISE) != 0;
}

struct lives {
	VEC(struct log_watched) list; /* by address, then by number */
};

static int by_place(const void *a, const void *b)
{
	const struct log_watched *x = a, *y = b;

	return ORDER(x->address, y->address) ?: ORDER(x->number, y->number);
}

static void tell_conflation(struct watch_gather *gather, struct event_log *log,
			    const struct log_watched *lives, size_t count, int changed_at)
{
	struct watch_conflation told = { .trial = gather->trial,
					 .address = lives[0].address,
					 .instances = count,
					 .changed_at = -1 };
	size_t from = count > INSTANCES_MAX ? count - INSTANCES_MAX : 0;

	if (changed_at >= 0 && (size_t)changed_at < from)
		from = (size_t)changed_at;
	for (size_t i = from; i < count && told.list.count < INSTANCES_MAX; i++) {
		if ((int)i == changed_at)
			told.changed_at = (int)told.list.count;
		VEC_PUSH(&told.list,
			 ((struct watch_instance){ .number = lives[i].number,
						   .id = lives[i].id,
						   .key = event_log_key(log, &lives[i].key, 0),
						   .first_value = lives[i].first_value,
						   .last_value = lives[i].last_value,
						   .hits = lives[i].hits,
						   .end = lives[i].end }));
	}
	VEC_PUSH(&gather->report->conflations, told);
}

/* The last pair whose values differ though neither was written to meanwhile. */
static int find_change(const struct log_watched *lives, size_t count)
{
	for (size_t i = count; i-- > 1;) {
		const struct log_watched *a = &lives[i - 1], *b = &lives[i];
		bool two = a->id != b->id || a->end == LOG_WATCHED_AGAIN;

		if (two && a->last_value != b->first_value && a->last_value == a->last_seen)
			return (int)i - 1;
	}
	return -1;
}

/* The user may have meant another offset, or another function's blocks. */
static void add_beyond(struct watch_report *report, const struct log_watched *watched)
{
	struct watch_target *target;

	if (watched->id == 0 || watched->watch >= report->targets.count ||
	    watched->address < watched->start || watched->address - watched->start < watched->size)
		return;
	target = &report->targets.items[watched->watch];
	target->beyond++;
	if (watched->size > target->beyond_size)
		target->beyond_size = watched->size;
}

static void add_conflations(struct watch_gather *gather, struct event_log *log)
{
	struct lives lives = { 0 };

	for (uint32_t row = 0; row < LOG_WATCHED; row++) {
		struct log_watched watched;

		if (!log_watched(&log->reader, row, &watched))
			continue;
		add_beyond(gather->report, &watched);
		VEC_PUSH(&lives.list, watched);
	}
	VEC_SORT(&lives.list, by_place);
	for (size_t i = 0, end; i < lives.list.count; i = end) {
		int changed;

		for (end = i; end < lives.list.count &&
			      lives.list.items[end].address == lives.list.items[i].address;)
			end++;
		if (end - i < 2)
			continue;
		gather->report->conflation_count++;
		changed = find_change(&lives.list.items[i], end - i);
		if (changed >= 0 && gather->report->conflations.count < CONFLATIONS_MAX)
			tell_conflation(gather, log, &lives.list.items[i], end - i, changed);
	}
	VEC_DEINIT(&lives.list);
}

static void add_outside(struct watch_gather *gather, const struct trial_hits *log,
			struct event_log *in, const struct log_watch_changed *changed)
{
	if (change_explained(log, in, changed, gather->symbols))
		return;
	gather->report->outside_count++;
	if (gather->report->outside.count < OUTSIDE_MAX && changed->watch < LOG_WATCHES)
		VEC_PUSH(&gather->report->outside,
			 ((struct watch_outside){
				 .trial = gather->trial,
				 .change = unexplained_tell(in, changed, gather->symbols) }));
}

static void note_yielded(struct watch_report *report, const struct event_log *log,
			 const struct log_watch_row *row)
{
	static const char *const why[] = {
		[LOG_YIELDED_TO_OTHER] = "yielded:to-other",
		[LOG_YIELDED_KILLED] = "yielded:killed",
		[LOG_YIELDED_TO_KERNEL] = "yielded:to-kernel",
		[LOG_YIELDED_SANDBOX] = "yielded:sandbox",
	};

	if (row->yielded >= sizeof(why) / sizeof(why[0]) || !why[row->yielded] ||
	    report->notes.list.count >= NOTES_MAX)
		return;
	SAY_TOO(&report->notes, "note:watched-partly", said_number(log->reader.header.pid),
		said_word(why[row->yielded]));
}

static void note_count(struct watch_report *report, const struct event_log *log, const char *note,
		       uint64_t count)
{
	if (count != 0 && report->notes.list.count < NOTES_MAX)
		SAY_TOO(&report->notes, note, said_number(log->reader.header.pid),
			said_number(count));
}

static struct said_value trouble_value(int trouble)
{
	switch (trouble) {
	case EBUSY:
		return said_word("trouble:traced");
	case ENXIO:
		return said_word("trouble:no-tracer");
	case ETIMEDOUT:
		return said_word("trouble:late-tracer");
	default:
		return said_text(strerror(trouble));
	}
}

static void add_rows(struct watch_report *report, struct event_log *log)
{
	static const char *const modes[] = { [LOG_WATCH_PERF] = "hw",
					     [LOG_WATCH_BY_PTRACE] = "ptrace",
					     [LOG_WATCH_PAGES] = "pages" };

	for (uint32_t i = 0; i < report->targets.count; i++) {
		struct watch_target *target = &report->targets.items[i];
		struct log_watch_row row;

		if (!log_watch_row(&log->reader, i, &row))
			continue;
		if (row.mode < sizeof(modes) / sizeof(modes[0]) && modes[row.mode]) {
			report->mode = modes[row.mode];
			report->kernel_writes = row.kernel_writes != 0;
			report->processes += i == 0;
			if (row.trouble != 0 && report->notes.list.count < NOTES_MAX)
				SAY_TOO(&report->notes, "note:objects-unwatched",
					said_number(log->reader.header.pid),
					said_text(strerror(row.trouble)));
		} else if (report->notes.list.count < NOTES_MAX) {
			SAY_TOO(&report->notes, "note:unwatched",
				said_number(log->reader.header.pid), trouble_value(row.trouble));
		}
		if (i == 0) {
			note_yielded(report, log, &row);
			note_count(report, log, "note:opened", row.opened);
			note_count(report, log, "note:let-go", row.let_go);
		}
		target->objects += row.objects;
		target->armed += row.armed;
		target->displaced += row.displaced;
		target->hits += row.hits;
		target->matched += row.matched;
		target->unchanged += row.unchanged;
		target->imprecise += row.imprecise;
		target->late += row.late;
		target->unplaced += row.unplaced;
		target->moved += row.moved;
	}
}

static void add_log(struct watch_gather *gather, const struct trial_hits *log, struct event_log *in)
{
	struct log_item item;

	add_rows(gather->report, in);
	for (uint32_t i = 0; i < LOG_WRITERS; i++) {
		struct log_writer_row row;

		if (log_writer_row(&in->reader, i, &row))
			add_writer(gather, log, in, &row);
	}
	add_conflations(gather, in);
	log_reader_rewind(&in->reader);
	while (log_reader_next(&in->reader, &item)) {
		struct log_watch_changed changed;

		if (item.head.type == LOG_WATCH_CHANGED &&
		    log_payload(&item, &changed, sizeof(changed)))
			add_outside(gather, log, in, &changed);
	}
}

void watch_gather_trial(struct watch_gather *gather, struct reading *reading)
{
	struct watch_report *report = gather->report;
	struct event_logs *logs;

	gather->trial = reading_trial(reading);
	gather->before.writers = report->writers.count;
	gather->before.conflations = report->conflations.count;
	gather->before.outside = report->outside.count;
	gather->touched.count = 0;
	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, in)
		add_log(gather, reading_hits(reading), in);
	VEC_FOREACH (&logs->notes.list, note)
		if (report->notes.list.count < NOTES_MAX)
			said_copy(said_new(&report->notes), note);
}

void watch_gather_settle(struct watch_gather *gather, bool failing)
{
	struct watch_report *report = gather->report;

	VEC_FOREACH (&gather->touched, i) {
		struct watch_writer *writer = &report->writers.items[*i];

		writer->trials++;
		writer->failing += failing;
		writer->last.failing = failing;
		if (*i >= gather->before.writers)
			writer->first.failing = failing;
	}
	gather->touched.count = 0;
	for (size_t i = gather->before.conflations; i < report->conflations.count; i++)
		report->conflations.items[i].failing = failing;
	for (size_t i = gather->before.outside; i < report->outside.count; i++)
		report->outside.items[i].failing = failing;
}

/* Who wrote only where it failed, and seldom, is worth a look. */
static int by_oddness(const void *a, const void *b)
{
	const struct watch_writer *x = a, *y = b;
	bool odd_x = x->failing > 0 && x->failing == x->trials;
	bool odd_y = y->failing > 0 && y->failing == y->trials;

	return ORDER(x->watch, y->watch) ?: ORDER(odd_y, odd_x)
	       ?: (odd_x ? ORDER(x->count, y->count) : ORDER(y->count, x->count))
	       ?: strcmp(x->key, y->key);
}

void watch_gather_finish(struct watch_gather *gather)
{
	struct watch_report *report = gather->report;

	VEC_SORT(&report->writers, by_oddness);
}

void watch_gather_deinit(struct watch_gather *gather)
{
	VEC_DEINIT(&gather->touched);
}
