#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/now.h"
#include "base/tree.h"
#include "studies/bisect/bisect_inside.h"
#include "studies/series/listtext.h"
#include "studies/series/repro.h"

/* After so many runs in a row that failed in another way a commit is given up. */
#define BLIND_MAX 20

/* Exit status by which a command says that this commit cannot be tested, as for git bisect run. */
#define STATUS_SKIP 125

/* A trial beside another is chosen without what the other one tells: one in fifteen is wasted so.
 * Where trials are shorter than this nobody waits for them, and side by side they only disturb each
 * other. */
#define SHORT_NS 500000000u

static void bisect_deinit(struct bisect *b)
{
	workshop_close(b->workshop);
	bisection_free(b->bisection);
	target_deinit(&b->target);
	for (size_t c = 0; c < b->history->commits.count; c++)
		mem_free(b->rows[c].untested);
	mem_free(b->rows);
	mem_free(b->dir);
	VEC_DEINIT(&b->flights);
	strbuf_deinit(&b->items);
	strbuf_deinit(&b->signatures);
	runner_deinit(&b->runner);
}

static void give_up_on(struct bisect *b, size_t commit, const char *why)
{
	if (!b->rows[commit].untested)
		b->rows[commit].untested = mem_strdup(why);
	bisection_skip(b->bisection, commit);
}

/* A run as it ended, or as the case tells it. */
struct commit_run {
	size_t commit;
	bool told, complete;
	const char *signatures;
};

static void hear_nothing(struct bisect *b, const struct commit_run *run)
{
	struct commit_row *row = &b->rows[run->commit];
	struct err why = { 0 };

	b->no_information++;
	if (!run->told)
		(void)err_set(&why, -ENODATA,
			      "the program ended with status 125, which means that it cannot be "
			      "tested");
	else if (++row->blind >= BLIND_MAX)
		(void)err_set(&why, -ENODATA, "it always fails in another way");
	if (why.code != 0)
		give_up_on(b, run->commit, why.message);
}

/* The case has what was seen, this is what it means; so a resumed search means the same by it. */
static int digest(struct bisect *b, const struct commit_run *run, struct err *err)
{
	struct commit_row *row = &b->rows[run->commit];
	bool failed = run->signatures[0] != '\0';
	int r = 0;

	if (run->told && b->target.known)
		r = target_shown(&b->target, b->cs, run->signatures, &failed, err);
	if (r < 0)
		return r;
	/* Another failure that cut it short leaves open what would have come. */
	if (!run->told || (b->target.known && !failed && !run->complete)) {
		hear_nothing(b, run);
		return 0;
	}
	row->blind = 0;
	row->trials++;
	row->failed += failed;
	bisection_report(b->bisection, run->commit, failed);
	return 0;
}

static struct commit_flight *flight_of(struct bisect *b, uint64_t position)
{
	return VEC_FIND(&b->flights, flight, flight->position == position);
}

static int store_build(struct bisect *b, size_t commit, const struct workshop_visit *visit,
		       struct err *err)
{
	b->builds++;
	return case_add_build(b->cs, b->runner.series,
			      &(struct build_record){ .item = commit,
						      .unusable = visit->state == WORKSHOP_UNUSABLE
									  ? visit->why.message
									  : NULL,
						      .wall_ns = visit->wall_ns },
			      err);
}

/* 1: it can be tested in visit->tree; 0: it cannot, or not now. */
static int make_ready(struct bisect *b, size_t commit, struct workshop_visit *visit,
		      struct err *err)
{
	int r = workshop_prepare(b->workshop, commit, visit, err);

	if (r < 0)
		return r;
	b->interrupted = visit->state == WORKSHOP_INTERRUPTED;
	if (visit->evicted != WORKSHOP_NONE)
		bisection_set_ready(b->bisection, visit->evicted, false);
	if (visit->built && !b->interrupted)
		r = store_build(b, commit, visit, err);
	if (r < 0)
		return r;
	if (visit->state == WORKSHOP_UNUSABLE)
		give_up_on(b, commit, visit->why.message);
	bisection_set_ready(b->bisection, commit, visit->state == WORKSHOP_READY);
	return visit->state == WORKSHOP_READY;
}

static void take_off(struct bisect *b, size_t commit, size_t tree, struct run *ret)
{
	struct commit_flight *flight = flight_of(b, 0);

	if (!flight) {
		VEC_PUSH(&b->flights, ((struct commit_flight){ 0 }));
		flight = &b->flights.items[b->flights.count - 1];
	}
	*flight = (struct commit_flight){ .position = b->next_position++,
					  .commit = commit,
					  .tree = tree };
	workshop_enter(b->workshop, tree);
	bisection_start(b->bisection, commit);
	*ret = (struct run){ .position = flight->position };
}

