#include "run/runner.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "base/tree.h"
#include "model/machine.h"
#include "run/chaos_draw.h"
#include "run/outcome.h"
#include "run/pool.h"
#include "search/stats/rate.h"
#include "search/stats/rng.h"

/* Runs whose breadcrumb order is recorded; more would say the same again. */
#define LEARN_RUNS 32

/* More ways to fail than anybody reads. From then on places no longer make new ones. */
#define SIGNATURES_MAX 1000

#define TICK_MS 200
/* The chance from which on nothing is started beside what runs. */
#define WILL_DO 0.9

/* Trials shorter than this are sent ahead: handing over the next one would take as long. */
#define SHORT_NS 10000000u

/* A run in flight. */
struct flight {
	struct run run;
	struct trial_number number; /* 0: none */
	struct chaos chaos;
};

struct lane {
	struct flight flights[POOL_DEPTH];
	bool brief; /* its last trial was short */
};

struct flights {
	struct runner *runner;
	struct pool *pool;
	struct lane *lanes;    /* one per slot */
	VEC(struct run) again; /* runs whose trial was lost with its machine */
	uint64_t last_number;
	bool stopping;
	cpu_set_t cores; /* that redhand may use, and so its trials */
};

void runner_deinit(struct runner *runner)
{
	tally_deinit(&runner->tally);
	mem_free(runner->news_summary);
	readings_deinit(&runner->own);
}

struct readings *runner_readings(struct runner *runner)
{
	struct readings *shared = runner->settings->shared.readings;

	return shared ? shared : &runner->own;
}

struct symbols *runner_symbols(struct runner *runner)
{
	assert(runner->cs); /* it knows what was shipped */
	return readings_symbols(runner_readings(runner), runner->cs);
}

static sigset_t stop_set(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	return set;
}

void runner_hold_signals(void)
{
	sigset_t set = stop_set();

	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

bool runner_stop_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
		sigismember(&pending, SIGHUP) == 1);
}

/* Blocks the signals that mean 'stop' and hands them out through a descriptor. Nothing about how
 * they are handled is changed: the command inherits that. */
static int stop_signals(struct err *err)
{
	sigset_t set = stop_set();
	int fd;

	runner_hold_signals();
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set_errno(err, -errno, "cannot listen for signals");
	return fd;
}

/* Last, when the job's observer and knobs are settled. */
static void draw_chaos(const struct flights *f, struct trial_job *job)
{
	const struct trial_settings *settings = f->runner->settings;
	uint64_t seed = settings->chaos_seed.given ? settings->chaos_seed.value : rng_fresh_seed();

	if (job->chaos.knobs != 0)
		chaos_draw(job->chaos.knobs, seed, job->observer, &f->cores, &job->chaos);
}

static int launch(struct flights *f, unsigned int slot, const struct run *run, struct err *err)
{
	AUTO(trial_job_deinit) struct trial_job job = { .slot = slot };
	struct runner *runner = f->runner;
	int r = case_free_number(runner->cs, f->last_number, &job.number, err);

	if (r < 0)
		return r;
	f->last_number = job.number.value;
	job.learn = runner->learnt < LEARN_RUNS;
	job.observer = runner->observer;
	job.python = runner->python;
	job.chaos.knobs = runner->settings->chaos;
	runner->ops->prepare(runner->ctx, run, &job);
	draw_chaos(f, &job);
	for (size_t i = 0; i < POOL_DEPTH; i++) {
		struct flight *flight = &f->lanes[slot].flights[i];

		if (flight->number.value == 0) {
			*flight = (struct flight){ .run = *run,
						   .number = job.number,
						   .chaos = job.chaos };
			break;
		}
	}
	r = pool_start(f->pool, &job, err);
	runner->running += r == 0;
	return r;
}

/* Counts one more trial, if the budget has one. */
static bool may_launch(struct flights *f)
{
	struct trial_budget *budget = f->runner->settings->shared.budget;

	if (!budget || (budget->trials == UINT64_MAX && budget->failures > 0))
		return true;
	if (budget->trials == 0 || budget->failures == 0) {
		budget->spent = true;
		f->stopping = true;
		return false;
	}
	budget->trials--;
	return true;
}

