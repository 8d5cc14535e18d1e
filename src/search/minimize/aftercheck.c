#include "search/minimize/aftercheck.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/stats/fisher.h"

/* Luck that is still accepted when 'never fails' is concluded. */
static const double others_luck = 0.05, order_luck = 0.01;
/* Failures after which an order is known to fail, with some idea of how often. */
static const uint32_t order_fails = 2;

int aftercheck_init(struct aftercheck *a, size_t n_full, const testset_word *full)
{
	*a = (struct aftercheck){ .n_full = n_full, .words = testset_words(n_full), .full = full };
	a->found = calloc(a->words, sizeof(*a->found));
	a->items = calloc(n_full, sizeof(*a->items));
	a->spared = calloc(n_full, sizeof(*a->spared));
	if (!a->found || !a->items || !a->spared) {
		aftercheck_deinit(a);
		return -ENOMEM;
	}
	return 0;
}

void aftercheck_deinit(struct aftercheck *a)
{
	free(a->found);
	free(a->items);
	free(a->spared);
	*a = (struct aftercheck){ 0 };
}

static size_t enough(double rate, double luck)
{
	return (size_t)ceil(log(luck) / log1p(-fmin(fmax(rate, 1e-4), 0.99)));
}

void aftercheck_start(struct aftercheck *a, const testset_word *found, const uint32_t *items,
		      size_t n_items, double full_rate, struct minimiser_count found_runs)
{
	if (a->full_enough && testset_equal(a->found, found, a->words))
		return;
	memcpy(a->found, found, a->words * sizeof(*found));
	memcpy(a->items, items, n_items * sizeof(*items));
	memset(a->spared, 0, a->n_full * sizeof(*a->spared));
	a->n_items = n_items;
	a->full_enough = enough(full_rate, others_luck);
	/* Few runs were made of the full list: its rate may well be half of that. */
	a->full_sure = enough(full_rate / 2, others_luck / (double)(10 * (n_items + 1)));
	/* Of the list itself there are few runs, too: that is the doubt that counts here. */
	a->found_enough = fisher_clean_needed(found_runs.runs, found_runs.failed, order_luck);
	a->outside = a->alike = a->others_runs = (struct minimiser_count){ 0 };
	a->reversed = a->shuffled = (struct minimiser_count){ 0 };
	a->others = MINIMISER_OTHERS_UNKNOWN;
}

/* A list that has had its chance. As long as none has failed, the question is put to
 * all of them together; after that to each. */
static bool settled(const struct aftercheck *a, struct minimiser_count count)
{
	return count.failed ||
	       count.runs >= (a->others_runs.failed ? a->full_sure : a->full_enough);
}

/* The first item whose absence has neither failed nor been clean long enough. */
static size_t next_spared(const struct aftercheck *a)
{
	size_t best = a->n_items;

	for (size_t i = 0; i < a->n_items; i++)
		if (!settled(a, a->spared[i]) &&
		    (best == a->n_items || a->spared[i].runs < a->spared[best].runs))
			best = i;
	return best;
}

static bool all_replaced(const struct aftercheck *a)
{
	for (size_t i = 0; i < a->n_items; i++)
		if (!a->spared[i].failed)
			return false;
	return true;
}

static void judge(struct aftercheck *a)
{
	if (!a->others_runs.failed) {
		if (a->others_runs.runs >= a->full_enough)
			a->others = MINIMISER_OTHERS_NONE;
		return;
	}
	if (next_spared(a) < a->n_items)
		return;
	/* Every test can be done without. A second trigger elsewhere would explain
	 * that as well: it needs none of those found, but not just any tests. */
	if (!all_replaced(a))
		a->others = MINIMISER_OTHERS_SOME;
	else if (!settled(a, a->outside))
		return;
	else if (!a->outside.failed)
		a->others = MINIMISER_OTHERS_ANY;
	else if (settled(a, a->alike))
		a->others = a->alike.failed ? MINIMISER_OTHERS_ANY : MINIMISER_OTHERS_SOME;
}

