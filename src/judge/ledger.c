/*
 * What became of each explanation, and by which experiment. See ledger.h.
 */
#include "judge/ledger.h"

#include <assert.h>

#include "judge/store_facts.h"

static const char *const names[HYPOTHESES] = {
	[HYP_NARROW] = "narrow",       [HYP_WIDE] = "wide",
	[HYP_OVERFLOW] = "overflow",   [HYP_STALE] = "stale",
	[HYP_DANGLING] = "dangling",   [HYP_DOUBLE_FREE] = "double-free",
	[HYP_CONFLATED] = "conflated", [HYP_CACHED] = "cached",
	[HYP_RACE] = "race",	       [HYP_UNINITIALISED] = "uninitialised",
	[HYP_MAPPING] = "mapping",     [HYP_OUTSIDE] = "outside",
	[HYP_HOST] = "host",	       [HYP_GROWTH] = "growth",
	[HYP_PLAIN] = "plain",	       [HYP_OVER_READ] = "over-read",
	[HYP_FAULT] = "fault",
};

/*
 * What each experiment can show, and whose absence it shows: only those that look at all of it.
 * Watchpoints look at one field, so they exclude by what they catch, never by silence.
 */
static const struct {
	uint32_t shows, excludes;
} reach[EXPERIMENT_KINDS] = {
	[EXPERIMENT_CRASH_RECORD] = { BIT(HYP_STALE) | BIT(HYP_DANGLING) | BIT(HYP_DOUBLE_FREE) |
					      BIT(HYP_MAPPING) | BIT(HYP_PLAIN) | BIT(HYP_FAULT),
				      BIT(HYP_MAPPING) },
	[EXPERIMENT_WATCH] = { BIT(HYP_NARROW) | BIT(HYP_WIDE) | BIT(HYP_OVERFLOW) |
				       BIT(HYP_STALE) | BIT(HYP_DANGLING) | BIT(HYP_CONFLATED) |
				       BIT(HYP_CACHED) | BIT(HYP_RACE) | BIT(HYP_UNINITIALISED) |
				       BIT(HYP_OUTSIDE) | BIT(HYP_HOST),
			       0 },
	[EXPERIMENT_GUARDS] = { BIT(HYP_OVERFLOW) | BIT(HYP_STALE) | BIT(HYP_DANGLING) |
					BIT(HYP_DOUBLE_FREE) | BIT(HYP_PLAIN),
				BIT(HYP_OVERFLOW) | BIT(HYP_STALE) | BIT(HYP_DOUBLE_FREE) },
	[EXPERIMENT_FENCES] = { BIT(HYP_OVERFLOW) | BIT(HYP_STALE) | BIT(HYP_DANGLING) |
					BIT(HYP_DOUBLE_FREE) | BIT(HYP_OVER_READ),
				BIT(HYP_OVER_READ) },
	[EXPERIMENT_FILL_FREED] = { BIT(HYP_DANGLING), BIT(HYP_DANGLING) },
	[EXPERIMENT_FILL_FRESH] = { BIT(HYP_UNINITIALISED), BIT(HYP_UNINITIALISED) },
	[EXPERIMENT_RACE] = { BIT(HYP_RACE), 0 },
	[EXPERIMENT_GROWTH] = { BIT(HYP_GROWTH), BIT(HYP_GROWTH) },
	[EXPERIMENT_MACHINE] = { BIT(HYP_HOST), 0 },
};

bool ledger_would_tell(const struct verdict *verdict, enum experiment_kind kind)
{
	for (unsigned int i = 0; i < HYPOTHESES && i < verdict->ledger.count; i++) {
		enum ledger_status status = verdict->ledger.items[i].status;

		if ((reach[kind].shows | reach[kind].excludes) & BIT(i) &&
		    (status == LEDGER_OPEN || status == LEDGER_UNTESTED))
			return true;
	}
	return false;
}

static uint32_t suggested_by_fault(enum fault_class fault)
{
	bool freed = fault == FAULT_FREED || fault == FAULT_RECYCLED;

	return freed ? BIT(HYP_DANGLING) | BIT(HYP_STALE)
		     : (fault == FAULT_MAPPING_SHRANK) * BIT(HYP_MAPPING);
}

