#include "engine/series/minimize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "engine/reduce/minimiser.h"
#include "engine/series/findings.h"
#include "engine/series/listtext.h"
#include "engine/series/repro.h"
#include "engine/series/target.h"
#include "engine/stats/rate.h"

/* After so many runs in a row that said nothing, another one is taken for a pass: a list that
 * always dies in another way, or cannot be run at all, does not show the target. */
#define BLIND_MAX 20

/* Exit status by which a command says 'no information', as for git bisect run. */
#define STATUS_SKIP 125

/* A list in a slot. */
struct flight {
	uint64_t position; /* 0: free */
	uint64_t plan;	   /* 0: not the minimiser's */
	enum minimiser_purpose purpose;
	uint32_t *tests;
	size_t count;
};

/* A run of a list, as it ended, or as the case tells it. */
struct ended_run {
	const uint32_t *tests;
	size_t count;
	uint64_t plan;
	enum minimiser_purpose purpose;
	uint64_t started;
	bool complete, told;
	const char *signatures;
};

/* A run from before the target was known. */
struct early_run {
	uint64_t started;
	bool complete, told;
	char *signatures;
};

struct minimize {
	const struct minimize_request *request;
	const struct framework *framework;
	struct case_store *cs;
	struct runner runner;
	double started_s;

	struct target target;
	size_t victim; /* MINIMISER_NO_VICTIM when there is none */
	bool stops;    /* the victim's pass ends a run: the target is the victim's failure */
	VEC(struct early_run) early;
	struct minimiser *minimiser; /* NULL while the target is not known */
	uint64_t seed;
	bool never_failed;
	unsigned int blind;	 /* runs in a row that said nothing */
	const char *blind_cause; /* why the latest of them did not */

	VEC(struct flight) flights;
	uint64_t next_position;
	uint32_t *full; /* the full list: up to the victim when that is known */
	size_t full_count;

	/* Between record() and ended(). */
	struct strbuf items, signatures;
	struct list_run list_run;

	size_t written; /* length of the list in the file; 0 when there is none yet */
	int failed;	/* an error that a callback could not return */
	struct err err;
};

static void minimize_deinit(struct minimize *m)
{
	VEC_FOREACH (&m->early, run)
		mem_free(run->signatures);
	VEC_DEINIT(&m->early);
	VEC_FOREACH (&m->flights, flight)
		mem_free(flight->tests);
	VEC_DEINIT(&m->flights);
	minimiser_free(m->minimiser);
	target_deinit(&m->target);
	strbuf_deinit(&m->items);
	strbuf_deinit(&m->signatures);
	mem_free(m->full);
	runner_deinit(&m->runner);
}

/* ---- what a run says ---- */

/* The case has what was seen, this is what it means; so a resumed search means the same by it. */
static int judge(struct minimize *m, const struct ended_run *run, enum minimiser_outcome *ret,
		 struct err *err)
{
	bool shown = false;
	int r = 0;

	if (run->told)
		r = target_shown(&m->target, m->cs, run->signatures, &shown, err);
	if (r < 0)
		return r;
	if (!run->told)
		*ret = MINIMISER_NO_INFORMATION;
	else if (shown)
		*ret = MINIMISER_TARGET;
	else if (run->complete)
		*ret = MINIMISER_PASS;
	else
		*ret = run->signatures[0] != '\0' ? MINIMISER_OTHER : MINIMISER_NO_INFORMATION;
	return 0;
}

static int blind_baseline(struct minimize *m, struct err *err)
{
	const struct framework_ops *ops = m->framework->ops;

	(void)err_set(err, -ENODATA, "the last %u runs of the full list said nothing about it: %s",
		      BLIND_MAX, m->blind_cause ? m->blind_cause : "none reached its end");
	return err_remedy(err,
			  "try the command with all its %s by itself, or --keep all and look "
			  "at the output in '%s/trials'",
			  ops->nouns, case_dir(m->cs));
}

