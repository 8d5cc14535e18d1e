#pragma once

#include "model/heap.h"
#include "read/reading.h"
#include "wire/plan.h"

/*
 * Chance: which context's freed blocks, when overwritten, bring the failure (--poison-chance)? Or
 * new ones, when they hold garbage?
 *
 * In each trial the freed blocks of a context are all overwritten or all left alone, by the toss of
 * a coin that follows from the trial's seed. Who only reads what was freed fails more often in the
 * trials in which it was overwritten, and no other context's coin goes with the failure but by
 * chance.
 */
#define CHANCE_TRIALS 192u /* whose coins for words are remembered */

struct chance_context {
	uint64_t stack_hash;
	uint64_t poisoned, poisoned_failed; /* trials */
	uint64_t clear, clear_failed;
	uint64_t last_trial;
	struct reading *failed_in; /* a trial that failed; NULL: none */
	uint64_t words; /* of its largest block, as far as they have coins of their own */
	uint64_t seen[CHANCE_TRIALS / 64]; /* bit for each of chance->trials that it was in */
};

/* What words held follows from the seed. */
struct chance_trial {
	uint64_t number, seed;
	bool failed;
};

struct chance {
	VEC(struct chance_context) contexts; /* ascending by hash */
	VEC(struct reading *) failing;	     /* those that contexts speak of */
	VEC(struct chance_trial) trials;     /* with coins for words: those about new blocks */
	uint64_t read, failed;		     /* trials, in all */
};

void chance_deinit(struct chance *chance);

/* What one trial showed. Its logs say with which seed and chance, the plan what it is about: freed
 * blocks, or new ones (PLAN_HEAP_FRESH), of which each word has a coin, too. */
void chance_read(struct chance *chance, const struct plan_heap *plan, struct reading *reading,
		 bool failed);

/* How many failing trials it takes at least, each with the one context's coin on the same side, to
 * tell that context from all the others. `ppm` is the chance. */
uint64_t chance_needed(const struct chance *chance, uint32_t ppm);

/* Does the failure go with somebody's coin, with a chance of `p` at most that it only looks so? May
 * be asked after every trial: who stops then is wrong no more often than that. `ppm` is the coins'
 * chance. */
bool chance_told(const struct chance *chance, uint32_t ppm, double p);

/* Every trial has failed so far, whatever the coins said: none of them decides it. `steady`: nor
 * where none has, for nothing else does. */
bool chance_idle(const struct chance *chance, bool steady);

/* Fills in contexts and suspects, likeliest first. `looked`: chance_told() was asked meanwhile, so
 * that half of every p is spent on it. */
void chance_conclude(const struct chance *chance, uint32_t ppm, bool looked,
		     struct heap_report *ret);
