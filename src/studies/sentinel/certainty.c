/*
 * What a sentinel's trials prove. See certainty.h.
 */
#include "studies/sentinel/certainty.h"

#include <math.h>

#include "base/percent.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"

/* As few failures among `trials` as `failed`, if the rate is that of before. */
static double fisher(const struct rate *before, uint64_t trials, uint64_t failed)
{
	return fisher_less(&(struct fisher_table){ .trials_a = trials,
						   .failed_a = failed,
						   .trials_b = before->trials,
						   .failed_b = before->failed });
}

static uint64_t careful_needed(const struct rate *before, double confidence)
{
	return fisher_clean_needed(before->trials, before->failed, 1 - confidence);
}

uint64_t certificate_needed(const struct rate *before, double confidence, bool careful)
{
	uint64_t needed;

	if (before->failed == 0)
		return UINT64_MAX;
	if (careful || before->failed == before->trials)
		return careful_needed(before, confidence);
	needed = rate_clean_runs((double)before->failed / (double)before->trials, confidence);
	return needed > 0 ? needed : 1;
}

/* At most so many failures in n trials at rate p: a sum of few terms, for it ends at the first
 * failure or soon after. */
static double binomial_at_most(uint64_t n, uint64_t failed, double p)
{
	double sum = 0;

	if (p >= 1)
		return failed >= n ? 1 : 0;
	for (uint64_t k = 0; k <= failed && k <= n; k++)
		sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
			   lgamma((double)(n - k) + 1) + (double)k * log(p) +
			   (double)(n - k) * log1p(-p));
	return fmin(sum, 1);
}

/* As many digits as tell it from certainty. */
static struct said_value confidence_value(double doubt)
{
	if (doubt < 1e-6)
		return said_text("more than 99.9999 %");
	return said_take(mem_printf("%.*f %%", doubt < 0.001 ? 4 : 1, (1 - doubt) * 100));
}

static struct said_value counts_value(const struct certificate *c)
{
	struct said said = { 0 };

	SAY(&said, "cert:counts", said_number(c->shown), said_number(c->now.trials),
	    said_flag(c->others > 0), said_number(c->before.failed), said_number(c->before.trials));
	return said_part(&said);
}

static struct said_value clean_value(const struct certificate *c)
{
	bool careful = c->p > 1 - c->confidence && !c->careful;
	struct said said = { 0 };

	SAY(&said, "cert:clean", counts_value(c), said_text(PERCENT(c->bound)),
	    confidence_value(c->chance), said_text(PERCENT(c->before.rate)), confidence_value(c->p),
	    careful ? said_number(careful_needed(&c->before, c->confidence)) : said_none());
	return said_part(&said);
}

static const char *fixed_id(const struct certificate *c)
{
	if (c->shown > 0)
		return "cert:still";
	if (c->others > 0 && !c->allow_others)
		return "cert:elsewhere";
	return c->met ? "cert:fixed" : "cert:not-yet";
}

static const char *fails_id(const struct certificate *c)
{
	if (c->met)
		return "cert:fails";
	return c->now.trials >= c->needed ? "cert:gone" : "cert:unseen";
}

/* One set of values for all of them; each takes what it needs. */
static void say(struct certificate *c)
{
	struct said said = { 0 };

	SAY(&said, c->expect == EXPECT_FAILS ? fails_id(c) : fixed_id(c), counts_value(c),
	    clean_value(c), said_count(c->others), said_number(c->needed));
	SAY(&c->sentence, "certificate", said_flag(c->interrupted), said_part(&said));
}

void certificate_conclude(struct certificate *c)
{
	uint64_t trials = c->shown + c->clean;

	c->now = rate_wilson(trials, c->shown, RATE_CONFIDENCE);
	c->bound = c->shown == 0 ? rate_upper_bound_clean(trials, RATE_CONFIDENCE) : 1;
	c->chance = binomial_at_most(trials, c->shown, c->before.rate);
	c->p = fisher(&c->before, trials, c->shown);
	if (c->expect == EXPECT_FAILS)
		c->met = c->shown > 0;
	else
		c->met = c->shown == 0 && c->clean >= c->needed &&
			 (c->others == 0 || c->allow_others);
	say(c);
}
