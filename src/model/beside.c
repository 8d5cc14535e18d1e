#include "model/beside.h"

#include <string.h>

#include "base/cstr.h"

#define ADDRESSES_FROM (UINT64_C(1) << 32) /* below there are numbers, too */
#define ADDRESSES_TO (UINT64_C(1) << 47)
#define WORD 8

bool write_same_site(const struct write_seen *a, const struct write_seen *b)
{
	const struct frame *left = stack_site(&a->writer), *right = stack_site(&b->writer);
	const char *one = a->instruction ? a->instruction : "";
	const char *two = b->instruction ? b->instruction : "";

	if (!left || !right)
		return left == right && strcmp(one, two) == 0;
	return left->line == right->line && left->offset == right->offset &&
	       strcmp(one, two) == 0 &&
	       (left->function && right->function ? strcmp(left->function, right->function) == 0
						  : left->function == right->function);
}

/* glibc's: the lock (1, or 2 with threads that wait; of some kinds the owner), a count, the owner's
 * thread number, how many use it, its kind (sysdeps/nptl/bits/struct_mutex.h). */
static bool is_held(const struct write_seen *w, int64_t offset)
{
	int64_t at = offset - w->block.offset;
	int32_t mutex[5];

	if (at < 0 || at + (int64_t)sizeof(mutex) > (int64_t)w->block.bytes.len)
		return false;
	memcpy(mutex, w->block.bytes.data + at, sizeof(mutex));
	return w->tid > 0 && mutex[2] == w->tid && mutex[3] > 0 && (mutex[4] & ~0x3ff) == 0 &&
	       (mutex[0] == 1 || mutex[0] == 2 || (mutex[0] & 0x3fffffff) == w->tid);
}

int64_t write_mutex(const struct write_seen *w)
{
	int64_t end = w->block.offset + (int64_t)w->block.bytes.len;

	for (int64_t at = (w->block.offset + WORD - 1) / WORD * WORD; at < end; at += WORD)
		if (at >= 0 && is_held(w, at))
			return at;
	return -1;
}

int write_shares_mutex(const struct write_seen *holder, const struct write_seen *other)
{
	int64_t at = write_mutex(holder);

	if (at < 0 || !home_same(&holder->home, &other->home) || at < other->block.offset ||
	    at + 40 > other->block.offset + (int64_t)other->block.bytes.len)
		return -1;
	return is_held(other, at);
}

static const struct write_seen *shown(const struct evidence *e, bool failing)
{
	return e->kind == EVIDENCE_WRITE && e->failing == failing && e->write->block.bytes.len > 0
		       ? e->write
		       : NULL;
}

static enum beside_moment moment_of(const struct write_seen *failed, const struct write_seen *w)
{
	return write_same_site(failed, w)			      ? BESIDE_SAME
	       : w->block.nth > 0 && w->block.nth < failed->block.nth ? BESIDE_EARLIER
								      : BESIDE_LAST;
}

/* Of two stores in one run: in the very block, at the better moment, later. */
static bool is_better(const struct write_seen *failed, const struct write_seen *a,
		      const struct write_seen *b)
{
	bool one = cstr_known_same(failed->home.key, a->home.key);
	bool two = cstr_known_same(failed->home.key, b->home.key);
	enum beside_moment early = moment_of(failed, a), late = moment_of(failed, b);

	if (one != two)
		return one;
	return early != late ? early < late : a->block.nth > b->block.nth;
}

static void gather_passed(const struct investigation *inv, const struct write_seen *failed,
			  struct beside *ret)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		const struct write_seen *w = shown(e, false);
		struct beside_run *run = NULL;

		if (!w || !home_same(&w->home, &failed->home))
			continue;
		VEC_FOREACH (&ret->passed, known)
			if (known->piece->trial == e->trial)
				run = known;
		if (!run && ret->passed.count < BESIDE_RUNS) {
			VEC_PUSH(&ret->passed, ((struct beside_run){ .piece = e }));
			run = &ret->passed.items[ret->passed.count - 1];
		}
		if (!run || (run->piece != e && !is_better(failed, w, run->piece->write)))
			continue;
		run->piece = e;
		run->moment = moment_of(failed, w);
	}
}

/* What the verdict is about first; else where anybody was caught leaving what the failure found. */
static int rank_of(const struct investigation *inv, const struct write_seen *w)
{
	return 4 * home_same(&w->home, &inv->verdict.home) +
	       2 * (inv->verdict.values_known && w->new == inv->verdict.new) +
	       ((w->flags & WRITE_FOUND) != 0);
}

static uint64_t word_in(const struct block_bytes *block, const struct beside_row *row)
{
	uint64_t word = 0;

	memcpy(&word, block->bytes.data + (row->offset - block->offset), row->len);
	return word;
}

static uint64_t word_at(const struct beside_run *run, const struct beside_row *row)
{
	return word_in(&run->piece->write->block, row);
}

/* At another store to the field: what passing runs have at any moment is no difference. */
static bool passed_with(const struct investigation *inv, const struct beside *b,
			const struct beside_row *row)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		const struct write_seen *w = shown(e, false);

		if (w && home_same(&w->home, &b->failed.piece->write->home) &&
		    row->offset >= w->block.offset &&
		    row->offset + row->len <= w->block.offset + (int64_t)w->block.bytes.len &&
		    word_in(&w->block, row) == word_at(&b->failed, row))
			return true;
	}
	return false;
}

