#include "search/minimize/minimiser.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/minimize/aftercheck.h"
#include "search/minimize/marginals.h"
#include "search/minimize/subsets.h"

/* Failures of the full list before the search begins, and of the list found
 * before it is believed. Fewer cost more later: a rate known badly makes every
 * pass count for less. */
static const unsigned baseline_fails = 3, proof_fails = 3;
static const unsigned baseline_runs = 300;
/* How often something else looks like the target, as a share of the target's own
 * rate, before any was seen; each one found out adds `lookalike_step` times that. */
static const double lookalike = 0.005, lookalike_step = 4, lookalike_most = 0.06;
/* A list is given back when the belief that it lacks a needed test exceeds this. */
static const double astray_most = 0.97;
/* For that belief the rate is never taken to have sunk below this share of the full
 * list's: otherwise any silence could be explained away. */
static const double rate_kept = 0.5;
/* A long list is run as it is after this many expected failures' worth of silence. */
static const double silence_most = 8;
/* After half of that, and while it is far from proven, every other pool is drawn
 * without regard to what is believed of each test. */
static const double doubt_below = 0.2;
/* Lists up to this long start afresh from the history when they get shorter, so
 * that a wrong belief does not stick; for longer ones it would take too long. */
static const size_t fresh_most = 40;
/* The model is not the world: of the doubt allowed only this share is used up. */
static const double doubt_kept = 0.75;
/* From here on it is asked whether just the number of tests matters. */
static const size_t count_matters_from = 14;
static const double count_matters_needed = 9;
static const uint64_t swap_lists = 64; /* different lists tried for that */
static const uint32_t swap_fails =
	3; /* and how many must fail: chance or a look-alike may do one */

/* A list that was adopted because it showed the target. */
struct adopted {
	testset_word *set;
	double astray;		 /* when it was left: belief that it lacks a needed test */
	double cell[RATE_CELLS]; /* when it was left: belief about the rate */
};

struct flying {
	uint64_t id;
	testset_word *set;
};

/* Which tests are needed. */
struct belief {
	bool exact;		    /* which of the next two holds it */
	struct marginals marginals; /* while the list is long */
	struct subsets subsets;	    /* once it is short */
	double stray;		    /* assumed rate of look-alikes */
	double astray;		    /* that the current list lacks a needed test */
};

/* Plans that are not yet reported, oldest first. */
struct in_flight {
	struct flying *list;
	size_t count, room;
	const testset_word **sets; /* the same, for the planners */
	uint64_t last_id;
};

struct minimiser {
	struct minimiser_options options;
	size_t words, n_candidates;
	testset_word *full; /* without the tests after the victim */
	struct history history;

	struct adopted *frames; /* the full list first, the current one last */
	size_t n_frames, room_frames;
	uint32_t *items; /* the current list without the victim */
	size_t n_items;
	struct belief belief;
	struct run_count on_full, on_current, on_swapped;
	size_t targets, silence; /* runs with the target; passes since the last */
	size_t disowned;	 /* runs of the history that are held to be look-alikes */
	bool never_failed, proven, count_matters;
	struct aftercheck aftercheck; /* in use once proven */

	size_t reports, trials, censored, no_information, rollbacks;
	struct in_flight flying;

	uint32_t *list;		       /* what plans and results point to */
	testset_word *set, *other_set; /* scratch */
	struct minimiser_without *without;
};

static const testset_word *current(const struct minimiser *m)
{
	return m->frames[m->n_frames - 1].set;
}

static bool has_victim(const struct minimiser *m)
{
	return m->options.victim != MINIMISER_NO_VICTIM;
}

static double chance(const struct minimiser *m, const testset_word *set)
{
	return m->belief.exact ? subsets_chance(&m->belief.subsets, set)
			       : marginals_chance(&m->belief.marginals, set);
}

static double rate(const struct minimiser *m, size_t size)
{
	return m->belief.exact ? subsets_rate(&m->belief.subsets, size)
			       : marginals_rate(&m->belief.marginals, size);
}

