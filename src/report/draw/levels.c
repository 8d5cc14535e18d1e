/*
 * Two pictures of amounts: how much of a mapped file is left, and how live blocks grow from test to
 * test.
 */
#include "report/draw/draw.h"

#include <inttypes.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"

#define WIDTH 920.0
#define LEFT 70.0
#define ROOM 780.0
#define HEIGHT 120.0
#define TOP 26.0

void draw_file(struct html *h, const struct mapping_cut *cut)
{
	double left = ROOM * (double)cut->present / (double)(cut->mapped > 0 ? cut->mapped : 1);
	AUTO(mem_freep)
	char *text = mem_printf("%" PRIu64 " of %" PRIu64 " mapped bytes are left in the file",
				cut->present, cut->mapped);

	left = left > ROOM ? ROOM : left;
	svg_open(h, "file-picture", WIDTH, 84, "The mapped file", text);
	svg_rect(h, "left", LEFT, TOP, left, 26);
	svg_rect(h, "gone", LEFT + left, TOP, ROOM - left, 26);
	svg_line(h, "gap", LEFT + left, TOP - 8, LEFT + left, TOP + 34);
	svg_text(h, "name", LEFT + left / 2, TOP + 17, ANCHOR_MIDDLE, "in the file");
	svg_text(h, "name", LEFT + (left + ROOM) / 2, TOP + 17, ANCHOR_MIDDLE, "gone");
	svg_text(h, "label", LEFT, TOP + 48, ANCHOR_START, "0");
	svg_textf(h, "label", LEFT + left, TOP + 48, ANCHOR_MIDDLE, "%" PRIu64, cut->present);
	svg_textf(h, "label", LEFT + ROOM, TOP + 48, ANCHOR_END, "%" PRIu64 " bytes mapped",
		  cut->mapped);
	svg_close(h);
}

void draw_growth(struct html *h, const struct growth_seen *growth)
{
	AUTO(strbuf_deinit) struct strbuf line = { 0 };
	size_t last = growth->levels.count - 1;
	uint64_t most = 1, ends[2];
	double bottom = TOP + HEIGHT;
	AUTO(mem_freep) char *text = NULL;

	if (growth->levels.count < 2)
		return;
	VEC_FOREACH (&growth->levels, level)
		most = *level > most ? *level : most;
	VEC_FOREACH (&growth->levels, level)
		strbuf_addf(
			&line, "%s%s %s", level == growth->levels.items ? "M" : "L",
			NUM(LEFT + ROOM * (double)(level - growth->levels.items) / (double)last),
			NUM(bottom - HEIGHT * (double)*level / (double)most));
	ends[0] = growth->levels.items[0];
	ends[1] = growth->levels.items[last];
	text = mem_printf("%" PRIu64 " live blocks before the first test, %" PRIu64
			  " after test %" PRIu64,
			  ends[0], ends[1], growth->tests);
	svg_open(h, "growth-picture", WIDTH, bottom + 26, "Live blocks from test to test", text);
	svg_path(h, "curve", strbuf_str(&line));
	svg_line(h, "axis", LEFT, bottom, LEFT + ROOM, bottom);
	svg_line(h, "axis", LEFT, TOP, LEFT, bottom);
	svg_text(h, "label", LEFT, TOP - 10, ANCHOR_START, "live blocks");
	svg_textf(h, "label", LEFT - 8, TOP + 6, ANCHOR_END, "%" PRIu64, most);
	svg_text(h, "label", LEFT - 8, bottom, ANCHOR_END, "0");
	svg_text(h, "label", LEFT, bottom + 17, ANCHOR_START, "before the first test");
	svg_textf(h, "label", LEFT + ROOM, bottom + 17, ANCHOR_END, "after test %" PRIu64,
		  growth->tests);
	svg_close(h);
}