static uint32_t suggested_by_report(enum reported_kind kind)
{
	static const uint32_t sets[REPORTED_KINDS] = {
		[REPORTED_OVERFLOW] = BIT(HYP_OVERFLOW),
		[REPORTED_UNDERFLOW] = BIT(HYP_OVERFLOW),
		[REPORTED_OVER_READ] = BIT(HYP_OVER_READ),
		[REPORTED_FREED_USE] = BIT(HYP_DANGLING) | BIT(HYP_STALE),
		[REPORTED_FREED_WRITE] = BIT(HYP_DANGLING) | BIT(HYP_STALE),
		[REPORTED_DOUBLE_FREE] = BIT(HYP_DOUBLE_FREE),
		[REPORTED_INVALID_FREE] = BIT(HYP_DOUBLE_FREE),
		[REPORTED_UNINITIALISED] = BIT(HYP_UNINITIALISED),
		[REPORTED_RACE] = BIT(HYP_RACE),
		[REPORTED_NULL] = BIT(HYP_FAULT),
		[REPORTED_STACK] = BIT(HYP_FAULT),
		[REPORTED_DIVISION] = BIT(HYP_FAULT),
	};

	return kind < REPORTED_KINDS ? sets[kind] : 0;
}

/* The explanations that a piece speaks for, firmly or not. */
static uint32_t suggests(const struct evidence *e)
{
	static const uint32_t sets[EVIDENCE_KINDS] = {
		[EVIDENCE_OVER_READ] = BIT(HYP_OVER_READ),
		[EVIDENCE_FREED_USE] = BIT(HYP_DANGLING) | BIT(HYP_STALE),
		[EVIDENCE_HOLDER] = BIT(HYP_DANGLING) | BIT(HYP_STALE),
		[EVIDENCE_ACCOUNT] = BIT(HYP_DANGLING) | BIT(HYP_STALE),
		[EVIDENCE_BAD_FREE] = BIT(HYP_DOUBLE_FREE),
		[EVIDENCE_MAPPING] = BIT(HYP_MAPPING),
		[EVIDENCE_ODDS] = BIT(HYP_UNINITIALISED),
		[EVIDENCE_GROWTH] = BIT(HYP_GROWTH),
		[EVIDENCE_RACE] = BIT(HYP_RACE),
	};

	if (e->kind == EVIDENCE_CRASH)
		return suggested_by_fault(e->crash->fault);
	if (e->kind == EVIDENCE_CANARY)
		return e->canary->side == CANARY_FREED ? BIT(HYP_STALE) : BIT(HYP_OVERFLOW);
	return e->kind == EVIDENCE_REPORTED ? suggested_by_report(e->reported->kind)
					    : sets[e->kind];
}

const char *ledger_id(enum explanation explanation)
{
	return names[explanation];
}

/* It looks for this alone, and saw something. Of those that look for more, the evidence says what
 * it was. */
static bool saw_it(const struct experiment_made *made, uint32_t excludes, uint32_t explanation)
{
	return (made->shown > 0 || made->shown_passing > 0) && excludes == explanation;
}

struct looked_at ledger_look(const struct facts *facts, enum explanation explanation)
{
	struct looked_at ret = { .by = EXPERIMENT_KINDS, .missed = 1 };
	uint32_t suggested = 0;

	for (unsigned int i = 0; i < EXPERIMENT_KINDS; i++) {
		const struct experiment_made *made = &facts->made[i];
		bool can_exclude = reach[i].excludes & BIT(explanation) &&
				   !saw_it(made, reach[i].excludes, BIT(explanation));

		if (!((reach[i].shows | reach[i].excludes) & BIT(explanation)) || made->trials == 0)
			continue;
		ret.any = true;
		if (ret.by == EXPERIMENT_KINDS || (can_exclude && facts->missed[i] < ret.missed)) {
			ret.by = i;
			ret.telling = made->telling;
			ret.missed = can_exclude ? facts->missed[i] : 1;
		}
	}
	VEC_FOREACH (&facts->list->list, e)
		suggested |= suggests(e);
	ret.excluded = ret.missed <= EXCLUDED_BELOW && !(suggested & BIT(explanation));
	return ret;
}

static enum experiment_kind shown_by(const struct facts *facts, const struct evidence *e)
{
	/* The others come from a watched trial. */
	static const enum experiment_kind always[EVIDENCE_KINDS] = {
		[EVIDENCE_CRASH] = EXPERIMENT_CRASH_RECORD,
		[EVIDENCE_MAPPING] = EXPERIMENT_CRASH_RECORD,
		[EVIDENCE_OVER_READ] = EXPERIMENT_FENCES,
		[EVIDENCE_CANARY] = EXPERIMENT_GUARDS,
		[EVIDENCE_ODDS] = EXPERIMENT_FILL_FRESH,
		[EVIDENCE_RACE] = EXPERIMENT_RACE,
		[EVIDENCE_GROWTH] = EXPERIMENT_GROWTH,
		[EVIDENCE_HOST] = EXPERIMENT_MACHINE,
	};

