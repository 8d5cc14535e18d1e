#include "engine/reduce/minimiser.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/reduce/marginals.h"
#include "engine/reduce/subsets.h"

double TUNE[8] = { 3, 3, 0.01, 0.97, 0.5, 10, 3, 0 };
#define T_BASE TUNE[0]
#define T_VER TUNE[1]
#define T_EPS TUNE[2]
#define T_ROLL TUNE[3]
#define T_VERAT TUNE[4]
#define T_EXACT TUNE[5]

struct frame {
	testset_word *set;
	double astray; /* belief, when it was left, that it lacks a needed test */
};

struct flying {
	uint64_t id;
	testset_word *set;
};

struct minimiser {
	struct minimiser_options options;
	size_t words, n_candidates;
	struct history history;
	testset_word *full;
	struct frame *frames; /* lists adopted, the full one first, the current one last */
	size_t n_frames, room_frames;
	uint32_t *items; /* the current list without the victim */
	size_t n_items;
	bool exact;
	struct marginals marginals;
	struct subsets subsets;
	double stray;  /* rate of look-alikes */
	double astray; /* that the current list lacks a needed test */
	struct run_count on_full, on_current;
	size_t reports, censored, no_information, rollbacks;
	struct flying *flying;
	size_t n_flying, room_flying;
	uint64_t next_id;
	bool never_failed, proven;
	uint32_t *list;
	testset_word *set;
	struct minimiser_without *without;
};

static testset_word *current(const struct minimiser *m)
{
	return m->frames[m->n_frames - 1].set;
}

static void rebuild(struct minimiser *m)
{
	const testset_word *set = current(m);

	m->n_items = 0;
	for (size_t i = 0; i < m->options.n_tests; i++)
		if (i != m->options.victim && testset_has(set, i))
			m->items[m->n_items++] = (uint32_t)i;
	m->exact = m->n_items <= (size_t)T_EXACT;
	if (m->exact)
		subsets_rebuild(&m->subsets, &m->history, m->items, m->n_items, m->n_candidates);
	else
		marginals_rebuild(&m->marginals, &m->history, m->items, m->n_items);
	m->on_current = history_exact(&m->history, set);
}

static double chance(const struct minimiser *m, const testset_word *set)
{
	return m->exact ? subsets_chance(&m->subsets, set) : marginals_chance(&m->marginals, set);
}

static double rate(const struct minimiser *m, size_t size)
{
	return m->exact ? subsets_rate(&m->subsets, size) : marginals_rate(&m->marginals, size);
}

