/*
 * The block as a byte map: the field, what a store did to it, guards, and who wrote it last.
 */
#include "report/page/page_told.h"

#include <inttypes.h>

#include "base/auto.h"

#define ROW 8
#define ROWS_MOST 28u
#define REACH_MOST 160 /* bytes of a store or of damage that are drawn */
#define BITS_MOST 8u
#define SMALL 8	      /* rows of a block that is drawn whole */
#define NAMED_MOST 24 /* the same, with names of its fields, or its bytes */

struct range {
	int64_t from, to; /* offsets in the block; empty when from == to */
};

enum { FIELD, STORE, BROKEN, RANGES };

struct map_facts {
	const struct verdict *v;
	const struct block_layout
		*layout; /* of a block; names of its fields, where they are known */
	int64_t size;
	struct range at[RANGES];
	const struct canary_broken *canary;
	uint64_t guard_shown;		/* bytes of `canary` that are known */
	const struct block_bytes *seen; /* right after the store; NULL */
};

static int64_t floor_row(int64_t offset)
{
	return (offset >= 0 ? offset / ROW : -((-offset + ROW - 1) / ROW)) * ROW;
}

static bool inside(const struct range *range, int64_t offset)
{
	return offset >= range->from && offset < range->to;
}

static struct range cut(int64_t from, int64_t len)
{
	return (struct range){ from, from + (len < REACH_MOST ? len : REACH_MOST) };
}

/* The store of the trial that is told: where it lay beside the field. */
static void find_store(const struct investigation *inv, uint64_t trial, struct map_facts *facts)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		const struct write_seen *w = e->kind == EVIDENCE_WRITE ? e->write : NULL;

		if (!w || e->trial != trial || !home_same(&w->home, &inv->verdict.home) ||
		    w->home.address == 0 || w->store_start == 0 || w->store_len == 0 ||
		    w->store_len > INT32_MAX || w->new != inv->verdict.new)
			continue;
		facts->at[STORE] = cut((int64_t)(w->store_start - w->home.address) + w->home.offset,
				       (int64_t)w->store_len);
		facts->seen = w->store_len <= REACH_MOST ? &w->block : NULL;
	}
}

static void find_canary(const struct investigation *inv, uint64_t trial, struct map_facts *facts)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		if (e->kind != EVIDENCE_CANARY || e->trial != trial || !e->canary->block)
			continue;
		facts->canary = e->canary;
		facts->at[BROKEN] = cut(e->canary->offset, (int64_t)(e->canary->len & INT32_MAX));
		facts->guard_shown = e->canary->expected.len < e->canary->found.len
					     ? e->canary->expected.len
					     : e->canary->found.len;
		if (facts->size == 0)
			facts->size = (int64_t)e->canary->block->size;
		return;
	}
}

static bool gather(const struct investigation *inv, struct map_facts *ret)
{
	const struct verdict *v = &inv->verdict;
	const struct block_life *block = inv->judged ? investigation_block(inv) : NULL;
	uint64_t trial = inv->judged ? told_trial(inv) : 0;

	*ret = (struct map_facts){ .v = v, .layout = &inv->layout };
	if (!inv->judged)
		return false;
	if (block && v->home.kind == HOME_BLOCK)
		ret->size = (int64_t)(block->size & INT32_MAX);
	else if (v->home.kind != HOME_BLOCK && v->home.kind != HOME_UNKNOWN)
		ret->size = v->home.len > 0 ? v->home.offset + (int64_t)(v->home.len & 0xffff) : 0;
	if (v->home.kind != HOME_UNKNOWN)
		ret->at[FIELD] = cut(v->home.offset,
				     v->home.len > 0 ? (int64_t)(v->home.len & INT32_MAX) : 1);
	find_store(inv, trial, ret);
	find_canary(inv, trial, ret);
	return ret->size > 0 && (ret->at[FIELD].to > ret->at[FIELD].from ||
				 ret->at[BROKEN].to > ret->at[BROKEN].from);
}

static void fill_value(const struct map_facts *facts, int64_t offset, struct byte_cell *cell)
{
	const struct verdict *v = facts->v;
	int64_t at = offset - facts->at[FIELD].from, guard = offset - facts->at[BROKEN].from;
	int64_t seen = facts->seen ? offset - facts->seen->offset : -1;

	if (v->values_known && at >= 0 && at < (int64_t)v->value_len && at < 8 &&
	    v->home.kind != HOME_UNKNOWN) {
		/* Of two objects the older one's value was not changed into the other's. */
		cell->known = true;
		cell->was = v->class != VERDICT_INSTANCE_CONFLATION;
		cell->before = (uint8_t)(v->old >> (8 * at));
		cell->after = (uint8_t)(v->new >> (8 * at));
	} else if (facts->canary && guard >= 0 && guard < (int64_t)facts->guard_shown) {
		cell->known = cell->was = true;
		cell->before = (uint8_t)facts->canary->expected.data[guard];
		cell->after = (uint8_t)facts->canary->found.data[guard];
	} else if (seen >= 0 && seen < (int64_t)facts->seen->bytes.len) {
		/* What the store did not reach was the same before it. */
		cell->known = true;
		cell->was = !cell->written;
		cell->before = cell->after = (uint8_t)facts->seen->bytes.data[seen];
	}
}

