#pragma once

#include "base/strbuf.h"
#include "report/page/html.h"

/*
 * The few shapes that all pictures consist of, as SVG. Private to report/.
 *
 * Colours are classes of the style sheet, which knows light and dark; what a colour says is said by
 * a shape or a word as well. A picture has a title and a description for who cannot see it.
 * Coordinates have one decimal and a point, whatever the locale.
 */
#define NUM_MAX 32
const char *num_text(char *buf, double value);
#define NUM(value) num_text((char[NUM_MAX]){ 0 }, value)

/* Opens a picture of that size; `id` must be unique in the page. */
void svg_open(struct html *h, const char *id, double width, double height, const char *title,
	      const char *description);
void svg_close(struct html *h);

void svg_rect(struct html *h, const char *class, double x, double y, double width, double height);
void svg_line(struct html *h, const char *class, double x1, double y1, double x2, double y2);
void svg_path(struct html *h, const char *class, const char *data);

enum anchor { ANCHOR_START, ANCHOR_MIDDLE, ANCHOR_END };
void svg_text(struct html *h, const char *class, double x, double y, enum anchor anchor,
	      const char *text);

#define svg_textf(h, class, x, y, anchor, ...) \
	WITH_TEXT(svg_text(h, class, x, y, anchor, text_), __VA_ARGS__)

/* One shape for each kind of failure, so that no colour is needed to tell them apart. */
enum mark { MARK_DIAMOND, MARK_TRIANGLE, MARK_SQUARE, MARK_CROSS, MARK_PLUS, MARK_RING, MARKS };

/* Adds it to the data of a path. */
void mark_add(struct strbuf *data, enum mark mark, double x, double y, double r);
void dot_add(struct strbuf *data, double x, double y);

/* "m0" …: the class that goes with the mark. */
const char *mark_class(enum mark mark);

/* At most so many characters of a text; the rest is an ellipsis. The caller's to free. */
char *shortened(const char *text, size_t most);