static bool is_address(uint64_t word)
{
	return word >= ADDRESSES_FROM && word < ADDRESSES_TO;
}

static enum beside_difference difference_of(const struct investigation *inv, const struct beside *b,
					    const struct beside_row *row)
{
	uint64_t failed = word_at(&b->failed, row), first = word_at(&b->passed.items[0], row);
	bool agree = true, any = false, addresses = true, aligned = false;

	VEC_FOREACH (&b->passed, run) {
		uint64_t word = word_at(run, row);

		agree &= word == first;
		any |= word == failed;
		addresses &= row->len == WORD && is_address(word);
		aligned |= word % WORD == failed % WORD;
	}
	if (any)
		return agree ? BESIDE_ALIKE : BESIDE_VARIES;
	if (addresses)
		return is_address(failed) && aligned ? BESIDE_ADDRESS : BESIDE_DIFFERS;
	return agree && !passed_with(inv, b, row) ? BESIDE_DIFFERS : BESIDE_VARIES;
}

/* Up to the end of the field, of the word, or to where the next field begins. */
static unsigned int length_at(const struct block_layout *layout, int64_t at, int64_t to)
{
	const struct layout_field *field =
		layout && at >= 0 ? block_layout_at(layout, (uint64_t)at) : NULL;
	int64_t end = (at / WORD + (at >= 0)) * WORD;

	if (field && field->size > 0 && (int64_t)(field->offset + field->size) < end)
		end = (int64_t)(field->offset + field->size);
	if (layout)
		VEC_FOREACH (&layout->fields, next)
			if ((int64_t)next->offset > at && (int64_t)next->offset < end)
				end = (int64_t)next->offset;
	return (unsigned int)((end < to ? end : to) - at);
}

static void fill_rows(const struct investigation *inv, const struct block_layout *layout,
		      struct beside *ret)
{
	const struct home *home = &ret->failed.piece->write->home;
	const struct block_bytes *block = &ret->failed.piece->write->block;
	int64_t from = block->offset, to = from + (int64_t)block->bytes.len;
	int64_t field = home->kind == HOME_BLOCK ? home->offset : 0;

	VEC_FOREACH (&ret->passed, run) {
		const struct block_bytes *other = &run->piece->write->block;

		from = other->offset > from ? other->offset : from;
		to = other->offset + (int64_t)other->bytes.len < to
			     ? other->offset + (int64_t)other->bytes.len
			     : to;
	}
	while (from < to) {
		struct beside_row row = { .offset = from, .len = length_at(layout, from, to) };
		const struct layout_field *at =
			layout && from >= 0 ? block_layout_at(layout, (uint64_t)from) : NULL;

		row.name = at && (int64_t)at->offset == from ? at->name : NULL;
		row.watched = from < field + (int64_t)(home->len > 0 ? home->len & 0xffff : 1) &&
			      from + row.len > field;
		row.difference = difference_of(inv, ret, &row);
		VEC_PUSH(&ret->rows, row);
		from += row.len;
	}
}

bool beside_find(const struct investigation *inv, struct beside *ret)
{
	int best = -1;

	*ret = (struct beside){ 0 };
	VEC_FOREACH (&inv->evidence.list, e) {
		const struct write_seen *w = shown(e, true);
		struct beside found = { .failed = { .piece = e } };

		if (!w || rank_of(inv, w) <= best)
			continue;
		gather_passed(inv, w, &found);
		if (found.passed.count == 0)
			continue;
		best = rank_of(inv, w);
		found.failed.moment = best % 4 > 0 ? BESIDE_FAILED : BESIDE_KNOWN;
		beside_deinit(ret);
		*ret = found;
	}
	if (best < 0)
		return false;
	fill_rows(inv, best >= 4 && inv->verdict.home.kind == HOME_BLOCK ? &inv->layout : NULL,
		  ret);
	return true;
}

void beside_deinit(struct beside *beside)
{
	VEC_DEINIT(&beside->passed);
	VEC_DEINIT(&beside->rows);
}

const uint8_t *beside_bytes(const struct beside_run *run, const struct beside_row *row)
{
	const struct block_bytes *block = &run->piece->write->block;

	return (const uint8_t *)block->bytes.data + (row->offset - block->offset);
}

bool beside_odd(const struct beside *beside, const struct beside_row *row, unsigned int at)
{
	uint8_t passed = beside_bytes(&beside->passed.items[0], row)[at];

	VEC_FOREACH (&beside->passed, run)
		if (beside_bytes(run, row)[at] != passed)
			return false;
	return beside_bytes(&beside->failed, row)[at] != passed;
}

const char *beside_moment_name(enum beside_moment moment)
{
	static const char *const names[BESIDE_MOMENTS] = { "failure", "same-code", "store-before",
							   "last-store", "other-store" };

	return names[moment];
}

const char *beside_difference_name(enum beside_difference difference)
{
	static const char *const names[BESIDE_DIFFERENCES] = { "alike", "address", "varies",
							       "differs" };

	return names[difference];
}
