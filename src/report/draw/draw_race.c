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
#define FIRST_X 320.0
#define SECOND_X 700.0
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

static void put_access(struct html *h, const struct write_seen *write, bool second, bool shared)
{
	double y = TOP + LANE * (second ? 1.5 : 0.5), x = second ? SECOND_X : FIRST_X;
	AUTO(mem_freep) char *name = thread_name(write);
	AUTO(mem_freep) char *value = shared ? NULL : change_words(write);
	AUTO(strbuf_deinit) struct strbuf mark = { 0 };

	svg_text(h, "name", LEFT - 14, y + 4, ANCHOR_END, name);
	svg_line(h, "rail", LEFT, y, WIDTH - 20, y);
	mark_add(&mark, second ? MARK_DIAMOND : MARK_SQUARE, x, y, 8);
	svg_path(h, second ? "m0" : "m1", strbuf_str(&mark));
	svg_text(h, "hex", x, y - 16, ANCHOR_MIDDLE, shared || value ? value : "an access");
}

void draw_race(struct html *h, const struct race_seen *race)
{
	AUTO(mem_freep) char *gap = gap_words(race);
	AUTO(mem_freep)
	char *text =
		mem_printf("Two threads wrote the same word %s apart; %s", gap,
			   race->locked ? "a lock was held at both" : "no lock was seen at both");
	double y = TOP + LANE * 2 + 6;

	svg_open(h, "race-picture", WIDTH, TOP + LANE * 2 + 44, "Two threads at one word", text);
	put_access(h, race->first, false, html_shared(h));
	put_access(h, race->second, true, html_shared(h));
	svg_line(h, "moment", FIRST_X, TOP, FIRST_X, y);
	svg_line(h, "moment", SECOND_X, TOP, SECOND_X, y);
	svg_line(h, "gap", FIRST_X, y, SECOND_X, y);
	svg_text(h, "label", (FIRST_X + SECOND_X) / 2, y + 18, ANCHOR_MIDDLE, gap);
	svg_text(h, "label", LEFT - 14, y + 4, ANCHOR_END,
		 race->locked ? "a lock was held at both" : "no lock at both");
	svg_close(h);
}
