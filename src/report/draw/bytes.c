/*
 * The block, byte by byte: the field, its guards and neighbours, and what a store did to it.
 */
#include "report/draw/draw.h"

#include "base/auto.h"
#include "report/draw/canvas.h"

#define LEFT 70.0
#define CELL 34.0
#define HIGH 34.0
#define TOP 46.0
#define BETWEEN 36.0
#define NOTE 250.0

enum byte_look { LOOK_PLAIN, LOOK_FIELD, LOOK_DAMAGED, LOOK_WRITTEN, LOOK_GUARD, LOOK_NEIGHBOUR };

/* In the picture by a sign each, and not by colour alone. */
static const struct {
	const char *class, *sign, *words;
} looks[] = {
	[LOOK_PLAIN] = { "byte", NULL, NULL },
	[LOOK_FIELD] = { "byte field", "◀", "the field" },
	[LOOK_DAMAGED] = { "byte damaged", "9e",
			   "changed; the small squares below it are its bits, the highest first, "
			   "those that changed are filled" },
	[LOOK_WRITTEN] = { "byte written", "32", "written with the value that it had, or unknown" },
	[LOOK_GUARD] = { "byte guard", "g", "guard around the block" },
	[LOOK_NEIGHBOUR] = { "byte neighbour", "", "not of this block" },
};

static bool is_damaged(const struct byte_cell *cell)
{
	return cell->known && cell->was && cell->before != cell->after;
}

static enum byte_look look_of(const struct byte_cell *cell, bool after)
{
	if (after && is_damaged(cell))
		return LOOK_DAMAGED;
	if (after && cell->written)
		return LOOK_WRITTEN;
	if (cell->zone != ZONE_BLOCK)
		return cell->zone == ZONE_GUARD ? LOOK_GUARD : LOOK_NEIGHBOUR;
	return cell->field ? LOOK_FIELD : LOOK_PLAIN;
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
	bool damaged = after && is_damaged(cell);

	svg_rect(h, looks[look_of(cell, after)].class, x, y, CELL - 2, HIGH - 2);
	if (after ? cell->known : cell->was)
		svg_textf(h, damaged ? "hex bad" : "hex", x + CELL / 2 - 1, y + HIGH / 2 + 3,
			  ANCHOR_MIDDLE, "%02x", after ? cell->after : cell->before);
	else if (cell->zone == ZONE_GUARD)
		svg_text(h, "hex dim", x + CELL / 2 - 1, y + HIGH / 2 + 3, ANCHOR_MIDDLE, "g");
	if (damaged)
		put_bits(h, cell, x, y);
}

static void put_row(struct html *h, const struct byte_row *row, bool values, double y)
{
	double second = LEFT + CELL * 8 + BETWEEN;

	svg_textf(h, "label", LEFT - 10, y + HIGH / 2 + 3, ANCHOR_END, "%s%lld",
		  row->offset > 0 ? "+" : "", (long long)row->offset);
	for (unsigned int i = 0; i < 8; i++) {
		put_cell(h, &row->cells[i], !values, LEFT + CELL * i, y);
		if (values)
			put_cell(h, &row->cells[i], true, second + CELL * i, y);
	}
	if (row->note)
		svg_text(h, "note", (values ? second : LEFT) + CELL * 8 + 12, y + HIGH / 2 + 3,
			 ANCHOR_START, row->note);
}

static void put_meanings(struct html *h, const struct byte_picture *picture)
{
	bool met[ARRAY_SIZE(looks)] = { false };

	VEC_FOREACH (&picture->rows, row)
		for (unsigned int i = 0; i < 8; i++)
			met[look_of(&row->cells[i], picture->values)] = true;
	el(h, "ul", "class", "legend meanings", NULL);
	for (enum byte_look look = LOOK_FIELD; look < ARRAY_SIZE(looks); look++) {
		if (!met[look])
			continue;
		el(h, "li", NULL);
		el_txt(h, "span", looks[look].class, looks[look].sign);
		txtf(h, " %s", looks[look].words);
		el_end(h);
	}
	el_end(h);
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
		svg_textf(h, "label", LEFT + CELL * (i + 0.5) - 1, TOP - 8, ANCHOR_MIDDLE, "%u", i);
		if (picture->values)
			svg_textf(h, "label", LEFT + CELL * (8 + i + 0.5) + BETWEEN - 1, TOP - 8,
				  ANCHOR_MIDDLE, "%u", i);
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
	put_meanings(h, picture);
}
