/*
 * Is it the machine? Asked before code is accused of what nobody was seen doing.
 *
 * Worth it when the evidence so far accuses nobody firmly. Costs three seconds for a memory test,
 * and some trials kept on one core each when something else points to the machine already. Decides
 * nothing by itself: the signs become evidence, and the rules are strict (judge/).
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "doctor/memtest.h"
#include "judge/judge.h"
#include "judge/signs.h"
#include "run/settings.h"
#include "search/stats/fisher.h"

#define MEMTEST_S 3.0
#define PIN_TRIALS_LEAST 20u
#define PIN_TRIALS_MOST 120u
#define PIN_FAILURES 12u

/* Signals and places of what came and went. Files that somebody cut are no broken memory. */
static void count_signals(const struct inquiry *inq, struct host_signs *signs)
{
	AUTO(strv_deinit) struct strv sites = { 0 };

	VEC_FOREACH (&inq->known.summary.signatures.list, s) {
		const struct signature *g = &s->signature;
		bool known = !g->site;

		if (g->kind != FAILURE_SIGNAL || hunt_every_run(inq, s) ||
		    (g->fault && strcmp(g->fault, "mapping-shrank") == 0))
			continue;
		signs->segv += g->signal == SIGSEGV ? (unsigned int)s->rate.failed : 0;
		signs->bus += g->signal == SIGBUS ? (unsigned int)s->rate.failed : 0;
		signs->ill += g->signal == SIGILL ? (unsigned int)s->rate.failed : 0;
		for (size_t i = 0; i < sites.count && !known; i++)
			known = strcmp(sites.items[i], g->site) == 0;
		if (!known)
			strv_add(&sites, g->site);
	}
	signs->sites = (unsigned int)sites.count;
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	struct verdict verdict = { 0 };
	struct host_signs signs = { 0 };
	bool firm;

	if (!hunt_crashes(inq) || inq->ret->interrupted)
		return false;
	if (hunt_always(inq) || inq->known.plain_fault) {
		strbuf_adds(why, "every run fails in the same way, which no broken machine does");
		return false;
	}
	judge_evidence(&inq->evidence, &verdict);
	firm = verdict.firm;
	verdict_deinit(&verdict);
	count_signals(inq, &signs);
	if (firm)
		strbuf_adds(why, "what was caught explains it");
	else if (signs.segv + signs.bus + signs.ill == 0)
		strbuf_adds(why, "the program stopped itself, it did not stumble");
	return why->len == 0;
}

/* ---- one core ---- */

struct cores {
	struct fisher_table *table; /* a: the core that fails most, b: the others */
	int core;
	double best;
	unsigned int count;
	uint64_t trials, failed;
};

static void find_core(void *ctx, const struct core_row *row)
{
	struct cores *cores = ctx;
	double rate = (double)row->failed / (double)row->trials;

	cores->count++;
	cores->trials += row->trials;
	cores->failed += row->failed;
	if (row->failed == 0 || rate <= cores->best)
		return;
	cores->best = rate;
	cores->core = row->core;
	cores->table->trials_a = row->trials;
	cores->table->failed_a = row->failed;
}

/* Trials on one core each, drawn for each: does it fail on one only? */
static int pin(struct inquiry *inq, struct host_signs *signs)
{
	const struct hunt_request *request = inq->request;
	struct trial_settings settings = *inq->how.plain.settings;
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_PIN);
	AUTO(mem_freep) char *text = series_settings_with(inq->how.plain_settings, "chaos", line);
	double wanted =
		inq->known.rate.rate > 0 ? PIN_FAILURES / inq->known.rate.rate : PIN_TRIALS_MOST;
	struct fisher_table table = { 0 };
	struct cores cores = { .table = &table, .core = -1 };
	struct series_found found;
	AUTO(repro_result_deinit) struct repro_result result = { 0 };
	struct repro_request repro = { .settings = &settings,
				       .observer = inq->how.plain.observer,
				       .program = inq->how.program,
				       .slot_env = inq->how.env,
				       .jobs = inq->how.jobs,
				       .fresh = request->fresh,
				       .progress = request->show.progress,
				       .progress_ctx = request->show.ctx };
	int r;

	repro.identity = (struct series_identity){ .command = "compare",
						   .settings = text,
						   .program = inq->how.plain.identity.program };
	repro.trials = hunt_trials(inq, wanted < PIN_TRIALS_LEAST  ? PIN_TRIALS_LEAST
					: wanted < PIN_TRIALS_MOST ? (uint64_t)wanted
								   : PIN_TRIALS_MOST);
	settings.chaos = CHAOS_PIN;
	r = repro_run(inq->cs, &repro, &result, inq->err);
	if (r == 0)
		r = case_series(inq->cs, &repro.identity, 0, &found, inq->err);
	if (r == 0)
		r = case_cores(inq->cs, found.id, find_core, &cores, inq->err);
	if (r < 0)
		return r;
	inq->ret->interrupted |= result.interrupted;
	hunt_count(inq, result.summary.rate.trials, result.summary.failed_any, result.earlier);
	table.trials_b = cores.trials - table.trials_a;
	table.failed_b = cores.failed - table.failed_a;
	signs->core = cores.core;
	signs->core_p = 1;
	if (cores.core >= 0 && cores.count > 1)
		signs->core_p = fmin(1, fisher_greater(&table) * cores.count);
	return decide(inq,
		      "kept on one core: core %d failed %" PRIu64 " of %" PRIu64
		      " times, the others %" PRIu64 " of %" PRIu64 " (p = %.2g)",
		      cores.core, table.failed_a, table.trials_a, table.failed_b, table.trials_b,
		      signs->core_p);
}

