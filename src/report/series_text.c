/*
 * `repro` and `compare` as text for a terminal.
 */
#include "report/report_series.h"

#include <inttypes.h>
#include <string.h>

#include "base/percent.h"
#include "report/report_crash.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define INTERMITTENT_SHOWN 10
#define DETAILED 3 /* ways to fail that are told at length; --json has all */

/* Small p-values as people write them. */
static void add_p(struct strbuf *sb, double p)
{
	if (p < 1e-6)
		strbuf_adds(sb, "p < 0.000001");
	else
		strbuf_addf(sb, p < 0.001 ? "p = %.6f" : "p = %.3f", p);
}

static void print_p(double p, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	add_p(&sb, p);
	(void)fputs(strbuf_str(&sb), out);
}

static void print_window(const struct window *window, const char *indent, FILE *out)
{
	put(out, "%sdied after  %s\n", indent, window->last);
	if (window->next)
		put(out, "%sbefore      %s\n", indent, window->next);
	else
		put(out, "%sbefore      (no full run printed that line)\n", indent);
}

static void print_places(const struct signature_summary *s, FILE *out)
{
	if (s->windows.count == 0 || s->signature.kind == FAILURE_TEST)
		return;
	/* A program that prints nothing has no places. */
	if (s->places == 1 && !s->windows.items[0].next &&
	    strcmp(s->windows.items[0].last, CRUMB_START) == 0)
		return;
	for (size_t i = 0; i < s->windows.count && i < 3; i++) {
		print_window(&s->windows.items[i], "      ", out);
		if (s->places > 1)
			put(out, "                  (%" PRIu64 " of %" PRIu64 ")\n",
			    s->windows.items[i].count, s->rate.failed);
	}
	if (s->places > 1)
		put(out,
		    "      the place moves between runs: %" PRIu64 " places in %" PRIu64
		    " failures\n",
		    s->places, s->rate.failed);
}

static void print_signature(const struct signature_summary *s, bool details, FILE *out)
{
	if (s->always)
		put(out, "  %s  %5" PRIu64 "  %s\n", s->signature.id, s->rate.failed,
		    s->signature.summary);
	else
		put(out, "  %s  %5" PRIu64 "  %5s %%  %s\n", s->signature.id, s->rate.failed,
		    PERCENT(s->rate.rate), s->signature.summary);
	if (details && s->crash)
		report_crash_brief(s->crash, "      ", out);
	if (details)
		print_places(s, out);
	put(out, "      example: trial %" PRIu64 "\n", s->trial);
}

/* The first `details` ones are told at length. */
static void print_signatures(const struct signature_summaries *signatures, size_t details,
			     FILE *out)
{
	size_t intermittent = 0, always = 0;

	VEC_FOREACH (&signatures->list, s) {
		if (s->always)
			continue;
		if (intermittent == 0)
			put(out, "\nFails now and then:\n");
		if (intermittent++ < INTERMITTENT_SHOWN)
			print_signature(s, intermittent <= details, out);
	}
	if (intermittent > INTERMITTENT_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n",
		    intermittent - INTERMITTENT_SHOWN);
	VEC_FOREACH (&signatures->list, s) {
		if (!s->always)
			continue;
		if (always++ == 0)
			put(out,
			    "\nAlways fails (in every run that got that far): a separate issue\n");
		print_signature(s, always <= details, out);
	}
}

/* Which of the ways to fail count as one failure. */
static void print_families(const struct failure_families *families, FILE *out)
{
	VEC_FOREACH (&families->list, family) {
		const char *test = family_test(family);

		if (family->members.count < 2)
			continue;
		put(out, "\nCounted as one failure, because %s%s:",
		    test ? "all are in " : "nothing tells them apart", test ? test : "");
		VEC_FOREACH (&family->members, member)
			put(out, " %s", member->id);
		put(out, "\n  together ");
		text_rate(&family->rate, out);
		put(out, "\n");
	}
}

/* The machines say more than their slots do. */
static void print_nodes(const struct series_summary *summary, FILE *out)
{
	if (summary->nodes.count == 0)
		return;
	put(out, "\nMachines:\n");
	VEC_FOREACH (&summary->nodes, n) {
		put(out, "  %-12s ", n->node[0] != '\0' ? n->node : "this one");
		text_rate(&n->rate, out);
		if (summary->odd_node == (int)(n - summary->nodes.items)) {
			put(out, n->rate.failed == 0 ? "  <- never fails while others do, "
						     : "  <- differs from the others, ");
			print_p(n->p, out);
		}
		put(out, "\n");
	}
}

static void print_slots(const struct series_summary *summary, FILE *out)
{
	if (summary->slots.count < 2)
		return;
	put(out, "\nSlots:\n");
	VEC_FOREACH (&summary->slots, s) {
		put(out, "  slot %-3u ", s->slot);
		text_rate(&s->rate, out);
		if (summary->odd_slot == (int)(s - summary->slots.items)) {
			put(out, s->rate.failed == 0 ? "  <- never fails while others do, "
						     : "  <- differs from the others, ");
			print_p(s->p, out);
		}
		put(out, "\n");
	}
}

static void print_advice(const struct series_summary *summary, FILE *out)
{
	if (summary->crash_places > 1)
		put(out,
		    "\nThe %" PRIu64 " runs that were cut short ended in %" PRIu64
		    " different places.\n",
		    summary->crashes, summary->crash_places);
	if (summary->buffered)
		put(out, "\nThe crashed runs seem to have lost buffered output, so the "
			 "places above may be too early: try --pty.\n");
	if (summary->leftovers > 0)
		put(out,
		    "\n%" PRIu64 " trials left processes running, which redhand ended "
		    "(see --linger).\n",
		    summary->leftovers);
}

