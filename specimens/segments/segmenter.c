#include "segmenter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which group produces a scalar input: asked for by every edge, so kept aside. */
struct scalar_index {
	struct group **groups;
	int count;
	int capacity;
};

static struct scalar_index scalars;
static int next_group_id;

static void scalar_index_add(struct scalar_index *self, struct group *group)
{
	if (self->count == self->capacity) {
		int capacity = self->capacity ? self->capacity * 2 : 16;
		struct group **groups =
			realloc(self->groups, (size_t)capacity * sizeof(struct group *));

		if (!groups) {
			fputs("segments: out of memory\n", stderr);
			exit(1);
		}
		self->groups = groups;
		self->capacity = capacity;
	}
	self->groups[self->count++] = group;
}

struct group *scalar_group(const struct val *scalar)
{
	/* The newest is the likeliest. */
	for (int i = scalars.count; i-- > 0;) {
		if (scalars.groups[i]->scalar == scalar)
			return scalars.groups[i];
	}
	return NULL;
}

static enum scheduler scheduler_for(const struct expr *expr)
{
	switch (expr->kind) {
	case EXPR_SCALAR_ADD:
	case EXPR_SCALAR_MUL:
		return SCHEDULER_EVALUATOR;
	case EXPR_POINTWISE:
		return SCHEDULER_POINTWISE;
	case EXPR_REDUCE:
		return SCHEDULER_REDUCTION;
	case EXPR_SLICE:
	case EXPR_PAD:
		return SCHEDULER_RESIZE;
	}
	return SCHEDULER_NONE;
}

/* A new group at the head of the segmentation's list. */
static struct group *group_new(struct segmentation *segmentation, enum scheduler scheduler)
{
	struct group *self = xcalloc(1, sizeof(*self));

	self->scheduler = scheduler;
	self->id = next_group_id++;
	self->next = segmentation->groups;
	segmentation->groups = self;
	segmentation->group_count++;
	return self;
}

static void group_free(struct group *self)
{
	free(self);
}

/* Takes a group out of the segmentation's list. */
static void group_unlink(struct segmentation *segmentation, struct group *group)
{
	struct group **link = &segmentation->groups;

	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
	group->next = NULL;
	segmentation->group_count--;
}

static void edge_new(struct segmentation *segmentation, struct group *from, struct group *to,
		     const struct val *val)
{
	struct edge *self = xcalloc(1, sizeof(*self));

	self->from = from;
	self->to = to;
	self->val = val;
	self->next = segmentation->edges;
	segmentation->edges = self;
}

/* Drops the edges that leave a group, or lead from it to itself. */
static void edges_drop_from(struct segmentation *segmentation, const struct group *group)
{
	struct edge **link = &segmentation->edges;

	while (*link) {
		struct edge *edge = *link;

		if (edge->from == group) {
			*link = edge->next;
			free(edge);
		} else {
			link = &edge->next;
		}
	}
}

static struct group *producer_of(const struct segmentation *self, const struct val *val)
{
	if (!val->definition)
		return val->kind == VAL_SCALAR ? scalar_group(val) : NULL;
	for (struct group *group = self->groups; group; group = group->next) {
		for (int i = 0; i < group->expr_count; i++) {
			if (group->exprs[i] == val->definition)
				return group;
		}
	}
	return NULL;
}

static void segmentation_add_scalars(struct segmentation *self)
{
	for (const struct val *val = self->fusion->vals; val; val = val->next) {
		struct group *group;

		if (val->kind != VAL_SCALAR || val->definition)
			continue;
		group = group_new(self, SCHEDULER_NONE);
		group->scalar = val;
		scalar_index_add(&scalars, group);
	}
}

static void segmentation_add_exprs(struct segmentation *self)
{
	for (struct expr *expr = self->fusion->exprs; expr; expr = expr->next) {
		struct group *group = group_new(self, scheduler_for(expr));

		group->exprs[group->expr_count++] = expr;
		for (int i = 0; i < expr->input_count; i++) {
			struct group *producer = producer_of(self, expr->inputs[i]);

			if (producer)
				edge_new(self, producer, group, expr->inputs[i]);
		}
	}
}

