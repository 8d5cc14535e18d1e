/*
 * The block, byte by byte: the field, its guards and neighbours, and what a store did to it.
 */
#include "report/draw/draw.h"

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"

#define LEFT 70.0
#define CELL 34.0
#define HIGH 34.0
#define TOP 46.0
#define BETWEEN 36.0
#define NOTE 250.0

static const char *cell_class(const struct byte_cell *cell, bool after)
{
	if (after && cell->known && cell->before != cell->after)
		return "byte damaged";
	if (after && cell->written)
		return "byte written";
	if (cell->zone == ZONE_GUARD)
		return "byte guard";
	if (cell->zone == ZONE_NEIGHBOUR)
		return "byte neighbour";
	return cell->field ? "byte field" : "byte";
}

/* Which bits: a square each, the highest first, those that changed filled. */
static void put_bits(struct html *h, const struct byte_cell *cell, double x, double y)
{
	unsigned int changed = cell->before ^ cell->after;

	for (unsigned int bit = 0; bit < 8; bit++)
		svg_rect(h, changed >> (7 - bit) & 1 ? "bit flipped" : "bit", x + 2.5 + 3.7 * bit,
			 y + HIGH - 7, 3, 3.6);
}

static void put_cell(struct html *h, const struct byte_cell *cell, bool after, double x, double y)
{
	AUTO(mem_freep)
	char *value = cell->known ? mem_printf("%02x", after ? cell->after : cell->before) : NULL;
	bool damaged = after && cell->known && cell->before != cell->after;

	svg_rect(h, cell_class(cell, after), x, y, CELL - 2, HIGH - 2);
	if (value)
		svg_text(h, damaged ? "hex bad" : "hex", x + CELL / 2 - 1, y + HIGH / 2 + 3,
			 ANCHOR_MIDDLE, value);
	else if (cell->zone == ZONE_GUARD)
		svg_text(h, "hex dim", x + CELL / 2 - 1, y + HIGH / 2 + 3, ANCHOR_MIDDLE, "g");
	if (damaged)
		put_bits(h, cell, x, y);
}

static void put_row(struct html *h, const struct byte_row *row, bool values, double y)
{
	AUTO(mem_freep)
	char *offset = mem_printf("%s%lld", row->offset > 0 ? "+" : "", (long long)row->offset);
	double second = LEFT + CELL * 8 + BETWEEN;

	svg_text(h, "label", LEFT - 10, y + HIGH / 2 + 3, ANCHOR_END, offset);
	for (unsigned int i = 0; i < 8; i++) {
		put_cell(h, &row->cells[i], !values, LEFT + CELL * i, y);
		if (values)
			put_cell(h, &row->cells[i], true, second + CELL * i, y);
	}
	if (row->note)
		svg_text(h, "note", (values ? second : LEFT) + CELL * 8 + 12, y + HIGH / 2 + 3,
			 ANCHOR_START, row->note);
}

void draw_bytes(struct html *h, const struct byte_picture *picture)
{
	double width = LEFT + CELL * 8 + NOTE + (picture->values ? CELL * 8 + BETWEEN : 0);
	double y = TOP, height = TOP;

	VEC_FOREACH (&picture->rows, row)
		height += HIGH + (row->gap ? 16 : 0);
	svg_open(
		h, "block-picture", width, height + 6, "The block, byte by byte",
		"Eight bytes in a row, by their offset from the start of the block. Bytes that the "
		"store changed are marked, with their bits; the text below names them.");
	svg_text(h, "title", LEFT, 16, ANCHOR_START, picture->values ? "before" : "bytes");
	if (picture->values)
		svg_text(h, "title", LEFT + CELL * 8 + BETWEEN, 16, ANCHOR_START, "after");
	for (unsigned int i = 0; i < 8; i++) {
		AUTO(mem_freep) char *number = mem_printf("%u", i);

		svg_text(h, "label", LEFT + CELL * (i + 0.5) - 1, TOP - 8, ANCHOR_MIDDLE, number);
		if (picture->values)
			svg_text(h, "label", LEFT + CELL * (8 + i + 0.5) + BETWEEN - 1, TOP - 8,
				 ANCHOR_MIDDLE, number);
	}
	VEC_FOREACH (&picture->rows, row) {
		if (row->gap) {
			svg_text(h, "label", LEFT - 10, y + 10, ANCHOR_END, "…");
			y += 16;
		}
		put_row(h, row, picture->values, y);
		y += HIGH;
	}
	svg_close(h);
}
