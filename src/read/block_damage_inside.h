#pragma once

#include "read/block_damage.h"
#include "read/timeline.h"

/*
 * What block_damage.c and fence_accesses.c have of each other. Private to read/.
 */
struct log_findings {
	const struct damage_source *of;
	struct event_log *log;
	struct timeline timeline;
	struct damage *ret;
	size_t frees;			  /* wrong ones so far */
	VEC(struct heap_finding) damages; /* until all are known: one may go on at the next */
	bool sampled;			  /* not all of its blocks had guards */
	uint64_t gap;			  /* between its blocks */
};

/* A finding of this log, with nothing but its kind. */
struct heap_finding damage_finding(const struct log_findings *r, enum heap_kind kind);

/* Fills in what is known about the block. */
void damage_tell_block(const struct log_findings *r, const struct log_block *block,
		       struct heap_finding *ret);

/* The BLOCK record that belongs to `owner`. */
bool damage_owned_block(const struct log_findings *r, const struct log_item *owner,
			struct log_block *ret);

/* fence_accesses.c: adds who touched a closed page, and how many blocks had a fence. */
void fences_read(struct log_findings *r);
