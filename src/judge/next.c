/*
 * When nothing fits: what was seen all the same, what is still open, and what to try next.
 */
#include "judge/next.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/words.h"
#include "judge/considerations.h"
#include "judge/store_facts.h"

#define RATE_WORTH_KNOWING 0.001 /* what a longer look would exclude */
#define RATE_MISSED 0.05

/* The rate that so many clean trials exclude with 95 % confidence. */
static double rate_excluded(uint64_t trials)
{
	return 1 - pow(RATE_MISSED, 1 / (double)trials);
}

/* Caught, but not often enough to be the story. */
static void add_leads(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->chain, link) {
		VEC_FOREACH (&link->suspects, suspect) {
			const struct evidence *first = suspect->writes.items[0];
			const struct consideration *cleared = consider_cleared(facts, first);

			SAY_TOO(&ret->open, "lead:writer", said_site(&first->write->writer),
				said_number(suspect->writes.count), said_number(link->watched),
				said_word(cleared ? cleared->name : NULL), said_number(first->id));
		}
		if (link->imprecise.count > 0)
			SAY_TOO(&ret->open, "lead:imprecise", said_number(link->imprecise.count),
				said_number(link->imprecise.items[0]->trial));
	}
}

/* One after the other, as threads do that hand something on under a lock. */
static void add_turns(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_RACE && e->failing && !e->race->lost_update) {
			SAY_TOO(&ret->open, "lead:turns", said_evidence(e), said_number(e->id));
			return;
		}
}

/* A field that was zero from its block's birth on: nobody spoilt it, somebody did not set it. */
static void add_unset(const struct facts *facts, struct verdict *ret)
{
	VEC(const struct evidence *) seen = { 0 };

	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_WATCH && e->failing && e->watch->victim_watched &&
		    e->watch->since_birth && e->watch->value_known && e->watch->hits == 0 &&
		    e->watch->value == 0 && e->watch->birth_value == 0 &&
		    (seen.count == 0 || home_same(&seen.items[0]->watch->home, &e->watch->home)))
			VEC_PUSH(&seen, e);
	if (seen.count > 0)
		SAY_TOO(&ret->open, "lead:unset", said_home(&seen.items[0]->watch->home),
			said_number(EVIDENCE_TRIALS(&seen)), said_number(seen.items[0]->id));
	VEC_DEINIT(&seen);
}

/* A crash that says by itself what it is, and that came in a trial which an observer disturbed. */
static void add_observed(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *seen =
		VEC_FIND(&facts->list->list, e, e->kind == EVIDENCE_CRASH && evidence_observed(e));

	if (seen)
		SAY_TOO(&ret->open, "lead:observed", said_evidence(seen), said_number(seen->id));
}

static void add_open_hypotheses(struct verdict *ret)
{
	VEC_FOREACH (&ret->ledger, h)
		if (h->status == LEDGER_OPEN || h->status == LEDGER_UNTESTED)
			SAY_TOO(&ret->open, "lead:open", said_text(h->id), said_copied(&h->text));
}

/* The last writer of a home seems to own the place, as part of another kind of object. */
static bool is_shared(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			if (link->home->kind == HOME_BLOCK &&
			    store_repeats(facts->list, suspect->writes.items[0]) >= REPEATED)
				return true;
	return false;
}

/* Whoever writes it means a number, whoever reads it an address. */
static const struct write_seen *misread(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			if (repeats_with_numbers(facts->list, suspect->writes.items[0]))
				return suspect->writes.items[0]->write;
	return NULL;
}

static void ask_for_kind(const struct write_seen *w, struct said *ret)
{
	bool made = w->victim && w->victim->allocated.count > 0;

	SAY(ret, "next:misread", made ? said_site(&w->victim->allocated) : said_none(),
	    said_home(&w->home), said_site(&w->writer));
}

struct have {
	const struct evidence *crash, *freed, *gap;
	bool watch, failing, imprecise, no_syscalls;
};

static void look_at_failing(const struct evidence *e, struct have *have)
{
	have->failing = true;
	if (e->kind == EVIDENCE_CRASH && !have->crash)
		have->crash = e;
	if (e->kind == EVIDENCE_WATCH && e->watch->victim_watched) {
		have->watch = true;
		have->no_syscalls = have->no_syscalls || !e->watch->kernel_writes;
	}
	if (e->kind == EVIDENCE_HOLDER)
		have->freed = e;
}