static struct byte_cell cell_at(const struct map_facts *facts, int64_t offset, bool values)
{
	struct byte_cell cell = { .field = inside(&facts->at[FIELD], offset),
				  .written = inside(&facts->at[STORE], offset) };
	bool outside = offset < 0 || offset >= facts->size;

	if (outside && facts->v->home.kind != HOME_STACK)
		cell.zone = facts->canary ? ZONE_GUARD : ZONE_NEIGHBOUR;
	if (values)
		fill_value(facts, offset, &cell);
	return cell;
}

static bool touches(const struct range *range, int64_t row)
{
	return range->to > range->from && row < range->to && row + ROW > range->from;
}

/* What is small, or says something in every row. */
static bool is_whole(const struct map_facts *facts)
{
	bool told = facts->layout->fields.count > 0 || (facts->seen && facts->seen->bytes.len > 0);

	return facts->size <= (int64_t)(told ? NAMED_MOST : SMALL) * ROW;
}

static bool matters(const struct map_facts *facts, int64_t row)
{
	return touches(&facts->at[FIELD], row) || touches(&facts->at[STORE], row) ||
	       touches(&facts->at[BROKEN], row);
}

/* Of bytes that are not known only those that have a name say something. */
static bool says_something(const struct map_facts *facts, int64_t row)
{
	return facts->size <= SMALL * ROW || facts->seen ||
	       VEC_ANY(&facts->layout->fields, field, floor_row((int64_t)field->offset) == row);
}

/* Rows of what matters, one before and one after; of the block its first and its last, or all where
 * its fields have names. */
static bool is_shown(const struct map_facts *facts, int64_t row)
{
	bool in_block = row >= 0 && row < facts->size;

	if (is_whole(facts) && in_block && says_something(facts, row))
		return true;
	if (matters(facts, row))
		return true;
	if (matters(facts, row - ROW) || matters(facts, row + ROW))
		return in_block || facts->canary != NULL;
	return row == 0 || row == floor_row(facts->size - 1);
}

/* The fields that begin in this row. */
static void add_names(const struct map_facts *facts, int64_t row, struct strbuf *sb)
{
	VEC_FOREACH (&facts->layout->fields, field)
		if (row >= 0 && (int64_t)field->offset >= row && (int64_t)field->offset < row + ROW)
			strbuf_addf(sb, "%s%s", sb->len > 0 ? ", " : "", field->name);
}

/* What the source calls the field of the verdict. */
static const char *field_name(const struct map_facts *facts)
{
	const struct home *home = &facts->v->home;
	const struct layout_field *known =
		home->offset >= 0 ? block_layout_at(facts->layout, (uint64_t)home->offset) : NULL;

	return home->field ? home->field : known ? known->name : home->name;
}

static char *row_note(const struct map_facts *facts, int64_t row)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	add_names(facts, row, &sb);
	if (touches(&facts->at[FIELD], row) && floor_row(facts->at[FIELD].from) == row) {
		const char *name = field_name(facts);

		return mem_printf("◀ %s", sb.len > 0				 ? strbuf_str(&sb)
					  : name				 ? name
					  : facts->v->class == VERDICT_OVER_READ ? "read here"
										 : "the field");
	}
	if (touches(&facts->at[BROKEN], row) && floor_row(facts->at[BROKEN].from) == row)
		return mem_strdup(row < 0	      ? "◀ guard before, damaged"
				  : row < facts->size ? "◀ freed bytes, written"
						      : "◀ guard behind, damaged");
	if (sb.len > 0)
		return strbuf_take(&sb);
	if (row == 0)
		return mem_strdup("start of the block");
	if (row == floor_row(facts->size - 1))
		return mem_printf("end: %lld bytes", (long long)facts->size);
	return NULL;
}

static int64_t lowest(const struct map_facts *facts)
{
	int64_t low = 0;

	for (int i = 0; i < RANGES; i++)
		if (facts->at[i].to > facts->at[i].from && facts->at[i].from < low)
			low = facts->at[i].from;
	return floor_row(low) - (facts->canary ? ROW : 0);
}

static int64_t highest(const struct map_facts *facts)
{
	int64_t high = facts->size;

	for (int i = 0; i < RANGES; i++)
		if (facts->at[i].to > high)
			high = facts->at[i].to;
	return high + (facts->canary ? ROW : 0);
}

/* Rows that may be shown lie at both ends of the block and around what matters: nobody walks
 * through a block of a gigabyte. */