static bool waits_for_others(const struct bisect *b)
{
	bool flying = false;

	VEC_FOREACH (&b->flights, flight)
		flying = flying || flight->position != 0;
	return b->request->spare && flying && (b->timed == 0 || b->timed_ns / b->timed < SHORT_NS);
}

static int bisect_next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct bisect *b = ctx;
	struct workshop_visit visit;
	size_t commit;
	int r;

	if (b->failed < 0) {
		*err = b->err;
		return b->failed;
	}
	if (waits_for_others(b))
		return 0;
	while (!b->interrupted && bisection_next(b->bisection, &commit) > 0) {
		r = make_ready(b, commit, &visit, err);
		if (r < 0 || visit.state == WORKSHOP_BUSY)
			return r;
		if (r == 0)
			continue;
		take_off(b, commit, visit.tree, ret);
		return 1;
	}
	return 0;
}

static void bisect_prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct bisect *b = ctx;
	const struct commit_flight *flight = flight_of(b, run->position);

	series_fill_job(b->request->program, b->request->slot_env, job);
	job->cwd = mem_strdup(workshop_cwd(b->workshop, flight->tree));
	if (!workshop_observable(b->workshop, flight->tree))
		job->observer = OBSERVE_NONE;
}

static void bisect_record(void *ctx, const struct run *run, struct trial_record *record)
{
	struct bisect *b = ctx;
	const struct commit_flight *flight = flight_of(b, run->position);
	uint32_t commit = (uint32_t)flight->commit;

	strbuf_clear(&b->items);
	strbuf_clear(&b->signatures);
	listtext_write(&commit, 1, &b->items);
	VEC_FOREACH (&record->signatures->list, s)
		strbuf_addf(&b->signatures, "%s%s", b->signatures.len > 0 ? " " : "", s->id);
	b->list_run = (struct list_run){ .items = strbuf_str(&b->items),
					 .complete = !trial_end_cut_short(record->end),
					 .told = record->end->exit_status != STATUS_SKIP };
	record->list_run = &b->list_run;
	b->timed++;
	b->timed_ns += record->end->wall_ns;
}

static bool bisect_ended(void *ctx, const struct run *run, bool failed)
{
	struct bisect *b = ctx;
	struct commit_flight *flight = flight_of(b, run->position);

	bisection_end(b->bisection, flight->commit);
	workshop_leave(b->workshop, flight->tree);
	b->failed = digest(b,
			   &(struct commit_run){ .commit = flight->commit,
						 .told = b->list_run.told,
						 .complete = b->list_run.complete,
						 .signatures = strbuf_str(&b->signatures) },
			   &b->err);
	*flight = (struct commit_flight){ 0 };
	/* A late result may open the search again: next() decides. */
	return false;
}

static void bisect_tick(void *ctx)
{
	struct bisect *b = ctx;
	struct bisection_state state;
	struct bisect_view view = {
		.ran = b->runner.ran,
		.seconds = clock_s() - b->started_s,
		.news_trial = b->runner.news_trial,
		.news_summary = b->runner.news_summary,
	};
	size_t commit = 0;

	if (!b->request->progress)
		return;
	bisection_state(b->bisection, &state);
	view.activity = workshop_activity(b->workshop, &commit);
	view.commit = b->history->commits.items[commit];
	view.suspect = state.commit > 0 ? b->history->commits.items[state.commit] : "";
	view.probability = state.probability;
	view.trials = state.trials;
	view.failed = state.failed;
	view.to_go = state.to_go;
	b->request->progress(b->request->progress_ctx, &view);
}

static const struct runner_ops bisect_ops = {
	.next = bisect_next,
	.prepare = bisect_prepare,
	.record = bisect_record,
	.ended = bisect_ended,
	.tick = bisect_tick,
};

static int replay(void *ctx, const struct list_run_row *row, struct err *err)
{
	struct bisect *b = ctx;
	struct numbers numbers = { 0 };
	int r = listtext_read(row->run.items, (uint32_t)b->history->commits.count, &numbers, err);

	for (size_t i = 0; i < numbers.list.count && r == 0; i++)
		r = digest(b,
			   &(struct commit_run){ .commit = numbers.list.items[i],
						 .told = row->run.told,
						 .complete = row->run.complete,
						 .signatures = row->signatures },
			   err);
	VEC_DEINIT(&numbers.list);
	return r;
}

static void replay_build(void *ctx, const struct build_record *record)
{
	struct bisect *b = ctx;

	if (record->unusable && record->item < b->history->commits.count)
		give_up_on(b, record->item, record->unusable);
}

/* The trees of a redhand that was killed, and with --fresh what its builds said, go with
 * the series that they belong to. */
