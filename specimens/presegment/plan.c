#include "plan.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_MAGIC 0x6e616c70u /* "plan" */

void plan_deinit(struct plan *p)
{
	for (int i = 0; i < p->npasses; i++)
		free(p->pass[i].edits);
	free(p->order);
	memset(p, 0, sizeof(*p));
}

void plan_add_edit(struct plan_pass *p, const struct plan_edit *edit)
{
	if (p->nedits == p->capacity) {
		p->capacity = p->capacity ? 2 * p->capacity : 8;
		p->edits = realloc(p->edits, (size_t)p->capacity * sizeof(*p->edits));
		if (!p->edits)
			abort();
	}
	p->edits[p->nedits++] = *edit;
}

static uint64_t record_sum(const struct record *r)
{
	const unsigned char *bytes = (const unsigned char *)r;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < r->size; i += sizeof(uint64_t)) {
		uint64_t word;

		if (i == offsetof(struct record, checksum))
			continue;
		memcpy(&word, bytes + i, sizeof(word));
		h = (h ^ word) * 0x100000001b3u;
		h ^= h >> 31;
	}
	return h;
}

struct record *record_new(const struct plan *p, uint64_t key)
{
	size_t order_size = ((size_t)p->norder * sizeof(uint32_t) + 7) & ~(size_t)7;
	size_t size = sizeof(struct record) + order_size, at = sizeof(struct record);
	struct record *r;
	unsigned char *bytes;

	for (int i = 0; i < p->npasses; i++)
		size += sizeof(struct record_pass) +
			(size_t)p->pass[i].nedits * sizeof(struct record_edit);
	r = calloc(1, size);
	if (!r)
		abort();
	bytes = (unsigned char *)r;
	r->magic = RECORD_MAGIC;
	r->size = (uint32_t)size;
	r->key = key;
	r->npasses = (uint32_t)p->npasses;
	r->norder = (uint32_t)p->norder;
	r->schedule = p->schedule;
	for (int i = 0; i < p->npasses; i++) {
		struct record_pass *rp = (struct record_pass *)(bytes + at);
		uint64_t *link = &rp->first;

		r->pass[i] = at;
		rp->nedits = (uint32_t)p->pass[i].nedits;
		rp->cost_ns = p->pass[i].cost_ns;
		at += sizeof(*rp);
		for (int k = 0; k < p->pass[i].nedits; k++) {
			struct record_edit *re = (struct record_edit *)(bytes + at);

			re->edit = p->pass[i].edits[k];
			*link = at;
			link = &re->next;
			at += sizeof(*re);
		}
	}
	r->order = at;
	for (int i = 0; i < p->norder; i++) {
		uint32_t op = (uint32_t)p->order[i];

		memcpy(bytes + at + (size_t)i * sizeof(op), &op, sizeof(op));
	}
	r->checksum = record_sum(r);
	return r;
}

static void shift(uint64_t *offset, int64_t delta)
{
	if (*offset)
		*offset += (uint64_t)delta;
}

void record_move(struct record *r, int64_t delta, uint64_t old_offset)
{
	unsigned char *bytes = (unsigned char *)r;

	for (uint32_t i = 0; i < r->npasses; i++) {
		struct record_pass *rp = (struct record_pass *)(bytes + r->pass[i] - old_offset);
		uint64_t next = rp->first;

		while (next) {
			struct record_edit *re = (struct record_edit *)(bytes + next - old_offset);

			next = re->next;
			shift(&re->next, delta);
		}
		shift(&rp->first, delta);
		shift(&r->pass[i], delta);
	}
	shift(&r->order, delta);
	r->checksum = record_sum(r);
}

/* Does a part of `size` bytes lie within the record, behind its head? */
static bool part_fits(const struct record *r, uint64_t offset, uint64_t at, size_t size)
{
	return at % 4 == 0 && at >= offset + sizeof(*r) && at <= offset + r->size &&
	       size <= offset + r->size - at;
}

static bool pass_fits(const struct record *r, uint64_t offset, uint64_t at)
{
	const unsigned char *bytes = (const unsigned char *)r;
	const struct record_pass *rp;
	uint64_t next;
	uint32_t n = 0;

	if (!part_fits(r, offset, at, sizeof(*rp)))
		return false;
	rp = (const struct record_pass *)(bytes + (at - offset));
	for (next = rp->first; next && n < rp->nedits; n++) {
		if (!part_fits(r, offset, next, sizeof(struct record_edit)))
			return false;
		next = ((const struct record_edit *)(bytes + (next - offset)))->next;
	}
	return next == 0 && n == rp->nedits;
}

bool record_check(const void *data, size_t available, uint64_t offset)
{
	const struct record *r = data;

	if (available < sizeof(*r) || r->magic != RECORD_MAGIC || r->size < sizeof(*r) ||
	    r->size > available || r->size % 8 != 0 || r->npasses > PLAN_PASSES_MAX ||
	    r->checksum != record_sum(r))
		return false;
	for (uint32_t i = 0; i < r->npasses; i++) {
		if (!pass_fits(r, offset, r->pass[i]))
			return false;
	}
	return part_fits(r, offset, r->order, (size_t)r->norder * sizeof(uint32_t));
}

const struct record_pass *plan_view_pass(const struct plan_view *v, int pass)
{
	return (const struct record_pass *)(v->base + v->rec->pass[pass]);
}

const struct record_edit *plan_view_first(const struct plan_view *v, const struct record_pass *p)
{
	return p->first ? (const struct record_edit *)(v->base + p->first) : NULL;
}

const struct record_edit *plan_view_next(const struct plan_view *v, const struct record_edit *e)
{
	return e->next ? (const struct record_edit *)(v->base + e->next) : NULL;
}

const uint32_t *plan_view_order(const struct plan_view *v)
{
	return (const uint32_t *)(v->base + v->rec->order);
}
