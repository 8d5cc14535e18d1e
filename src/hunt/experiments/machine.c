/*
 * Is it the machine? Asked before code is accused of what nobody was seen doing.
 *
 * Worth it when the evidence so far accuses nobody firmly. Costs three seconds for a memory test,
 * and some trials kept on one core each when something else points to the machine already. Decides
 * nothing by itself: the signs become evidence, and the rules are strict (judge/).
 */
#include "hunt/inquiry.h"

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
#define NODE_P 0.05 /* a machine whose difference is more likely is not worth a word */

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

static bool applies(struct inquiry *inq, struct said *why)
{
	struct verdict verdict = { 0 };
	struct host_signs signs = { 0 };
	bool firm;

	if (!hunt_crashes(inq) || inq->ret->interrupted)
		return false;
	if (hunt_always(inq) || inq->known.plain_fault) {
		SAY(why, "why:every-run");
		return false;
	}
	judge_evidence(&inq->evidence, &verdict);
	firm = verdict.firm;
	verdict_deinit(&verdict);
	count_signals(inq, &signs);
	if (firm)
		SAY(why, "why:explained");
	else if (signs.segv + signs.bus + signs.ill == 0)
		SAY(why, "why:stopped-itself");
	return !said_anything(why);
}

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
	struct trial_settings settings = *inq->how.plain.settings;
	AUTO(mem_freep) char *line = mem_printf("chaos %u\n", (unsigned int)CHAOS_PIN);
	AUTO(mem_freep) char *text = series_settings_with(inq->how.plain_settings, "chaos", line);
	double wanted =
		inq->known.rate.rate > 0 ? PIN_FAILURES / inq->known.rate.rate : PIN_TRIALS_MOST;
	struct fisher_table table = { 0 };
	struct cores cores = { .table = &table, .core = -1 };
	struct series_found found;
	AUTO(repro_result_deinit) struct repro_result result = { 0 };
	struct repro_request repro = { .series = hunt_series(inq, &inq->how.plain) };
	int r;

	repro.series.settings = &settings;
	repro.series.identity = (struct series_identity){
		.command = "compare", .settings = text, .program = inq->how.plain.identity.program
	};
	repro.trials = hunt_trials(inq, wanted < PIN_TRIALS_LEAST  ? PIN_TRIALS_LEAST
					: wanted < PIN_TRIALS_MOST ? (uint64_t)wanted
								   : PIN_TRIALS_MOST);
	settings.chaos = CHAOS_PIN;
	r = repro_run(inq->cs, &repro, &result, inq->err);
	if (r == 0)
		r = case_series(inq->cs, &repro.series.identity, 0, &found, inq->err);
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
	return DECIDE(inq, "machine:core", said_signed(cores.core), said_number(table.failed_a),
		      said_number(table.trials_a), said_number(table.failed_b),
		      said_number(table.trials_b), said_real(signs->core_p));
}

static int note_node(struct inquiry *inq, struct host_signs *signs)
{
	const struct series_summary *s = &inq->known.summary;
	const struct node_summary *odd = NULL;

	/* Of two machines both differ from the other one: it is where failures are. */
	VEC_FOREACH (&s->nodes, node)
		if (node->rate.rate > s->rate.rate && (!odd || node->p < odd->p))
			odd = node;
	if (odd && odd->p >= NODE_P)
		odd = NULL;
	if (odd ? odd->p == signs->node_p : signs->node[0] == '\0')
		return 0; /* known already */
	signs->node[0] = '\0';
	signs->node_p = 1;
	if (!odd)
		return 0;
	(void)snprintf(signs->node, sizeof(signs->node), "%s",
		       odd->node[0] != '\0' ? odd->node : "this one");
	signs->node_p = odd->p;
	return DECIDE_IN(inq, "machine", "machine:node", said_text(signs->node),
			 said_number(odd->rate.failed), said_number(odd->rate.trials),
			 said_number(s->rate.failed - odd->rate.failed),
			 said_number(s->rate.trials - odd->rate.trials), said_real(odd->p));
}

int machine_tell_node(struct inquiry *inq)
{
	VEC_FOREACH (&inq->evidence.list, e)
		if (e->kind == EVIDENCE_HOST)
			return note_node(inq, e->host);
	return 0;
}

static int test_memory(struct inquiry *inq, struct host_signs *signs)
{
	double left = hunt_seconds_left(inq);
	struct memtest_result result;

	if (inq->how.plain.settings->shared.fleet)
		return DECIDE(inq, "machine:remote");
	if (left < 2 * MEMTEST_S)
		return DECIDE(inq, "machine:no-time");
	if (memtest_run(&(struct memtest_request){ .seconds = MEMTEST_S }, &result) < 0)
		return DECIDE(inq, "machine:no-memory");
	signs->memory_tested = true;
	signs->memory_errors = result.errors;
	signs->memory_seconds = result.seconds;
	return DECIDE(inq, "machine:memory", said_number(result.errors),
		      said_number(result.bytes >> 20), said_real(result.seconds),
		      said_number(result.cores));
}

static int run(struct inquiry *inq)
{
	struct evidence e = evidence_new(EVIDENCE_HOST, 0, true);
	bool suspicious;
	int r;

	e.host->core = -1;
	e.host->core_p = e.host->node_p = 1;
	signs_count_flips(&inq->evidence, e.host);
	count_signals(inq, e.host);
	r = note_node(inq, e.host);
	suspicious = signs_flips(e.host) || signs_signals(e.host) || signs_node(e.host);
	if (r == 0)
		r = DECIDE(inq, "machine:signs", said_number(e.host->bit_flips),
			   said_number(e.host->segv), said_number(e.host->bus),
			   said_number(e.host->ill), said_number(e.host->sites),
			   said_flag(suspicious));
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

EXPERIMENT(machine, .name = "machine", .question = QUESTION_MACHINE, .kind = EXPERIMENT_MACHINE,
	   .chance = 0.05, .refines = true, .applies = applies, .price = price, .run = run);
