/*
 * `bisect` as text for a terminal.
 */
#include <inttypes.h>
#include <string.h>

#include "report/report_bisect.h"
#include "report/text_parts.h"

#define HASH_SHOWN 12
#define SUSPECTS_SHOWN 20
#define UNTESTED_SHOWN 10
#define SUBJECT_SHOWN 60
#define SIGNATURES_SHOWN 10

static void print_subject(const char *subject, FILE *out)
{
	size_t len = strlen(subject);

	if (len > SUBJECT_SHOWN) {
		len = SUBJECT_SHOWN;
		/* Not in the middle of a character. */
		while (len > 0 && ((unsigned char)subject[len] & 0xc0) == 0x80)
			len--;
		put(out, "%.*s…", (int)len, subject);
	} else {
		(void)fputs(subject, out);
	}
}

static const struct bisected_commit *first_suspect(const struct bisect_result *result)
{
	return VEC_FIND(&result->commits, commit, commit->suspect);
}

static void print_found(const struct bisect_result *result, FILE *out)
{
	const struct bisected_commit *commit = first_suspect(result);

	if (!commit)
		return;
	put(out, "%.*s brought it: %.1f %% sure", HASH_SHOWN, commit->hash,
	    result->probability * 100);
	if (result->with_rate_doubt < result->wanted)
		put(out,
		    " at the rate that was seen,\n%.1f %% when that may be another "
		    "(--careful goes on until both are %g %%)",
		    result->with_rate_doubt * 100, result->wanted * 100);
	put(out, "\n\n  commit %s\n  Author: %s\n  Date:   %s\n\n      %s\n", commit->hash,
	    commit->author, commit->date, commit->subject);
}

