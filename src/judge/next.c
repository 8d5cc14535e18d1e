/*
 * When nothing fits: what was seen all the same, what is still open, and what to try next.
 */
#include "judge/next.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>

#include "judge/considerations.h"
#include "judge/store_facts.h"

#define RATE_WORTH_KNOWING 0.001 /* what a longer look would exclude */
#define RATE_MISSED 0.05

/* The rate that so many clean trials exclude with 95 % confidence. */
static double rate_excluded(uint64_t trials)
{
	return 1 - pow(RATE_MISSED, 1 / (double)trials);
}

static void lead(struct verdict *ret, struct strbuf *sb)
{
	strv_take(&ret->open, strbuf_take(sb));
}

/* Caught, but not often enough to be the story. */
static void add_leads(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->chain, link) {
		VEC_FOREACH (&link->suspects, suspect) {
			const struct consideration *cleared =
				consider_cleared(facts, suspect->writes.items[0]);
			struct strbuf sb = { 0 };

			say_site(&sb, &suspect->writes.items[0]->write->writer);
			strbuf_addf(&sb,
				    " wrote it last in %zu of %" PRIu64
				    " failing trials in which it was watched: %s "
				    "(evidence %" PRIu64 ")",
				    suspect->writes.count, link->watched,
				    cleared ? cleared->words : "a lead, no proof",
				    suspect->writes.items[0]->id);
			lead(ret, &sb);
		}
		if (link->imprecise.count > 0) {
			struct strbuf sb = { 0 };

			strbuf_addf(
				&sb,
				"%zu last write%s came in late, so that the writer is not known "
				"(trial %" PRIu64 ")",
				link->imprecise.count, link->imprecise.count == 1 ? "" : "s",
				link->imprecise.items[0]->trial);
			lead(ret, &sb);
		}
	}
}

/* One after the other, as threads do that hand something on under a lock. */
static void add_turns(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->list->list, e) {
		struct strbuf sb = { 0 };

		if (e->kind != EVIDENCE_RACE || !e->failing || e->race->lost_update)
			continue;
		evidence_describe(e, &sb);
		strbuf_addf(&sb,
			    ": a lock may have ordered them, no update was seen to be lost "
			    "(evidence %" PRIu64 ")",
			    e->id);
		lead(ret, &sb);
		return;
	}
}

/* A field that was zero from its block's birth on: nobody spoilt it, somebody did not set it. */
static void add_unset(const struct facts *facts, struct verdict *ret)
{
	VEC(const struct evidence *) seen = { 0 };
	struct strbuf sb = { 0 };

	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_WATCH && e->failing && e->watch->victim_watched &&
		    e->watch->since_birth && e->watch->value_known && e->watch->hits == 0 &&
		    e->watch->value == 0 && e->watch->birth_value == 0 &&
		    (seen.count == 0 || home_same(&seen.items[0]->watch->home, &e->watch->home)))
			VEC_PUSH(&seen, e);
	if (seen.count > 0) {
		home_describe(&seen.items[0]->watch->home, &sb);
		strbuf_addf(&sb,
			    " was zero when its block was allocated and nobody has written it "
			    "since, in %" PRIu64 " failing trial%s: a value that was never set "
			    "rather than a bad write (evidence %" PRIu64 ")",
			    EVIDENCE_TRIALS(&seen), EVIDENCE_TRIALS(&seen) == 1 ? "" : "s",
			    seen.items[0]->id);
		lead(ret, &sb);
	}
	VEC_DEINIT(&seen);
}

static void add_open_hypotheses(struct verdict *ret)
{
	VEC_FOREACH (&ret->ledger, h) {
		struct strbuf sb = { 0 };

		if (h->status != LEDGER_OPEN && h->status != LEDGER_UNTESTED)
			continue;
		strbuf_addf(&sb, "%s: %s", h->id, h->text);
		lead(ret, &sb);
	}
}

/* The last writer of a home seems to own the place, as part of another kind of object. */
static bool is_shared(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			if (link->home->kind == HOME_BLOCK &&
			    store_habit(facts->list, suspect->writes.items[0]) >= HABIT)
				return true;
	return false;
}

/* Whoever writes it means a number, whoever reads it an address. */
static const struct write_seen *misread(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			if (store_habit_of_numbers(facts->list, suspect->writes.items[0]))
				return suspect->writes.items[0]->write;
	return NULL;
}

static char *ask_for_kind(const struct write_seen *w)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_adds(&sb, "look at how the reader comes by ");
	if (w->victim && w->victim->allocated.count > 0) {
		strbuf_adds(&sb, "the block that ");
		say_site(&sb, &w->victim->allocated);
		strbuf_adds(&sb, " made");
	} else {
		home_describe(&w->home, &sb);
	}
	strbuf_adds(&sb, ": where it reads an address, ");
	say_site(&sb, &w->writer);
	strbuf_adds(&sb, " keeps numbers");
	return strbuf_take(&sb);
}

