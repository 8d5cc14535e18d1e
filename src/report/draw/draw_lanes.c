/*
 * Lives of blocks: a bar each, over numbered moments.
 */
#include "report/draw/draw.h"

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"

#define WIDTH 920.0
#define LEFT 220.0
#define RIGHT 30.0
#define TOP 38.0
#define LANE 36.0
#define BAR 18.0

static double moment_x(const struct lane_picture *picture, int moment)
{
	double room = WIDTH - LEFT - RIGHT;

	return LEFT + room * (moment + 0.5) / (picture->moments > 0 ? picture->moments : 1);
}

static double lane_y(size_t lane)
{
	return TOP + LANE * ((double)lane + 0.5);
}

static void put_bar(struct html *h, const struct lane_picture *picture, size_t number)
{
	static const char *const classes[] = { "bar", "bar victim", "bar holder" };
	const struct life_lane *lane = &picture->lanes.items[number];
	bool ends = lane->to < picture->moments;
	double x = moment_x(picture, lane->from), y = lane_y(number);
	double to = ends ? moment_x(picture, lane->to) : WIDTH - RIGHT;
	AUTO(strbuf_deinit) struct strbuf mark = { 0 };

	svg_rect(h, classes[lane->kind], x, y - BAR / 2, to - x, BAR);
	svg_text(h, "name", LEFT - 14, y + 4, ANCHOR_END, lane->name);
	svg_line(h, "born", x, y - BAR / 2 - 4, x, y + BAR / 2 + 4);
	if (ends) {
		mark_add(&mark, MARK_CROSS, to, y, 6);
		svg_path(h, "freed", strbuf_str(&mark));
	} else {
		svg_text(h, "inbar", to - 6, y + 4, ANCHOR_END,
			 lane->lost ? "end not seen" : "still live");
	}
	if (ends && to < WIDTH - RIGHT)
		svg_line(h, "ghost", to + 8, y, WIDTH - RIGHT, y);
}

/* From where the pointer stands to what is no longer there. */
static void put_arrow(struct html *h, const struct lane_picture *picture)
{
	const struct lane_arrow *arrow = &picture->arrow;
	AUTO(strbuf_deinit) struct strbuf head = { 0 };
	double x, from, to, tip;

	if (!arrow->known)
		return;
	x = moment_x(picture, arrow->at) - 12; /* beside the line of the failure */
	from = lane_y(arrow->from);
	to = lane_y(arrow->to);
	tip = to > from ? -7 : 7;
	svg_line(h, "stale", x, from, x, to + tip);
	strbuf_addf(&head, "M%s %sl-5 %sh10z", NUM(x), NUM(to), NUM(tip * 1.4));
	svg_path(h, "stalehead", strbuf_str(&head));
	svg_text(h, "stalelabel", x - 10, (from + to) / 2 + 4, ANCHOR_END, "still points there");
}

void draw_lanes(struct html *h, const struct lane_picture *picture)
{
	double bottom = TOP + LANE * (double)picture->lanes.count;

	svg_open(h, "lives-picture", WIDTH, bottom + 12, "Lives of the blocks",
		 "A bar from where a block is allocated to where it is freed, by numbered moments, "
		 "which the list below names. Not to scale: only the order is told.");
	for (int moment = 0; moment < picture->moments; moment++) {
		double x = moment_x(picture, moment);

		svg_line(h, moment == picture->failure ? "failure" : "moment", x, TOP - 8, x,
			 bottom);
		svg_textf(h, moment == picture->failure ? "number failing" : "number", x, TOP - 16,
			  ANCHOR_MIDDLE, "%d", moment + 1);
	}
	for (size_t i = 0; i < picture->lanes.count; i++)
		put_bar(h, picture, i);
	put_arrow(h, picture);
	svg_close(h);
}