static int tell(struct minimize *m, const struct ended_run *run, struct err *err)
{
	struct minimiser_report report = { .plan_id = run->plan,
					   .tests = run->tests,
					   .count = run->count,
					   .started = run->started };
	int r = judge(m, run, &report.outcome, err);

	if (r < 0)
		return r;
	m->blind = report.outcome == MINIMISER_TARGET || report.outcome == MINIMISER_PASS
			   ? 0
			   : m->blind + 1;
	if (m->blind > BLIND_MAX && run->purpose == MINIMISER_BASELINE)
		return blind_baseline(m, err);
	if (m->blind > BLIND_MAX) {
		report.outcome = MINIMISER_PASS;
		report.started = 0;
	}
	/* A failure of another kind is counted as such, however far the run came. */
	if (report.outcome == MINIMISER_OTHER)
		report.started = 0;
	r = minimiser_report(m->minimiser, &report);
	if (r < 0)
		return err_errno(err, r, "cannot use a list of the case");
	return 0;
}

/* ---- before the target is known ---- */

static void set_full(struct minimize *m)
{
	size_t count = m->framework->items.count;

	m->full_count = m->victim == MINIMISER_NO_VICTIM ? count : m->victim + 1;
	if (!m->full)
		m->full = mem_alloc(count * sizeof(m->full[0]));
	for (size_t i = 0; i < m->full_count; i++)
		m->full[i] = (uint32_t)i;
}

static int start_search(struct minimize *m, struct err *err)
{
	const struct minimize_request *request = m->request;
	unsigned int flags = m->framework->ops->flags;
	const char *test = m->target.signature.test;
	size_t early_count = m->full_count;
	int r;

	if ((flags & FRAMEWORK_TESTS) && m->victim == MINIMISER_NO_VICTIM && test) {
		size_t victim = test_names_find(request->settings->tests, test);

		if (victim != TEST_NAMES_NONE)
			m->victim = victim;
	}
	m->stops = m->victim != MINIMISER_NO_VICTIM && test &&
		   strcmp(test, request->settings->tests->names.items[m->victim]) == 0;
	r = minimiser_new(
		&(struct minimiser_options){
			.n_tests = m->framework->items.count,
			.victim = m->victim,
			.confidence = request->confidence,
			.seed = m->seed,
			.flags = MINIMISER_CHECK_OTHERS |
				 ((flags & FRAMEWORK_ORDERED) && (flags & FRAMEWORK_TESTS)
					  ? MINIMISER_CHECK_ORDER
					  : 0),
			.baseline_runs = (unsigned int)request->baseline,
		},
		&m->minimiser);
	if (r < 0)
		return err_errno(err, r, "cannot start the search");
	m->blind = 0;
	VEC_FOREACH (&m->early, run) {
		if (r == 0)
			r = tell(m,
				 &(struct ended_run){ .tests = m->full,
						      .count = early_count,
						      .purpose = MINIMISER_BASELINE,
						      .started = run->started,
						      .complete = run->complete,
						      .told = run->told,
						      .signatures = run->signatures },
				 err);
	}
	set_full(m);
	return r;
}

static int look_for_target(struct minimize *m, const struct ended_run *run, struct err *err)
{
	int r = 0;

	m->target.progress |= run->started > 0;
	VEC_PUSH(&m->early, ((struct early_run){ .started = run->started,
						 .complete = run->complete,
						 .told = run->told,
						 .signatures = mem_strdup(run->signatures) }));
	m->blind = run->told && (run->complete || run->signatures[0] != '\0') ? 0 : m->blind + 1;
	if (m->blind > BLIND_MAX)
		return blind_baseline(m, err);
	if (run->told)
		r = target_note(&m->target, m->cs, run->signatures, err);
	if (r == 0)
		r = target_choose(&m->target, m->cs, m->target.runs >= m->request->baseline, err);
	if (r < 0)
		return r;
	m->never_failed = !m->target.known && m->target.runs >= m->request->baseline;
	return m->target.known ? start_search(m, err) : 0;
}

static int digest(struct minimize *m, const struct ended_run *run, struct err *err)
{
	return m->minimiser ? tell(m, run, err) : look_for_target(m, run, err);
}

/* ---- the file with the best list so far ---- */

static char *file_name(const struct minimize *m)
{
	return mem_printf("minimal-%lld.%s", (long long)m->runner.series.value,
			  m->framework->ops == &framework_ctest ? "sh" : "txt");
}

