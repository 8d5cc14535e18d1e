#include "search/bisection/bisection.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/*
 * The grid of rates. Log-spaced: what matters is by how much a rate is wrong, not by how many
 * percentage points. Below the least, nobody has the time to bisect. One more point stands for what
 * fails always: then a pass is a proof, too.
 */
enum {
	RATES = 41,
	NOISES = 3,
	CELLS = RATES * NOISES,
};

static const double rate_least = 0.004, rate_most = 0.985, rate_always = 0.998;

/* Look-alikes: how often a commit without the culprit fails. Seldom believed, so that one failure
 * is as good as a proof; but when the same commit then passes fifty times, it was none.
 * Whoever states the rate knows the failure, and is believed more. */
static const double noises[NOISES] = { 0, 0.004, 0.02 };
#define PRIOR_NOISE 0.01
#define PRIOR_NOISE_STATED 0.001

/* A look-alike must be rarer than the failure itself by this factor, or there is nothing to find.
 */
#define NOISE_SHARE 0.25

/* The user named both ends, and is mostly right. */
#define PRIOR_BEFORE 0.002
#define PRIOR_NEVER 0.002

/* A rate that the user states is meant about so exactly (standard deviation of its logarithm),
 * or it is plainly wrong. */
#define STATED_SPREAD 0.05
#define STATED_WRONG 0.001

/* A commit that is built already is taken when it tells at least this share of what the best would;
 * where nothing is built, only of two that tell the same. */
#define READY_SHARE 0.9
#define READY_SHARE_UNBUILT 0.999

/*
 * A rate that nobody told. What comes and goes is mostly said to fail in one run of five or so (a
 * log-normal density); or it is any rate, each as likely as its double down to where few people
 * have the patience to bisect; or it fails always.
 */
#define PRIOR_USUAL 0.6
#define PRIOR_ALWAYS 0.1
#define USUAL_RATE 0.2
#define USUAL_SPREAD 0.6
#define PATIENCE_RATE 0.02

/* Passes mean little while nobody knows how often it fails: so many failures are looked for at BAD
 * first. It shows them soonest, and whether it fails at all is what people want to know first. */
#define FAILURES_FIRST 2

/* Where the rate was learnt on the way, its own doubt may be so many times what `confidence` allows
 * at the rate that was seen; `careful` allows nothing on top. */
#define RATE_DOUBT 3

#define CONFIDENCE_DEFAULT 0.99
#define CLEAN_LIMIT_DEFAULT 300

struct commit_facts {
	bool skipped, ready;
	unsigned int flying; /* trials started and not ended */
};

struct bisection {
	const struct lineage *lineage;
	size_t commits; /* GOOD included: the last is BAD */
	size_t hyps;	/* one more than commits: 'never' is the last, 'before' the first */
	double confidence;
	bool learns;		/* the rate is not stated: it is learnt on the way … */
	bool careful;		/* … and its doubt must fit into `confidence`, too */
	uint64_t failed_before; /* failures counted before the bisection */
	bool builds;		/* a commit that is not ready costs a build */
	uint64_t clean_limit;
	uint64_t trials, failed;
	double rates[RATES];

	double *belief; /* [hypothesis][cell]; sums to 1 */
	double *plan;	/* the same with trials in flight taken for passes */
	struct commit_facts *facts;
	uint64_t *tokens, *marks; /* lineage_mark() over what can be tested */
	bool marks_stale;

	/* Per hypothesis: its probability, and that times the chance that a test fails when
	 * the commit has it, or has it not. */
	double *mass, *with, *without;
	double *gain_fail,
		*gain_entropy; /* scratch: what belonging to a test's ancestors changes */
	double *sum_fail, *sum_entropy;
};

static double xlogx(double x)
{
	return x > 0 ? x * log(x) : 0;
}