struct have {
	const struct evidence *crash, *freed, *gap;
	bool watch, failing, imprecise, no_syscalls;
};

static void look(const struct facts *facts, struct have *have)
{
	VEC_FOREACH (&facts->list->list, e) {
		have->failing = have->failing || e->failing;
		if (e->kind == EVIDENCE_CRASH && e->failing && !have->crash)
			have->crash = e;
		if (e->kind == EVIDENCE_WATCH && e->failing && e->watch->victim_watched) {
			have->watch = true;
			have->no_syscalls = have->no_syscalls || !e->watch->kernel_writes;
		}
		if (e->kind == EVIDENCE_OUTSIDE && e->outside->gap)
			have->gap = e;
		if (e->kind == EVIDENCE_HOLDER && e->failing)
			have->freed = e;
	}
	VEC_FOREACH (&facts->chain, link) {
		have->watch = have->watch || link->watched > 0;
		have->imprecise = have->imprecise || link->imprecise.count > 0;
	}
}

static char *next_experiment(const struct facts *facts)
{
	struct have have = { 0 };

	look(facts, &have);
	if (!have.failing)
		return mem_strdup(
			"no failing trial has been looked at: redhand repro --observe ids "
			"-- CMD, until it fails");
	if (misread(facts))
		return ask_for_kind(misread(facts));
	if (is_shared(facts))
		return mem_strdup("if the program has an allocator of its own, name it: redhand "
				  "chase --allocator 'alloc=FN(size@0) free=FN(ptr@0)' -- CMD; "
				  "different objects seem to have had that place in turns");
	if (have.imprecise)
		return mem_strdup("redhand watch --mode pages on the same field: there a write "
				  "cannot come in late");
	if (have.gap)
		return mem_strdup("watch the same block from its birth on (--on key:…), so that no "
				  "write is missed");
	if (have.watch && have.no_syscalls)
		return mem_strdup(
			"the same watch with writes by system calls included (as root, or "
			"perf_event_paranoid 1)");
	if (have.watch)
		return mem_strdup(
			"redhand watch --mode pages over all blocks of that context: four "
			"hardware watches may have looked at the wrong ones");
	if (have.crash && have.crash->crash->blocks.count > 0)
		return mem_printf("redhand chase --from %" PRIu64
				  " -- CMD: watch the field that the crash read in the next trials",
				  have.crash->trial);
	if (have.crash)
		return mem_strdup("redhand repro --observe ids -- CMD: which block was it, and who "
				  "freed it");
	return mem_strdup("redhand heap -- CMD: canaries and a quarantine show damage before it "
			  "crashes");
}

/* ---- what the failure itself says ---- */

static bool crashes(const struct failure_seen *f)
{
	return f && f->failed > 0 && f->fault;
}

/* It fails, and nothing says that an instruction faulted. */
static bool is_plain(const struct facts *facts)
{
	return facts->failure && facts->failure->failed > 0 && !facts->failure->fault &&
	       facts->made[EXPERIMENT_CRASH_RECORD].trials == 0;
}

static void say_never_failed(const struct facts *facts, struct strbuf *sb)
{
	const struct failure_seen *f = facts->failure;
	const struct experiment_made *guards = &facts->made[EXPERIMENT_GUARDS];

	if (f->obstacles & OBSTACLE_TOO_SLOW) {
		strbuf_addf(sb,
			    "no trial came to its end within %.0f s, which is what the budget "
			    "leaves to one",
			    f->limit_s);
		return;
	}
	if (f->trials == 0) {
		strbuf_adds(sb, "no trial came to its end within the budget");
		return;
	}
	strbuf_addf(sb,
		    "none of %" PRIu64
		    " trials failed, so there is nothing to explain; a rate above "
		    "%.2g %% is excluded with 95 %% confidence",
		    f->trials, rate_excluded(f->trials) * 100);
	if (guards->trials > 0 && guards->shown + guards->shown_passing == 0)
		strbuf_addf(sb,
			    "; with guards around its blocks no damage was seen in %" PRIu64
			    " trials",
			    guards->trials);
}

static char *after_never_failed(const struct failure_seen *f)
{
	if (f->obstacles & OBSTACLE_TOO_SLOW)
		return mem_strdup("a larger --budget, or --timeout with how long a run may take");
	if (f->trials == 0)
		return mem_strdup("a larger --budget, or --timeout for a program that hangs");
	return mem_printf("if it is known to fail: the options, variables and load that it fails "
			  "with; redhand repro -n %.0f would exclude a rate above %.1f %%",
			  ceil(log(RATE_MISSED) / log1p(-RATE_WORTH_KNOWING)),
			  RATE_WORTH_KNOWING * 100);
}