static void look(const struct facts *facts, struct have *have)
{
	VEC_FOREACH (&facts->list->list, e) {
		if (e->failing)
			look_at_failing(e, have);
		if (e->kind == EVIDENCE_OUTSIDE && e->outside->gap)
			have->gap = e;
	}
	VEC_FOREACH (&facts->chain, link) {
		have->watch = have->watch || link->watched > 0;
		have->imprecise = have->imprecise || link->imprecise.count > 0;
	}
}

/* A watch on that field in the next run; none where only its address is known. */
static struct said_value watch_command(const struct home *home, const char *options)
{
	struct strbuf spec = { 0 }, sb = { 0 };
	uint64_t len = home && home->len > 0 ? home->len : sizeof(uint64_t);

	if (!home || home->offset < 0)
		return said_none();
	if (home->kind == HOME_BLOCK && home->key)
		strbuf_addf(&spec, "key:%s", home->key);
	else if (home->kind == HOME_GLOBAL && home->name)
		strbuf_addf(&spec, "global:%s", home->name);
	else
		return said_none();
	strbuf_addf(&spec, "+%" PRId64 ":%" PRIu64, home->offset, len);
	strbuf_addf(&sb, "redhand watch %s--on ", options);
	words_quote(&sb, strbuf_str(&spec));
	strbuf_adds(&sb, " -- CMD");
	strbuf_deinit(&spec);
	return said_take(strbuf_take(&sb));
}

static const struct home *late_home(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		if (link->imprecise.count > 0)
			return link->home;
	return NULL;
}

static void next_experiment(const struct facts *facts, struct said *ret)
{
	struct have have = { 0 };

	look(facts, &have);
	if (!have.failing)
		SAY(ret, "next:fail-first", said_text("redhand repro --observe ids -- CMD"));
	else if (misread(facts))
		ask_for_kind(misread(facts), ret);
	else if (is_shared(facts))
		SAY(ret, "next:allocator",
		    said_text(
			    "redhand chase --allocator 'alloc=FN(size@0) free=FN(ptr@0)' -- CMD"));
	else if (have.imprecise)
		SAY(ret, "next:pages", watch_command(late_home(facts), "--mode pages "));
	else if (have.gap)
		SAY(ret, "next:from-birth", watch_command(&have.gap->outside->home, ""));
	else if (have.watch && have.no_syscalls)
		SAY(ret, "next:system-calls");
	else if (have.watch)
		SAY(ret, "next:all-blocks");
	else if (have.crash && have.crash->crash->blocks.count > 0)
		SAY(ret, "next:chase",
		    said_take(mem_printf("redhand chase --from %" PRIu64 " -- CMD",
					 have.crash->trial)));
	else if (have.crash)
		SAY(ret, "next:ids", said_text("redhand repro --observe ids -- CMD"));
	else if (facts->made[EXPERIMENT_GUARDS].trials == 0)
		SAY(ret, "next:heap", said_text("redhand heap -- CMD"));
	else
		SAY(ret, "next:sweep", said_text("redhand heap --sweep all -- CMD"));
}

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

static void say_never_failed(const struct facts *facts, struct said *ret)
{
	const struct failure_seen *f = facts->failure;
	const struct experiment_made *guards = &facts->made[EXPERIMENT_GUARDS];
	bool clean = guards->trials > 0 && guards->shown + guards->shown_passing == 0;

	struct experiment_made disturbed = facts_disturbed(facts);

	if (f->obstacles & OBSTACLE_TOO_SLOW)
		SAY(ret, "told:too-slow", said_real(f->limit_s));
	else if (facts_only_observed(facts) && disturbed.telling > 0)
		SAY(ret, "told:only-disturbed", said_number(f->trials),
		    said_number(disturbed.telling), said_number(disturbed.trials));
	else if (f->trials == 0)
		SAY(ret, "told:nothing-ended");
	else
		SAY(ret, "told:never-failed", said_number(f->trials),
		    said_real(rate_excluded(f->trials) * 100),
		    clean ? said_number(guards->trials) : said_none());
}

static void after_never_failed(const struct failure_seen *f, struct said *ret)
{
	double trials = ceil(log(RATE_MISSED) / log1p(-RATE_WORTH_KNOWING));

	if (f->obstacles & OBSTACLE_TOO_SLOW)
		SAY(ret, "next:more-time");
	else if (f->trials == 0)
		SAY(ret, "next:budget");
	else
		SAY(ret, "next:make-it-fail", said_real(trials),
		    said_real(RATE_WORTH_KNOWING * 100),
		    said_take(mem_printf("redhand repro -n %.0f -- CMD", trials)));
}