static int write_best(struct minimize *m, const struct framework_list *list, struct err *err)
{
	AUTO(fd_closep) int dir = open(case_dir(m->cs), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(strbuf_deinit) struct strbuf content = { 0 };
	AUTO(mem_freep) char *name = file_name(m);

	if (dir < 0)
		return err_errno(err, -errno, "cannot open '%s'", case_dir(m->cs));
	framework_file(m->framework, list, &content);
	return file_write_at(dir, name, strbuf_str(&content), content.len, err);
}

/* Whoever kills redhand finds a list that is as good as it was then. */
static int keep_best(struct minimize *m, struct err *err)
{
	struct minimiser_result result;
	struct minimiser_state state;
	int r;

	if (!m->minimiser)
		return 0;
	minimiser_state(m->minimiser, &state);
	if (state.left == m->written)
		return 0;
	r = minimiser_result(m->minimiser, &result);
	if (r < 0)
		return err_errno(err, r, "cannot tell the best list");
	m->written = state.left;
	return write_best(
		m, &(struct framework_list){ .items = result.tests, .count = result.count }, err);
}

/* ---- what the runner asks ---- */

static struct flight *flight_of(struct minimize *m, uint64_t position)
{
	VEC_FOREACH (&m->flights, flight)
		if (flight->position == position)
			return flight;
	return NULL;
}

static uint64_t flying(const struct minimize *m)
{
	uint64_t count = 0;

	VEC_FOREACH (&m->flights, flight)
		count += flight->position != 0;
	return count;
}

static void take_off(struct minimize *m, const struct minimiser_plan *plan, struct run *ret)
{
	struct flight *flight = flight_of(m, 0);

	if (!flight) {
		VEC_PUSH(&m->flights, ((struct flight){ 0 }));
		flight = &m->flights.items[m->flights.count - 1];
	}
	*flight = (struct flight){ .position = m->next_position++,
				   .plan = plan->id,
				   .purpose = plan->purpose,
				   .tests = mem_alloc(plan->count * sizeof(plan->tests[0])),
				   .count = plan->count };
	memcpy(flight->tests, plan->tests, plan->count * sizeof(plan->tests[0]));
	*ret = (struct run){ .position = flight->position };
}

static int minimize_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct minimize *m = ctx;
	struct minimiser_plan plan = { .purpose = MINIMISER_BASELINE,
				       .tests = m->full,
				       .count = m->full_count };
	int r = 1;

	if (m->failed < 0) {
		*err = m->err;
		return m->failed;
	}
	if (m->minimiser)
		r = minimiser_next(m->minimiser, &plan);
	else if (m->target.runs + flying(m) >= m->request->baseline)
		r = 0;
	if (r < 0)
		return err_errno(err, r, "cannot plan the next run");
	if (r > 0)
		take_off(m, &plan, ret);
	return r;
}

static void minimize_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct minimize *m = ctx;
	const struct flight *flight = flight_of(m, run->position);
	const struct trial_settings *settings = m->request->settings;
	AUTO(mem_freep)
	char *dir =
		mem_printf("%s/%llu", settings->trials_path, (unsigned long long)job->number.value);

	for (size_t i = 0; i < m->request->slot_env->count; i++)
		strv_take(&job->env,
			  trial_substitute(m->request->slot_env->items[i], job->slot, job->number));
	m->framework->ops->build(m->framework,
				 &(struct framework_list){ .items = flight->tests,
							   .count = flight->count },
				 dir, job);
	job->wanted.marks = (m->framework->ops->flags & FRAMEWORK_MARKS) != 0;
	if (!(m->framework->ops->flags & FRAMEWORK_TESTS))
		return;
	for (size_t i = 0; i < flight->count; i++)
		VEC_PUSH(&job->wanted.tests, flight->tests[i]);
	if (m->stops)
		job->wanted.stop_after = (uint32_t)m->victim + 1;
}

/* Why this run says nothing about its list; NULL when it does. */
static const char *useless(const struct minimize *m, const struct trial_end *end)
{
	const struct framework_ops *ops = m->framework->ops;

	if (end->exit_status == STATUS_SKIP)
		return "the command ended with status 125, which means just that";
	if (end->strayed)
		return "other tests started than those that were asked for";
	if (ops->no_information && ops->no_information(end))
		return "the framework reported wrong usage or a broken set-up";
	if ((ops->flags & FRAMEWORK_MARKS) && end->started == 0 &&
	    (end->timed_out || end->signal == 0))
		return "no test started";
	return NULL;
}

/* Did every test of the list come to its end? Where tests are not told, an end without any failure
 * has to do; what is shrunk otherwise only has to end by itself. */