static double full_rate(const struct minimiser *m)
{
	return (m->on_full.failed + 0.5) / (m->on_full.runs + 1);
}

/* Wilson's lower bound, one-sided 95 %: a lucky baseline must not set the standard. */
static double full_rate_low(const struct minimiser *m)
{
	const double z = 1.645;
	double n = m->on_full.runs + 1e-9, p = m->on_full.failed / n;

	return (p + z * z / (2 * n) - z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) /
	       (1 + z * z / n);
}

static double needed_at(const struct minimiser *m, size_t position)
{
	double odds;

	if (m->belief.exact)
		return subsets_needed(&m->belief.subsets, position);
	odds = m->belief.marginals.odds[position];
	return odds / (1 + odds);
}

static double all_needed(const struct minimiser *m)
{
	double all = 1;

	if (m->belief.exact)
		return subsets_all_needed(&m->belief.subsets);
	for (size_t i = 0; i < m->n_items; i++)
		all *= needed_at(m, i);
	return all;
}

static double needed_sum(const struct minimiser *m)
{
	double sum = 0;

	for (size_t i = 0; i < m->n_items; i++)
		sum += needed_at(m, i);
	return sum;
}

/* The current list has changed; `run` if a run narrowed it, else NULL. */
static int refresh(struct minimiser *m, const struct history_run *run)
{
	const struct adopted *top = &m->frames[m->n_frames - 1];
	bool first = m->history.count == 0;

	m->n_items = 0;
	for (size_t i = 0; i < m->options.n_tests; i++)
		if (i != m->options.victim && testset_has(top->set, i))
			m->items[m->n_items++] = (uint32_t)i;
	if (run)
		marginals_target(&m->belief.marginals, run);
	m->belief.exact = m->n_items <= SUBSETS_MOST;
	m->on_current = history_exact(&m->history, top->set);
	m->on_swapped = (struct run_count){ 0 };
	if (m->belief.exact) {
		subsets_rebuild(&m->belief.subsets, &m->history, m->items, m->n_items,
				m->n_candidates);
		return 0;
	}
	if (run && m->n_items > fresh_most)
		return marginals_narrow(&m->belief.marginals, run);
	return marginals_rebuild(&m->belief.marginals, &m->history, m->items, m->n_items,
				 first ? NULL
				 : run ? m->belief.marginals.cell
				       : top->cell);
}

