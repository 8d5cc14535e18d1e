/*
 * What came of a bisection: the commit, how sure that is, and what was tested.
 */
#include <math.h>
#include <string.h>

#include "base/cstr.h"
#include "search/stats/rate.h"
#include "studies/bisect/bisect_inside.h"
#include "studies/series/series_findings.h"

#define HASH_SHOWN 12

/* While nothing is sure, commits likelier than this are told. */
#define SUSPECT_MIN 0.02

static const enum bisected_verdict verdicts[] = {
	[BISECTION_SEARCHING] = BISECTED_SEARCHING, [BISECTION_FOUND] = BISECTED_FOUND,
	[BISECTION_RANGE] = BISECTED_RANGE,	    [BISECTION_BEFORE] = BISECTED_BEFORE,
	[BISECTION_NEVER] = BISECTED_NEVER,
};

static bool is_suspect(struct bisect *b, const struct bisection_state *state, size_t commit)
{
	switch (state->verdict) {
	case BISECTION_FOUND:
	case BISECTION_BEFORE:
		return commit == state->commit;
	case BISECTION_RANGE:
		return bisection_in_range(b->bisection, commit);
	case BISECTION_SEARCHING:
		return bisection_probability(b->bisection, commit) >= SUSPECT_MIN;
	default:
		return false;
	}
}

static int add_commits(struct bisect *b, const struct bisection_state *state,
		       struct bisect_result *ret, struct err *err)
{
	AUTO(mem_freep) struct commit_words *words = NULL;
	VEC(size_t) numbers = { 0 };
	int r;

	for (size_t c = 0; c < b->history->commits.count; c++)
		if (b->rows[c].trials > 0 || b->rows[c].untested || is_suspect(b, state, c))
			VEC_PUSH(&numbers, c);
	words = mem_alloc((numbers.count + 1) * sizeof(words[0]));
	r = history_words(b->history, numbers.items, numbers.count, words, err);
	for (size_t i = 0; i < numbers.count && r == 0; i++) {
		size_t c = numbers.items[i];
		const struct commit_row *row = &b->rows[c];
		struct bisected_commit commit = {
			.hash = mem_strdup(b->history->commits.items[c]),
			.author = words[i].author,
			.date = words[i].date,
			.subject = words[i].subject,
			.number = c,
			.probability = bisection_probability(b->bisection, c),
			.rate = rate_wilson(row->trials, row->failed, RATE_CONFIDENCE),
			.suspect = is_suspect(b, state, c),
			.untested = cstr_dup(row->untested),
		};

		VEC_PUSH(&ret->commits, commit);
	}
	VEC_DEINIT(&numbers);
	return r;
}

/* How often it failed where it is there, whatever the prior said about it. */
static void add_rate(const struct bisect *b, const struct bisection_state *state,
		     struct bisect_result *ret)
{
	uint64_t trials = 0, failed = 0;

	ret->rate = state->rate;
	ret->rate_low = state->rate_low;
	ret->rate_high = state->rate_high;
	ret->stated_rate = b->request->rate;
	ret->rate_series = b->request->seen_series;
	if (state->verdict != BISECTION_FOUND && state->verdict != BISECTION_BEFORE)
		return;
	for (size_t c = 0; c < b->history->commits.count; c++) {
		if (!lineage_has(b->history->lineage, c, state->commit))
			continue;
		trials += b->rows[c].trials;
		failed += b->rows[c].failed;
	}
	ret->there = rate_wilson(trials, failed, RATE_CONFIDENCE);
}

/* git bisect halves what is left, and each of its steps needs so many clean runs to be believed. */
static void compare_with_git(const struct bisection_state *state, struct bisect_result *ret)
{
	if (state->failed == 0)
		return;
	ret->git_steps = (uint64_t)ceil(log2((double)ret->total));
	ret->git_repeats = rate_clean_runs(state->rate, ret->wanted);
}

int bisect_summarise(struct bisect *b, struct bisect_result *ret, struct err *err)
{
	const struct commit_history *h = b->history;
	const struct bisect_request *request = b->request;
	struct bisection_state state;
	int r;

	bisection_state(b->bisection, &state);
	ret->verdict = verdicts[state.verdict];
	ret->good = mem_strdup(h->commits.items[0]);
	ret->bad = mem_strdup(h->commits.items[h->commits.count - 1]);
	ret->total = h->commits.count - 1;
	ret->merges = h->merges;
	ret->first_parent = request->first_parent;
	ret->probability = state.at_rate;
	ret->with_rate_doubt = state.probability;
	ret->wanted = request->confidence;
	ret->before = state.before;
	ret->never = state.never;
	add_rate(b, &state, ret);
	ret->to_go = state.to_go;
	ret->trials = state.trials;
	ret->failed = state.failed;
	ret->no_information = b->no_information;
	ret->builds = b->builds;
	if (state.failed == 0)
		ret->clean_bound =
			rate_upper_bound_clean(b->rows[ret->total].trials, request->confidence);
	compare_with_git(&state, ret);
	if (b->target.known)
		memcpy(ret->target, b->target.signature.id, sizeof(ret->target));
	if (request->build)
		ret->builds_dir = mem_printf("%s/builds", b->dir);
	ret->case_dir = case_dir(b->cs);
	ret->program = request->program;
	/* As many as were in flight at once. */
	ret->jobs = b->flights.count > 0 ? (unsigned int)b->flights.count : request->jobs;
	r = add_commits(b, &state, ret, err);
	return r < 0 ? r
		     : findings_signatures(
			       &(struct findings_source){ .tally = &b->runner.tally,
							  .cs = b->cs,
							  .series = b->runner.series,
							  .readings = runner_readings(&b->runner) },
			       &ret->signatures, err);
}

static struct said_value short_hash(const char *hash)
{
	return said_take(mem_printf("%.*s", HASH_SHOWN, hash));
}

static void tell(const struct bisect_result *result, struct said *ret)
{
	const struct bisected_commit *last = NULL;
	struct said what = { 0 };
	size_t suspects = 0;

	VEC_FOREACH (&result->commits, commit)
		if (commit->suspect) {
			last = commit;
			suspects++;
		}
	if (result->verdict == BISECTED_NEVER || !last)
		SAY(&what, "bisected:never", short_hash(result->bad));
	else if (result->verdict == BISECTED_BEFORE)
		SAY(&what, "bisected:before", short_hash(result->good));
	else if (result->verdict == BISECTED_FOUND)
		SAY(&what, "bisected:found", short_hash(last->hash), said_text(last->subject));
	else
		SAY(&what, "bisected:one-of", said_number(suspects), short_hash(last->hash),
		    said_text(last->subject));
	SAY(ret, "bisected", said_part(&what), said_real(result->probability * 100),
	    said_number(result->trials), said_number(result->total));
}

int bisect_remember(struct bisect *b, const struct bisect_result *result, struct err *err)
{
	AUTO(decision_list_deinit) struct decision_list decisions = { 0 };
	AUTO(said_deinit) struct said said = { 0 };
	const struct said *last = NULL;
	int r;

	if (result->verdict == BISECTED_SEARCHING)
		return 0;
	tell(result, &said);
	r = case_decisions(b->cs, &decisions, err);
	VEC_FOREACH (&decisions.list, d)
		if (strcmp(d->stage, "bisect") == 0)
			last = &d->said;
	/* The same command has its answer, and says it again. */
	if (r < 0 || (last && said_same(last, &said)))
		return r;
	return case_add_decision(b->cs, "bisect", &said, err);
}
