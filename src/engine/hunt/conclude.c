/*
 * The end: what the evidence says, a sentinel that can tell when it is fixed, and where nothing was
 * found, what was excluded and what to try next.
 *
 * Never left out, even when the budget is spent or the user interrupts.
 */
#include "engine/hunt/inside.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "engine/sentinel/make.h"
#include "engine/stats/rate.h"
#include "judge/judge.h"

#define RATE_WORTH_KNOWING 0.001 /* what a longer look would exclude */

/* ---- what is said when nobody was caught ---- */

static void replace(char **text, struct strbuf *sb)
{
	mem_free(*text);
	*text = strbuf_take(sb);
}

static void forget_open(struct verdict *verdict)
{
	strv_deinit(&verdict->open);
	verdict->open = (struct strv){ 0 };
}

static void tell_never_failed(const struct hunt *hunt, struct verdict *verdict)
{
	const struct rate *rate = &hunt->summary.rate;
	uint64_t more = rate_clean_runs(RATE_WORTH_KNOWING, RATE_CONFIDENCE);
	struct strbuf sentence = { 0 }, next = { 0 };

	forget_open(verdict);
	if (hunt->too_slow) {
		strbuf_addf(&sentence,
			    "no trial came to its end within %.0f s, which is what the budget "
			    "leaves to one",
			    hunt->request->hangs_s);
		strbuf_adds(&next, "a larger --budget, or --timeout with how long a run may take");
	} else if (rate->trials == 0) {
		strbuf_adds(&sentence, "no trial came to its end within the budget");
		strbuf_adds(&next, "a larger --budget, or --timeout for a program that hangs");
	} else {
		strbuf_addf(&sentence,
			    "none of %" PRIu64 " trials failed, so there is nothing to explain; a "
			    "rate above %.2g %% is excluded with 95 %% confidence",
			    rate->trials, hunt->summary.clean_bound * 100);
		if (hunt->guarded_clean > 0)
			strbuf_addf(&sentence,
				    "; with guards around its blocks no damage was seen in %" PRIu64
				    " trials",
				    hunt->guarded_clean);
		strbuf_addf(&next,
			    "if it is known to fail: the options, variables and load that it fails "
			    "with; redhand repro -n %" PRIu64 " would exclude a rate above %.1f %%",
			    more, RATE_WORTH_KNOWING * 100);
	}
	replace(&verdict->sentence, &sentence);
	replace(&verdict->next, &next);
}

static void tell_plain(const struct hunt *hunt, struct verdict *verdict)
{
	struct strbuf sentence = { 0 }, next = { 0 };

	strbuf_addf(&sentence,
		    "it fails in %" PRIu64 " of %" PRIu64
		    " trials, but not by a fault (%s), and no damaged memory was seen",
		    hunt->target->rate.failed, hunt->target->rate.trials,
		    hunt->target->signature.summary);
	if (hunt->target->signature.kind == FAILURE_TIMEOUT)
		strbuf_adds(&next, "gdb -p on a run that hangs: where does it wait");
	else if (hunt->target->signature.kind == FAILURE_SIGNAL)
		strbuf_adds(&next,
			    "who sends the signal: strace -f -e trace=kill,tgkill,exit_group");
	else
		strbuf_adds(&next, "redhand minimize -- CMD: which tests does it take; "
				   "--fail-on REGEX if a crash is hidden behind it");
	replace(&verdict->sentence, &sentence);
	replace(&verdict->next, &next);
}

/* The rules know the evidence, not what has been tried already. */
static void tell_tried(const struct hunt *hunt, struct verdict *verdict)
{
	struct strbuf next = { 0 };

	if (hunt->close.observer == OBSERVE_NONE)
		strbuf_adds(&next,
			    "link the program dynamically, so that something can be put into "
			    "it, and hunt again");
	else if (hunt->agent_hides_it)
		strbuf_adds(&next, "it fails only while nothing is put into the program: a core "
				   "file of such a run (ulimit -c unlimited) in gdb");
	else if (hunt->without_ids)
		strbuf_adds(&next,
			    "allocation ids hide it, so which block it was cannot be told: redhand "
			    "watch on the variable or argument that leads to it; or the program's "
			    "own sanitizer build");
	else if (verdict->needs_user)
		return;
	else
		strbuf_adds(&next,
			    "redhand heap --sweep -- CMD: who still points to what was freed; "
			    "or the program's own sanitizer build");
	replace(&verdict->next, &next);
}

/* A check of the program's own, or of the C library's: the value that it looked at is wrong. */
static void tell_abort(struct verdict *verdict)
{
	struct strbuf next = { 0 };

	strbuf_adds(&next,
		    "the program stopped itself, so there is no address to go back from: redhand "
		    "watch on what its check reads, for who writes it");
	replace(&verdict->next, &next);
}

/* What the cheapest experiment is when the time was up: to go on. */
static void tell_unfinished(const struct hunt *hunt, struct verdict *verdict)
{
	struct strbuf next = { 0 }, sentence = { 0 };

	if (hunt_crashes(hunt) && !hunt->chased) {
		strbuf_addf(&sentence,
			    "it failed in %" PRIu64 " of %" PRIu64
			    " trials, but the hunt ended before anybody could be caught; %" PRIu64
			    " trials run",
			    hunt->rate.failed, hunt->rate.trials, hunt->ran);
		replace(&verdict->sentence, &sentence);
	}
	strbuf_adds(&next, hunt->ret->interrupted ? "the same command goes on where this one ended"
						  : "the same command with a larger --budget: it "
						    "goes on where this one ended");
	if (verdict->next)
		strbuf_addf(&next, "; then %s", verdict->next);
	replace(&verdict->next, &next);
}