/* Whether `to` can also be reached from `from` through a third group. */
static bool reaches_around(const struct segmentation *self, const struct group *from,
			   const struct group *to, bool direct)
{
	for (const struct edge *edge = self->edges; edge; edge = edge->next) {
		if (edge->from != from || (direct && edge->to == to))
			continue;
		if (edge->to == to || reaches_around(self, edge->to, to, false))
			return true;
	}
	return false;
}

static bool can_merge(const struct segmentation *self, const struct edge *edge)
{
	const struct group *from = edge->from, *to = edge->to;

	if (from->scheduler == SCHEDULER_NONE || from->scheduler != to->scheduler)
		return false;
	/* A reduction ends its kernel: nothing of the same kind can follow in it. */
	if (from->scheduler == SCHEDULER_REDUCTION)
		return false;
	return from->expr_count + to->expr_count <= GROUP_MAX_EXPRS &&
	       !reaches_around(self, from, to, true);
}

/* Moves the producer's expressions into the consumer; the producer goes. */
static void segmentation_merge(struct segmentation *self, struct group *from, struct group *to)
{
	memmove(to->exprs + from->expr_count, to->exprs,
		(size_t)to->expr_count * sizeof(to->exprs[0]));
	memcpy(to->exprs, from->exprs, (size_t)from->expr_count * sizeof(to->exprs[0]));
	to->expr_count += from->expr_count;
	for (struct edge *edge = self->edges; edge; edge = edge->next) {
		if (edge->to == from)
			edge->to = to;
		if (edge->from == from && edge->to != to)
			edge->from = to;
	}
	edges_drop_from(self, from);
	group_unlink(self, from);
	group_free(from);
	self->merges++;
}

static void segmentation_merge_all(struct segmentation *self)
{
	struct edge *edge = self->edges;

	while (edge) {
		if (can_merge(self, edge)) {
			segmentation_merge(self, edge->from, edge->to);
			edge = self->edges;
		} else {
			edge = edge->next;
		}
	}
}

/* From here on scalar inputs are launch arguments: their groups leave the segmentation. */
static void segmentation_bind_scalars(struct segmentation *self)
{
	struct group *group = self->groups;

	while (group) {
		struct group *next = group->next;

		if (group->scalar) {
			edges_drop_from(self, group);
			group_unlink(self, group);
		}
		group = next;
	}
}

struct segmentation *segmentation_new(struct fusion *fusion)
{
	struct segmentation *self = xcalloc(1, sizeof(*self));

	self->fusion = fusion;
	segmentation_add_scalars(self);
	segmentation_add_exprs(self);
	segmentation_merge_all(self);
	segmentation_bind_scalars(self);
	return self;
}

void segmentation_free(struct segmentation *self)
{
	if (!self)
		return;
	while (self->edges) {
		struct edge *next = self->edges->next;

		free(self->edges);
		self->edges = next;
	}
	while (self->groups) {
		struct group *group = self->groups;

		self->groups = group->next;
		group_free(group);
	}
	fusion_free(self->fusion);
	free(self);
}

int segmentation_count(const struct segmentation *self, enum scheduler scheduler)
{
	int count = 0;

	for (const struct group *group = self->groups; group; group = group->next)
		count += group->scheduler == scheduler;
	return count;
}

long segmentation_infer(const struct segmentation *self, const struct val *val)
{
	const struct expr *expr = val->definition;
	long in[EXPR_MAX_INPUTS] = { 0 };
	long extent = 0;

	if (!expr)
		return val->extent;
	for (int i = 0; i < expr->input_count; i++)
		in[i] = segmentation_infer(self, expr->inputs[i]);
	switch (expr->kind) {
	case EXPR_SCALAR_ADD:
		return in[0] + in[1];
	case EXPR_SCALAR_MUL:
		return in[0] * in[1];
	case EXPR_POINTWISE:
		for (int i = 0; i < expr->input_count; i++) {
			if (expr->inputs[i]->kind == VAL_TENSOR && in[i] > extent)
				extent = in[i];
		}
		return extent;
	case EXPR_REDUCE:
		return 1;
	case EXPR_SLICE:
		return in[2] - in[1];
	case EXPR_PAD:
		return in[0] + in[1];
	}
	return 0;
}
