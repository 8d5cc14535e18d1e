/*
 * Cuts a fusion into groups, each of which one scheduler can turn into one kernel.
 *
 * Every expression starts as a group of its own; neighbours that suit the same scheduler are then
 * merged. Scalar arithmetic becomes segments of its own, evaluated on the host. So that a
 * scalar input, which no expression makes, has a producer while groups are merged, it gets a
 * placeholder group.
 */
#ifndef SEGMENTS_SEGMENTER_H
#define SEGMENTS_SEGMENTER_H

#include "ir.h"

#define GROUP_MAX_EXPRS 8

enum scheduler {
	SCHEDULER_NONE,	     /* a placeholder */
	SCHEDULER_EVALUATOR, /* scalar arithmetic on the host */
	SCHEDULER_POINTWISE,
	SCHEDULER_REDUCTION,
	SCHEDULER_RESIZE,
	SCHEDULER_COUNT,
};

struct group {
	enum scheduler scheduler;
	int id;			  /* unique in the process */
	const struct val *scalar; /* of a placeholder */
	struct expr *exprs[GROUP_MAX_EXPRS];
	int expr_count;
	struct group *next;
};

struct edge {
	struct group *from;
	struct group *to;
	const struct val *val;
	struct edge *next;
};

struct segmentation {
	struct fusion *fusion; /* owned */
	struct group *groups;
	struct edge *edges;
	int group_count;
	int merges;
};

/* Takes the fusion over. */
struct segmentation *segmentation_new(struct fusion *fusion);
void segmentation_free(struct segmentation *self);

/* How many groups a scheduler got. */
int segmentation_count(const struct segmentation *self, enum scheduler scheduler);

/* The extent of a tensor, or the value of a scalar, for the fusion's inputs. */
long segmentation_infer(const struct segmentation *self, const struct val *val);

/* The group that produces a scalar input, or NULL. */
struct group *scalar_group(const struct val *scalar);

#endif
