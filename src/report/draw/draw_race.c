/*
 * A race: the accesses of two threads to one word, on one axis of time.
 */
#include "report/draw/draw.h"

#include <inttypes.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"

#define WIDTH 920.0
#define LEFT 200.0
#define FIRST_X 290.0
#define LAST_X 760.0
#define SHARE_LEAST 0.3 /* of the way from the first mark to the last */
#define TOP 34.0
#define LANE 64.0

static char *thread_name(const struct write_seen *write)
{
	if (!write)
		return mem_strdup("a thread");
	return write->thread ? mem_printf("thread %d (%s)", write->tid, write->thread)
			     : mem_printf("thread %d", write->tid);
}

char *change_words(const struct write_seen *write)
{
	int digits = (int)(write && write->value_len <= 8 ? write->value_len * 2 : 1);

	if (!write || write->value_len == 0)
		return NULL;
	return mem_printf("0x%0*" PRIx64 " → 0x%0*" PRIx64, digits, write->old, digits, write->new);
}

static char *gap_words(const struct race_seen *race)
{
	if (race->gap_ns >= 1000000)
		return mem_printf("%" PRIu64 ".%" PRIu64 " ms", race->gap_ns / 1000000,
				  race->gap_ns / 100000 % 10);
	if (race->gap_ns >= 1000)
		return mem_printf("%" PRIu64 ".%" PRIu64 " µs", race->gap_ns / 1000,
				  race->gap_ns / 100 % 10);
	return mem_printf("%" PRIu64 " ns", race->gap_ns);
}

/* Where the accesses stand on the axis: as far from each other as in time, but never so near that
 * their words overlap. */
struct race_axis {
	double read, first, second; /* `read` 0: not known */
};

static struct race_axis axis_of(const struct race_seen *race)
{
	double before = race->read && race->first && race->read->when_ns > 0 &&
					race->first->when_ns > race->read->when_ns
				? (double)(race->first->when_ns - race->read->when_ns)
				: 0;
	double room = LAST_X - FIRST_X, share = before / (before + (double)race->gap_ns + 1);

	if (before <= 0)
		return (struct race_axis){ .first = FIRST_X + room / 4, .second = LAST_X };
	share = share < SHARE_LEAST	  ? SHARE_LEAST
		: share > 1 - SHARE_LEAST ? 1 - SHARE_LEAST
					  : share;
	return (struct race_axis){ FIRST_X, FIRST_X + room * share, LAST_X };
}

static void put_mark(struct html *h, enum mark mark, double x, double y, const char *word)
{
	AUTO(strbuf_deinit) struct strbuf data = { 0 };

	mark_add(&data, mark, x, y, 8);
	svg_path(h, mark_class(mark), strbuf_str(&data));
	svg_text(h, "hex", x, y - 16, ANCHOR_MIDDLE, word);
}

static void put_access(struct html *h, const struct write_seen *write, enum mark mark, double x,
		       double y)
{
	AUTO(mem_freep) char *value = html_shared(h) ? NULL : change_words(write);

	put_mark(h, mark, x, y, value ? value : "writes");
}

static void put_lane(struct html *h, const struct write_seen *write, double y)
{
	AUTO(mem_freep) char *name = thread_name(write);

	svg_text(h, "name", LEFT - 14, y + 4, ANCHOR_END, name);
	svg_line(h, "rail", LEFT, y, WIDTH - 20, y);
}

/* The other thread wrote while this one was between its look and its store: whatever locks they
 * took, none of them kept it out. Of any other race nobody looked at locks. */
static const char *lock_words(const struct race_seen *race)
{
	return race->locked	   ? "both held a lock"
	       : race->lost_update ? "no lock kept the first thread out"
				   : "locks: not looked at";
}

void draw_race(struct html *h, const struct race_seen *race)
{
	struct race_axis at = axis_of(race);
	AUTO(mem_freep) char *gap = gap_words(race);
	AUTO(mem_freep)
	char *text =
		mem_printf("Two threads wrote the same word %s apart; %s", gap, lock_words(race));
	double one = TOP + LANE * 0.5, two = TOP + LANE * 1.5, y = TOP + LANE * 2 + 10;

	svg_open(h, "race-picture", WIDTH, y + 38, "Two threads at one word", text);
	put_lane(h, race->first, one);
	put_lane(h, race->second, two);
	if (at.read > 0) {
		svg_rect(h, "unlocked", at.read, two - 7, at.second - at.read, 14);
		svg_line(h, "moment", at.read, TOP, at.read, y);
		put_mark(h, MARK_RING, at.read, two, "reads");
	}
	svg_line(h, "moment", at.first, TOP, at.first, y);
	svg_line(h, "moment", at.second, TOP, at.second, y);
	put_access(h, race->first, MARK_SQUARE, at.first, one);
	put_access(h, race->second, MARK_DIAMOND, at.second, two);
	svg_line(h, "gap", at.first, y, at.second, y);
	svg_text(h, "label", (at.first + at.second) / 2, y + 18, ANCHOR_MIDDLE, gap);
	svg_text(h, "label", at.read > 0 ? (at.read + at.second) / 2 : LEFT,
		 at.read > 0 ? two + 22 : y + 18, at.read > 0 ? ANCHOR_MIDDLE : ANCHOR_START,
		 lock_words(race));
	svg_close(h);
}
