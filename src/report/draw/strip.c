/*
 * The rate strip: trials in order, and the interval that closes in.
 */
#include "report/draw/draw.h"

#include <inttypes.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/percent.h"
#include "report/draw/canvas.h"

#define WIDTH 920.0
#define LEFT 64.0
#define RIGHT 12.0
#define LANE 22.0
#define TOP 24.0
#define STEP_MOST 14.0
#define LANES_MOST 16u
/* Marks that are nearer than this cannot be told apart. */
#define APART 1.5

unsigned int family_mark(int family)
{
	if (family == DOT_ALWAYS)
		return MARK_RING;
	return family >= 0 && family < MARK_PLUS ? (unsigned int)family : MARK_PLUS;
}

struct strip {
	const struct trial_dots *dots;
	unsigned int lanes;
	bool by_node; /* several machines: a lane for each of them, not for each slot */
	double step;
	struct strbuf passed, failed[MARKS];
};

static unsigned int lane_of(const struct strip *strip, const struct trial_dot *dot)
{
	if (strip->by_node)
		return (unsigned int)(dot->node < strip->lanes ? dot->node : strip->lanes - 1);
	return strip->lanes > 1 ? dot->slot % strip->lanes : 0;
}

static double lane_y(unsigned int lane)
{
	return TOP + LANE * (lane + 0.5);
}

/* One mark for all of a kind that fall on the same place. */
static void add_marks(struct strip *strip)
{
	double last[LANES_MOST][MARKS + 1];

	for (unsigned int lane = 0; lane < LANES_MOST; lane++)
		for (unsigned int kind = 0; kind <= MARKS; kind++)
			last[lane][kind] = -APART;
	for (size_t i = 0; i < strip->dots->list.count; i++) {
		const struct trial_dot *dot = &strip->dots->list.items[i];
		unsigned int lane = lane_of(strip, dot);
		bool failed = dot->family != DOT_PASSED;
		unsigned int kind = failed ? family_mark(dot->family) : MARKS;
		double x = LEFT + strip->step * ((double)i + 0.5);

		if (x - last[lane][kind] < APART)
			continue;
		last[lane][kind] = x;
		if (failed)
			mark_add(&strip->failed[kind], kind, x, lane_y(lane), 4.5);
		else
			dot_add(&strip->passed, x, lane_y(lane));
	}
}

static char *lane_name(const struct strip *strip, unsigned int lane)
{
	const struct strv *nodes = &strip->dots->nodes;

	if (!strip->by_node)
		return strip->lanes > 1 ? mem_printf("slot %u", lane) : mem_strdup("trials");
	if (lane + 1 == strip->lanes && nodes->count > strip->lanes)
		return mem_strdup("others");
	return nodes->items[lane][0] != '\0' ? shortened(nodes->items[lane], 9)
					     : mem_strdup("here");
}

static void put_lanes(struct html *h, const struct strip *strip, double width)
{
	for (unsigned int lane = 0; lane < strip->lanes; lane++) {
		AUTO(mem_freep) char *name = lane_name(strip, lane);

		svg_text(h, "label", LEFT - 8, lane_y(lane) + 4, ANCHOR_END, name);
		svg_line(h, "rail", LEFT, lane_y(lane), LEFT + width, lane_y(lane));
	}
}

/* Where another command, or another kind of trial, took over. */
static void put_series(struct html *h, const struct strip *strip, const struct investigation *inv)
{
	double free_from = 0;

	for (size_t i = 0; i < strip->dots->list.count; i++) {
		const struct trial_dot *dot = &strip->dots->list.items[i];
		double x = LEFT + strip->step * (double)i;

		if (i > 0 && dot->series == dot[-1].series)
			continue;
		if (x < free_from || x > WIDTH - RIGHT - 70)
			continue;
		svg_line(h, "border", x, TOP - 6, x, TOP + LANE * strip->lanes);
		svg_text(h, "label", x + 3, TOP - 9, ANCHOR_START,
			 inv->series.items[dot->series].command);
		free_from = x + 70;
	}
}

static unsigned int count_lanes(const struct trial_dots *dots)
{
	unsigned int most = 0;

	if (dots->nodes.count > 1)
		return dots->nodes.count < LANES_MOST ? (unsigned int)dots->nodes.count
						      : LANES_MOST;
	VEC_FOREACH (&dots->list, dot)
		if (dot->slot > most)
			most = dot->slot;
	return most < LANES_MOST ? most + 1 : 1;
}

static void put_ends(struct html *h, const struct strip *strip)
{
	size_t count = strip->dots->list.count;
	double y = TOP + LANE * strip->lanes + 16, width = strip->step * (double)count;

	svg_textf(h, "label", LEFT, y, ANCHOR_START, "trial %" PRIu64,
		  strip->dots->list.items[0].number);
	if (width > 160)
		svg_textf(h, "label", LEFT + width, y, ANCHOR_END, "trial %" PRIu64,
			  strip->dots->list.items[count - 1].number);
}