/* Counts a failing trial; true: the budget has no more. */
static bool out_of_failures(const struct runner *runner, const struct signatures *signatures)
{
	struct trial_budget *budget = runner->settings->shared.budget;
	bool failed = false;

	if (!budget || budget->failures == UINT64_MAX)
		return false;
	VEC_FOREACH (&signatures->list, s)
		failed |= !budget->always || !strv_has(budget->always, s->id);
	if (failed && budget->failures > 0)
		budget->failures--;
	budget->spent |= budget->failures == 0;
	return budget->failures == 0;
}

static bool out_of_time(const struct runner *runner)
{
	struct trial_budget *budget = runner->settings->shared.budget;

	if (!budget || budget->deadline_s <= 0 || clock_s() < budget->deadline_s)
		return false;
	budget->spent = true;
	return true;
}

/* Each that runs may fail: never more of them than the budget has failures. */
static bool may_fail_too_often(const struct flights *f)
{
	const struct trial_budget *budget = f->runner->settings->shared.budget;
	uint64_t running = 0;

	if (!budget || budget->failures == UINT64_MAX)
		return false;
	for (unsigned int slot = 0; slot < pool_slots(f->pool); slot++)
		running += pool_depth(f->pool, slot);
	return running >= budget->failures;
}

bool runner_will_do(const struct runner *runner, uint64_t trials, uint64_t failed, uint64_t missing)
{
	return runner->running > 0 && failed > 0 &&
	       rate_at_least(runner->running, missing, (double)failed / (double)trials) >= WILL_DO;
}

static int launch_all(struct flights *f, struct err *err)
{
	int r = 0;

	for (unsigned int slot = 0; slot < pool_slots(f->pool) && r == 0 && !f->stopping; slot++) {
		unsigned int room = f->runner->ops->ahead && f->lanes[slot].brief ? POOL_DEPTH : 1;
		struct run run;

		while (r == 0 && pool_depth(f->pool, slot) < room && pool_takes(f->pool, slot) &&
		       (!may_fail_too_often(f) ||
			f->runner->settings->shared.budget->failures == 0)) {
			bool again = f->again.count > 0;

			if (again)
				run = f->again.items[--f->again.count];
			r = again ? 1 : f->runner->ops->next(f->runner->ctx, slot, &run, err);
			if (r <= 0)
				break;
			if (!again && !may_launch(f))
				return 0;
			r = launch(f, slot, &run, err);
		}
	}
	return r;
}

static void limit_signatures(const struct tally *tally, struct signatures *signatures)
{
	if (tally->signatures.count < SIGNATURES_MAX)
		return;
	VEC_FOREACH (&signatures->list, s) {
		if (tally_find(tally, s->id))
			continue;
		mem_free(s->crumb);
		s->crumb = NULL;
		signature_seal(s);
	}
}

static bool is_interpreter(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *name = slash ? slash + 1 : path;

	return name && (strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0);
}

/* The interpreter itself, or a program that has it inside and died below it. */
static bool is_of_python(const struct crash *crash)
{
	for (size_t i = 0; i < crash->stack.count; i++)
		if (crash->stack.frames[i].kind == FRAME_PYTHON ||
		    is_interpreter(crash->stack.frames[i].module))
			return true;
	return is_interpreter(crash->program);
}

/* The trial with the lowest number stands for all that failed so, in its arm: others will ask for
 * it. */
static void keep_example(struct runner *runner, const struct tally_row *row,
			 const struct trial_result *result, struct reading *reading)
{
	if (row->signatures[0] == '\0' || !result->left)
		return;
	readings_note_fault(runner_readings(runner), reading);
	VEC_FOREACH (&runner->tally.counts, known)
		if (known->arm == row->arm && known->slot == row->slot &&
		    known->cut_short == row->cut_short && known->trial < row->trial &&
		    strcmp(known->signatures, row->signatures) == 0)
			return;
	readings_keep(runner_readings(runner), reading);
}

static void note_news(struct runner *runner, const struct trial_result *result,
		      const struct signatures *signatures)
{
	VEC_FOREACH (&signatures->list, s) {
		if (tally_find(&runner->tally, s->id))
			continue;
		runner->news_trial = result->number.value;
		mem_free(runner->news_summary);
		runner->news_summary = mem_strdup(s->summary);
		/* A crash is bigger news than the tests that failed before it. */
		if (s->kind == FAILURE_SIGNAL)
			return;
	}
}

