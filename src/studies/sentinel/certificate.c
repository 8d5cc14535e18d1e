#include "studies/sentinel/certificate.h"

#include <inttypes.h>
#include <math.h>

#include "base/percent.h"
#include "base/strbuf.h"
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
static void add_confidence(struct strbuf *sb, double doubt)
{
	if (doubt < 1e-6)
		strbuf_adds(sb, "more than 99.9999 %");
	else if (doubt < 0.001)
		strbuf_addf(sb, "%.4f %%", (1 - doubt) * 100);
	else
		strbuf_addf(sb, "%.1f %%", (1 - doubt) * 100);
}

static void add_counts(const struct certificate *c, struct strbuf *sb)
{
	strbuf_addf(sb, "%" PRIu64 " of %" PRIu64 " failed%s; before %" PRIu64 " of %" PRIu64,
		    c->shown, c->now.trials, c->others > 0 ? " as recorded" : "", c->before.failed,
		    c->before.trials);
}

static void add_doubt(const struct certificate *c, struct strbuf *sb)
{
	add_confidence(sb, c->chance);
	strbuf_addf(sb, " confidence at the recorded rate (%s %%), with ", PERCENT(c->before.rate));
	add_confidence(sb, c->p);
	strbuf_adds(sb, " when the uncertainty of that rate is counted (Fisher's exact test)");
	if (c->p > 1 - c->confidence && !c->careful)
		strbuf_addf(sb, "; --careful takes %" PRIu64 " trials and counts it",
			    careful_needed(&c->before, c->confidence));
}

static void say_clean(const struct certificate *c, struct strbuf *sb)
{
	add_counts(c, sb);
	strbuf_addf(sb, "; the rate is now below %s %% with 95 %% confidence. ", PERCENT(c->bound));
	strbuf_adds(sb, "That nothing has changed and luck alone hid it is ruled out with ");
	add_doubt(c, sb);
}

static void say_others(const struct certificate *c, struct strbuf *sb)
{
	strbuf_addf(sb, "%" PRIu64 " trial%s failed in another way than recorded", c->others,
		    c->others == 1 ? "" : "s");
}

static void say_fixed(const struct certificate *c, struct strbuf *sb)
{
	if (c->shown > 0) {
		strbuf_adds(sb, "It still fails: ");
		add_counts(c, sb);
	} else if (c->others > 0 && !c->allow_others) {
		strbuf_adds(sb, "Not certified: ");
		say_others(c, sb);
		strbuf_adds(sb, ", which may be the same damage in another place. Otherwise ");
		add_counts(c, sb);
	} else if (c->met) {
		say_clean(c, sb);
	} else {
		strbuf_adds(sb, "Not certified: ");
		add_counts(c, sb);
		strbuf_addf(sb, ", and it takes %" PRIu64 " clean trials", c->needed);
		if (c->others > 0) {
			strbuf_adds(sb, "; ");
			say_others(c, sb);
		}
	}
}

static void say_fails(const struct certificate *c, struct strbuf *sb)
{
	if (c->met) {
		strbuf_adds(sb, "It still fails as recorded: ");
		add_counts(c, sb);
		return;
	}
	if (c->now.trials >= c->needed) {
		strbuf_adds(sb, "It no longer fails as recorded: ");
		say_clean(c, sb);
	} else {
		strbuf_adds(sb, "It has not failed as recorded: ");
		add_counts(c, sb);
		strbuf_addf(sb, ", and it takes %" PRIu64 " trials to say that it is gone",
			    c->needed);
	}
	if (c->others > 0) {
		strbuf_adds(sb, "; ");
		say_others(c, sb);
	}
}

void certificate_conclude(struct certificate *c)
{
	struct strbuf sb = { 0 };
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
	if (c->interrupted)
		strbuf_adds(&sb, "Interrupted. ");
	if (c->expect == EXPECT_FAILS)
		say_fails(c, &sb);
	else
		say_fixed(c, &sb);
	mem_free(c->sentence);
	c->sentence = strbuf_take(&sb);
}