/* How likely each rate is before anything was seen, where nobody told it. */
static void unknown_prior(const struct bisection *b, double ret[RATES])
{
	double usual[RATES], open[RATES], usual_sum = 0, open_sum = 0;

	for (size_t i = 0; i + 1 < RATES; i++) {
		double z = log(b->rates[i] / USUAL_RATE) / USUAL_SPREAD;
		double patience = b->rates[i] / PATIENCE_RATE;

		usual[i] = exp(-z * z / 2);
		open[i] = patience < 1 ? patience * patience : 1;
		usual_sum += usual[i];
		open_sum += open[i];
	}
	for (size_t i = 0; i + 1 < RATES; i++)
		ret[i] = PRIOR_USUAL * usual[i] / usual_sum +
			 (1 - PRIOR_USUAL - PRIOR_ALWAYS) * open[i] / open_sum;
	ret[RATES - 1] = PRIOR_ALWAYS;
}

/* The same where the user states it: about that one, or any. */
static void stated_prior(const struct bisection *b, double stated, double ret[RATES])
{
	double about[RATES], sum = 0, all = 0;

	for (size_t i = 0; i < RATES; i++) {
		double z = log(b->rates[i] / stated) / STATED_SPREAD;

		about[i] = exp(-z * z / 2);
		sum += about[i];
		all += b->rates[i];
	}
	for (size_t i = 0; i < RATES; i++)
		ret[i] = (1 - STATED_WRONG) * about[i] / sum + STATED_WRONG * b->rates[i] / all;
}

static double hypothesis_prior(const struct bisection *b, size_t hyp)
{
	if (hyp == 0)
		return PRIOR_BEFORE;
	if (hyp == b->hyps - 1)
		return PRIOR_NEVER;
	return (1 - PRIOR_BEFORE - PRIOR_NEVER) / (double)(b->commits - 1);
}

static void fill_rates(struct bisection *b, double stated)
{
	double step = pow(rate_most / rate_least, 1.0 / (RATES - 2));
	size_t nearest = 0;

	for (size_t i = 0; i < RATES; i++) {
		b->rates[i] = i + 1 < RATES ? rate_least * pow(step, (double)i) : rate_always;
		if (stated > 0 &&
		    fabs(log(b->rates[i] / stated)) < fabs(log(b->rates[nearest] / stated)))
			nearest = i;
	}
	/* A stated rate, or one that was counted, lies between two points of the grid; then the
	 * grid is the one that gives way. */
	if (stated > rate_least && stated < rate_most)
		b->rates[nearest] = stated;
}

static void normalise(struct bisection *b, double *belief)
{
	double sum = 0;

	for (size_t i = 0; i < b->hyps * CELLS; i++)
		sum += belief[i];
	assert(sum > 0);
	for (size_t i = 0; i < b->hyps * CELLS; i++)
		belief[i] /= sum;
}

static void fill_prior(struct bisection *b, const struct bisection_options *o)
{
	double noise = o->rate > 0 ? PRIOR_NOISE_STATED : PRIOR_NOISE;
	double failed = (double)o->seen_failed, passed = (double)(o->seen_trials - o->seen_failed);
	double cells[CELLS], rates[RATES], seen[RATES], likely = 0;

	if (o->rate > 0)
		stated_prior(b, o->rate, rates);
	else
		unknown_prior(b, rates);
	for (size_t i = 0; i < RATES && o->rate <= 0; i++) {
		seen[i] = failed * log(b->rates[i]) + passed * log1p(-b->rates[i]);
		likely = i == 0 || seen[i] > likely ? seen[i] : likely;
	}
	/* Relative to the likeliest: of a million trials each alone would be 0. */
	for (size_t i = 0; i < RATES && o->rate <= 0; i++)
		rates[i] *= exp(seen[i] - likely);
	for (size_t cell = 0; cell < CELLS; cell++) {
		double rate = b->rates[cell / NOISES];
		bool possible = noises[cell % NOISES] <= rate * NOISE_SHARE;

		cells[cell] = possible ? rates[cell / NOISES] : 0;
		cells[cell] *= cell % NOISES == 0 ? 1 - noise : noise / (NOISES - 1);
	}
	for (size_t hyp = 0; hyp < b->hyps; hyp++)
		for (size_t cell = 0; cell < CELLS; cell++)
			b->belief[hyp * CELLS + cell] = hypothesis_prior(b, hyp) * cells[cell];
	normalise(b, b->belief);
}

