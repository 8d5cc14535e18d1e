/*
 * What was hit? What kind of failure it is, and what that says about memory.
 *
 * Worth it always. A crash costs nothing: it is read from a trial that there is. Where something
 * fails now and then without a crash, some trials with guards around blocks; where nothing fails,
 * these too, and three that count what grows. Decides whether there is somebody to chase.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/growth/growth.h"
#include "engine/heap/evidence.h"
#include "engine/heap/heap.h"
#include "engine/series/findings.h"
#include "engine/series/settings.h"
#include "engine/series/stored.h"
#include "engine/trial/observe.h"

#define GROWTH_TRIALS 3u
#define GROWTH_SITES 3u
#define HEAP_TRIALS 12u
#define SHARE_UNFAILED 0.2 /* of the budget: to look at the heap of what never failed */

/* ---- nothing fails: does something grow from test to test? ---- */

/* Who still points to what grew: "a block of 512 bytes (index_add in index.c), which `all` leads
 * to". */
static char *describe_holder(const struct growth_holder *holder)
{
	const struct frame *site = stack_site(&holder->stack);
	struct strbuf sb = { 0 };

	if (holder->name)
		strbuf_addf(&sb, "the global %s", holder->name);
	else if (strcmp(holder->kind, "block") == 0)
		strbuf_addf(&sb, "a block of %" PRIu64 " bytes", holder->size);
	else
		strbuf_addf(&sb, "the %s", holder->kind);
	if (!holder->name && site) {
		strbuf_adds(&sb, " that ");
		frame_describe(site, &sb);
		strbuf_adds(&sb, " made");
	}
	if (holder->root)
		strbuf_addf(&sb, ", reached from the global %s,", holder->root);
	return strbuf_take(&sb);
}

static void add_growth(struct hunt *hunt, const struct growth_report *report)
{
	unsigned int added = 0;

	VEC_FOREACH (&report->sites, site) {
		struct evidence e = evidence_new(EVIDENCE_GROWTH, 0, false);

		e.growth->key = mem_strdup(site->key);
		stack_copy(&e.growth->site, &site->stack);
		e.growth->blocks_per_test = site->blocks_per_test;
		e.growth->bytes_per_test = site->bytes_per_test;
		e.growth->p = site->p;
		e.growth->tests = site->tests;
		e.growth->rises = site->rises;
		e.growth->trials = site->trials;
		e.growth->usable = report->usable;
		if (site->holders.count > 0)
			e.growth->holder = describe_holder(&site->holders.items[0]);
		VEC_PUSH(&hunt->evidence.list, e);
		if (++added >= GROWTH_SITES)
			break;
	}
}

static int look_for_growth(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	struct growth_report report = { 0 };
	struct err why = { 0 };
	struct growth_request growth = { .identity = hunt->close.identity,
					 .settings = hunt->close.settings,
					 .program = hunt->program,
					 .slot_env = hunt->env,
					 .jobs = hunt->jobs,
					 .trials = GROWTH_TRIALS,
					 .progress = request->show.progress,
					 .progress_ctx = request->show.ctx };
	int r = growth_run(hunt->cs, &growth, &report, &why);

	hunt->ret->interrupted |= report.interrupted;
	if (r == 0)
		evidence_add_experiment(&hunt->evidence,
					&(struct experiment_made){
						.kind = EXPERIMENT_GROWTH,
						.trials = report.usable,
						.telling = report.usable,
						.shown = report.sites.count > 0 ? report.usable : 0,
						.coverage = 1 });
	if (r == 0 && report.interrupted) {
		r = 0;
	} else if (r == 0 && report.sites.count > 0) {
		add_growth(hunt, &report);
		r = decide(
			hunt,
			"nothing fails; %zu allocation site%s grow%s from test to test, in %u of "
			"%u runs",
			report.sites.count, report.sites.count == 1 ? "" : "s",
			report.sites.count == 1 ? "s" : "", report.usable, report.usable);
	} else if (r == 0) {
		r = decide(hunt, "nothing fails, and no allocation site grows from test to test");
	} else {
		r = decide(hunt, "nothing fails; whether something grows cannot be told: %s",
			   why.message);
	}
	growth_report_deinit(&report);
	return r;
}

/* ---- it fails without a crash ---- */

/* What was found in trials that failed in another way is about another failure. */
static int take_damage(struct hunt *hunt, const struct series_identity *identity,
		       const struct heap_report *report)
{
	struct evidence_list list = { 0 };
	int r;

	heap_evidence(report, &list);
	r = bystanders_drop(&hunt->others, &hunt->match, hunt->cs, identity, &list, hunt->err);
	VEC_FOREACH (&list.list, e)
		VEC_PUSH(&hunt->evidence.list, *e);
	VEC_DEINIT(&list.list);
	return r;
}

