/*
 * Breadcrumbs: lines of the log down, failing trials across.
 */
#include "report/draw/draw.h"

#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"

#define LEFT 360.0
#define COLUMN 16.0
#define ROW 22.0
#define TOP 26.0
#define TRIALS_MOST 60u

static size_t line_of(const struct trial_dots *dots, const char *crumb)
{
	size_t i = 0;

	while (i < dots->crumbs.count && strcmp(dots->crumbs.items[i], crumb) != 0)
		i++;
	return i;
}

static size_t count_columns(const struct trial_dots *dots)
{
	size_t columns = 0;

	VEC_FOREACH (&dots->list, dot)
		columns += dot->crumb != NULL;
	return columns < TRIALS_MOST ? columns : TRIALS_MOST;
}

static void put_deaths(struct html *h, const struct trial_dots *dots)
{
	struct strbuf lived = { 0 }, died[MARKS] = { 0 };
	size_t column = 0;

	VEC_FOREACH (&dots->list, dot) {
		size_t line = dot->crumb ? line_of(dots, dot->crumb) : dots->crumbs.count;
		double x = LEFT + COLUMN * ((double)column + 0.5);
		unsigned int mark = family_mark(dot->family);

		if (!dot->crumb || column == TRIALS_MOST)
			continue;
		column++;
		if (line == dots->crumbs.count)
			continue;
		strbuf_addf(&lived, "M%s %sV%s", NUM(x), NUM(TOP),
			    NUM(TOP + ROW * ((double)line + 0.5)));
		mark_add(&died[mark], mark, x, TOP + ROW * ((double)line + 0.5), 5);
	}
	svg_path(h, "lived", strbuf_str(&lived));
	strbuf_deinit(&lived);
	for (unsigned int mark = 0; mark < MARKS; mark++) {
		svg_path(h, mark_class(mark), strbuf_str(&died[mark]));
		strbuf_deinit(&died[mark]);
	}
}

void draw_crumbs(struct html *h, const struct trial_dots *dots)
{
	size_t columns = count_columns(dots);
	double width = LEFT + COLUMN * (double)columns + 12;

	if (columns == 0)
		return;
	svg_open(h, "breadcrumbs-picture", width < 620 ? 620 : width,
		 TOP + ROW * (double)dots->crumbs.count + 8, "Where failing trials died",
		 "Lines of the log from top to bottom, failing trials from left to right; a mark "
		 "stands at the last line that a trial printed. The table below has the figures.");
	for (size_t i = 0; i < dots->crumbs.count; i++) {
		AUTO(mem_freep) char *text = shortened(dots->crumbs.items[i], 48);
		double y = TOP + ROW * ((double)i + 0.5);

		svg_text(h, "log", LEFT - 12, y + 4, ANCHOR_END, text);
		svg_line(h, "rail", LEFT, y, LEFT + COLUMN * (double)columns, y);
	}
	put_deaths(h, dots);
	svg_text(h, "label", LEFT, TOP - 10, ANCHOR_START, "failing trials →");
	svg_close(h);
}
