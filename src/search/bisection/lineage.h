#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

/*
 * Who descends from whom among the commits of a bisection.
 *
 * Commits are numbered so that parents come before their children; 0 is GOOD, and it counts
 * as an ancestor of every other: a commit of a side branch that forked off before GOOD has, for
 * this purpose, GOOD's past.
 *
 * In a straight line that is just the order of numbers. Where branches were merged, each commit has
 * a set of ancestors, a bit each.
 */
struct lineage;

/* Commits whose sets of ancestors still fit into a reasonable amount of memory. */
#define LINEAGE_MAX 20000

/* One commit's parents, as numbers. Parents outside of the range are left out. */
struct lineage_parents {
	const uint32_t *items;
	size_t count;
};

/* `parents` has one row for each of `count` commits; row 0 is ignored. Each parent's number must
 * be smaller than its child's. */
struct lineage *lineage_new(const struct lineage_parents *parents, size_t count);
void lineage_free(struct lineage *lineage);
AUTO_DEFINE(struct lineage, lineage_free)

size_t lineage_count(const struct lineage *lineage);

/* Is `ancestor` the commit itself or one that it descends from? */
bool lineage_has(const struct lineage *lineage, size_t commit, size_t ancestor);

/* sums[c] = the sum of values[k] over c and all its ancestors. Values of exactly 0 cost nothing. */
void lineage_sum(const struct lineage *lineage, const double *values, double *sums);

/* marks[k] = the exclusive or of tokens[c] over k and all its descendants: commits with the
 * same mark cannot be told apart by testing those whose token is not 0. */
void lineage_mark(const struct lineage *lineage, const uint64_t *tokens, uint64_t *marks);