static void say_plain(const struct facts *facts, struct said *ret)
{
	const struct failure_seen *f = facts->failure;

	SAY(ret, "told:no-fault", said_number(f->failed), said_number(f->trials),
	    said_text(f->summary), said_count(facts->made[EXPERIMENT_GUARDS].telling),
	    said_count(facts->trials));
}

/* It leaves memory to the program, and redhand follows that beside it. */
#define UNDEFINED "UndefinedBehaviorSanitizer"

static const struct evidence *report_in(const struct facts *facts)
{
	return VEC_FIND(&facts->list->list, e, e->kind == EVIDENCE_REPORTED && e->failing);
}

static void after_plain(const struct failure_seen *f, struct said *ret)
{
	if (f->kind == FAILURE_TIMEOUT)
		SAY(ret, "next:hang");
	else if (f->kind == FAILURE_SIGNAL)
		SAY(ret, "next:sender");
	else
		SAY(ret, "next:minimize", said_text("redhand minimize -- CMD"));
}

/* What has been tried already, or could not be. */
static void after_obstacles(const struct facts *facts, bool needs_user, struct said *ret)
{
	const struct failure_seen *f = facts->failure;
	bool tried =
		!(f->obstacles & OBSTACLE_NOT_CHASED) && facts->made[EXPERIMENT_GUARDS].trials > 0;

	if (f->signal == SIGABRT && f->kind == FAILURE_SIGNAL)
		SAY(ret, "next:abort");
	else if (f->obstacles & OBSTACLE_NO_AGENT)
		SAY(ret, "next:link");
	else if (f->obstacles & OBSTACLE_AGENT_HIDES && (tried || f->obstacles & OBSTACLE_IDS_HIDE))
		SAY(ret, "next:core");
	else if (f->obstacles & OBSTACLE_IDS_HIDE)
		SAY(ret, "next:ids-hide");
	else if (tried && !needs_user)
		SAY(ret, "next:sweep", said_text("redhand heap --sweep all -- CMD"));
}

/* Ended before its time: the cheapest experiment is to go on. */
static bool is_unfinished(const struct failure_seen *f)
{
	return f->obstacles & OBSTACLE_INTERRUPTED ||
	       (f->obstacles & OBSTACLE_BUDGET && f->failed > 0);
}

static void next_step(const struct facts *facts, bool needs_user, struct said *ret)
{
	const struct failure_seen *f = facts->failure;
	const struct evidence *report = report_in(facts);

	if (f && is_unfinished(f))
		SAY(ret, f->obstacles & OBSTACLE_INTERRUPTED ? "next:go-on" : "next:go-on-longer");
	else if (f && f->failed == 0)
		after_never_failed(f, ret);
	else if (is_plain(facts) && report && strcmp(report->reported->tool, UNDEFINED) != 0)
		SAY(ret, "next:unsanitized", said_text(report->reported->tool));
	else if (is_plain(facts))
		after_plain(f, ret);
	else if (f)
		after_obstacles(facts, needs_user, ret);
	if (!said_anything(ret))
		next_experiment(facts, ret);
}

static void say_nobody(const struct facts *facts, struct verdict *ret)
{
	const struct failure_seen *f = facts->failure;
	const struct evidence *report = f && f->failed > 0 ? report_in(facts) : NULL;
	struct said *said = &ret->sentence;

	if (report)
		VEC_PUSH(&ret->evidence, report->id);
	if (f && f->failed == 0)
		say_never_failed(facts, said);
	else if (crashes(f) && is_unfinished(f) && f->obstacles & OBSTACLE_NOT_CHASED)
		SAY(said, "told:ended-before", said_number(f->failed), said_number(f->trials),
		    said_count(facts->trials));
	else if (report)
		SAY(said, "told:reported", said_evidence(report), said_number(f->failed),
		    said_number(f->trials), said_count(facts->trials));
	else if (is_plain(facts))
		say_plain(facts, said);
	else if (ret->watched > 0)
		SAY(said, "told:nobody", said_number(ret->watched), said_count(facts->trials));
	else if (facts->list->list.count > 0)
		SAY(said, "told:not-watched", said_count(facts->trials));
	else
		SAY(said, "told:no-evidence", said_count(facts->trials));
}

void tell_not_caught(const struct facts *facts, struct verdict *ret)
{
	ret->needs_user = is_shared(facts) || misread(facts);
	add_observed(facts, ret);
	next_step(facts, ret->needs_user, &ret->next);
	if (!facts->failure || facts->failure->failed > 0) {
		add_leads(facts, ret);
		add_turns(facts, ret);
		add_unset(facts, ret);
		add_open_hypotheses(ret);
	}
	say_nobody(facts, ret);
}