/* Only runs that reached their own end show what comes after what. */
static void settle_pairs(struct runner *runner, struct trial_end *end)
{
	if (!trial_end_cut_short(end) && end->pairs.count > 0 && runner->learnt < LEARN_RUNS) {
		runner->learnt++;
		return;
	}
	VEC_FOREACH (&end->pairs, pair) {
		mem_free(pair->from);
		mem_free(pair->to);
	}
	end->pairs.count = 0;
}

/* The flight that this result belongs to; its place is free afterwards. */
static struct flight land(struct flights *f, const struct trial_result *result)
{
	struct lane *lane = &f->lanes[result->slot];
	struct flight flight = { 0 };

	lane->brief = !result->lost && result->end.wall_ns < SHORT_NS;
	for (size_t i = 0; i < POOL_DEPTH; i++) {
		if (lane->flights[i].number.value == result->number.value) {
			flight = lane->flights[i];
			lane->flights[i].number.value = 0;
		}
	}
	return flight;
}

static struct reading *open_reading(struct runner *runner, const struct trial_result *result)
{
	if (!result->left)
		return NULL;
	return reading_open(
		&(struct reading_of){ .trials = case_trials_dir(runner->cs),
				      .trial = result->number.value,
				      .signal = trial_end_signal(&result->end),
				      .symbols = runner_symbols(runner),
				      .end = &result->end,
				      .lines_chosen = runner->settings->breadcrumb.given });
}

/* Files that it made shorter, for others. What cannot be stored is no reason to stop. */
static void store_truncations(struct runner *runner, struct reading *reading)
{
	struct err ignored = { 0 };
	int r = 0;

	VEC_FOREACH (&reading_truncations(reading)->list, seen)
		if (r == 0)
			r = case_add_cut(runner->cs,
					 &(struct cut_record){ .trial = { reading_trial(reading) },
							       .path = seen->path,
							       .device = seen->device,
							       .inode = seen->inode,
							       .realtime_ns = seen->realtime_ns,
							       .cut = seen->cut },
					 &ignored);
}

/* Why the trial died, as far as an observer saw it; NULL. */
static const struct crash *look_closely(struct runner *runner, const struct trial_end *end,
					struct reading *reading)
{
	if (!reading)
		return NULL;
	if (end->cuts)
		store_truncations(runner, reading);
	return end->observed.signal != 0 ? reading_crash(reading, CRASH_SITE) : NULL;
}

/* Drops what was only kept to be read. Before the trial is stored: a directory without a row is
 * cleaned up by the next redhand, a row without its directory would be a lie. */
static int settle_directory(struct runner *runner, struct trial_result *result,
			    struct reading *reading, bool failed, struct err *err)
{
	enum keep keep = runner->settings->keep;

	if (!reading)
		return 0;
	if (keep == KEEP_ALL || (failed && keep == KEEP_FAILED)) {
		/* A log without a crash has been read for what it had. */
		if (result->end.observed.signal == 0 && keep != KEEP_ALL)
			reading_prune(reading);
		return 0;
	}
	result->left = false;
	return tree_remove_at(case_trials_dir(runner->cs), reading_name(reading), err);
}

static int store(struct flights *f, struct trial_result *result, struct reading *reading,
		 struct err *err)
{
	AUTO(signatures_deinit) struct signatures signatures = { 0 };
	AUTO(strbuf_deinit) struct strbuf ids = { 0 };
	struct runner *runner = f->runner;
	struct flight flight = land(f, result);
	const struct crash *crash = look_closely(runner, &result->end, reading);
	struct run run = flight.run;
	struct trial_record record;
	struct tally_row row;
	bool spent;
	int r;

