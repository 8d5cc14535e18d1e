/*
 * SVG, shape by shape.
 */
#include "report/draw/canvas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"

const char *num_text(char *buf, double value)
{
	long tenths = isfinite(value) && fabs(value) < 1e9 ? lround(value * 10) : 0;
	const char *sign = tenths < 0 ? "-" : "";

	tenths = labs(tenths);
	if (tenths % 10 == 0)
		(void)snprintf(buf, NUM_MAX, "%s%ld", sign, tenths / 10);
	else
		(void)snprintf(buf, NUM_MAX, "%s%ld.%ld", sign, tenths / 10, tenths % 10);
	return buf;
}

void svg_open(struct html *h, const char *id, double width, double height, const char *title,
	      const char *description)
{
	AUTO(mem_freep) char *box = mem_printf("0 0 %s %s", NUM(width), NUM(height));
	AUTO(mem_freep) char *title_id = mem_printf("%s-title", id);
	AUTO(mem_freep) char *text_id = mem_printf("%s-text", id);
	AUTO(mem_freep) char *both = mem_printf("%s %s", title_id, text_id);

	/* What is wider than a phone is moved there, not shrunk: by the keyboard as well. */
	el(h, "div", "class", "scroll", "tabindex", "0", "role", "group", "aria-label", title,
	   NULL);
	el(h, "svg", "id", id, "viewBox", box, "role", "img", "aria-labelledby", both, "width",
	   NUM(width), "height", NUM(height), NULL);
	el_of(h, title, "title", "id", title_id, NULL);
	el_of(h, description, "desc", "id", text_id, NULL);
}

void svg_close(struct html *h)
{
	el_end(h);
	el_end(h);
}

void svg_rect(struct html *h, const char *class, double x, double y, double width, double height)
{
	leaf(h, "rect", "class", class, "x", NUM(x), "y", NUM(y), "width", NUM(width), "height",
	     NUM(height), NULL);
}

void svg_line(struct html *h, const char *class, double x1, double y1, double x2, double y2)
{
	leaf(h, "line", "class", class, "x1", NUM(x1), "y1", NUM(y1), "x2", NUM(x2), "y2", NUM(y2),
	     NULL);
}

void svg_path(struct html *h, const char *class, const char *data)
{
	if (data[0] != '\0')
		leaf(h, "path", "class", class, "d", data, NULL);
}

void svg_text(struct html *h, const char *class, double x, double y, enum anchor anchor,
	      const char *text)
{
	static const char *const anchors[] = { NULL, "middle", "end" };

	el_of(h, text, "text", "class", class, "x", NUM(x), "y", NUM(y), "text-anchor",
	      anchors[anchor], NULL);
}

static void move(struct strbuf *data, double x, double y)
{
	strbuf_addf(data, "M%s %s", NUM(x), NUM(y));
}

void mark_add(struct strbuf *data, enum mark mark, double x, double y, double r)
{
	switch (mark) {
	case MARK_DIAMOND:
		move(data, x, y - r);
		strbuf_addf(data, "l%s %s %s %s %s %sz", NUM(r), NUM(r), NUM(-r), NUM(r), NUM(-r),
			    NUM(-r));
		break;
	case MARK_TRIANGLE:
		move(data, x, y - r);
		strbuf_addf(data, "l%s %sh%sz", NUM(r), NUM(1.8 * r), NUM(-2 * r));
		break;
	case MARK_SQUARE:
		move(data, x - 0.8 * r, y - 0.8 * r);
		strbuf_addf(data, "h%sv%sh%sz", NUM(1.6 * r), NUM(1.6 * r), NUM(-1.6 * r));
		break;
	case MARK_CROSS:
		move(data, x - r, y - r);
		strbuf_addf(data, "l%s %s", NUM(2 * r), NUM(2 * r));
		move(data, x - r, y + r);
		strbuf_addf(data, "l%s %s", NUM(2 * r), NUM(-2 * r));
		break;
	case MARK_RING:
		move(data, x - 0.8 * r, y);
		strbuf_addf(data, "a%s %s 0 1 0 %s 0a%s %s 0 1 0 %s 0", NUM(0.8 * r), NUM(0.8 * r),
			    NUM(1.6 * r), NUM(0.8 * r), NUM(0.8 * r), NUM(-1.6 * r));
		break;
	default:
		move(data, x - r, y);
		strbuf_addf(data, "h%s", NUM(2 * r));
		move(data, x, y - r);
		strbuf_addf(data, "v%s", NUM(2 * r));
	}
}

void dot_add(struct strbuf *data, double x, double y)
{
	move(data, x, y);
	strbuf_adds(data, "h0");
}

const char *mark_class(enum mark mark)
{
	static const char *const classes[] = { "m0", "m1", "m2", "m3", "m4", "m5" };

	return classes[mark < MARKS ? mark : MARK_PLUS];
}

char *shortened(const char *text, size_t most)
{
	size_t seen = 0, at = 0;

	/* By characters of UTF-8: those that begin one. */
	for (; text[at] != '\0'; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && seen++ == most - 1 &&
		    strlen(text + at) > 4)
			return mem_printf("%.*s…", (int)at, text);
	return mem_strdup(text);
}