	switch (e->kind) {
	case EVIDENCE_FREED_USE:
		if (e->freed_use->fenced)
			return EXPERIMENT_FENCES;
		return e->freed_use->poison ? EXPERIMENT_GUARDS : EXPERIMENT_CRASH_RECORD;
	case EVIDENCE_BAD_FREE:
		return facts->made[EXPERIMENT_GUARDS].trials > 0 ? EXPERIMENT_GUARDS
								 : EXPERIMENT_CRASH_RECORD;
	case EVIDENCE_HOLDER:
		return e->holder->written_by.count > 0 ? EXPERIMENT_WATCH : EXPERIMENT_GUARDS;
	case EVIDENCE_FAILURE:
	case EVIDENCE_REPORTED:
		return EXPERIMENT_RUN;
	default:
		return always[e->kind] != 0 ? always[e->kind] : EXPERIMENT_WATCH;
	}
}

struct decision_about {
	enum ledger_status status;
	enum experiment_kind by;
	uint64_t telling;
	double missed;
	struct said *because; /* taken */
};

static bool is_decided(const struct ledger_entry *entry)
{
	return entry->status == LEDGER_EXCLUDED || entry->status == LEDGER_CONFIRMED;
}

/* The first decision stands. */
static void decide(struct ledger_entry *entry, const struct decision_about *about)
{
	if (is_decided(entry)) {
		said_deinit(about->because);
		return;
	}
	entry->status = about->status;
	entry->by = about->by;
	entry->telling = about->telling;
	entry->missed = about->missed;
	said_move(&entry->because, about->because);
}

/* What was seen in `trials` failing trials contradicts it. */
static void contradict(const struct facts *facts, struct verdict *ret, enum explanation explanation,
		       const struct evidence *e, uint64_t trials, struct said *because)
{
	struct ledger_entry *entry = &ret->ledger.items[explanation];

	if (is_decided(entry)) {
		said_deinit(because);
		return;
	}
	decide(entry, &(struct decision_about){ .status = LEDGER_EXCLUDED,
						.by = shown_by(facts, e),
						.telling = trials,
						.missed = chance_missed(trials, 1),
						.because = because });
	VEC_PUSH(&entry->evidence, e->id);
}

/* The piece itself is the reason. */
static void contradict_seen(const struct facts *facts, struct verdict *ret,
			    enum explanation explanation, const struct evidence *e, uint64_t trials)
{
	struct said because = { 0 };

	evidence_say(e, &because);
	contradict(facts, ret, explanation, e, trials, &because);
}

/* Those of which a caught writer of the failing value says why it is none of them. */
#define CONTRADICTED \
	(BIT(HYPOTHESES) - 1u) & ~(BIT(HYP_RACE) | BIT(HYP_GROWTH) | BIT(HYP_OVER_READ))

static void say_about(struct said *ret, const char *what, enum explanation explanation)
{
	AUTO(mem_freep) char *id = mem_printf("%s:%s", what, names[explanation]);

	SAY(ret, id);
}

static void by_verdict(const struct facts *facts, const struct rule *rule,
		       const struct proof *proof, struct verdict *ret)
{
	bool store = proof->main->kind == EVIDENCE_WRITE && rule->class != VERDICT_DANGLING_HOLDER;

	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct ledger_entry *entry = &ret->ledger.items[i];
		bool own = i == (unsigned int)rule->hypothesis;
		struct said because = { 0 };

		if (!own && !(rule->excludes & ~proof->spared & BIT(i)))
			continue;
		if (store && !own && CONTRADICTED & BIT(i))
			say_about(&because, "contradicted", i);
		else
			evidence_say(proof->main, &because);
		decide(entry,
		       &(struct decision_about){ .status = own ? LEDGER_CONFIRMED : LEDGER_EXCLUDED,
						 .by = shown_by(facts, proof->main),
						 .telling = proof->caught,
						 .missed = chance_missed(proof->caught, 1),
						 .because = &because });
		VEC_FOREACH (&proof->pieces, piece)
			VEC_PUSH(&entry->evidence, (*piece)->id);
	}
}

/* The bad value was read elsewhere: through what was put there, which was right, or from one of
 * several places that held it. Then what is known of this place says nothing about that one. */
static bool leads_on(const struct suspect *suspect)
{
	const struct write_seen *w = suspect->writes.items[0]->write;

	return store_leaves_live_pointer(w) || store_leaves_readable(w) || store_has_twin(w);
}

/* The very block that failed was written: it was no mix-up of two, and somebody did write it. */
static void by_caught_writes(const struct facts *facts, struct verdict *ret)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect) {
			const struct evidence *e = suspect->writes.items[0];
			uint64_t trials = suspect->writes.count;

			if (leads_on(suspect) || !suspect->verified)
				continue;
			if (!store_is_first(e->write))
				contradict_seen(facts, ret, HYP_CONFLATED, e, trials);
			contradict_seen(facts, ret, HYP_UNINITIALISED, e, trials);
			if (trials > 1)
				contradict_seen(facts, ret, HYP_HOST, e, trials);
			if (trials > 1 && trials >= link->watched)
				contradict_seen(facts, ret, HYP_OUTSIDE, e, trials);
		}
}

