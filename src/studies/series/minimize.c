#include "base/hash.h"
#include "base/now.h"
#include "studies/series/minimize_inside.h"

#include <errno.h>
#include <string.h>

#include "model/known_secrets.h"
#include "model/test_name.h"
#include "studies/series/listtext.h"
#include "studies/series/repro.h"

/* After so many runs in a row that said nothing, another one is taken for a pass: a list that
 * always dies in another way, or cannot be run at all, does not show the target. */
#define BLIND_MAX 20

/* Exit status by which a command says 'no information', as for git bisect run. */
#define STATUS_SKIP 125

void minimize_identify(const struct framework *framework, const struct minimize_question *question,
		       struct strbuf *identity)
{
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < framework->items.count; i++)
		/* The end of each name is hashed, too, so that no two lists look alike. */
		hash = hash_bytes(hash, framework->items.items[i],
				  strlen(framework->items.items[i]) + 1);
	strbuf_addf(identity, "framework %s\nitems %zu %016llx\nconfidence %.12g\n",
		    framework->ops->name, framework->items.count, (unsigned long long)hash,
		    question->confidence);
	if (question->victim)
		strbuf_addf(identity, "victim %zu:%s\n", strlen(question->victim),
			    question->victim);
	if (question->signature)
		strbuf_addf(identity, "signature %s\n", question->signature);
	if (question->seed)
		strbuf_addf(identity, "seed %s\n", question->seed);
}

static void minimize_deinit(struct minimize *m)
{
	VEC_FREE(&m->early, run, mem_free(run->signatures));
	VEC_FREE(&m->flights, flight, mem_free(flight->tests));
	minimiser_free(m->minimiser);
	target_deinit(&m->target);
	strbuf_deinit(&m->told.items);
	strbuf_deinit(&m->told.signatures);
	mem_free(m->full);
	runner_deinit(&m->runner);
}

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
		      BLIND_MAX,
		      m->blind.why.code != 0 ? m->blind.why.message : "none reached its end");
	return err_set_remedy(err,
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
	m->blind.runs = report.outcome == MINIMISER_TARGET || report.outcome == MINIMISER_PASS
				? 0
				: m->blind.runs + 1;
	if (m->blind.runs > BLIND_MAX && run->purpose == MINIMISER_BASELINE)
		return blind_baseline(m, err);
	if (m->blind.runs > BLIND_MAX) {
		report.outcome = MINIMISER_PASS;
		report.started = 0;
	}
	/* A failure of another kind is counted as such, however far the run came. */
	if (report.outcome == MINIMISER_OTHER)
		report.started = 0;
	r = minimiser_report(m->minimiser, &report);
	if (r < 0)
		return err_set_errno(err, r, "cannot use a list of the case");
	return 0;
}

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
		   test_name_same(test, request->settings->tests->names.items[m->victim]);
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
		return err_set_errno(err, r, "cannot start the search");
	m->blind.runs = 0;
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
	m->blind.runs =
		run->told && (run->complete || run->signatures[0] != '\0') ? 0 : m->blind.runs + 1;
	if (m->blind.runs > BLIND_MAX)
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

static struct list_flight *flight_of(struct minimize *m, uint64_t position)
{
	return VEC_FIND(&m->flights, flight, flight->position == position);
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
	struct list_flight *flight = flight_of(m, 0);