static void print_suspects(const struct bisect_result *result, FILE *out)
{
	size_t shown = 0, count = 0;

	VEC_FOREACH (&result->commits, commit)
		count += commit->suspect;
	VEC_FOREACH (&result->commits, commit) {
		if (!commit->suspect || shown++ >= SUSPECTS_SHOWN)
			continue;
		put(out, "  %5.1f %%  %.*s  ", commit->probability * 100, HASH_SHOWN, commit->hash);
		print_subject(commit->subject, out);
		if (commit->number == 0)
			put(out, "  (GOOD, or one before it)");
		if (commit->untested)
			put(out, "  (%s)", commit->untested);
		put(out, "\n");
	}
	if (count > SUSPECTS_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n", count - SUSPECTS_SHOWN);
}

static void print_searching(const struct bisect_result *result, FILE *out)
{
	if (!result->interrupted)
		put(out, "Not sure, and nothing is left that could be tested. ");
	put(out, "Most likely so far:\n\n");
	print_suspects(result, out);
	if (result->never > 0.01)
		put(out, "  %5.1f %%  none: BAD does not fail\n", result->never * 100);
	if (result->to_go >= 1 && result->interrupted)
		put(out, "\nAbout %.0f more trials are expected.\n", result->to_go);
}

static void print_never(const struct bisect_result *result, FILE *out)
{
	put(out, "BAD (%.*s) does not fail", HASH_SHOWN, result->bad);
	if (result->failed == 0)
		put(out,
		    ": %" PRIu64 " clean trials, so it fails less often than %.2g %% "
		    "of the time (%.3g %% confidence).\n",
		    result->trials, 100 * result->clean_bound, 100 * result->wanted);
	else
		put(out, " more often than the others: %.1f %% sure.\n", result->never * 100);
}

static void print_headline(const struct bisect_result *result, FILE *out)
{
	if (result->interrupted)
		put(out, "Interrupted; the same command goes on from here.\n");
	switch (result->verdict) {
	case BISECTED_FOUND:
		print_found(result, out);
		break;
	case BISECTED_RANGE:
		put(out,
		    "One of these brought it: %.1f %% sure. What would tell them apart "
		    "cannot be tested.\n\n",
		    result->probability * 100);
		print_suspects(result, out);
		break;
	case BISECTED_BEFORE:
		put(out,
		    "It was there before: GOOD (%.*s) fails, too: %.1f %% sure. Name an "
		    "older GOOD.\n",
		    HASH_SHOWN, result->good, result->probability * 100);
		break;
	case BISECTED_NEVER:
		print_never(result, out);
		break;
	default:
		print_searching(result, out);
	}
}

static void print_tested(const struct bisect_result *result, FILE *out)
{
	put(out, "\nTested, oldest first:\n    failed of trials  is it?   commit\n");
	VEC_FOREACH (&result->commits, commit) {
		if (commit->rate.trials == 0)
			continue;
		put(out, "  %8" PRIu64 " of %-6" PRIu64 " %6.1f %%  %.*s  ", commit->rate.failed,
		    commit->rate.trials, commit->probability * 100, HASH_SHOWN, commit->hash);
		print_subject(commit->subject, out);
		put(out, "%s%s\n",
		    commit->number == 0		      ? "  (GOOD)"
		    : commit->number == result->total ? "  (BAD)"
						      : "",
		    commit->suspect && result->verdict == BISECTED_FOUND ? "   <-" : "");
	}
}

static void print_untested(const struct bisect_result *result, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&result->commits, commit) {
		if (!commit->untested)
			continue;
		if (shown == 0)
			put(out, "\nCould not be tested:\n");
		if (shown++ < UNTESTED_SHOWN)
			put(out, "  %.*s  %s\n", HASH_SHOWN, commit->hash, commit->untested);
	}
	if (shown > UNTESTED_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n", shown - UNTESTED_SHOWN);
	if (shown > 0 && result->builds_dir)
		put(out, "  The builds' output is in %s, by the number of the commit.\n",
		    result->builds_dir);
}

static void print_signatures(const struct bisect_result *result, FILE *out)
{
	size_t shown = 0;

	VEC_FOREACH (&result->signatures.list, s) {
		if (shown == 0)
			put(out, "\nHow it failed:\n");
		if (shown++ < SIGNATURES_SHOWN)
			put(out, "  %s  %5" PRIu64 "  %s (trial %" PRIu64 ")%s\n", s->signature.id,
			    s->rate.failed, s->signature.summary, s->trial,
			    strcmp(s->signature.id, result->target) == 0 ? "   <- counted" : "");
	}
	if (shown > SIGNATURES_SHOWN)
		put(out, "  … and %zu more (--json lists them)\n", shown - SIGNATURES_SHOWN);
	if (shown > 1 && result->target[0] == '\0')
		put(out, "  All of these were counted alike; --signature ID counts one "
			 "only.\n");
}

/* A wrong rate makes the answer look surer than it is. The trials do not depend on it. */
static void print_doubt(const struct bisect_result *result, FILE *out)
{
	if (result->stated_rate <= 0 || result->there.trials == 0 ||
	    (result->stated_rate >= result->there.low && result->stated_rate <= result->there.high))
		return;
	put(out,
	    "\nThe stated rate of %.3g %% does not fit: %" PRIu64 " of %" PRIu64
	    " trials failed where it is there, so the answer is less sure than said. The "
	    "same command without --rate goes on with these trials.\n",
	    result->stated_rate * 100, result->there.failed, result->there.trials);
}

static void print_figures(const struct bisect_result *result, FILE *out)
{
	if (result->failed > 0)
		put(out,
		    "\nWhere it is, it fails in %.0f %% of the trials (%.0f–%.0f %%). "
		    "git bisect would take %" PRIu64 " steps of %" PRIu64 " runs, %" PRIu64
		    " in all, to be as sure at each step.\n",
		    result->rate * 100, result->rate_low * 100, result->rate_high * 100,
		    result->git_steps, result->git_repeats,
		    result->git_steps * result->git_repeats);
	if (result->no_information > 0)
		put(out, "\n%" PRIu64 " trials said nothing and were not counted.\n",
		    result->no_information);
	put(out,
	    "\n%" PRIu64 " trials (%" PRIu64 " from earlier runs) over %zu commit%s%s, "
	    "%" PRIu64 " checked out%s, %u slot%s; this run took %.1f s. Case: %s\n",
	    result->trials + result->no_information, result->earlier, result->total,
	    result->total == 1 ? "" : "s", result->first_parent ? " (first parents only)" : "",
	    result->builds, result->builds_dir ? " and built" : "", result->jobs,
	    result->jobs == 1 ? "" : "s", result->seconds, result->case_dir);
}

void report_bisect_text(const struct bisect_result *result, FILE *out)
{
	print_headline(result, out);
	print_tested(result, out);
	print_untested(result, out);
	print_signatures(result, out);
	print_doubt(result, out);
	print_figures(result, out);
}
