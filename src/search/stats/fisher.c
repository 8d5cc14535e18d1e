/*
 * The probabilities are not computed one by one from factorials: for
 * a million trials log-gamma is some 1e7, and its last place alone costs eight digits of
 * the result. Instead the likeliest table gets weight 1 and the others follow
 * from their neighbour by one small fraction each; the sum of all weights is the
 * divisor. The weights fall at least as fast as a bell curve, so a
 * walk ends after some forty standard deviations however large the counts are.
 */
#include "search/stats/fisher.h"

#include <assert.h>
#include <float.h>
#include <stddef.h>

/* Rates that would take more are below one in four million. */
#define CLEAN_MAX ((uint64_t)1 << 24)
#define TIE 1e-7	 /* relative difference below which two tables are equally likely */
#define NEGLIGIBLE 1e-20 /* share of a sum below which the rest of a walk adds nothing */

enum tail { TAIL_LESS, TAIL_GREATER, TAIL_BOTH };

/* The tables with the observed margins, each named by arm A's failures. */
struct family {
	const struct fisher_table *t;
	uint64_t failed; /* in both arms */
	uint64_t lowest, highest;
	uint64_t mode;
};

/* Goes from the mode towards one end. */
struct table_walk {
	const struct family *f;
	uint64_t at, end;
	double weight; /* of the table `at`; the mode has 1 */
};

static struct family family_of(const struct fisher_table *t)
{
	struct family f = { .t = t, .failed = t->failed_a + t->failed_b };

	assert(t->failed_a <= t->trials_a && t->failed_b <= t->trials_b);
	assert(t->trials_a <= UINT64_MAX / 4 && t->trials_b <= UINT64_MAX / 4);
	f.lowest = f.failed > t->trials_b ? f.failed - t->trials_b : 0;
	f.highest = f.failed < t->trials_a ? f.failed : t->trials_a;
	f.mode = (uint64_t)((unsigned __int128)(f.failed + 1) * (t->trials_a + 1) /
			    (t->trials_a + t->trials_b + 2));
	return f;
}

/* The weight of table x + 1 over that of table x. */
static double step_ratio(const struct family *f, uint64_t x)
{
	return (double)(f->failed - x) * (double)(f->t->trials_a - x) /
	       ((double)(x + 1) * (double)(f->t->trials_b + x + 1 - f->failed));
}

/* False at the end, or when the weight no longer counts even against the smallest double. */
static bool walk_step(struct table_walk *w)
{
	if (w->at == w->end)
		return false;
	if (w->at < w->end)
		w->weight *= step_ratio(w->f, w->at++);
	else
		w->weight /= step_ratio(w->f, --w->at);
	return w->weight >= DBL_MIN;
}

static double weight_of(const struct family *f, uint64_t x)
{
	struct table_walk w = { .f = f, .at = f->mode, .end = x, .weight = 1 };

	while (walk_step(&w))
		;
	return w.at == x && w.weight >= DBL_MIN ? w.weight : 0;
}

static double tail_probability(const struct fisher_table *t, enum tail tail)
{
	struct family f = family_of(t);
	const uint64_t ends[] = { f.lowest, f.highest };
	double limit = tail == TAIL_BOTH ? weight_of(&f, t->failed_a) * (1 + TIE) : 0;
	double all = 0, in = 0;

	for (size_t i = 0; i < 2; i++) {
		struct table_walk w = { .f = &f, .at = f.mode, .end = ends[i], .weight = 1 };

		/* The mode itself belongs to the first of the two walks. */
		if (i == 1 && !walk_step(&w))
			break;
		do {
			bool inside = tail == TAIL_BOTH	     ? w.weight <= limit
				      : tail == TAIL_GREATER ? w.at >= t->failed_a
							     : w.at <= t->failed_a;

			all += w.weight;
			if (inside)
				in += w.weight;
		} while (w.weight >= NEGLIGIBLE * in && walk_step(&w));
	}
	return in < all ? in / all : 1;
}

double fisher_two_sided(const struct fisher_table *t)
{
	return tail_probability(t, TAIL_BOTH);
}

double fisher_greater(const struct fisher_table *t)
{
	return tail_probability(t, TAIL_GREATER);
}

double fisher_less(const struct fisher_table *t)
{
	return tail_probability(t, TAIL_LESS);
}

static bool too_lucky(uint64_t clean, uint64_t trials, uint64_t failed, double doubt)
{
	return fisher_less(&(struct fisher_table){
		       .trials_a = clean, .trials_b = trials, .failed_b = failed }) <= doubt;
}

uint64_t fisher_clean_needed(uint64_t trials, uint64_t failed, double doubt)
{
	uint64_t low = 0, high = 1;

	while (high < CLEAN_MAX && !too_lucky(high, trials, failed, doubt)) {
		low = high;
		high *= 2;
	}
	/* Clean runs only ever lower it, so the first number that is enough can be halved down to.
	 */
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (too_lucky(middle, trials, failed, doubt))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/*
 * One more failure in A, at the same number of trials, never raises
 * fisher_greater: one more failure to share out moves A's share up by at most
 * one. One failure less in B does not raise it either, by the same argument. So over all
 * that may still come, fisher_greater is least when A fails always and B never, and
 * fisher_less the other way round. The two-sided p-value has no such order (with 5
 * trials against 21 it rises from 14 failures in B to 13, where A failed 5 times),
 * but it is never less than the smaller of the two; and with arms of equal size
 * the distribution is symmetric and it is exactly twice that, up to 1.
 */
bool fisher_curtailed(const struct fisher_table *so_far, uint64_t left_a, uint64_t left_b,
		      double alpha)
{
	struct fisher_table a_worst = *so_far, b_worst;
	double greater, less, least;

	a_worst.trials_a += left_a;
	a_worst.trials_b += left_b;
	b_worst = a_worst;
	a_worst.failed_a += left_a;
	b_worst.failed_b += left_b;

	greater = fisher_greater(&a_worst);
	less = fisher_less(&b_worst);
	least = greater < less ? greater : less;
	if (a_worst.trials_a == a_worst.trials_b)
		least *= 2;
	/* Rounding must not call a tie hopeless. */
	return least > alpha * (1 + TIE);
}