	if (runner->ops->examine && reading)
		runner->ops->examine(runner->ctx, result, reading);
	runner->python |= crash && is_of_python(crash);
	judge_signatures(runner->settings, &result->end, crash, &signatures);
	limit_signatures(&runner->tally, &signatures);
	settle_pairs(runner, &result->end);
	r = settle_directory(runner, result, reading, signatures.list.count > 0, err);
	if (r < 0)
		return r;
	record = (struct trial_record){ .number = result->number,
					.series = runner->series,
					.position = run.position,
					.arm = run.arm,
					.slot = result->slot,
					.end = &result->end,
					.signatures = &signatures,
					.chaos = flight.chaos.knobs != 0 ? &flight.chaos : NULL,
					.machine = result->machine,
					.more = pool_has_result(f->pool),
					.kept = result->left };
	if (runner->ops->record)
		runner->ops->record(runner->ctx, &run, &record);
	r = case_add_trial(runner->cs, &record, err);
	if (r < 0)
		return r;
	note_news(runner, result, &signatures);
	VEC_FOREACH (&signatures.list, s)
		strbuf_addf(&ids, "%s%s", ids.len > 0 ? " " : "", s->id);
	row = (struct tally_row){ .arm = run.arm,
				  .slot = result->slot,
				  .node = result->machine ? result->machine->node : "",
				  .signatures = strbuf_str(&ids),
				  .cut_short = trial_end_cut_short(&result->end),
				  .count = 1,
				  .trial = result->number.value };
	keep_example(runner, &row, result, reading);
	tally_add(&runner->tally, &row);
	runner->ran++;
	spent = out_of_failures(runner, &signatures);
	if (runner->ops->ended(runner->ctx, &run, signatures.list.count > 0) || spent)
		f->stopping = true;
	return 0;
}

/* A trial has ended: it is read, once, and stored. */
static int take(struct flights *f, struct trial_result *result, struct err *err)
{
	AUTO(reading_closep) struct reading *reading = NULL;
	int r;

	f->runner->running--;
	if (result->lost) {
		VEC_PUSH(&f->again, land(f, result).run);
		return 0;
	}
	if (result->trouble)
		return err_set(err, result->trouble_code, "%s", result->trouble);
	reading = open_reading(f->runner, result);
	r = store(f, result, reading, err);
	/* Somebody may go on with the reading; what it borrowed ends here. */
	if (reading)
		reading_forget_end(reading);
	return r;
}

/* Nothing runs because nobody is there to run it. */
static bool waits_for_workers(const struct flights *f)
{
	if (f->stopping)
		return false;
	for (unsigned int slot = 0; slot < pool_slots(f->pool); slot++)
		if (pool_takes(f->pool, slot))
			return false;
	return true;
}

static int run_all(struct flights *f, int signals, struct err *err)
{
	struct runner *runner = f->runner;
	struct signalfd_siginfo info;
	int r = 0;

	while (!runner->interrupted && !out_of_time(runner)) {
		AUTO(trial_result_deinit) struct trial_result result = { 0 };

		r = launch_all(f, err);
		if (r < 0 || (pool_busy_count(f->pool) == 0 && !waits_for_workers(f)))
			return r;
		r = pool_wait(f->pool, signals, TICK_MS, &result, err);
		if (r < 0)
			return r;
		if (r > 0)
			r = take(f, &result, err);
		if (r < 0)
			return r;
		if (runner->ops->tick)
			runner->ops->tick(runner->ctx);
		runner->interrupted = read(signals, &info, sizeof(info)) > 0;
	}
	return 0;
}

int runner_run(struct runner *runner, struct err *err)
{
	AUTO(pool_closep) struct pool *pool = NULL;
	AUTO(fd_closep) int signals = stop_signals(err);
	AUTO(mem_freep) struct lane *lanes = NULL;
	struct flights f;
	int r, stored;

	if (signals < 0)
		return signals;
	r = pool_open(runner->slots, runner->settings, case_lock_fd(runner->cs), &pool, err);
	if (r < 0)
		return r;
	lanes = mem_alloc(runner->slots * sizeof(lanes[0]));
	f = (struct flights){ .runner = runner, .pool = pool, .lanes = lanes };
	runner->running = 0;
	(void)sched_getaffinity(0, sizeof(f.cores), &f.cores);
	r = run_all(&f, signals, err);
	VEC_DEINIT(&f.again);
	stored = case_flush(runner->cs, r < 0 ? NULL : err);
	return r < 0 ? r : stored;
}