static int frame_push(struct minimiser *m, const testset_word *set)
{
	testset_word *copy;

	if (m->n_frames == m->room_frames) {
		size_t room = m->room_frames ? m->room_frames * 2 : 16;
		struct adopted *frames = realloc(m->frames, room * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		m->frames = frames;
		m->room_frames = room;
	}
	copy = malloc(m->words * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, set, m->words * sizeof(*copy));
	if (m->n_frames) {
		struct adopted *top = &m->frames[m->n_frames - 1];

		top->astray = m->belief.astray;
		memcpy(top->cell, m->belief.marginals.cell, sizeof(top->cell));
	}
	m->frames[m->n_frames++] = (struct adopted){ .set = copy };
	return 0;
}

static bool options_valid(const struct minimiser_options *options)
{
	size_t n = options->n_tests;

	return n > 0 && n < 1 << 24 &&
	       (options->victim == MINIMISER_NO_VICTIM || options->victim < n) &&
	       options->confidence >= 0 && options->confidence < 1;
}

static bool allocate(struct minimiser *m, size_t n)
{
	m->words = testset_words(n);
	history_init(&m->history, m->words);
	m->full = calloc(m->words, sizeof(*m->full));
	m->set = calloc(m->words, sizeof(*m->set));
	m->other_set = calloc(m->words, sizeof(*m->other_set));
	m->items = calloc(n, sizeof(*m->items));
	m->list = calloc(n, sizeof(*m->list));
	m->without = calloc(n, sizeof(*m->without));
	return m->full && m->set && m->other_set && m->items && m->list && m->without;
}

int minimiser_new(const struct minimiser_options *options, struct minimiser **ret)
{
	struct minimiser *m;
	size_t n = options->n_tests, n_full;

	if (!options_valid(options))
		return -EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->options = *options;
	if (m->options.confidence == 0)
		m->options.confidence = 0.99;
	if (m->options.baseline_fails == 0)
		m->options.baseline_fails = baseline_fails;
	if (m->options.baseline_runs == 0)
		m->options.baseline_runs = baseline_runs;
	if (!allocate(m, n))
		goto out;
	for (size_t i = 0; i < n; i++)
		if (!has_victim(m) || i <= m->options.victim)
			testset_add(m->full, i);
	n_full = testset_count(m->full, m->words);
	m->n_candidates = n_full - has_victim(m);
	if (marginals_init(&m->belief.marginals, n_full, has_victim(m)) < 0 ||
	    subsets_init(&m->belief.subsets, n_full, has_victim(m)) < 0 ||
	    aftercheck_init(&m->aftercheck, n, m->full) < 0 || frame_push(m, m->full) < 0 ||
	    refresh(m, NULL) < 0)
		goto out;
	*ret = m;
	return 0;
out:
	minimiser_free(m);
	return -ENOMEM;
}

void minimiser_free(struct minimiser *m)
{
	if (!m)
		return;
	history_deinit(&m->history);
	marginals_deinit(&m->belief.marginals);
	subsets_deinit(&m->belief.subsets);
	aftercheck_deinit(&m->aftercheck);
	for (size_t i = 0; i < m->n_frames; i++)
		free(m->frames[i].set);
	for (size_t i = 0; i < m->flying.count; i++)
		free(m->flying.list[i].set);
	free(m->frames);
	free(m->flying.list);
	free(m->flying.sets);
	free(m->items);
	free(m->full);
	free(m->list);
	free(m->set);
	free(m->other_set);
	free(m->without);
	free(m);
}

/* The target showed on `run`, which lacks some of the list: what both hold is the
 * list from now on. How likely is it that this was a look-alike? */
static int adopt(struct minimiser *m, const struct history_run *run)
{
	double held = (1 - m->belief.astray) * chance(m, run->set);
	double astray = m->belief.stray * (1 - held);
	int r;

	astray /= astray + held * rate(m, run->size);
	for (size_t w = 0; w < m->words; w++)
		m->set[w] = current(m)[w] & run->set[w];
	r = frame_push(m, m->set);
	if (r < 0)
		return r;
	m->belief.astray = astray;
	for (size_t i = 0; i < m->history.count; i++) {
		struct history_run *old = &m->history.runs[i];

		if (old->kind == RUN_DISOWNED && testset_within(m->set, old->set, m->words)) {
			old->kind = RUN_TARGET;
			m->disowned--;
		}
	}
	return refresh(m, run);
}

/* The current list stays silent: back to the one before. The runs that spoke for it
 * stay in the history as weak evidence, and every pass stays what it is. */
static int rollback(struct minimiser *m)
{
	free(m->frames[--m->n_frames].set);
	m->belief.astray = m->frames[m->n_frames - 1].astray;
	m->rollbacks++;
	for (size_t i = 0; i < m->history.count; i++) {
		struct history_run *run = &m->history.runs[i];

		if (run->kind == RUN_TARGET && !testset_within(current(m), run->set, m->words)) {
			run->kind = RUN_DISOWNED;
			m->disowned++;
		}
	}
	return refresh(m, NULL);
}

static void suspect(struct minimiser *m, const struct history_run *run)
{
	double share = fmin(lookalike * (1 + lookalike_step * (double)m->disowned), lookalike_most);
	double p, in, out;

	m->belief.stray = share * full_rate(m);
	m->belief.subsets.stray = m->belief.marginals.stray = m->belief.stray;
	if (m->n_frames == 1 || !testset_within(run->set, current(m), m->words))
		return;
	if (run->kind == RUN_TARGET && !testset_equal(run->set, current(m), m->words))
		return;
	p = fmax(rate(m, run->size), rate_kept * full_rate_low(m)) * chance(m, run->set);
	in = run->kind == RUN_PASS ? 1 - p : p;
	out = run->kind == RUN_PASS ? 1 - m->belief.stray : m->belief.stray;
	m->belief.astray =
		m->belief.astray * out / (m->belief.astray * out + (1 - m->belief.astray) * in);
	m->belief.astray = fmin(fmax(m->belief.astray, 1e-9), 1 - 1e-9);
}

static struct minimiser_count count_of(struct run_count count)
{
	return (struct minimiser_count){ count.runs, count.failed };
}

static void judge(struct minimiser *m)
{
	double sure = (1 - m->belief.astray) * all_needed(m);

	m->never_failed = m->targets == 0 && m->on_full.runs >= m->options.baseline_runs;
	m->proven = m->on_full.failed >= m->options.baseline_fails &&
		    m->on_current.failed >= proof_fails &&
		    1 - sure <= doubt_kept * (1 - m->options.confidence);
	if (m->proven)
		aftercheck_start(&m->aftercheck, current(m), m->items, m->n_items,
				 rate(m, m->n_candidates), count_of(m->on_current));
}

static int learn(struct minimiser *m, const struct history_run *run)
{
	int r = 0;

	m->targets += run->kind == RUN_TARGET;
	m->silence = run->kind == RUN_PASS ? m->silence + 1 : 0;
	if (testset_equal(run->set, m->full, m->words)) {
		m->on_full.runs++;
		m->on_full.failed += run->kind == RUN_TARGET;
	}
	suspect(m, run);
	if (run->kind == RUN_TARGET && !testset_within(current(m), run->set, m->words)) {
		r = adopt(m, run);
	} else {
		if (testset_equal(run->set, current(m), m->words)) {
			m->on_current.runs++;
			m->on_current.failed += run->kind == RUN_TARGET;
		}
		if (m->belief.exact)
			subsets_observe(&m->belief.subsets, run);
		else
			r = marginals_observe(&m->belief.marginals, run);
	}
	while (r == 0 && m->n_frames > 1 && m->belief.astray > astray_most)
		r = rollback(m);
	if (r == 0)
		judge(m);
	return r;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* As many tests as the current list has, but others as far as possible (at least
 * half of them, see wants_swap()): the `index`-th such list. */
static void swap_list(const struct minimiser *m, uint64_t index, testset_word *set)
{
	size_t outside = m->n_candidates - m->n_items, wanted = m->n_items;
	size_t keep = wanted > outside ? wanted - outside : 0;
	size_t left[2] = { m->n_items, outside }, take[2] = { keep, wanted - keep };

	memset(set, 0, m->words * sizeof(*set));
	for (size_t i = 0; i < m->options.n_tests; i++) {
		bool other = !testset_has(current(m), i);
		uint64_t dice;

		if (!testset_has(m->full, i))
			continue;
		if (i == m->options.victim) {
			testset_add(set, i);
			continue;
		}
		dice = mix(m->options.seed + index * 0x9e3779b97f4a7c15u + i);
		if (dice % left[other]-- < take[other]) {
			testset_add(set, i);
			take[other]--;
		}
	}
}

/* A list of that kind says nothing about which tests are needed, so it is kept
 * apart from the history. */
static bool is_swapped(struct minimiser *m, const testset_word *set)
{
	size_t outside = m->n_candidates - m->n_items, others = 0;

	if (m->belief.exact || m->n_items < count_matters_from || 2 * outside < m->n_items)
		return false;
	for (size_t w = 0; w < m->words; w++)
		others += (size_t)__builtin_popcountll(set[w] & ~current(m)[w]);
	if (testset_count(set, m->words) != m->n_items + has_victim(m) ||
	    others != (outside < m->n_items ? outside : m->n_items))
		return false;
	for (uint64_t i = 0; i < swap_lists; i++) {
		swap_list(m, i, m->other_set);
		if (testset_equal(set, m->other_set, m->words))
			return true;
	}
	return false;
}

void minimiser_forget(struct minimiser *m, uint64_t plan_id)
{
	for (size_t i = 0; i < m->flying.count; i++) {
		if (m->flying.list[i].id != plan_id)
			continue;
		free(m->flying.list[i].set);
		memmove(m->flying.list + i, m->flying.list + i + 1,
			(--m->flying.count - i) * sizeof(*m->flying.list));
		return;
	}
}

/* Fills m->set with the tests that started; false if it is not a list of tests. */
static bool read_list(struct minimiser *m, const struct minimiser_report *report, bool *ret_order)
{
	size_t started = report->started ? report->started : report->count;
	bool ascending = true;
	uint32_t before = 0;

	memset(m->set, 0, m->words * sizeof(*m->set));
	if (started > report->count)
		return false;
	for (size_t i = 0; i < report->count; i++) {
		if (report->tests[i] >= m->options.n_tests || testset_has(m->set, report->tests[i]))
			return false;
		testset_add(m->set, report->tests[i]);
		ascending = ascending && (i == 0 || before < report->tests[i]);
		before = report->tests[i];
	}
	for (size_t i = started; ascending && i < report->count; i++)
		testset_remove(m->set, report->tests[i]);
	for (size_t w = 0; w < m->words; w++)
		m->set[w] &= m->full[w];
	*ret_order = ascending;
	return true;
}

int minimiser_report(struct minimiser *m, const struct minimiser_report *report)
{
	bool target = report->outcome == MINIMISER_TARGET, ascending;
	int r;

	if (!read_list(m, report, &ascending))
		return -EINVAL;
	minimiser_forget(m, report->plan_id);
	m->reports++;
	/* A run that never came to its victim, and showed no target either, is no pass. */
	if (report->outcome == MINIMISER_NO_INFORMATION ||
	    (!target && has_victim(m) && !testset_has(m->set, m->options.victim))) {
		m->no_information++;
		return 0;
	}
	m->trials++;
	if (report->outcome == MINIMISER_OTHER) {
		m->censored++;
		return 0;
	}
	if (has_victim(m))
		testset_add(m->set, m->options.victim);
	if (!ascending) {
		aftercheck_order(&m->aftercheck, m->set, report->tests, report->count, target);
		return 0;
	}
	/* Once the list is proven, only runs of it or within it can unsettle it. */
	if (m->proven && !testset_within(m->set, current(m), m->words)) {
		aftercheck_others(&m->aftercheck, m->set, target);
		return 0;
	}
	if (is_swapped(m, m->set)) {
		m->on_swapped.runs++;
		m->on_swapped.failed += target;
		m->count_matters = m->on_swapped.failed >= swap_fails;
		return 0;
	}
	r = history_add(&m->history, m->set, target ? RUN_TARGET : RUN_PASS);
	if (r < 0)
		return r;
	return learn(m, &m->history.runs[m->history.count - 1]);
}

static size_t list_fill(const struct minimiser *m, const testset_word *set)
{
	size_t count = 0;

	for (size_t i = 0; i < m->options.n_tests; i++)
		if (testset_has(set, i))
			m->list[count++] = (uint32_t)i;
	return count;
}

static int flying_add(struct minimiser *m, const testset_word *set)
{
	testset_word *copy;

	if (m->flying.count == m->flying.room) {
		size_t room = m->flying.room ? m->flying.room * 2 : 16;
		struct flying *flying = realloc(m->flying.list, room * sizeof(*flying));
		const testset_word **sets;

		if (!flying)
			return -ENOMEM;
		m->flying.list = flying;
		sets = realloc(m->flying.sets, room * sizeof(*sets));
		if (!sets)
			return -ENOMEM;
		m->flying.sets = sets;
		m->flying.room = room;
	}
	copy = malloc(m->words * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, set, m->words * sizeof(*copy));
	m->flying.list[m->flying.count++] =
		(struct flying){ .id = ++m->flying.last_id, .set = copy };
	return 0;
}

/* Does it look as if most of a long list were needed? Then ask for other lists of
 * that length, as long as none has had a fair chance to fail. */
static bool wants_swap(const struct minimiser *m)
{
	return !m->belief.exact && m->n_items >= count_matters_from &&
	       2 * (m->n_candidates - m->n_items) >= m->n_items &&
	       (double)m->on_swapped.runs < 8 / full_rate(m) &&
	       needed_sum(m) >= count_matters_needed;
}

static enum minimiser_purpose plan_search(struct minimiser *m, testset_word *set)
{
	uint64_t salt = mix(m->options.seed * 0x9e3779b97f4a7c15u + m->reports) + m->flying.count;
	double all = all_needed(m), silent = (double)m->silence * full_rate(m);
	bool trusting = silent < silence_most / 2 || all > doubt_below || m->reports % 2;
	size_t pool;

	if (all > 0.5 && m->on_current.failed < proof_fails)
		return MINIMISER_PROOF;
	if (!m->belief.exact && silent > silence_most)
		return MINIMISER_PROOF;
	for (size_t i = 0; i < m->flying.count; i++)
		m->flying.sets[i] = m->flying.list[i].set;
	if (m->belief.exact)
		pool = subsets_pool(&m->belief.subsets, m->flying.sets, m->flying.count,
				    m->belief.astray, set);
	else
		pool = marginals_pool(&m->belief.marginals, m->flying.sets, m->flying.count,
				      m->belief.astray, salt, trusting, set);
	return pool == 0 || (pool == 1 && all > 0.5) ? MINIMISER_PROOF : MINIMISER_SEARCH;
}

int minimiser_next(struct minimiser *m, struct minimiser_plan *ret)
{
	struct minimiser_plan plan = { .tests = m->list };
	int r;

	if (minimiser_done(m))
		return 0;
	memcpy(m->set, current(m), m->words * sizeof(*m->set));
	if (m->on_full.failed < m->options.baseline_fails) {
		plan.purpose = MINIMISER_BASELINE;
		memcpy(m->set, m->full, m->words * sizeof(*m->set));
	} else if (m->proven && aftercheck_wants_others(&m->aftercheck, m->options.flags)) {
		plan.purpose = MINIMISER_OTHERS;
		aftercheck_plan_others(&m->aftercheck, mix(m->options.seed + m->reports), m->set);
	} else if (m->proven) {
		plan.purpose = MINIMISER_ORDER;
		plan.count = list_fill(m, m->set);
		aftercheck_plan_order(&m->aftercheck, mix(m->options.seed + m->reports), m->list,
				      plan.count);
	} else if (wants_swap(m)) {
		plan.purpose = MINIMISER_OTHERS;
		swap_list(m, (m->on_swapped.runs + m->flying.count) % swap_lists, m->set);
	} else {
		plan.purpose = plan_search(m, m->set);
	}
	if (plan.count == 0)
		plan.count = list_fill(m, m->set);
	r = flying_add(m, m->set);
	if (r < 0)
		return r;
	plan.id = m->flying.last_id;
	*ret = plan;
	return 1;
}

bool minimiser_done(const struct minimiser *m)
{
	if (m->never_failed || m->count_matters)
		return true;
	return m->proven && !aftercheck_wants_others(&m->aftercheck, m->options.flags) &&
	       !aftercheck_wants_order(&m->aftercheck, m->options.flags);
}

static enum minimiser_verdict verdict(const struct minimiser *m)
{
	if (m->never_failed)
		return MINIMISER_NEVER_FAILED;
	if (m->count_matters || (m->proven && m->aftercheck.others == MINIMISER_OTHERS_ANY))
		return MINIMISER_COUNT_MATTERS;
	return m->proven ? MINIMISER_MINIMAL : MINIMISER_RUNNING;
}

/* What the search still costs by its entropy, the proof by the passes it lacks. */
static double trials_to_go(const struct minimiser *m)
{
	double p = rate(m, m->n_items), doubt = 1 - m->options.confidence, entropy = 0, go = 0;
	double all = fmax(all_needed(m), 1e-9), k = fmax(needed_sum(m), 1), lacking, most;

	if (minimiser_done(m) || m->proven)
		return 0;
	if (m->on_full.failed < m->options.baseline_fails)
		go += (m->options.baseline_fails - m->on_full.failed) / full_rate(m);
	if (m->on_current.failed < proof_fails)
		go += (proof_fails - m->on_current.failed) / p;
	for (size_t i = 0; i < m->n_items; i++)
		entropy += rate_entropy(needed_at(m, i));
	most = log(10 * k / doubt);
	lacking = log(fmax(1 - all, 1e-9) / all) - log(doubt);
	lacking = fmin(fmax(lacking, 0), most);
	return go + entropy / rate_information(p, rate_best_q(p)) + k * lacking / -log1p(-p);
}

void minimiser_state(const struct minimiser *m, struct minimiser_state *ret)
{
	*ret = (struct minimiser_state){
		.verdict = verdict(m),
		.left = m->n_items,
		.all_needed = (1 - m->belief.astray) * all_needed(m),
		.rate = rate(m, m->n_items),
		.trials = m->trials,
		.censored = m->censored,
		.no_information = m->no_information,
		.rollbacks = m->rollbacks,
		.trials_to_go = trials_to_go(m),
	};
	if (m->on_full.failed < m->options.baseline_fails)
		ret->phase = MINIMISER_BASELINE;
	else if (m->proven)
		ret->phase = aftercheck_wants_others(&m->aftercheck, m->options.flags)
				     ? MINIMISER_OTHERS
				     : MINIMISER_ORDER;
	else
		ret->phase = ret->all_needed > 0.5 ? MINIMISER_PROOF : MINIMISER_SEARCH;
}

double minimiser_needed(const struct minimiser *m, size_t test)
{
	if (test == m->options.victim)
		return 1;
	for (size_t i = 0; i < m->n_items; i++)
		if (m->items[i] == test)
			return needed_at(m, i);
	return 0;
}

int minimiser_result(struct minimiser *m, struct minimiser_result *ret)
{
	const testset_word *best = current(m);
	struct minimiser_result result = {
		.verdict = verdict(m),
		.others = m->proven ? m->aftercheck.others : MINIMISER_OTHERS_UNKNOWN,
		.confidence = (1 - m->belief.astray) * all_needed(m),
		.trials = m->trials,
		.tests = m->list,
		.without = m->without,
		.full = count_of(m->on_full),
		.reversed = m->aftercheck.reversed,
		.shuffled = m->aftercheck.shuffled,
		.others_runs = m->aftercheck.others_runs,
	};

	/* A list made of two runs' common part may never have failed itself. */
	for (size_t f = m->n_frames; f-- > 0;) {
		best = m->frames[f].set;
		if (history_exact(&m->history, best).failed)
			break;
	}
	if (best != current(m))
		result.confidence = 0;
	result.minimal = count_of(history_exact(&m->history, best));
	result.count = list_fill(m, best);
	for (size_t i = 0; i < result.count; i++) {
		struct minimiser_without *row = &m->without[result.n_without];

		if (m->list[i] == m->options.victim)
			continue;
		memcpy(m->set, best, m->words * sizeof(*m->set));
		testset_remove(m->set, m->list[i]);
		row->test = m->list[i];
		row->exact = count_of(history_exact(&m->history, m->set));
		row->wider = count_of(history_lacking(&m->history, best, m->list[i]));
		result.n_without++;
	}
	*ret = result;
	return 0;
}