/* ---- one of several machines ---- */

static int note_node(struct inquiry *inq, struct host_signs *signs)
{
	const struct series_summary *s = &inq->known.summary;
	const struct node_summary *odd;

	signs->node_p = 1;
	if (s->odd_node < 0 || (size_t)s->odd_node >= s->nodes.count)
		return 0;
	odd = &s->nodes.items[s->odd_node];
	if (odd->rate.rate <= s->rate.rate)
		return 0;
	(void)snprintf(signs->node, sizeof(signs->node), "%s",
		       odd->node[0] != '\0' ? odd->node : "this one");
	signs->node_p = odd->p;
	return decide(inq,
		      "the machine '%s' failed %" PRIu64 " of %" PRIu64
		      " times, the others %" PRIu64 " of %" PRIu64 " (p = %.2g)",
		      signs->node, odd->rate.failed, odd->rate.trials,
		      s->rate.failed - odd->rate.failed, s->rate.trials - odd->rate.trials, odd->p);
}

/* ---- memory ---- */

static int test_memory(struct inquiry *inq, struct host_signs *signs)
{
	double left = hunt_seconds_left(inq);
	struct memtest_result result;

	if (inq->how.plain.settings->fleet)
		return decide(inq, "the trials ran on other machines: their memory was not tested");
	if (left < 2 * MEMTEST_S)
		return decide(inq, "no time is left for a memory test");
	if (memtest_run(&(struct memtest_request){ .seconds = MEMTEST_S }, &result) < 0)
		return decide(inq, "there is too little free memory to test some");
	signs->memory_tested = true;
	signs->memory_errors = result.errors;
	signs->memory_seconds = result.seconds;
	return decide(inq, "memory test: %" PRIu64 " errors in %zu MiB, %.1f s on %u core%s",
		      result.errors, result.bytes >> 20, result.seconds, result.cores,
		      result.cores == 1 ? "" : "s");
}

static int run(struct inquiry *inq)
{
	struct evidence e = evidence_new(EVIDENCE_HOST, 0, true);
	bool suspicious;
	int r;

	e.host->core = -1;
	e.host->core_p = 1;
	signs_count_flips(&inq->evidence, e.host);
	count_signals(inq, e.host);
	r = note_node(inq, e.host);
	suspicious = signs_flips(e.host) || signs_signals(e.host) || signs_node(e.host);
	if (r == 0)
		r = decide(
			inq,
			"%u flipped bit%s without a writer; SIGSEGV %u, SIGBUS %u, SIGILL %u, in %u "
			"place%s: %s",
			e.host->bit_flips, e.host->bit_flips == 1 ? "" : "s", e.host->segv,
			e.host->bus, e.host->ill, e.host->sites, e.host->sites == 1 ? "" : "s",
			suspicious ? "the machine may be at fault, so one core at a time"
				   : "nothing points to the machine");
	if (r == 0 && suspicious && !hunt_over(inq))
		r = pin(inq, e.host);
	if (r == 0 && !inq->ret->interrupted)
		r = test_memory(inq, e.host);
	VEC_PUSH(&inq->evidence.list, e);
	return r;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	*ret = (struct price){ .seconds = MEMTEST_S };
}

const struct experiment_ops experiment_machine = { .name = "machine",
						   .question = QUESTION_MACHINE,
						   .kind = EXPERIMENT_MACHINE,
						   .chance = 0.05,
						   .refines = true,
						   .applies = applies,
						   .price = price,
						   .run = run };