/* Damaged memory need not crash: a wrong result now and then is all that some programs show. */
int hit_look_for_damage(struct hunt *hunt)
{
	const struct hunt_request *request = hunt->request;
	AUTO(mem_freep)
	char *settings = series_settings_with(hunt->close_settings, "observe", "observe 4:heap\n");
	struct heap_report report = { 0 };
	struct err why = { 0 };
	struct heap_request heap = { .identity = hunt->close.identity,
				     .settings = hunt->close.settings,
				     .program = hunt->program,
				     .slot_env = hunt->env,
				     .jobs = hunt->jobs,
				     .trials = (unsigned int)hunt_trials(hunt, HEAP_TRIALS),
				     .seed = request->seed,
				     .progress = request->show.progress,
				     .progress_ctx = request->show.ctx };
	struct experiment_made made;
	size_t before;
	int r;

	heap.identity.command = "heap";
	heap.identity.settings = settings;
	observe_heap_defaults(heap.seed, &heap.plan);
	r = heap_run(hunt->cs, &heap, &report, &why);
	hunt->ret->interrupted |= report.interrupted;
	if (r < 0) {
		heap_report_deinit(&report);
		return decide(hunt, "whether memory is damaged cannot be told: %s", why.message);
	}
	hunt->guarded = true;
	if (report.heap.trials > 0)
		hunt->guarded_s = report.seconds / (double)report.heap.trials;
	heap_experiment(&report, EXPERIMENT_GUARDS, &made);
	evidence_add_experiment(&hunt->evidence, &made);
	before = hunt->evidence.list.count;
	hunt_count(hunt, report.heap.trials, report.heap.failed, 0);
	r = take_damage(hunt, &heap.identity, &report);
	if (r == 0)
		r = observers_tell_effect(hunt, "heap", hunt_rate_of_all(hunt), &report.heap);
	if (r == 0 && report.findings.count > 0 && hunt->evidence.list.count == before)
		r = decide(hunt, "with guards around blocks damage was seen only in trials that "
				 "failed in another way");
	else if (r == 0 && report.findings.count > 0)
		r = decide(hunt,
			   "with guards around blocks: %zu kind%s of damage in %" PRIu64 " trials",
			   report.findings.count, report.findings.count == 1 ? "" : "s",
			   report.heap.trials);
	else if (r == 0 && !report.interrupted) {
		r = decide(hunt,
			   "with guards around blocks no damage was seen in %" PRIu64
			   " trials, of which %" PRIu64 " failed",
			   report.heap.trials, report.heap.failed);
	}
	heap_report_deinit(&report);
	return r;
}

/* The trial that shows best what is hunted. */
static struct reading *example(const struct hunt *hunt)
{
	return readings_open(hunt->plain.settings->readings, hunt->cs,
			     hunt->ids_trial != 0 ? hunt->ids_trial : hunt->target->trial,
			     hunt->target->signature.signal);
}

void hit_tell_record(struct hunt *hunt)
{
	AUTO(reading_closep) struct reading *reading = NULL;
	const struct crash_reading *crashed;

	if (!hunt_crashes(hunt))
		return;
	VEC_FOREACH (&hunt->evidence.list, e)
		if (e->kind == EVIDENCE_CRASH)
			return;
	reading = example(hunt);
	crashed = reading_backtrack(reading, THROUGH_OBJECTS);
	if (crashed->has_record)
		crash_reading_tell(crashed, reading_symbols(reading),
				   reading_crash(reading, CRASH_WHOLE), &hunt->evidence);
}

/* The record of an experiment is no damage. */
static bool any_damage(const struct hunt *hunt)
{
	VEC_FOREACH (&hunt->evidence.list, e)
		if (e->kind != EVIDENCE_EXPERIMENT)
			return true;
	return false;
}

static int read_plain(struct hunt *hunt)
{
	bool look = hunt->close.observer != OBSERVE_NONE &&
		    hunt->target->signature.kind != FAILURE_TIMEOUT;
	int r = decide(hunt, "it is no fault of an instruction%s: %s%s",
		       hunt->target->always ? ", and every run shows it" : "",
		       hunt->target->signature.summary,
		       look ? "; whether memory is damaged all the same, guards tell" : "");

	if (r == 0 && look)
		r = hit_look_for_damage(hunt);
	hunt->damaged = any_damage(hunt);
	return r;
}

/* ---- a crash ---- */

static int read_crash(struct hunt *hunt)
{
	AUTO(reading_closep) struct reading *reading = example(hunt);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct crash *crash = NULL;
	struct err ignored = { 0 };
	int r;

	(void)findings_crash(reading, hunt->cs, &crash, &ignored);
	if (!crash)
		return decide(hunt, "%s; nothing more was recorded",
			      hunt->target->signature.summary);
	strbuf_addf(&sb, "trial %s died of %s", reading_name(reading), signal_name(crash->signal));
	if (crash->words)
		strbuf_addf(&sb, ": %s", crash->words);
	if (crash_site(crash)) {
		strbuf_adds(&sb, ", in ");
		frame_describe(crash_site(crash), &sb);
	}
	r = decide(hunt, "%s", strbuf_str(&sb));
	crash_deinit(crash);
	mem_free(crash);
	return r;
}

/* ---- nothing fails ---- */

/* Damage need not show itself: what nobody reads again, or what is written over in time. */
static int look_at_heap(struct hunt *hunt)
{
	int r = decide(hunt, "nothing fails; whether memory is damaged all the same, guards tell");

	if (r == 0) {
		hunt_allow(hunt, SHARE_UNFAILED);
		r = hit_look_for_damage(hunt);
	}
	hunt->damaged = any_damage(hunt);
	hunt_allow(hunt, 1);
	return r == 0 && !hunt_over(hunt) ? look_for_growth(hunt) : r;
}

int stage_hit(struct hunt *hunt)
{
	if (hunt_crashes(hunt))
		return read_crash(hunt);
	if (hunt->target)
		return read_plain(hunt);
	if (hunt->summary.rate.trials == 0 || hunt->too_slow)
		return 0;
	if (hunt->close.observer == OBSERVE_NONE)
		return decide(hunt, "nothing fails, and nothing can be put into this program");
	return look_at_heap(hunt);
}