struct bisection *bisection_new(const struct bisection_options *options)
{
	struct bisection *b = mem_alloc(sizeof(*b));
	size_t hyps, commits = lineage_count(options->lineage);

	assert(commits >= 2);
	hyps = commits + 1;
	b->lineage = options->lineage;
	b->commits = commits;
	b->hyps = hyps;
	b->confidence = options->confidence > 0 ? options->confidence : CONFIDENCE_DEFAULT;
	b->learns = options->rate <= 0;
	b->careful = options->careful;
	b->failed_before = options->seen_failed;
	b->builds = options->builds;
	b->clean_limit = options->clean_limit > 0 ? options->clean_limit : CLEAN_LIMIT_DEFAULT;
	b->belief = mem_alloc(hyps * CELLS * sizeof(b->belief[0]));
	b->plan = mem_alloc(hyps * CELLS * sizeof(b->plan[0]));
	b->facts = mem_alloc(commits * sizeof(b->facts[0]));
	b->tokens = mem_alloc(commits * sizeof(b->tokens[0]));
	b->marks = mem_alloc(commits * sizeof(b->marks[0]));
	b->mass = mem_alloc(hyps * sizeof(b->mass[0]));
	b->with = mem_alloc(hyps * sizeof(b->with[0]));
	b->without = mem_alloc(hyps * sizeof(b->without[0]));
	b->gain_fail = mem_alloc(hyps * sizeof(b->gain_fail[0]));
	b->gain_entropy = mem_alloc(hyps * sizeof(b->gain_entropy[0]));
	b->sum_fail = mem_alloc(hyps * sizeof(b->sum_fail[0]));
	b->sum_entropy = mem_alloc(hyps * sizeof(b->sum_entropy[0]));
	b->marks_stale = true;
	fill_rates(b, options->rate > 0 ? options->rate
		      : options->seen_trials > 0
			      ? (double)options->seen_failed / (double)options->seen_trials
			      : 0);
	fill_prior(b, options);
	return b;
}

void bisection_free(struct bisection *b)
{
	if (!b)
		return;
	MEM_FREE(b->belief, b->plan, b->facts, b->tokens, b->marks, b->mass, b->with, b->without,
		 b->gain_fail, b->gain_entropy, b->sum_fail, b->sum_entropy);
	mem_free(b);
}

/* Would this hypothesis make this commit fail? */
static bool afflicts(const struct bisection *b, size_t hyp, size_t commit)
{
	return hyp < b->commits && lineage_has(b->lineage, commit, hyp);
}

/* Multiplies a belief by the likelihood of one trial. */
static void hear(struct bisection *b, double *belief, size_t commit, bool failed)
{
	double with[CELLS], without[CELLS];

	for (size_t cell = 0; cell < CELLS; cell++) {
		double rate = b->rates[cell / NOISES], noise = noises[cell % NOISES];

		with[cell] = failed ? rate : 1 - rate;
		without[cell] = failed ? noise : 1 - noise;
	}
	for (size_t hyp = 0; hyp < b->hyps; hyp++) {
		const double *factors = afflicts(b, hyp, commit) ? with : without;
		double *row = belief + hyp * CELLS;

		for (size_t cell = 0; cell < CELLS; cell++)
			row[cell] *= factors[cell];
	}
	normalise(b, belief);
}

void bisection_report(struct bisection *b, size_t commit, bool failed)
{
	assert(commit < b->commits);
	hear(b, b->belief, commit, failed);
	b->trials++;
	b->failed += failed;
}

void bisection_skip(struct bisection *b, size_t commit)
{
	assert(commit < b->commits);
	b->facts[commit].skipped = true;
	b->marks_stale = true;
}

void bisection_start(struct bisection *b, size_t commit)
{
	b->facts[commit].flying++;
}

void bisection_end(struct bisection *b, size_t commit)
{
	assert(b->facts[commit].flying > 0);
	b->facts[commit].flying--;
}

