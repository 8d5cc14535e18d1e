/*
 * Growth: nothing fails; does something grow from test to test? Three trials that count live
 * blocks at each line.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <string.h>

#include "studies/growth/growth.h"

#define GROWTH_TRIALS 3u
#define GROWTH_SITES 3u

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

static void add_growth(struct inquiry *inq, const struct growth_report *report)
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
		VEC_PUSH(&inq->evidence.list, e);
		if (++added >= GROWTH_SITES)
			break;
	}
}

static int run(struct inquiry *inq)
{
	const struct hunt_request *request = inq->request;
	struct growth_report report = { 0 };
	struct err why = { 0 };
	struct growth_request growth = { .identity = inq->how.close.identity,
					 .settings = inq->how.close.settings,
					 .program = inq->how.program,
					 .slot_env = inq->how.env,
					 .jobs = inq->how.jobs,
					 .trials = GROWTH_TRIALS,
					 .progress = request->show.progress,
					 .progress_ctx = request->show.ctx };
	int r = growth_run(inq->cs, &growth, &report, &why);

	inq->ret->interrupted |= report.interrupted;
	if (r == 0)
		evidence_add_experiment(&inq->evidence,
					&(struct experiment_made){
						.kind = EXPERIMENT_GROWTH,
						.trials = report.usable,
						.telling = report.usable,
						.shown = report.sites.count > 0 ? report.usable : 0,
						.coverage = 1 });
	if (r == 0 && report.interrupted) {
		r = 0;
	} else if (r == 0 && report.sites.count > 0) {
		add_growth(inq, &report);
		r = decide(
			inq,
			"nothing fails; %zu allocation site%s grow%s from test to test, in %u of "
			"%u runs",
			report.sites.count, report.sites.count == 1 ? "" : "s",
			report.sites.count == 1 ? "s" : "", report.usable, report.usable);
	} else if (r == 0) {
		r = decide(inq, "nothing fails, and no allocation site grows from test to test");
	} else {
		r = decide(inq, "nothing fails; whether something grows cannot be told: %s",
			   why.message);
	}
	growth_report_deinit(&report);
	return r;
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	return !inq->known.target && inq->known.summary.rate.trials > 0 && !inq->known.too_slow &&
	       inq->how.close.observer != OBSERVE_NONE &&
	       (inq->known.guarded || inq->request->budget_s <= 0);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, GROWTH_TRIALS, 2, ret);
}

const struct experiment_ops experiment_growth = { .name = "growth",
						  .question = QUESTION_HIT,
						  .kind = EXPERIMENT_GROWTH,
						  .chance = 0.1,
						  .applies = applies,
						  .price = price,
						  .run = run };
