/*
 * Growth: nothing fails; does something grow from test to test? Three trials that count live
 * blocks at each line.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "studies/growth/growth_study.h"

#define GROWTH_TRIALS 3u
#define GROWTH_SITES 3u

/* Who still points to what grew: "a block of 512 bytes (index_add in index.c), which `all` leads
 * to". */
static void describe_holder(const struct growth_holder *holder, struct said *ret)
{
	if (holder->name)
		SAY(ret, "holder:global", said_text(holder->name), said_text(holder->root));
	else
		SAY(ret, "holder:other", said_flag(strcmp(holder->kind, "block") == 0),
		    said_number(holder->size), said_text(holder->kind),
		    said_frame(stack_site(&holder->stack)), said_text(holder->root));
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
		VEC_FOREACH (&site->levels, level)
			VEC_PUSH(&e.growth->levels, *level);
		if (site->holders.count > 0)
			describe_holder(&site->holders.items[0], &e.growth->holder);
		VEC_PUSH(&inq->evidence.list, e);
		if (++added >= GROWTH_SITES)
			break;
	}
}

static int run(struct inquiry *inq)
{
	struct growth_report report = { 0 };
	struct err why = { 0 };
	struct growth_request growth = { .series = hunt_series(inq, &inq->how.close),
					 .trials = GROWTH_TRIALS };
	int r = growth_run(inq->cs, &growth, &report, &why);

	inq->ret->interrupted |= report.interrupted;
	/* One more looked for the holders. */
	hunt_count(inq, report.trials + (report.sites.count > 0 && !report.interrupted),
		   report.failed, 0);
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
		r = DECIDE(inq, "growth:found", said_number(report.sites.count),
			   said_number(report.usable));
	} else if (r == 0) {
		r = DECIDE(inq, "growth:none");
	} else {
		r = DECIDE(inq, "growth:failed", said_text(why.message));
	}
	growth_report_deinit(&report);
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	return !inq->known.target && inq->known.summary.rate.trials > 0 && !inq->known.too_slow &&
	       inq->how.close.observer != OBSERVE_NONE &&
	       (inq->known.guarded || inq->request->budget_s <= 0);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, GROWTH_TRIALS, 2, ret);
}

EXPERIMENT(growth, .name = "growth", .question = QUESTION_HIT, .kind = EXPERIMENT_GROWTH,
	   .chance = 0.1, .applies = applies, .price = price, .run = run);