static bool complete(const struct minimize *m, const struct trial_record *record, size_t count)
{
	const struct trial_end *end = record->end;

	if (end->stopped || end->came_through)
		return true;
	if (trial_end_cut_short(end))
		return false;
	if (!(m->framework->ops->flags & FRAMEWORK_TESTS))
		return true;
	return end->started > 0 ? end->started == count : record->signatures->list.count == 0;
}

static void minimize_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct minimize *m = ctx;
	const struct flight *flight = flight_of(m, run->position);
	const char *cause = useless(m, record->end);

	if (cause)
		m->blind_cause = cause;
	strbuf_clear(&m->items);
	strbuf_clear(&m->signatures);
	listtext_write(flight->tests, flight->count, &m->items);
	VEC_FOREACH (&record->signatures->list, s)
		strbuf_addf(&m->signatures, "%s%s", m->signatures.len > 0 ? " " : "", s->id);
	m->list_run = (struct list_run){ .items = strbuf_str(&m->items),
					 .purpose = flight->purpose,
					 .started = record->end->started,
					 .complete = complete(m, record, flight->count),
					 .told = !cause };
	record->list_run = &m->list_run;
}

static bool minimize_ended(void *ctx, const struct run *run, bool failed)
{
	struct minimize *m = ctx;
	struct flight *flight = flight_of(m, run->position);
	int r = digest(m,
		       &(struct ended_run){ .tests = flight->tests,
					    .count = flight->count,
					    .plan = flight->plan,
					    .purpose = flight->purpose,
					    .started = m->list_run.started,
					    .complete = m->list_run.complete,
					    .told = m->list_run.told,
					    .signatures = strbuf_str(&m->signatures) },
		       &m->err);

	mem_free(flight->tests);
	*flight = (struct flight){ 0 };
	if (r == 0)
		r = keep_best(m, &m->err);
	m->failed = r;
	/* A late result may open the search again: next() decides. */
	return false;
}

static void minimize_tick(void *ctx)
{
	static const char *const phases[] = {
		[MINIMISER_BASELINE] = "the full list",
		[MINIMISER_SEARCH] = "searching",
		[MINIMISER_PROOF] = "proving",
		[MINIMISER_OTHERS] = "trying stand-ins",
		[MINIMISER_ORDER] = "trying other orders",
	};
	struct minimize *m = ctx;
	struct minimize_view view = {
		.phase = "the full list",
		.trials = m->runner.tally.trials,
		.ran = m->runner.ran,
		.total = m->framework->items.count,
		.left = m->framework->items.count,
		.seconds = series_now_s() - m->started_s,
		.news_trial = m->runner.news_trial,
		.news_summary = m->runner.news_summary,
	};
	struct minimiser_state state;

	if (!m->request->progress)
		return;
	if (m->minimiser) {
		minimiser_state(m->minimiser, &state);
		view.phase = phases[state.phase];
		view.left = state.left;
		view.to_go = state.trials_to_go;
	}
	m->request->progress(m->request->progress_ctx, &view);
}

static const struct runner_ops minimize_ops = {
	.next = minimize_next,
	.prepare = minimize_prepare,
	.record = minimize_record,
	.ended = minimize_ended,
	.tick = minimize_tick,
};

/* ---- going on where it was ---- */

static int replay(void *ctx, const struct list_run_row *row, struct err *err)
{
	struct minimize *m = ctx;
	struct numbers numbers = { 0 };
	int r = listtext_read(row->run.items, (uint32_t)m->framework->items.count, &numbers, err);

	if (r == 0)
		r = digest(m,
			   &(struct ended_run){ .tests = numbers.list.items,
						.count = numbers.list.count,
						.purpose = row->run.purpose,
						.started = row->run.started,
						.complete = row->run.complete,
						.told = row->run.told,
						.signatures = row->signatures },
			   err);
	VEC_DEINIT(&numbers.list);
	return r;
}

static int find_victim(struct minimize *m, struct err *err)
{
	const struct minimize_request *request = m->request;

	m->victim = MINIMISER_NO_VICTIM;
	if (!request->victim)
		return 0;
	m->target.victim = request->victim;
	if (m->framework->ops->flags & FRAMEWORK_TESTS)
		m->victim = test_names_find(request->settings->tests, request->victim);
	if (m->victim != TEST_NAMES_NONE)
		return 0;
	return err_set(err, -ENOENT, "the list of %zu %s does not have the victim '%s'",
		       m->framework->items.count, m->framework->ops->nouns, request->victim);
}