static void print_clean_runs(const struct series_summary *summary, FILE *out)
{
	AUTO(mem_freep) char *text = text_clean_runs(summary);

	put(out, "\n%s", text);
}

static void print_headline(const struct series_summary *summary, FILE *out)
{
	text_rate(&summary->rate, out);
	if (summary->failed_any == 0)
		put(out, "\nNo failure seen: the rate is below %s %% with 95 %% confidence",
		    PERCENT(summary->clean_bound));
	else if (!summary->intermittent)
		put(out, "\nIt fails in the same way in every run");
	else if (summary->clean_runs_for_99 <= 1)
		put(out, "\nIt has failed in every run so far; a larger -n tells whether "
			 "it comes and goes");
	else
		print_clean_runs(summary, out);
	put(out, "\n");
}

void report_repro_text(const struct repro_result *result, FILE *out)
{
	const struct series_summary *summary = &result->summary;

	if (result->interrupted)
		put(out, "Interrupted; the same command goes on from here.\n");
	text_program(result->program, out);
	put(out, "\n");
	print_headline(summary, out);
	if (result->earlier > 0)
		put(out,
		    "(%" PRIu64 " of these trials were in the case already; --fresh starts "
		    "over)\n",
		    result->earlier);
	print_signatures(&summary->signatures, DETAILED, out);
	print_families(&summary->families, out);
	print_nodes(summary, out);
	print_slots(summary, out);
	print_advice(summary, out);
	put(out, "\n%u slot%s, %.3f s a trial, at most %.1f MiB; this run took %.1f s. Case: %s\n",
	    result->jobs, result->jobs == 1 ? "" : "s", summary->use.wall_mean_s,
	    (double)summary->use.peak_kib / 1024, result->seconds, result->case_dir);
}

#define SHARED_SHOWN 5u

static void print_shared(const struct strv *paths, FILE *out)
{
	if (paths->count == 0)
		return;
	put(out, "\nMore than one arm wrote these files, so one arm may change how often "
		 "another fails:\n");
	for (size_t i = 0; i < paths->count && i < SHARED_SHOWN; i++)
		put(out, "  %s\n", paths->items[i]);
	if (paths->count > SHARED_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n", paths->count - SHARED_SHOWN);
	put(out, "Give each arm its own place, for example --arm NAME:CACHE_DIR=cache-{arm}\n");
}

/* Of trials that passed. */
static void print_times(const struct compare_result *result, FILE *out)
{
	size_t told = 0;

	VEC_FOREACH (&result->arms, arm)
		told += arm->times.trials > 0;
	if (told < 2)
		return;
	put(out, "\nTime of a trial that passed, median:\n");
	VEC_FOREACH (&result->arms, arm) {
		const struct arm_times *t = &arm->times;

		if (t->trials == 0)
			continue;
		put(out, "  %-16s %.4g s", arm->name, t->median_s);
		if (t->compared) {
			put(out, ", %.3g times as long (95 %%: %.3g to %.3g), ", t->ratio, t->low,
			    t->high);
			print_p(t->p, out);
		}
		put(out, "\n");
	}
}

static void add_counts(struct strbuf *sb, const struct rate *rate, const struct rate *first)
{
	strbuf_addf(sb, "%llu/%llu against %llu/%llu", (unsigned long long)rate->failed,
		    (unsigned long long)rate->trials, (unsigned long long)first->failed,
		    (unsigned long long)first->trials);
}

static void add_difference(struct strbuf *sb, const struct arm_summary *arm,
			   const struct arm_summary *first)
{
	if (sb->len > 0)
		strbuf_adds(sb, "; ");
	if (arm->p < COMPARE_ALPHA) {
		strbuf_addf(sb, "'%s' fails %s often than '%s': ", arm->name,
			    arm->difference > 0 ? "more" : "less", first->name);
		add_counts(sb, &arm->rate, &first->rate);
	} else if (arm->rate.failed + first->rate.failed == 0) {
		strbuf_addf(sb, "neither '%s' nor '%s' has failed: ", arm->name, first->name);
		add_counts(sb, &arm->rate, &first->rate);
	} else {
		strbuf_addf(sb, "no significant difference between '%s' and '%s': ", arm->name,
			    first->name);
		add_counts(sb, &arm->rate, &first->rate);
	}
	strbuf_adds(sb, ", ");
	add_p(sb, arm->p);
}

char *compare_sentence(const struct compare_result *result)
{
	struct strbuf sb = { 0 };

	for (size_t i = 1; i < result->arms.count; i++)
		add_difference(&sb, &result->arms.items[i], &result->arms.items[0]);
	return strbuf_take(&sb);
}

void report_compare_text(const struct compare_result *result, FILE *out)
{
	AUTO(mem_freep) char *sentence = compare_sentence(result);
	AUTO(mem_freep) char *stopped = words_of(&result->stop_reason);

	if (result->interrupted)
		put(out, "Interrupted; the same command goes on from here.\n");
	text_program(result->program, out);
	put(out, "\n%s\n\n", sentence);
	VEC_FOREACH (&result->arms, arm) {
		put(out, "  %-16s ", arm->name);
		text_rate(&arm->rate, out);
		if (arm != result->arms.items) {
			put(out, "  difference %+.1f points (95 %%: %+.1f to %+.1f), ",
			    arm->difference * 100, arm->difference_low * 100,
			    arm->difference_high * 100);
			print_p(arm->p, out);
		}
		put(out, "\n");
	}
	print_times(result, out);
	if (stopped)
		put(out, "\nStopped early: %s.\n", stopped);
	print_shared(&result->shared, out);
	print_signatures(&result->signatures, 0, out);
	put(out, "\nOrder of the trials: seed %" PRIu64 ". Case: %s\n", result->seed,
	    result->case_dir);
}