static int64_t next_row(const struct map_facts *facts, int64_t row)
{
	int64_t last = floor_row(facts->size - 1), next = last;

	if (row + ROW > last || is_whole(facts))
		return row + ROW;
	for (int i = 0; i < RANGES; i++) {
		int64_t from = floor_row(facts->at[i].from) - ROW;

		if (facts->at[i].to == facts->at[i].from || row > facts->at[i].to + ROW)
			continue;
		if (from <= row)
			return row + ROW;
		if (from < next)
			next = from;
	}
	return next;
}

static void build(const struct map_facts *facts, bool values, struct byte_picture *ret)
{
	bool skipped = false;
	int64_t row = lowest(facts), high = highest(facts);

	while (row < high && ret->rows.count < ROWS_MOST) {
		int64_t next = next_row(facts, row);

		if (is_shown(facts, row)) {
			struct byte_row shown = { .offset = row,
						  .gap = skipped && ret->rows.count > 0,
						  .note = row_note(facts, row) };

			for (int i = 0; i < ROW; i++) {
				shown.cells[i] = cell_at(facts, row + i, values);
				ret->values |= shown.cells[i].known;
			}
			VEC_PUSH(&ret->rows, shown);
			skipped = false;
		} else {
			skipped = true;
		}
		skipped |= next > row + ROW;
		row = next;
	}
}

/* Which bits, in words: the lowest is 0. Of many of them none tells anything. */
static void put_bits(const struct page *page)
{
	const struct verdict *v = &page->inv->verdict;
	uint64_t changed = v->old ^ v->new;
	AUTO(strbuf_deinit) struct strbuf bits = { 0 };
	unsigned int count = 0;

	if (!v->values_known || html_shared(page->h) || changed == 0 ||
	    v->class == VERDICT_INSTANCE_CONFLATION)
		return;
	for (unsigned int bit = 0; bit < 64; bit++)
		if (changed >> bit & 1 && count++ < BITS_MOST)
			strbuf_addf(&bits, "%s%u", bits.len > 0 ? ", " : "", bit);
	if (count <= BITS_MOST)
		el_txtf(page->h, "p", NULL,
			"Of the value %u bit%s changed: number %s (0 is the lowest).", count,
			count == 1 ? "" : "s", strbuf_str(&bits));
}

/* The last store to each field of the block that was watched in this trial. */
static void put_writers(const struct page *page, uint64_t trial)
{
	const struct evidence_list *list = &page->inv->evidence;
	size_t rows = 0;

	for (size_t i = 0; i < list->list.count; i++) {
		const struct evidence *e = &list->list.items[i];
		bool later = false;

		if (e->kind != EVIDENCE_WRITE || e->trial != trial || rows == 12)
			continue;
		for (size_t k = i + 1; k < list->list.count && !later; k++) {
			const struct evidence *other = &list->list.items[k];

			later = other->kind == EVIDENCE_WRITE && other->trial == trial &&
				home_same(&other->write->home, &e->write->home);
		}
		if (later)
			continue;
		if (rows++ == 0) {
			table_begin(page, "Who wrote these bytes last");
			put_head(page, "bytes", "last written by", "instruction", "evidence", NULL);
		}
		el(page->h, "tr", NULL);
		el(page->h, "td", NULL);
		put_keyed_field(page, &e->write->home);
		el_end(page->h);
		el(page->h, "td", NULL);
		put_place(page, &e->write->writer);
		el_end(page->h);
		el(page->h, "td", NULL);
		if (e->write->instruction)
			el_txt(page->h, "code", NULL, e->write->instruction);
		el_end(page->h);
		cell_ids(page, &e->id, 1);
		el_end(page->h);
	}
	if (rows > 0)
		table_end(page);
}

bool has_block(const struct page *page)
{
	struct map_facts facts;

	return gather(page->inv, &facts);
}

void page_block(const struct page *page)
{
	struct map_facts facts;
	struct byte_picture picture = { 0 };
	uint64_t trial = told_trial(page->inv);

	if (!gather(page->inv, &facts))
		return;
	el(page->h, "p", "class", "why", NULL);
	txtf(page->h, "%lld bytes", (long long)facts.size);
	if (page->inv->verdict.home.kind != HOME_UNKNOWN) {
		txt(page->h, "; the field: ");
		put_keyed_field(page, &page->inv->verdict.home);
	}
	if (page->inv->layout.type)
		txtf(page->h, "; %s, by the debug information of %s", page->inv->layout.type,
		     page->inv->layout.by);
	if (trial > 0)
		txtf(page->h, "; as trial %" PRIu64 " shows it", trial);
	txt(page->h, ".");
	el_end(page->h);
	build(&facts, !html_shared(page->h), &picture);
	draw_bytes(page->h, &picture);
	if (!picture.values && !html_shared(page->h))
		el_txt(page->h, "p", "dim", "What stood in these bytes was not recorded.");
	put_bits(page);
	put_writers(page, trial);
	VEC_FREE(&picture.rows, row, mem_free(row->note));
}