void bisection_set_ready(struct bisection *b, size_t commit, bool ready)
{
	b->facts[commit].ready = ready;
}

static double hypothesis_mass(const double *belief, size_t hyp)
{
	double sum = 0;

	for (size_t cell = 0; cell < CELLS; cell++)
		sum += belief[hyp * CELLS + cell];
	return sum;
}

double bisection_probability(struct bisection *b, size_t commit)
{
	return hypothesis_mass(b->belief, commit);
}

/* splitmix64: any 64 bits that have nothing to do with each other would do. */
static uint64_t token(uint64_t n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15u;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
	n = (n ^ n >> 27) * 0x94d049bb133111ebu;
	return n ^ n >> 31;
}

static void refresh_marks(struct bisection *b)
{
	if (!b->marks_stale)
		return;
	for (size_t c = 0; c < b->commits; c++)
		b->tokens[c] = b->facts[c].skipped ? 0 : token(c);
	lineage_mark(b->lineage, b->tokens, b->marks);
	b->marks_stale = false;
}

/* The likeliest culprit, together with those that no test tells from it. */
struct commit_suspect {
	size_t commit; /* the youngest of them; GOOD (0) stands for 'before' */
	double probability;
	bool alone;
};

/* The weight of each rate, whatever the culprit is. Under 'never' there is none. */
static double rate_weights(const struct bisection *b, const double *belief, double weights[RATES])
{
	double sum = 0;

	memset(weights, 0, RATES * sizeof(weights[0]));
	for (size_t hyp = 0; hyp + 1 < b->hyps; hyp++)
		for (size_t cell = 0; cell < CELLS; cell++)
			weights[cell / NOISES] += belief[hyp * CELLS + cell];
	for (size_t i = 0; i < RATES; i++)
		sum += weights[i];
	return sum;
}

/* The point of the grid that is nearest to the rate as it was seen. */
static size_t seen_rate(const struct bisection *b, const double *belief)
{
	double weights[RATES], sum = rate_weights(b, belief, weights), mean = 0;
	size_t nearest = 0;

	for (size_t i = 0; i < RATES && sum > 0; i++)
		mean += weights[i] / sum * log(b->rates[i]);
	for (size_t i = 0; i < RATES; i++)
		if (fabs(log(b->rates[i]) - mean) < fabs(log(b->rates[nearest]) - mean))
			nearest = i;
	return nearest;
}

/* Its probability if the rate were exactly what was seen of it. */
static double sure_at_rate(const struct bisection *b, const double *belief,
			   const struct commit_suspect *suspect)
{
	size_t rate = seen_rate(b, belief);
	double all = 0, those = 0;

	for (size_t hyp = 0; hyp < b->hyps; hyp++) {
		bool one = suspect->alone
				   ? hyp == suspect->commit
				   : hyp < b->commits && b->marks[hyp] == b->marks[suspect->commit];

		for (size_t noise = 0; noise < NOISES; noise++) {
			double p = belief[hyp * CELLS + rate * NOISES + noise];

			all += p;
			those += one ? p : 0;
		}
	}
	return all > 0 ? those / all : 0;
}

static struct commit_suspect range_of(struct bisection *b, size_t commit)
{
	struct commit_suspect suspect = { .commit = commit, .alone = true };

	for (size_t k = 0; k < b->commits; k++) {
		if (b->marks[k] != b->marks[commit])
			continue;
		suspect.probability += b->mass[k];
		suspect.alone = suspect.alone && k == commit;
		suspect.commit = k;
	}
	return suspect;
}

static struct commit_suspect likeliest(struct bisection *b, const double *belief)
{
	struct commit_suspect best = { .probability = -1 };
	bool skips = false;

	refresh_marks(b);
	for (size_t k = 0; k < b->hyps; k++) {
		b->mass[k] = hypothesis_mass(belief, k);
		skips = skips || (k < b->commits && b->facts[k].skipped);
	}
	for (size_t k = 0; k < b->commits; k++) {
		struct commit_suspect suspect = { .commit = k,
						  .probability = b->mass[k],
						  .alone = true };

		/* A range begins where something cannot be tested; with nothing skipped every
		 * commit stands alone. */
		if (skips && (b->mass[k] > 1e-3 || k == 0))
			suspect = range_of(b, k);
		if (suspect.probability > best.probability)
			best = suspect;
	}
	return best;
}