static int frame_push(struct minimiser *m, const testset_word *set)
{
	testset_word *copy;

	if (m->n_frames == m->room_frames) {
		size_t room = m->room_frames ? m->room_frames * 2 : 16;
		struct frame *frames = realloc(m->frames, room * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		m->frames = frames;
		m->room_frames = room;
	}
	copy = malloc(m->words * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, set, m->words * sizeof(*copy));
	if (m->n_frames)
		m->frames[m->n_frames - 1].astray = m->astray;
	m->frames[m->n_frames++] = (struct frame){ .set = copy };
	return 0;
}

void minimiser_free(struct minimiser *m)
{
	if (!m)
		return;
	history_deinit(&m->history);
	marginals_deinit(&m->marginals);
	subsets_deinit(&m->subsets);
	for (size_t i = 0; i < m->n_frames; i++)
		free(m->frames[i].set);
	for (size_t i = 0; i < m->n_flying; i++)
		free(m->flying[i].set);
	free(m->frames);
	free(m->flying);
	free(m->items);
	free(m->full);
	free(m->list);
	free(m->set);
	free(m->without);
	free(m);
}

int minimiser_new(const struct minimiser_options *options, struct minimiser **ret)
{
	size_t n = options->n_tests;
	struct minimiser *m = calloc(1, sizeof(*m));
	int r;

	m->options = *options;
	if (m->options.confidence == 0)
		m->options.confidence = 0.99;
	m->words = testset_words(n);
	history_init(&m->history, m->words);
	m->full = calloc(m->words, sizeof(*m->full));
	m->set = calloc(m->words, sizeof(*m->set));
	m->items = calloc(n + 1, sizeof(*m->items));
	m->list = calloc(n + 1, sizeof(*m->list));
	m->without = calloc(n + 1, sizeof(*m->without));
	m->next_id = 1;
	for (size_t i = 0; i < n; i++)
		if (options->victim == MINIMISER_NO_VICTIM || i <= options->victim)
			testset_add(m->full, i);
	r = marginals_init(&m->marginals, n);
	r = subsets_init(&m->subsets, n);
	r = frame_push(m, m->full);
	(void)r;
	m->n_candidates = testset_count(m->full, m->words) - (options->victim != MINIMISER_NO_VICTIM);
	rebuild(m);
	*ret = m;
	return 0;
}

static double all_needed(const struct minimiser *m)
{
	double all = 1;

	if (m->exact)
		return subsets_all_needed(&m->subsets);
	for (size_t i = 0; i < m->n_items; i++)
		all *= m->marginals.odds[i] / (1 + m->marginals.odds[i]);
	return all;
}

static void adopt(struct minimiser *m, const struct run *run)
{
	double q = chance(m, run->set), stray;
	double in = (1 - m->astray) * q;

	stray = m->stray * (1 - in) / (m->stray * (1 - in) + in * rate(m, run->size));
	for (size_t w = 0; w < m->words; w++)
		m->set[w] = current(m)[w] & run->set[w];
	frame_push(m, m->set);
	m->astray = stray;
	for (size_t i = 0; i < m->history.count; i++) {
		struct run *r = &m->history.runs[i];

		if (r->kind == RUN_DISOWNED && testset_within(current(m), r->set, m->words))
			r->kind = RUN_TARGET;
	}
	rebuild(m);
}

static void rollback(struct minimiser *m)
{
	free(m->frames[--m->n_frames].set);
	m->astray = m->frames[m->n_frames - 1].astray;
	m->rollbacks++;
	for (size_t i = 0; i < m->history.count; i++) {
		struct run *r = &m->history.runs[i];

		if (r->kind == RUN_TARGET && !testset_within(current(m), r->set, m->words))
			r->kind = RUN_DISOWNED;
	}
	rebuild(m);
}

static void learn(struct minimiser *m, const struct run *run)
{
	const testset_word *set = current(m);
	bool same = testset_equal(run->set, set, m->words);

	if (testset_equal(run->set, m->full, m->words)) {
		m->on_full.runs++;
		m->on_full.failed += run->kind != RUN_PASS;
	}
	m->stray = T_EPS * (m->on_full.failed + 0.5) / (m->on_full.runs + 1);
	m->subsets.stray = m->marginals.stray = m->stray;
	if (run->kind == RUN_TARGET && !testset_within(set, run->set, m->words)) {
		adopt(m, run);
	} else {
		if (m->n_frames > 1 && testset_within(run->set, set, m->words)) {
			double p = rate(m, run->size) * chance(m, run->set);
			double in = run->kind == RUN_PASS ? 1 - p : p;
			double out = run->kind == RUN_PASS ? 1 - m->stray : m->stray;

			m->astray = m->astray * out / (m->astray * out + (1 - m->astray) * in);
		}
		if (same) {
			m->on_current.runs++;
			m->on_current.failed += run->kind != RUN_PASS;
		}
		if (m->exact)
			subsets_observe(&m->subsets, run);
		else
			marginals_observe(&m->marginals, run);
	}
	while (m->n_frames > 1 && m->astray > T_ROLL)
		rollback(m);
	if (m->on_full.failed >= T_BASE)
		m->proven = all_needed(m) * (1 - m->astray) >= m->options.confidence &&
			    m->on_current.failed >= T_VER;
}

int minimiser_report(struct minimiser *m, const struct minimiser_report *report)
{
	for (size_t i = 0; i < m->n_flying; i++) {
		if (m->flying[i].id != report->plan_id)
			continue;
		free(m->flying[i].set);
		m->flying[i] = m->flying[--m->n_flying];
		break;
	}
	m->reports++;
	if (report->outcome == MINIMISER_NO_INFORMATION) {
		m->no_information++;
		return 0;
	}
	if (report->outcome == MINIMISER_OTHER) {
		m->censored++;
		return 0;
	}
	memset(m->set, 0, m->words * sizeof(*m->set));
	for (size_t i = 0; i < report->count; i++)
		testset_add(m->set, report->tests[i]);
	history_add(&m->history, m->set,
		    report->outcome == MINIMISER_TARGET ? RUN_TARGET : RUN_PASS);
	learn(m, &m->history.runs[m->history.count - 1]);
	return 0;
}

int minimiser_next(struct minimiser *m, struct minimiser_plan *ret)
{
	const testset_word *flying[256];
	double all;

	if (m->proven || m->never_failed)
		return 0;
	*ret = (struct minimiser_plan){ .tests = m->list };
	for (size_t i = 0; i < m->n_flying; i++)
		flying[i] = m->flying[i].set;
	memcpy(m->set, current(m), m->words * sizeof(*m->set));
	all = all_needed(m);
	if (m->on_full.failed < T_BASE) {
		ret->purpose = MINIMISER_BASELINE;
	} else if (all > T_VERAT && m->on_current.failed < T_VER) {
		ret->purpose = MINIMISER_PROOF;
	} else {
		ret->purpose = MINIMISER_SEARCH;
		if (m->exact)
			subsets_pool(&m->subsets, flying, m->n_flying, m->astray, m->set);
		else
			marginals_pool(&m->marginals, flying, m->n_flying, m->astray,
				       m->options.seed * 1000003 + m->reports * 7919 + m->n_flying,
				       m->set);
	}
	for (size_t i = 0; i < m->options.n_tests; i++)
		if (testset_has(m->set, i))
			m->list[ret->count++] = (uint32_t)i;
	return 1;
}

bool minimiser_done(const struct minimiser *m)
{
	return m->proven;
}

void minimiser_state(const struct minimiser *m, struct minimiser_state *ret)
{
	*ret = (struct minimiser_state){ .left = m->n_items,
					 .all_needed = all_needed(m),
					 .rollbacks = m->rollbacks,
					 .trials = m->reports };
	ret->rate = rate(m, m->n_items);
}

int minimiser_result(struct minimiser *m, struct minimiser_result *ret)
{
	*ret = (struct minimiser_result){ .tests = m->list };
	for (size_t i = 0; i < m->options.n_tests; i++)
		if (testset_has(current(m), i))
			m->list[ret->count++] = (uint32_t)i;
	return 0;
}