static int clear_dir(struct bisect *b, struct err *err)
{
	struct series_found found;
	int r = case_series(b->cs, &b->request->identity, 0, &found, err);

	if (r < 0)
		return r;
	b->dir = mem_printf("%s/bisect-%lld", case_dir(b->cs), (long long)found.id.value);
	r = workshop_clear(b->history, b->dir, err);
	if (r == 0 && b->request->fresh)
		r = tree_remove_at(AT_FDCWD, b->dir, err);
	return r;
}

static int resume(struct bisect *b, struct series_start *start, struct err *err)
{
	const struct bisect_request *request = b->request;
	struct series_progress progress;
	int r = clear_dir(b, err);

	if (r == 0)
		r = series_resume(b->cs, &request->identity, request->fresh, 0, &b->runner, start,
				  err);
	if (r == 0)
		r = case_series_progress(b->cs, b->runner.series, &progress, err);
	if (r == 0)
		r = case_set_items(b->cs, b->runner.series, &b->history->commits, err);
	if (r == 0 && request->signature)
		r = target_set(&b->target, b->cs, request->signature, err);
	if (r < 0)
		return r;
	mem_free(b->dir);
	b->dir = mem_printf("%s/bisect-%lld", case_dir(b->cs), (long long)b->runner.series.value);
	b->next_position = progress.last_position + 1;
	r = case_builds(b->cs, b->runner.series, replay_build, b, err);
	return r < 0 ? r : case_list_runs(b->cs, b->runner.series, replay, b, err);
}

static int open_workshop(struct bisect *b, struct err *err)
{
	const struct bisect_request *request = b->request;

	return workshop_open(&(struct workshop_request){ .history = b->history,
							 .dir = b->dir,
							 .build = request->build,
							 .program = request->program,
							 .settings = request->settings,
							 .trees = request->trees > request->jobs
									  ? request->trees
									  : request->jobs + 1,
							 .lock_fd = case_lock_fd(b->cs),
							 .tick = bisect_tick,
							 .ctx = b },
			     &b->workshop, err);
}

/* A mistyped command or a build that fails everywhere is told at once, not after all commits have
 * been skipped. */
static int check_bad(struct bisect *b, struct err *err)
{
	size_t bad = b->history->commits.count - 1;
	struct workshop_visit visit;
	int r = make_ready(b, bad, &visit, err);

	if (r < 0 || visit.state != WORKSHOP_UNUSABLE)
		return r < 0 ? r : 0;
	(void)err_set(err, -ENOEXEC, "BAD (%.12s) cannot be tested: %s",
		      b->history->commits.items[bad], visit.why.message);
	if (b->request->build && strncmp(visit.why.message, "the build", 9) == 0)
		return err_set_remedy(err,
				      "see its output in '%s/builds/%zu', and --fresh when it is "
				      "mended",
				      b->dir, bad + 1);
	return err_set_remedy(err,
			      "the program runs in a worktree of its own, which has only what git "
			      "or --build put there; name other files by their full path");
}

int bisect_run(struct case_store *cs, const struct bisect_request *request,
	       struct bisect_result *ret, struct err *err)
{
	AUTO(bisect_deinit)
	struct bisect b = { .request = request,
			    .history = request->history,
			    .cs = cs,
			    .rows = mem_alloc(request->history->commits.count *
					      sizeof(struct commit_row)),
			    .started_s = clock_s() };
	struct series_start start = { 0 };
	size_t commit;
	int r;

	b.bisection =
		bisection_new(&(struct bisection_options){ .lineage = request->history->lineage,
							   .confidence = request->confidence,
							   .careful = request->careful,
							   .builds = request->build != NULL,
							   .rate = request->rate,
							   .seen_trials = request->seen_trials,
							   .seen_failed = request->seen_failed,
							   .clean_limit = request->clean_limit });
	b.runner.settings = request->settings;
	b.runner.slots = request->jobs;
	b.runner.observer = request->observer;
	b.runner.ops = &bisect_ops;
	b.runner.ctx = &b;
	r = resume(&b, &start, err);
	/* An answer that is there already needs no trees. */
	if (r == 0 && bisection_next(b.bisection, &commit) > 0) {
		r = open_workshop(&b, err);
		if (r == 0 && start.earlier == 0)
			r = check_bad(&b, err);
		if (r == 0 && !b.interrupted)
			r = runner_run(&b.runner, err);
	}
	if (r == 0 && b.failed < 0) {
		*err = b.err;
		r = b.failed;
	}
	ret->earlier = start.earlier;
	ret->interrupted = b.runner.interrupted || b.interrupted;
	if (r == 0)
		r = bisect_summarise(&b, ret, err);
	if (r == 0)
		r = bisect_remember(&b, ret, err);
	ret->seconds = clock_s() - b.started_s;
	return r;
}