bool bisection_in_range(struct bisection *b, size_t commit)
{
	struct commit_suspect suspect = likeliest(b, b->belief);

	return b->marks[commit] == b->marks[suspect.commit];
}

static void rate_interval(const struct bisection *b, struct bisection_state *ret)
{
	double weights[RATES], sum = rate_weights(b, b->belief, weights), below = 0;

	ret->rate_low = ret->rate_high = -1;
	for (size_t i = 0; i < RATES && sum > 0; i++) {
		ret->rate += b->rates[i] * weights[i] / sum;
		below += weights[i] / sum;
		/* A point of the grid stands for what is nearer to it than to its neighbours. */
		if (ret->rate_low < 0 && below >= 0.025)
			ret->rate_low = i > 0 ? sqrt(b->rates[i] * b->rates[i - 1]) : 0;
		if (ret->rate_high < 0 && below >= 0.975)
			ret->rate_high = i + 1 < RATES ? sqrt(b->rates[i] * b->rates[i + 1]) : 1;
	}
	if (ret->rate_high < 0)
		ret->rate_high = 1;
}

struct outlook {
	double entropy; /* of the culprit, now */
	double best;	/* what the best test takes away from it on average */
	size_t commit;
};

static void weigh(struct bisection *b, const double *belief)
{
	for (size_t hyp = 0; hyp < b->hyps; hyp++) {
		const double *row = belief + hyp * CELLS;

		b->mass[hyp] = b->with[hyp] = b->without[hyp] = 0;
		for (size_t cell = 0; cell < CELLS; cell++) {
			b->mass[hyp] += row[cell];
			b->with[hyp] += row[cell] * b->rates[cell / NOISES];
			b->without[hyp] += row[cell] * noises[cell % NOISES];
		}
	}
}

/*
 * What a test of commit c leaves of the entropy of the culprit K, on average over its outcome:
 *
 *	H(K|Y) = sum over K of -x(f) - x(m - f), plus x(F) + x(1 - F),  x(t) = t log t,
 *
 * m the probability of K, f that of 'K, and the test fails', F their sum. For each K, f is one
 * of two numbers, depending on whether c descends from K; so all commits' values are
 * two sums over ancestors.
 */
static void expect(struct bisection *b, double *left)
{
	double fail = 0, entropy = 0;

	for (size_t hyp = 0; hyp < b->hyps; hyp++) {
		double m = b->mass[hyp], with = b->with[hyp], without = b->without[hyp];
		double in = -xlogx(with) - xlogx(m - with);
		double out = -xlogx(without) - xlogx(m - without);

		fail += without;
		entropy += out;
		b->gain_fail[hyp] = with - without;
		b->gain_entropy[hyp] = in - out;
	}
	lineage_sum(b->lineage, b->gain_fail, b->sum_fail);
	lineage_sum(b->lineage, b->gain_entropy, b->sum_entropy);
	for (size_t c = 0; c < b->commits; c++) {
		double f = fail + b->sum_fail[c];

		left[c] = entropy + b->sum_entropy[c] + xlogx(f) + xlogx(1 - f);
	}
}

/* Where one commit does not build, its neighbours often do not, either. The more were skipped,
 * the further away the next one is looked for. `chance` is what remains of each commit's value. */
static void guess_builds(const struct bisection *b, double *chance)
{
	size_t skipped = 0, distance = b->commits;

	for (size_t c = 0; c < b->commits; c++) {
		distance = b->facts[c].skipped ? 0 : distance + 1;
		skipped += b->facts[c].skipped;
		chance[c] = (double)distance;
	}
	distance = b->commits;
	for (size_t c = b->commits; c-- > 0;) {
		distance = b->facts[c].skipped ? 0 : distance + 1;
		if ((double)distance < chance[c])
			chance[c] = (double)distance;
		chance[c] = b->facts[c].skipped ? 0
			    : b->facts[c].ready ? 1
						: chance[c] / (chance[c] + (double)skipped);
	}
}