static int resume(struct minimize *m, struct series_start *start, struct err *err)
{
	const struct minimize_request *request = m->request;
	struct series_progress progress;
	int r = find_victim(m, err);

	if (r == 0)
		r = series_resume(m->cs, &request->identity, request->fresh, request->seed,
				  &m->runner, start, err);
	if (r == 0)
		r = case_series_progress(m->cs, m->runner.series, &progress, err);
	if (r == 0)
		r = case_set_items(m->cs, m->runner.series, &m->framework->items, err);
	if (r == 0 && request->signature)
		r = target_set(&m->target, m->cs, request->signature, err);
	if (r < 0)
		return r;
	m->seed = start->seed;
	m->next_position = progress.last_position + 1;
	set_full(m);
	if (m->target.known)
		r = start_search(m, err);
	return r < 0 ? r : case_list_runs(m->cs, m->runner.series, replay, m, err);
}

/* ---- the result ---- */

static struct rate rate_of(struct minimiser_count count)
{
	return rate_wilson(count.runs, count.failed, RATE_CONFIDENCE);
}

static void add_items(const struct minimize *m, const struct minimiser_result *from,
		      struct minimize_result *ret)
{
	size_t row = 0;

	for (size_t i = 0; i < from->count; i++) {
		uint32_t test = from->tests[i];
		struct minimal_item item = { .name = mem_strdup(m->framework->items.items[test]),
					     .victim = test == m->victim,
					     .needed = minimiser_needed(m->minimiser, test) };

		if (row < from->n_without && from->without[row].test == test) {
			item.without = rate_of(from->without[row].exact);
			item.wider = rate_of(from->without[row].wider);
			row++;
		}
		VEC_PUSH(&ret->items, item);
	}
}

static int by_need(const void *a, const void *b)
{
	const struct minimal_item *x = a, *y = b;

	return (x->needed < y->needed) - (x->needed > y->needed);
}

static void add_doubtful(const struct minimize *m, struct minimize_result *ret)
{
	for (size_t i = 0; i < m->framework->items.count; i++) {
		double needed = minimiser_needed(m->minimiser, i);

		if (needed > 0 && i != m->victim)
			VEC_PUSH(&ret->doubtful,
				 ((struct minimal_item){
					 .name = mem_strdup(m->framework->items.items[i]),
					 .needed = needed }));
	}
	if (ret->doubtful.count > 0)
		qsort(ret->doubtful.items, ret->doubtful.count, sizeof(ret->doubtful.items[0]),
		      by_need);
}

static int add_search(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	static const enum minimal_verdict verdicts[] = {
		[MINIMISER_RUNNING] = MINIMAL_SEARCHING,
		[MINIMISER_MINIMAL] = MINIMAL_FOUND,
		[MINIMISER_NEVER_FAILED] = MINIMAL_SEARCHING,
		[MINIMISER_COUNT_MATTERS] = MINIMAL_COUNT_MATTERS,
	};
	static const enum minimal_others others[] = {
		[MINIMISER_OTHERS_UNKNOWN] = MINIMAL_OTHERS_UNKNOWN,
		[MINIMISER_OTHERS_NONE] = MINIMAL_OTHERS_NONE,
		[MINIMISER_OTHERS_SOME] = MINIMAL_OTHERS_SOME,
		[MINIMISER_OTHERS_ANY] = MINIMAL_OTHERS_ANY,
	};
	AUTO(mem_freep) uint32_t *tests = NULL;
	struct framework_list list;
	struct minimiser_result from;
	struct minimiser_state state;
	int r = minimiser_result(m->minimiser, &from);

	if (r < 0)
		return err_errno(err, r, "cannot tell the result");
	minimiser_state(m->minimiser, &state);
	m->never_failed = from.verdict == MINIMISER_NEVER_FAILED;
	ret->verdict = verdicts[from.verdict];
	ret->others = others[from.others];
	ret->confidence = from.confidence;
	ret->to_go = state.trials_to_go;
	ret->trials = state.trials;
	ret->other_failures = state.censored;
	ret->no_information = state.no_information;
	ret->rollbacks = state.rollbacks;
	ret->full = rate_of(from.full);
	ret->minimal = rate_of(from.minimal);
	ret->stand_ins = rate_of(from.others_runs);
	ret->reversed = rate_of(from.reversed);
	ret->shuffled = rate_of(from.shuffled);
	ret->order_checked = from.reversed.runs + from.shuffled.runs > 0;
	tests = mem_alloc(from.count * sizeof(tests[0]));
	memcpy(tests, from.tests, from.count * sizeof(tests[0]));
	list = (struct framework_list){ .items = tests, .count = from.count };
	add_items(m, &from, ret);
	if (ret->verdict == MINIMAL_SEARCHING)
		add_doubtful(m, ret);
	framework_plain(m->framework, &list, ret->file, &ret->argv, &ret->env);
	return write_best(m, &list, err);
}