/* From birth to failure one thread alone wrote it, in every failing trial that was watched. */
static void by_one_thread(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *seen = NULL;
	struct said because = { 0 };
	uint64_t trials = 0;

	if (facts->chain.count == 0)
		return;
	VEC_FOREACH (&facts->chain.items[0].suspects, suspect)
		if (leads_on(suspect))
			return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind == EVIDENCE_RACE)
			return;
		if (e->kind != EVIDENCE_WATCH || !e->failing || !e->watch->victim_watched ||
		    !home_same(&e->watch->home, facts->chain.items[0].home))
			continue;
		if (!e->watch->since_birth || e->watch->threads > 1 || e->watch->hits == 0)
			return;
		seen = e;
		trials++;
	}
	if (trials < 2 || trials < facts->chain.items[0].watched)
		return;
	SAY(&because, "one-thread");
	contradict(facts, ret, HYP_RACE, seen, trials, &because);
}

/* Ways to fail that need a pointer gone bad. NULL is none of them: programs forget to test for it;
 * nor are recursion without end, or a store into a constant. */
static bool shows_memory_error(enum fault_class fault)
{
	static const bool shows[FAULT_CLASSES] = {
		[FAULT_FREED] = true,	 [FAULT_RECYCLED] = true,
		[FAULT_BEYOND] = true,	 [FAULT_NON_CANONICAL] = true,
		[FAULT_EXECUTE] = true,	 [FAULT_MAPPING_SHRANK] = true,
		[FAULT_UNMAPPED] = true,
	};

	return fault < FAULT_CLASSES && shows[fault];
}

static void by_crash(const struct facts *facts, struct verdict *ret)
{
	VEC(const struct evidence *) seen = { 0 };

	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_CRASH && e->failing &&
		    shows_memory_error(e->crash->fault) && !crash_is_null_call(e->crash))
			VEC_PUSH(&seen, e);
	if (seen.count > 0)
		contradict_seen(facts, ret, HYP_PLAIN, seen.items[0], EVIDENCE_TRIALS(&seen));
	VEC_DEINIT(&seen);
}

static void by_silence(const struct facts *facts, uint32_t spared, struct verdict *ret)
{
	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct looked_at looked = ledger_look(facts, i);
		bool excluded = looked.excluded && !(spared & BIT(i));
		struct said because = { 0 };

		if (!looked.any)
			continue;
		SAY(&because, excluded ? "showed-none" : "cannot-tell", said_experiment(looked.by),
		    said_number(looked.telling), said_flag(looked.by != EXPERIMENT_GROWTH));
		decide(&ret->ledger.items[i],
		       &(struct decision_about){ .status = excluded ? LEDGER_EXCLUDED : LEDGER_OPEN,
						 .by = looked.by,
						 .telling = looked.telling,
						 .missed = looked.missed,
						 .because = &because });
	}
}

/* What the verdict says, firmly or not, and what else fits. */
static uint32_t spared_by_verdict(const struct rule *rule, const struct verdict *ret)
{
	uint32_t spared = rule ? BIT(rule->hypothesis) : 0;

	VEC_FOREACH (&ret->alternatives, alternative)
		for (size_t i = 0; i < rule_count; i++)
			if (rules[i].class == alternative->class)
				spared |= BIT(rules[i].hypothesis);
	return spared;
}

/* What an undecided verdict is about is open, whatever looked at it. */
static void open_spared(const struct facts *facts, uint32_t spared, const struct rule *rule,
			const struct proof *proof, struct verdict *ret)
{
	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct ledger_entry *entry = &ret->ledger.items[i];

		if (!(spared & BIT(i)) || entry->status == LEDGER_CONFIRMED)
			continue;
		entry->status = LEDGER_OPEN;
		SAY(&entry->because, "fits-only");
		if (rule && i == (unsigned int)rule->hypothesis) {
			entry->by = shown_by(facts, proof->main);
			entry->telling = proof->watched;
		}
	}
}

void ledger_fill(const struct facts *facts, const struct rule *rule, const struct proof *proof,
		 struct verdict *ret)
{
	uint32_t spared = spared_by_verdict(rule, ret);

	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct ledger_entry entry = { .id = mem_strdup(names[i]),
					      .by = EXPERIMENT_KINDS,
					      .missed = 1 };

		say_about(&entry.text, "claim", i);
		VEC_PUSH(&ret->ledger, entry);
	}
	if (rule && ret->firm)
		by_verdict(facts, rule, proof, ret);
	by_caught_writes(facts, ret);
	by_one_thread(facts, ret);
	by_crash(facts, ret);
	by_silence(facts, spared, ret);
	open_spared(facts, spared, rule, proof, ret);
	assert(!rule || ret->ledger.items[rule->hypothesis].status != LEDGER_EXCLUDED);
}