static void look_ahead(struct bisection *b, const double *belief, struct outlook *ret)
{
	/* expect() is done with its sums when these are written. */
	double *left = b->sum_fail, *chance = b->sum_entropy;
	double best = -1, best_ready = -1;
	double share = b->builds ? READY_SHARE : READY_SHARE_UNBUILT;
	size_t at = 0, at_ready = 0;

	weigh(b, belief);
	ret->entropy = 0;
	for (size_t hyp = 0; hyp < b->hyps; hyp++)
		ret->entropy -= xlogx(b->mass[hyp]);
	expect(b, left);
	guess_builds(b, chance);
	for (size_t c = 0; c < b->commits; c++) {
		double told = (ret->entropy - left[c]) * chance[c];

		if (b->facts[c].skipped)
			continue;
		if (told > best) {
			best = told;
			at = c;
		}
		if (b->facts[c].ready && told > best_ready) {
			best_ready = told;
			at_ready = c;
		}
	}
	ret->best = best;
	ret->commit = best_ready > 0 && best_ready >= best * share ? at_ready : at;
}

/* Is the suspect sure enough? A rate that nobody stated has a doubt of its own. */
static bool is_sure(const struct bisection *b, const struct bisection_state *state)
{
	double doubt = 1 - b->confidence;

	if (!b->learns || b->careful)
		return 1 - state->probability <= doubt;
	return 1 - state->at_rate <= doubt && 1 - state->probability <= doubt * RATE_DOUBT;
}

static bool settled(struct bisection *b, const double *belief, struct bisection_state *ret)
{
	struct commit_suspect suspect = likeliest(b, belief);
	double never = b->mass[b->hyps - 1];

	ret->before = b->mass[0];
	ret->never = never;
	ret->commit = suspect.commit;
	ret->probability = suspect.probability;
	ret->at_rate = b->learns ? sure_at_rate(b, belief, &suspect) : suspect.probability;
	ret->verdict = BISECTION_SEARCHING;
	if (never >= b->confidence || (b->failed == 0 && b->trials >= b->clean_limit)) {
		ret->verdict = BISECTION_NEVER;
		ret->probability = ret->at_rate = never;
	} else if (is_sure(b, ret)) {
		ret->verdict = !suspect.alone	     ? BISECTION_RANGE
			       : suspect.commit == 0 ? BISECTION_BEFORE
						     : BISECTION_FOUND;
	}
	return ret->verdict != BISECTION_SEARCHING;
}

void bisection_state(struct bisection *b, struct bisection_state *ret)
{
	struct outlook outlook;

	*ret = (struct bisection_state){ .trials = b->trials, .failed = b->failed };
	rate_interval(b, ret);
	if (settled(b, b->belief, ret))
		return;
	look_ahead(b, b->belief, &outlook);
	if (outlook.best > 0)
		ret->to_go = outlook.entropy / outlook.best;
}

int bisection_next(struct bisection *b, size_t *ret)
{
	struct bisection_state state = { 0 };
	struct outlook outlook;
	const double *belief = b->belief;

	if (settled(b, b->belief, &state))
		return 0;
	for (size_t c = 0; c < b->commits; c++) {
		for (unsigned int i = 0; i < b->facts[c].flying; i++) {
			if (belief != b->plan)
				memcpy(b->plan, b->belief, b->hyps * CELLS * sizeof(b->plan[0]));
			belief = b->plan;
			hear(b, b->plan, c, false);
		}
	}
	/* With nothing but passes, which is likely now, those in flight are the last. */
	if (belief == b->plan && settled(b, b->plan, &state))
		return 0;
	look_ahead(b, belief, &outlook);
	if (outlook.best < 0)
		return 0;
	*ret = outlook.commit;
	if (b->learns && b->failed + b->failed_before < FAILURES_FIRST &&
	    !b->facts[b->commits - 1].skipped)
		*ret = b->commits - 1;
	return 1;
}