/* Before the target is known the full list is all there is. */
static int add_baseline(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	struct framework_list list = { .items = m->full, .count = m->full_count };

	for (size_t i = 0; i < m->full_count; i++)
		VEC_PUSH(&ret->items,
			 ((struct minimal_item){ .name = mem_strdup(m->framework->items.items[i]),
						 .victim = i == m->victim }));
	ret->trials = m->target.runs;
	ret->full = rate_wilson(m->target.runs, 0, RATE_CONFIDENCE);
	framework_plain(m->framework, &list, ret->file, &ret->argv, &ret->env);
	return write_best(m, &list, err);
}

static int never_failed(const struct minimize *m, const struct minimize_result *result,
			struct err *err)
{
	uint64_t runs = result->full.trials;

	(void)err_set(err, -ENODATA,
		      "the full list of %zu %s did not fail%s: %llu clean runs, so it fails less "
		      "often than %.2g %% of the time (%.3g %% confidence)",
		      m->full_count, m->framework->ops->nouns,
		      m->target.known ? " in the way that was asked for" : "",
		      (unsigned long long)runs,
		      100 * rate_upper_bound_clean(runs, m->request->confidence),
		      100 * m->request->confidence);
	return err_remedy(err, "raise the rate (more slots, load, another machine), or allow more "
			       "clean runs with --baseline N");
}

static int summarise(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	AUTO(mem_freep) char *name = file_name(m);
	int r;

	ret->framework = m->framework->ops->name;
	ret->noun = m->framework->ops->noun;
	ret->nouns = m->framework->ops->nouns;
	ret->total = m->framework->items.count;
	ret->wanted = m->request->confidence;
	ret->seed = m->seed;
	ret->file = mem_printf("%s/%s", case_dir(m->cs), name);
	if (m->victim != MINIMISER_NO_VICTIM)
		ret->victim = mem_strdup(m->framework->items.items[m->victim]);
	if (m->target.known)
		memcpy(ret->target, m->target.signature.id, sizeof(ret->target));
	r = m->minimiser ? add_search(m, ret, err) : add_baseline(m, ret, err);
	if (r == 0 && m->never_failed)
		r = never_failed(m, ret, err);
	return r < 0 ? r
		     : findings_signatures(&m->runner.tally, m->cs, m->runner.series,
					   &ret->signatures, err);
}

int minimize_run(struct case_store *cs, const struct minimize_request *request,
		 struct minimize_result *ret, struct err *err)
{
	AUTO(minimize_deinit)
	struct minimize m = { .request = request,
			      .framework = request->framework,
			      .cs = cs,
			      .started_s = series_now_s() };
	struct series_start start = { 0 };
	int r;

	m.runner.settings = request->settings;
	m.runner.slots = request->jobs;
	m.runner.observer = request->observer;
	m.runner.ops = &minimize_ops;
	m.runner.ctx = &m;
	r = resume(&m, &start, err);
	if (r == 0)
		r = runner_run(&m.runner, err);
	if (r == 0 && m.failed < 0) {
		*err = m.err;
		r = m.failed;
	}
	ret->case_dir = case_dir(cs);
	ret->program = request->framework->setup.program;
	ret->cwd = request->framework->setup.cwd;
	ret->jobs = request->jobs;
	ret->earlier = start.earlier;
	ret->program_changed = start.program_changed;
	ret->interrupted = m.runner.interrupted;
	if (r == 0)
		r = summarise(&m, ret, err);
	ret->seconds = series_now_s() - m.started_s;
	return r;
}
