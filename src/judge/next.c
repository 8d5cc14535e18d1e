/*
 * When nothing fits: what was seen all the same, what is still open, and what to try next.
 */
#include "judge/parts.h"

#include <inttypes.h>

#include "judge/considerations.h"
#include "judge/store_facts.h"

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
	VEC_FOREACH (&ret->hypotheses, h) {
		struct strbuf sb = { 0 };

		if (h->status != HYPOTHESIS_OPEN)
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

void not_caught(const struct facts *facts, struct verdict *ret)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	ret->next = next_experiment(facts);
	ret->needs_user = is_shared(facts) || misread(facts);
	add_leads(facts, ret);
	add_turns(facts, ret);
	add_unset(facts, ret);
	add_open_hypotheses(ret);
	if (ret->watched > 0)
		strbuf_addf(&sb,
			    "nobody was caught: the victim was watched in %" PRIu64
			    " failing trial%s",
			    ret->watched, ret->watched == 1 ? "" : "s");
	else if (facts->list->list.count > 0)
		strbuf_adds(&sb, "nobody was caught: no failing trial has been watched yet");
	else
		strbuf_adds(&sb, "there is no evidence yet");
	if (facts->trials > 0)
		strbuf_addf(&sb, ", %" PRIu64 " trials run", facts->trials);
	ret->sentence = strbuf_take(&sb);
}