void draw_strip(struct html *h, const struct investigation *inv, const struct trial_dots *dots)
{
	struct strip strip = { .dots = dots,
			       .lanes = count_lanes(dots),
			       .by_node = dots->nodes.count > 1 };
	size_t failed = 0;
	AUTO(mem_freep) char *text = NULL;
	double room = WIDTH - LEFT - RIGHT;

	if (dots->list.count == 0)
		return;
	strip.step = room / (double)dots->list.count;
	if (strip.step > STEP_MOST)
		strip.step = STEP_MOST;
	VEC_FOREACH (&dots->list, dot)
		failed += dot->family != DOT_PASSED;
	add_marks(&strip);
	text = mem_printf(
		"%zu trials in the order of their numbers, %zu of them failed; a dot is a "
		"trial that passed, a mark one that failed",
		dots->list.count, failed);
	svg_open(h, "strip-picture", WIDTH, TOP + LANE * strip.lanes + 24, "Every trial in order",
		 text);
	put_lanes(h, &strip, strip.step * (double)dots->list.count);
	put_series(h, &strip, inv);
	svg_path(h, "passed", strbuf_str(&strip.passed));
	for (unsigned int mark = 0; mark < MARKS; mark++)
		svg_path(h, mark_class(mark), strbuf_str(&strip.failed[mark]));
	put_ends(h, &strip);
	svg_close(h);
	strbuf_deinit(&strip.passed);
	for (unsigned int mark = 0; mark < MARKS; mark++)
		strbuf_deinit(&strip.failed[mark]);
}

#define CLOSING_HEIGHT 120.0

/* The interval of one trial is all there is: the scale is that of what came later. */
static double highest(const struct trial_dots *dots)
{
	size_t half = dots->closing.count / 3;
	double top = 0;

	for (size_t i = half; i < dots->closing.count; i++)
		if (dots->closing.items[i].rate.high > top)
			top = dots->closing.items[i].rate.high;
	return top > 0.95 ? 1 : top * 1.05;
}

void draw_closing(struct html *h, const struct trial_dots *dots)
{
	AUTO(strbuf_deinit) struct strbuf band = { 0 };
	AUTO(strbuf_deinit) struct strbuf line = { 0 };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	const struct rate *all;
	double room = WIDTH - LEFT - RIGHT, top, bottom = 10 + CLOSING_HEIGHT;

	if (dots->closing.count < CLOSING_LEAST)
		return;
	all = &dots->closing.items[dots->closing.count - 1].rate;
	top = highest(dots);
#define X(rate) (LEFT + room * (double)(rate)->trials / (double)all->trials)
#define Y(value) (bottom - CLOSING_HEIGHT * ((value) < top ? (value) : top) / top)
	VEC_FOREACH (&dots->closing, point) {
		const char *how = point == dots->closing.items ? "M" : "L";

		strbuf_addf(&band, "%s%s %s", how, NUM(X(&point->rate)), NUM(Y(point->rate.high)));
		strbuf_addf(&line, "%s%s %s", how, NUM(X(&point->rate)), NUM(Y(point->rate.rate)));
	}
	for (size_t i = dots->closing.count; i-- > 0;) {
		const struct rate *rate = &dots->closing.items[i].rate;

		strbuf_addf(&band, "L%s %s", NUM(X(rate)), NUM(Y(rate->low)));
	}
	strbuf_adds(&band, "z");
	strbuf_addf(&text, "after %" PRIu64 " trials %s %%, with 95 %% confidence %s to %s %%",
		    all->trials, PERCENT(all->rate), PERCENT(all->low), PERCENT(all->high));
	svg_open(h, "closing-picture", WIDTH, bottom + 26, "The interval of the rate closing in",
		 strbuf_str(&text));
	svg_path(h, "band", strbuf_str(&band));
	svg_path(h, "curve", strbuf_str(&line));
	svg_line(h, "axis", LEFT, bottom, LEFT + room, bottom);
	svg_line(h, "axis", LEFT, 10, LEFT, bottom);
	svg_textf(h, "label", LEFT - 8, 16, ANCHOR_END, "%s %%", PERCENT(top));
	svg_text(h, "label", LEFT - 8, bottom, ANCHOR_END, "0 %");
	svg_textf(h, "label", LEFT + room, bottom + 17, ANCHOR_END, "%" PRIu64 " trials",
		  all->trials);
	svg_text(h, "label", LEFT, bottom + 17, ANCHOR_START, "1");
	svg_close(h);
#undef X
#undef Y
}