static void say_plain(const struct facts *facts, struct strbuf *sb)
{
	const struct failure_seen *f = facts->failure;
	const struct experiment_made *guards = &facts->made[EXPERIMENT_GUARDS];

	strbuf_addf(sb, "it fails in %" PRIu64 " of %" PRIu64 " trials, but not by a fault (%s); ",
		    f->failed, f->trials, f->summary ? f->summary : "a failure");
	if (guards->telling == 0)
		strbuf_adds(sb, "no experiment has looked at its memory in a failing trial");
	else
		strbuf_addf(sb, "guards around blocks saw no damage in %" PRIu64 " failing trial%s",
			    guards->telling, guards->telling == 1 ? "" : "s");
}

static char *after_plain(const struct failure_seen *f)
{
	if (f->kind == FAILURE_TIMEOUT)
		return mem_strdup("gdb -p on a run that hangs: where does it wait");
	if (f->kind == FAILURE_SIGNAL)
		return mem_strdup(
			"who sends the signal: strace -f -e trace=kill,tgkill,exit_group");
	return mem_strdup("redhand minimize -- CMD: which tests does it take; --fail-on REGEX if a "
			  "crash is hidden behind it");
}

/* What has been tried already, or could not be. NULL: nothing of that kind. */
static char *after_obstacles(const struct facts *facts, bool needs_user)
{
	const struct failure_seen *f = facts->failure;
	bool tried =
		!(f->obstacles & OBSTACLE_NOT_CHASED) && facts->made[EXPERIMENT_GUARDS].trials > 0;

	if (f->signal == SIGABRT && f->kind == FAILURE_SIGNAL)
		return mem_strdup("the program stopped itself, so there is no address to go back "
				  "from: redhand watch on what its check reads, for who writes it");
	if (f->obstacles & OBSTACLE_NO_AGENT)
		return mem_strdup("link the program dynamically, so that something can be put into "
				  "it, and hunt again");
	if (f->obstacles & OBSTACLE_AGENT_HIDES && (tried || f->obstacles & OBSTACLE_IDS_HIDE))
		return mem_strdup(
			"it fails only while nothing is put into the program: a core file "
			"of such a run (ulimit -c unlimited) in gdb");
	if (f->obstacles & OBSTACLE_IDS_HIDE)
		return mem_strdup(
			"allocation ids hide it, so which block it was cannot be told: redhand "
			"watch on the variable or argument that leads to it; or the program's own "
			"sanitizer build");
	if (tried && !needs_user)
		return mem_strdup(
			"redhand heap --sweep all -- CMD: who still points to what was freed; "
			"or the program's own sanitizer build");
	return NULL;
}

/* Ended before its time: the cheapest experiment is to go on. */
static bool is_unfinished(const struct failure_seen *f)
{
	return f->obstacles & OBSTACLE_INTERRUPTED ||
	       (f->obstacles & OBSTACLE_BUDGET && f->failed > 0);
}

static char *after_unfinished(const struct failure_seen *f)
{
	return mem_strdup(
		f->obstacles & OBSTACLE_INTERRUPTED
			? "the same command goes on where this one ended"
			: "the same command with a larger --budget: it goes on where this "
			  "one ended");
}

static char *next_step(const struct facts *facts, bool needs_user)
{
	const struct failure_seen *f = facts->failure;
	char *next = NULL;

	if (f && is_unfinished(f))
		return after_unfinished(f);
	if (f && f->failed == 0)
		return after_never_failed(f);
	if (is_plain(facts))
		return after_plain(f);
	if (f)
		next = after_obstacles(facts, needs_user);
	return next ? next : next_experiment(facts);
}

static void say_nobody(const struct facts *facts, struct verdict *ret, struct strbuf *sb)
{
	const struct failure_seen *f = facts->failure;

	if (f && f->failed == 0) {
		say_never_failed(facts, sb);
		return;
	}
	if (crashes(f) && is_unfinished(f) && f->obstacles & OBSTACLE_NOT_CHASED)
		strbuf_addf(sb,
			    "it failed in %" PRIu64 " of %" PRIu64
			    " trials, but the hunt ended before anybody could be caught",
			    f->failed, f->trials);
	else if (is_plain(facts))
		say_plain(facts, sb);
	else if (ret->watched > 0)
		strbuf_addf(sb,
			    "nobody was caught: the victim was watched in %" PRIu64
			    " failing trial%s",
			    ret->watched, ret->watched == 1 ? "" : "s");
	else if (facts->list->list.count > 0)
		strbuf_adds(sb, "nobody was caught: no failing trial has been watched yet");
	else
		strbuf_adds(sb, "there is no evidence yet");
	if (facts->trials > 0)
		strbuf_addf(sb, ", %" PRIu64 " trials run", facts->trials);
}

void tell_not_caught(const struct facts *facts, struct verdict *ret)
{
	struct strbuf sb = { 0 };

	ret->needs_user = is_shared(facts) || misread(facts);
	ret->next = next_step(facts, ret->needs_user);
	if (!facts->failure || facts->failure->failed > 0) {
		add_leads(facts, ret);
		add_turns(facts, ret);
		add_unset(facts, ret);
		add_open_hypotheses(ret);
	}
	say_nobody(facts, ret, &sb);
	ret->sentence = strbuf_take(&sb);
}