	if (!flight) {
		VEC_PUSH(&m->flights, ((struct list_flight){ 0 }));
		flight = &m->flights.items[m->flights.count - 1];
	}
	*flight = (struct list_flight){ .position = m->next_position++,
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

	if (m->late.code < 0) {
		*err = m->late.err;
		return m->late.code;
	}
	if (m->minimiser)
		r = minimiser_next(m->minimiser, &plan);
	else if (m->target.runs + flying(m) >= m->request->baseline)
		r = 0;
	if (r < 0)
		return err_set_errno(err, r, "cannot plan the next run");
	if (r > 0)
		take_off(m, &plan, ret);
	return r;
}

static void minimize_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct minimize *m = ctx;
	const struct list_flight *flight = flight_of(m, run->position);
	const struct trial_settings *settings = m->request->settings;
	AUTO(mem_freep)
	char *dir =
		mem_printf("%s/%llu", settings->trials.path, (unsigned long long)job->number.value);

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

/* Fails where this run says nothing about its list. */
static int look_useful(const struct minimize *m, const struct trial_end *end, struct err *why)
{
	const struct framework_ops *ops = m->framework->ops;

	if (end->exit_status == STATUS_SKIP)
		return err_set(why, -ENODATA,
			       "the command ended with status 125, which means just that");
	if (end->strayed)
		return err_set(why, -ENODATA, "other tests started than those that were asked for");
	if (ops->no_information && ops->no_information(end))
		return err_set(why, -ENODATA,
			       "the framework reported wrong usage or a broken set-up");
	if ((ops->flags & FRAMEWORK_MARKS) && end->started == 0 &&
	    (end->timed_out || end->signal == 0))
		return err_set(why, -ENODATA, "no test started");
	return 0;
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
	const struct list_flight *flight = flight_of(m, run->position);
	bool told = look_useful(m, record->end, &m->blind.why) == 0;

	strbuf_clear(&m->told.items);
	strbuf_clear(&m->told.signatures);
	listtext_write(flight->tests, flight->count, &m->told.items);
	VEC_FOREACH (&record->signatures->list, s)
		strbuf_addf(&m->told.signatures, "%s%s", m->told.signatures.len > 0 ? " " : "",
			    s->id);
	m->told.run = (struct list_run){ .items = strbuf_str(&m->told.items),
					 .purpose = flight->purpose,
					 .started = record->end->started,
					 .complete = complete(m, record, flight->count),
					 .told = told };
	record->list_run = &m->told.run;
}

static bool minimize_ended(void *ctx, const struct run *run, bool failed)
{
	struct minimize *m = ctx;
	struct list_flight *flight = flight_of(m, run->position);
	int r = digest(m,
		       &(struct ended_run){ .tests = flight->tests,
					    .count = flight->count,
					    .plan = flight->plan,
					    .purpose = flight->purpose,
					    .started = m->told.run.started,
					    .complete = m->told.run.complete,
					    .told = m->told.run.told,
					    .signatures = strbuf_str(&m->told.signatures) },
		       &m->late.err);

	mem_free(flight->tests);
	*flight = (struct list_flight){ 0 };
	if (r == 0)
		r = minimize_keep_best(m, &m->late.err);
	m->late.code = r;
	/* A late result may open the search again: next() decides. */
	return false;
}

static void minimize_tick(void *ctx)
{
	struct minimize *m = ctx;
	struct minimize_view view = {
		.phase = MINIMISER_BASELINE,
		.trials = m->runner.tally.trials,
		.ran = m->runner.ran,
		.total = m->framework->items.count,
		.left = m->framework->items.count,
		.seconds = clock_s() - m->started_s,
		.news_trial = m->runner.news_trial,
		.news_summary = m->runner.news_summary,
	};
	struct minimiser_state state;

	if (!m->request->progress)
		return;
	if (m->minimiser) {
		minimiser_state(m->minimiser, &state);
		view.phase = state.phase;
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

/* Arguments and variables without their secrets. */
static int keep_items(struct minimize *m, struct err *err)
{
	const struct strv *items = &m->framework->items;
	AUTO(strv_deinit) struct strv open = { 0 };

	if (!(m->framework->ops->flags & FRAMEWORK_TESTS) && items->count > 0) {
		secret_words(items->items, &open);
		items = &open;
	}
	return case_set_items(m->cs, m->runner.series, items, err);
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
		r = keep_items(m, err);
	if (r == 0 && request->signature)
		r = target_set(&m->target, m->cs, request->signature, err);
	if (r < 0)
		return r;
	m->target.among = request->among;
	if (request->among)
		target_take_members(&m->target, request->among);
	m->seed = start->seed;
	m->next_position = progress.last_position + 1;
	set_full(m);
	if (m->target.known)
		r = start_search(m, err);
	return r < 0 ? r : case_list_runs(m->cs, m->runner.series, replay, m, err);
}

int minimize_run(struct case_store *cs, const struct minimize_request *request,
		 struct minimize_result *ret, struct err *err)
{
	AUTO(minimize_deinit)
	struct minimize m = { .request = request,
			      .framework = request->framework,
			      .cs = cs,
			      .started_s = clock_s() };
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
	if (r == 0 && m.late.code < 0) {
		*err = m.late.err;
		r = m.late.code;
	}
	ret->case_dir = case_dir(cs);
	ret->program = request->framework->setup.program;
	ret->cwd = request->framework->setup.cwd;
	ret->jobs = request->jobs;
	ret->earlier = start.earlier;
	ret->program_changed = start.program_changed;
	ret->interrupted = m.runner.interrupted;
	if (r == 0)
		r = minimize_summarise(&m, ret, err);
	ret->seconds = clock_s() - m.started_s;
	return r;
}
