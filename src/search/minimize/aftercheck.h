/*
 * Aftercheck: once a list is proven, two questions that the proof leaves open.
 * Can other tests stand in for those found (then the number matters, not which)?
 * Does the order matter? Neither changes the list.
 */
#ifndef REDHAND_ENGINE_REDUCE_AFTERCHECK_H
#define REDHAND_ENGINE_REDUCE_AFTERCHECK_H

#include "search/minimize/outcomes.h"
#include "search/minimize/testset.h"

struct aftercheck {
	size_t n_full, words;
	const testset_word *full;
	testset_word *found; /* the list in question */
	uint32_t *items;     /* its tests without the victim */
	size_t n_items;
	size_t full_enough, full_sure, found_enough; /* clean runs that would be too much luck */
	struct minimiser_count *spared;		     /* beside items: the full list without it */
	struct minimiser_count outside;		     /* the full list without any of them */
	struct minimiser_count alike;		     /* as many tests, none of them */
	struct minimiser_count others_runs, reversed, shuffled;
	enum minimiser_others others;
};

/* `full` must outlive it. Returns 0 or -ENOMEM. */
int aftercheck_init(struct aftercheck *a, size_t n_full, const testset_word *full);
void aftercheck_deinit(struct aftercheck *a);

/* The list to be asked about; nothing is forgotten if it is the same as before. */
void aftercheck_start(struct aftercheck *a, const testset_word *found, const uint32_t *items,
		      size_t n_items, double full_rate, struct minimiser_count found_runs);

/* `flags` are enum minimiser_flags. */
bool aftercheck_wants_others(const struct aftercheck *a, unsigned flags);
bool aftercheck_wants_order(const struct aftercheck *a, unsigned flags);

/* Fills `set` / puts `list` (the found one, ascending) into another order. */
void aftercheck_plan_others(const struct aftercheck *a, uint64_t salt, testset_word *set);
void aftercheck_plan_order(const struct aftercheck *a, uint64_t salt, uint32_t *list, size_t count);

/* Outcomes. Lists that answer neither question are ignored. */
void aftercheck_others(struct aftercheck *a, const testset_word *set, bool target);
void aftercheck_order(struct aftercheck *a, const testset_word *set, const uint32_t *list,
		      size_t count, bool target);

#endif
