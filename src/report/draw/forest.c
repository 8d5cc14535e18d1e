/*
 * Observers as a forest plot: how often it fails under each.
 */
#include "report/draw/draw.h"

#include <inttypes.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/percent.h"
#include "report/draw/canvas.h"

#define WIDTH 920.0
#define LEFT 170.0
#define ROOM 480.0
#define ROW 30.0
#define TOP 20.0

static double at(double share)
{
	return LEFT + ROOM * share;
}

static void put_row(struct html *h, const struct observer_rate *o, double y)
{
	AUTO(strbuf_deinit) struct strbuf mark = { 0 };

	svg_text(h, "name", LEFT - 14, y + 4, ANCHOR_END, o->name);
	svg_line(h, "interval", at(o->rate.low), y, at(o->rate.high), y);
	svg_line(h, "interval", at(o->rate.low), y - 4, at(o->rate.low), y + 4);
	svg_line(h, "interval", at(o->rate.high), y - 4, at(o->rate.high), y + 4);
	mark_add(&mark, MARK_SQUARE, at(o->rate.rate), y, 6);
	svg_path(h, "point", strbuf_str(&mark));
	svg_textf(h, "label", LEFT + ROOM + 16, y + 4, ANCHOR_START,
		  "%" PRIu64 " of %" PRIu64 " (%s %%)", o->rate.failed, o->rate.trials,
		  PERCENT(o->rate.rate));
}

void draw_forest(struct html *h, const struct investigation *inv, const struct rate *without,
		 const char *line)
{
	double bottom = TOP + ROW * (double)inv->observers.count;
	double y = TOP;

	svg_open(h, "observers-picture", WIDTH, bottom + 28,
		 "How often it fails under each observer",
		 "A row for each observer: the rate as a square, its 95 % interval as a line; the "
		 "dashed line is the rate without it. The table below has the figures.");
	if (without && without->trials > 0) {
		svg_line(h, "without", at(without->rate), TOP - 8, at(without->rate), bottom);
		svg_text(h, "dim", at(without->rate) + 5, TOP + 2, ANCHOR_START, line);
	}
	VEC_FOREACH (&inv->observers, o) {
		put_row(h, o, y + ROW / 2);
		y += ROW;
	}
	svg_line(h, "axis", LEFT, bottom, LEFT + ROOM, bottom);
	for (int share = 0; share <= 4; share++) {
		svg_line(h, "axis", at(share / 4.0), bottom, at(share / 4.0), bottom + 4);
		svg_textf(h, "label", at(share / 4.0), bottom + 18, ANCHOR_MIDDLE, "%d %%",
			  share * 25);
	}
	svg_close(h);
}
