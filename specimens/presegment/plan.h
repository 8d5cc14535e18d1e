/*
 * A plan: what a compilation decided, so that the next one need not search again.
 *
 * In memory it is `struct plan`. In the cache it is a record, which is used where it lies: its
 * parts name each other by offset from the start of the cache, so that a reader can follow them in
 * a mapping without decoding anything first.
 */
#ifndef PRESEGMENT_PLAN_H
#define PRESEGMENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_PASSES_MAX 8

struct plan_edit {
	uint32_t op;   /* the operation that the pass rewrote */
	uint32_t kind; /* what it was before */
	uint32_t uses; /* by others, at that time */
	uint32_t cost_ns;
};

struct plan_pass {
	struct plan_edit *edits; /* in the order they were made */
	int nedits, capacity;
	uint32_t cost_ns; /* of the whole pass */
};

struct plan_schedule {
	uint32_t scheduler;
	uint32_t vectorize;
	uint32_t unroll;
	uint32_t segments;
};

struct plan {
	struct plan_pass pass[PLAN_PASSES_MAX];
	int npasses;
	int *order;
	int norder;
	struct plan_schedule schedule;
};

void plan_deinit(struct plan *p);
void plan_add_edit(struct plan_pass *p, const struct plan_edit *edit);

/* The record's parts. Each offset is 0 when there is nothing. */
struct record_edit {
	struct plan_edit edit;
	uint64_t next;
};

struct record_pass {
	uint64_t first; /* of the record_edits */
	uint32_t nedits;
	uint32_t cost_ns;
};

struct record {
	uint32_t magic;
	uint32_t size; /* with all parts; a multiple of 8 */
	uint64_t key;
	uint64_t checksum;
	uint32_t npasses;
	uint32_t norder;
	uint64_t order; /* uint32_t[norder] */
	struct plan_schedule schedule;
	uint64_t pass[PLAN_PASSES_MAX];
};

/* A record with offsets from its own start; the caller frees it. Place it with record_move(). */
struct record *record_new(const struct plan *p, uint64_t key);
/* Adapts all offsets to a record that moves by `delta` within the cache. `r` is writable memory,
 * not the cache itself. */
void record_move(struct record *r, int64_t delta, uint64_t old_offset);
/* True when `available` bytes at `data`, which is `offset` in the cache, begin with a whole and
 * undamaged record. */
bool record_check(const void *data, size_t available, uint64_t offset);

/* A record in place. Good for as long as `base` is. */
struct plan_view {
	const unsigned char *base;
	const struct record *rec;
};

const struct record_pass *plan_view_pass(const struct plan_view *v, int pass);
const struct record_edit *plan_view_first(const struct plan_view *v, const struct record_pass *p);
const struct record_edit *plan_view_next(const struct plan_view *v, const struct record_edit *e);
const uint32_t *plan_view_order(const struct plan_view *v);

#endif