static size_t count_outside(const struct aftercheck *a)
{
	size_t count = 0;

	for (size_t w = 0; w < a->words; w++)
		count += (size_t)__builtin_popcountll(a->full[w] & ~a->found[w]);
	return count;
}

bool aftercheck_wants_others(const struct aftercheck *a, unsigned flags)
{
	return flags & MINIMISER_CHECK_OTHERS && a->others == MINIMISER_OTHERS_UNKNOWN &&
	       a->n_items && count_outside(a);
}

static bool order_open(const struct aftercheck *a, struct minimiser_count count)
{
	return count.failed < order_fails && count.runs < a->found_enough;
}

bool aftercheck_wants_order(const struct aftercheck *a, unsigned flags)
{
	if (!(flags & MINIMISER_CHECK_ORDER) || a->n_items < 2)
		return false;
	/* Two tests have but one other order. */
	return order_open(a, a->reversed) || (a->n_items > 2 && order_open(a, a->shuffled));
}

static uint64_t roll(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void aftercheck_plan_others(const struct aftercheck *a, uint64_t salt, testset_word *set)
{
	size_t spared = next_spared(a), left, take;

	memcpy(set, a->full, a->words * sizeof(*set));
	if (spared < a->n_items) {
		testset_remove(set, a->items[spared]);
		return;
	}
	for (size_t i = 0; i < a->n_items; i++)
		testset_remove(set, a->items[i]);
	if (!settled(a, a->outside))
		return;
	left = count_outside(a);
	take = a->n_items < left ? a->n_items : left;
	for (size_t i = 0; i < a->n_full; i++) {
		if (!testset_has(set, i) || testset_has(a->found, i))
			continue;
		if (roll(&salt) % left-- < take)
			take--;
		else
			testset_remove(set, i);
	}
}

static void add(struct minimiser_count *count, bool target)
{
	count->runs++;
	count->failed += target;
}

void aftercheck_others(struct aftercheck *a, const testset_word *set, bool target)
{
	size_t missing = 0, last = 0, others = 0, outside = count_outside(a);

	for (size_t i = 0; i < a->n_items; i++) {
		if (testset_has(set, a->items[i]))
			continue;
		missing++;
		last = i;
	}
	for (size_t w = 0; w < a->words; w++)
		others += (size_t)__builtin_popcountll(set[w] & ~a->found[w]);
	/* With a single test found, the first and the second are the same list. */
	if (missing == 1 && others == outside) {
		add(&a->spared[last], target);
		add(&a->others_runs, target);
	}
	if (missing && missing == a->n_items)
		add(others == outside ? &a->outside : &a->alike, target);
	judge(a);
}

/* The victim, or whatever comes last when there is none, stays last: the question is
 * in which order the others prepare the ground. */
static size_t movable(const struct aftercheck *a, size_t count)
{
	return count > a->n_items ? count - 1 : count;
}

void aftercheck_plan_order(const struct aftercheck *a, uint64_t salt, uint32_t *list, size_t count)
{
	size_t n = movable(a, count);

	if (order_open(a, a->reversed)) {
		for (size_t i = 0; i < n / 2; i++) {
			uint32_t swap = list[i];

			list[i] = list[n - 1 - i];
			list[n - 1 - i] = swap;
		}
		return;
	}
	/* Neither the order it has nor the reverse of it. */
	for (;;) {
		bool up = true, down = true;

		for (size_t i = n; i > 1; i--) {
			size_t j = roll(&salt) % i;
			uint32_t swap = list[i - 1];

			list[i - 1] = list[j];
			list[j] = swap;
		}
		for (size_t i = 1; i < n; i++) {
			up = up && list[i - 1] < list[i];
			down = down && list[i - 1] > list[i];
		}
		if (!up && !down)
			return;
	}
}

void aftercheck_order(struct aftercheck *a, const testset_word *set, const uint32_t *list,
		      size_t count, bool target)
{
	struct minimiser_count *tally = &a->reversed;
	size_t n = movable(a, count);

	if (!testset_equal(set, a->found, a->words))
		return;
	for (size_t i = 1; i < n; i++)
		if (list[i - 1] < list[i])
			tally = &a->shuffled;
	add(tally, target);
}