static void tell_not_caught(const struct hunt *hunt, struct verdict *verdict)
{
	if (!hunt->target)
		tell_never_failed(hunt, verdict);
	else if (!hunt_crashes(hunt))
		tell_plain(hunt, verdict);
	else if (hunt->target->signature.signal == SIGABRT)
		tell_abort(verdict);
	else if (hunt->close.observer == OBSERVE_NONE || hunt->without_ids ||
		 (hunt->chased && hunt->guarded))
		tell_tried(hunt, verdict);
	if (hunt->ret->interrupted || (hunt->ret->spent && hunt->target))
		tell_unfinished(hunt, verdict);
}

/* Of what never failed: guards found it, and nobody has died of it. */
static void tell_damaged(struct hunt *hunt, struct verdict *verdict)
{
	struct strbuf sentence = { 0 };

	hunt->ret->failed = true;
	strbuf_addf(&sentence,
		    "no failure was seen in %" PRIu64
		    " trials; the heap is damaged all the same: %s",
		    hunt->summary.rate.trials, verdict->sentence);
	replace(&verdict->sentence, &sentence);
}

/* Of what fails without a crash: that it has to do with the damage is not seen at the failure. */
static void doubt_damage(const struct hunt *hunt, struct verdict *verdict)
{
	if (!hunt->damage_apart)
		return;
	strv_add(
		&verdict->doubts,
		"it fails without a crash, and not in just those trials in which memory was damaged: "
		"whether the one comes from the other was not seen");
	verdict->firm = false;
}

/* ---- a sentinel ---- */

static int write_sentinel(struct hunt *hunt, const char *dir, struct err *err)
{
	AUTO(sentinel_source_deinit) struct sentinel_source source = { 0 };
	AUTO(sentinel_made_deinit) struct sentinel_made made = { 0 };
	bool minimal = hunt->minimal_series.value != 0;
	struct series_found plain = { .id = hunt->minimal_series };
	int r = 0;

	if (!minimal)
		r = case_series(hunt->cs, &hunt->plain.identity, 0, &plain, err);
	if (r == 0)
		r = sentinel_source_init(&source, hunt->cs, plain.id,
					 minimal ? NULL : hunt->target->signature.id, err);
	if (r == 0)
		r = sentinel_make(hunt->cs, &source,
				  &(struct sentinel_request){ .dir = dir,
							      .redhand = hunt->request->version,
							      .replace = true },
				  &made, err);
	if (r == 0)
		r = sentinel_remember(hunt->cs, dir, &source, err);
	if (r < 0)
		return r;
	return decide(
		hunt,
		"a sentinel is in %s: the failure came in %" PRIu64 " of %" PRIu64 " trials%s%s",
		dir, source.failed, source.trials,
		made.sentinel.tests.count > 0 ? " of the shorter list" : "",
		made.sentinel.trial.chaos != 0 ? ", disturbed (--chaos), as the sentinel runs it"
					       : "");
}

static int make_sentinel(struct hunt *hunt)
{
	AUTO(mem_freep) char *own = mem_printf("%s/sentinel", case_dir(hunt->cs));
	const char *dir = hunt->request->sentinel_dir ? hunt->request->sentinel_dir : own;
	struct err why = { 0 };

	if (!hunt->target || hunt->ret->interrupted)
		return 0;
	if (write_sentinel(hunt, dir, &why) < 0)
		return decide(hunt, "no sentinel: %s", why.message);
	return 0;
}

int stage_conclude(struct hunt *hunt)
{
	struct verdict verdict = { 0 };
	int r = 0;

	hunt->ret->blind = hunt->summary.rate.trials == 0 || hunt->too_slow;
	hit_tell_record(hunt);
	hunt->evidence.trials = hunt->ran;
	hunt->evidence.failed = hunt->ran_failed;
	VEC_FOREACH (&hunt->evidence.list, evidence)
		if (r == 0)
			r = case_add_evidence(hunt->cs, evidence, hunt->err);
	if (r < 0)
		return r;
	judge_evidence(&hunt->evidence, &verdict);
	if (verdict.class == VERDICT_NOT_CAUGHT)
		tell_not_caught(hunt, &verdict);
	else if (hunt->damaged && hunt->target)
		doubt_damage(hunt, &verdict);
	else if (hunt->damaged && verdict.class != VERDICT_LEAK_GROWTH)
		tell_damaged(hunt, &verdict);
	if (hunt->target && verdict.signature[0] == '\0')
		(void)snprintf(verdict.signature, sizeof(verdict.signature), "%s",
			       hunt->target->signature.id);
	r = decide(hunt, "%s%s [%s]",
		   !hunt->target || verdict.firm || verdict.class == VERDICT_NOT_CAUGHT
			   ? ""
			   : "probably ",
		   !hunt->target && verdict.class == VERDICT_NOT_CAUGHT
			   ? "nothing failed and nobody is accused"
			   : verdict_class_words(verdict.class),
		   verdict_class_name(verdict.class));
	if (r == 0)
		r = case_add_verdict(hunt->cs, &verdict, hunt->err);
	verdict_deinit(&verdict);
	return r == 0 ? make_sentinel(hunt) : r;
}
