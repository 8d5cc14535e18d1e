/*
 * What became of each explanation, and by which experiment. See ledger.h.
 */
#include "judge/ledger.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "judge/judge.h"
#include "judge/store_facts.h"

static const struct {
	const char *id, *text;
} texts[HYPOTHESES] = {
	[HYP_NARROW] = { "narrow", "a bad value is written into the field itself, by a store no "
				   "wider than it" },
	[HYP_WIDE] = { "wide", "a wider store, meant for a neighbour, clips the field" },
	[HYP_OVERFLOW] = { "overflow", "a write runs over the end, or before the start, of another "
				       "block" },
	[HYP_STALE] = { "stale", "a write goes through a pointer to a block that was freed" },
	[HYP_DANGLING] = { "dangling", "a pointer outlives the block that it points to, and is "
				       "used" },
	[HYP_DOUBLE_FREE] = { "double-free",
			      "a block is freed twice, or a wrong pointer is freed" },
	[HYP_CONFLATED] = { "conflated", "two objects at one address are taken for one: no write "
					 "happened" },
	[HYP_CACHED] = { "cached", "a stale or torn value is copied from a cache slot by code that "
				   "is right" },
	[HYP_RACE] = { "race", "two threads write the field at once" },
	[HYP_UNINITIALISED] = { "uninitialised",
				"the field is used before anybody has written it" },
	[HYP_MAPPING] = { "mapping", "a mapped file is made shorter, or written anew, by another "
				     "process" },
	[HYP_OUTSIDE] = { "outside", "the kernel, another process or a device writes it" },
	[HYP_HOST] = { "host", "the machine is at fault: its memory or a core" },
	[HYP_GROWTH] = { "growth", "blocks pile up from test to test" },
	[HYP_PLAIN] = { "plain", "it is no memory error" },
	[HYP_OVER_READ] = { "over-read", "a read goes behind the end, or before the start, of a "
					 "block" },
	[HYP_FAULT] = { "fault", "the program itself makes the bad value: a NULL pointer, a zero "
				 "divisor, a recursion without end" },
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

bool judge_would_tell(const struct verdict *verdict, enum experiment_kind kind)
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
	switch (fault) {
	case FAULT_FREED:
	case FAULT_RECYCLED:
		return BIT(HYP_DANGLING) | BIT(HYP_STALE);
	case FAULT_MAPPING_SHRANK:
		return BIT(HYP_MAPPING);
	default:
		return 0;
	}
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
	};

	return kind < REPORTED_KINDS ? sets[kind] : 0;
}

/* The explanations that a piece speaks for, firmly or not. */
static uint32_t suggests(const struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_CRASH:
		return suggested_by_fault(e->crash->fault);
	case EVIDENCE_CANARY:
		return e->canary->side == CANARY_FREED ? BIT(HYP_STALE) : BIT(HYP_OVERFLOW);
	case EVIDENCE_OVER_READ:
		return BIT(HYP_OVER_READ);
	case EVIDENCE_REPORTED:
		return suggested_by_report(e->reported->kind);
	case EVIDENCE_FREED_USE:
	case EVIDENCE_HOLDER:
		return BIT(HYP_DANGLING) | BIT(HYP_STALE);
	case EVIDENCE_BAD_FREE:
		return BIT(HYP_DOUBLE_FREE);
	case EVIDENCE_MAPPING:
		return BIT(HYP_MAPPING);
	case EVIDENCE_ODDS:
		return BIT(HYP_UNINITIALISED);
	case EVIDENCE_ACCOUNT:
		return BIT(HYP_STALE) | BIT(HYP_DANGLING);
	case EVIDENCE_GROWTH:
		return BIT(HYP_GROWTH);
	case EVIDENCE_RACE:
		return BIT(HYP_RACE);
	default:
		return 0;
	}
}

double chance_missed(uint64_t telling, double coverage)
{
	/* A damaged case may hold what is no share at all. */
	if (!(coverage > 0 && coverage <= 1))
		return 1;
	return pow(1 - coverage / 2, (double)telling);
}

const char *ledger_id(enum explanation explanation)
{
	return texts[explanation].id;
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

/* ---- one entry ---- */

static enum experiment_kind shown_by(const struct facts *facts, const struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_CRASH:
	case EVIDENCE_MAPPING:
		return EXPERIMENT_CRASH_RECORD;
	case EVIDENCE_OVER_READ:
		return EXPERIMENT_FENCES;
	case EVIDENCE_FREED_USE:
		if (e->freed_use->fenced)
			return EXPERIMENT_FENCES;
		return e->freed_use->poison ? EXPERIMENT_GUARDS : EXPERIMENT_CRASH_RECORD;
	case EVIDENCE_BAD_FREE:
		return facts->made[EXPERIMENT_GUARDS].trials > 0 ? EXPERIMENT_GUARDS
								 : EXPERIMENT_CRASH_RECORD;
	case EVIDENCE_CANARY:
		return EXPERIMENT_GUARDS;
	case EVIDENCE_HOLDER:
		return e->holder->written_by.count > 0 ? EXPERIMENT_WATCH : EXPERIMENT_GUARDS;
	case EVIDENCE_ODDS:
		return EXPERIMENT_FILL_FRESH;
	case EVIDENCE_RACE:
		return EXPERIMENT_RACE;
	case EVIDENCE_GROWTH:
		return EXPERIMENT_GROWTH;
	case EVIDENCE_HOST:
		return EXPERIMENT_MACHINE;
	case EVIDENCE_FAILURE:
	case EVIDENCE_REPORTED:
		return EXPERIMENT_RUN;
	default:
		return EXPERIMENT_WATCH;
	}
}

struct decision_about {
	enum ledger_status status;
	enum experiment_kind by;
	uint64_t telling;
	double missed;
	const char *because;
};

/* The first decision stands. */
static void decide(struct ledger_entry *entry, const struct decision_about *about)
{
	if (entry->status == LEDGER_EXCLUDED || entry->status == LEDGER_CONFIRMED)
		return;
	entry->status = about->status;
	entry->by = about->by;
	entry->telling = about->telling;
	entry->missed = about->missed;
	mem_free(entry->because);
	entry->because = mem_strdup(about->because);
}

/* What was seen in `trials` failing trials contradicts it. */
static void contradict(const struct facts *facts, struct verdict *ret, enum explanation explanation,
		       const struct evidence *e, uint64_t trials, const char *because)
{
	struct ledger_entry *entry = &ret->ledger.items[explanation];

	if (entry->status == LEDGER_EXCLUDED || entry->status == LEDGER_CONFIRMED)
		return;
	decide(entry, &(struct decision_about){ .status = LEDGER_EXCLUDED,
						.by = shown_by(facts, e),
						.telling = trials,
						.missed = chance_missed(trials, 1),
						.because = because });
	VEC_PUSH(&entry->evidence, e->id);
}

/* ---- by the verdict ---- */

/* What a caught writer of the failing value does to each of the others. */
static const char *const contradicted[HYPOTHESES] = {
	[HYP_NARROW] = "the store that was caught is not one into the field alone",
	[HYP_WIDE] = "the store that was caught does not reach over the field's ends",
	[HYP_OVERFLOW] = "the store that was caught went through a pointer to the block itself",
	[HYP_STALE] = "the store that was caught went through a pointer to a live block",
	[HYP_DANGLING] = "the value that failed was written by the store that was caught; it is no "
			 "pointer that went stale",
	[HYP_DOUBLE_FREE] =
		"the value that failed was written by the store that was caught, not by "
		"an allocator",
	[HYP_CONFLATED] = "the very block that failed was written",
	[HYP_CACHED] = "the store that was caught made the value itself, or its source was whole",
	[HYP_UNINITIALISED] = "the field was written",
	[HYP_MAPPING] = "the value that failed was written by the program's own store",
	[HYP_OUTSIDE] = "an instruction of the program was caught writing it",
	[HYP_HOST] = "the same instruction wrote it in every failing trial that was watched",
	[HYP_PLAIN] = "a store was caught that made the value it failed over",
	[HYP_FAULT] = "a store was caught that made the value it failed over",
};

static void by_verdict(const struct facts *facts, const struct rule *rule,
		       const struct proof *proof, struct verdict *ret)
{
	AUTO(strbuf_deinit) struct strbuf seen = { 0 };
	bool store = proof->main->kind == EVIDENCE_WRITE && rule->class != VERDICT_DANGLING_HOLDER;

	evidence_describe(proof->main, &seen);
	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct ledger_entry *entry = &ret->ledger.items[i];
		bool own = i == (unsigned int)rule->hypothesis;

		if (!own && !(rule->excludes & ~proof->spared & BIT(i)))
			continue;
		decide(entry,
		       &(struct decision_about){ .status = own ? LEDGER_CONFIRMED : LEDGER_EXCLUDED,
						 .by = shown_by(facts, proof->main),
						 .telling = proof->caught,
						 .missed = chance_missed(proof->caught, 1),
						 .because = store && !own && contradicted[i]
								    ? contradicted[i]
								    : strbuf_str(&seen) });
		VEC_FOREACH (&proof->pieces, piece)
			VEC_PUSH(&entry->evidence, (*piece)->id);
	}
}

/* ---- by single observations, whatever the verdict is ---- */

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
			AUTO(strbuf_deinit) struct strbuf seen = { 0 };

			if (leads_on(suspect) || !suspect->verified)
				continue;
			evidence_describe(e, &seen);
			if (!store_is_first(e->write))
				contradict(facts, ret, HYP_CONFLATED, e, trials, strbuf_str(&seen));
			contradict(facts, ret, HYP_UNINITIALISED, e, trials, strbuf_str(&seen));
			if (trials > 1)
				contradict(facts, ret, HYP_HOST, e, trials, strbuf_str(&seen));
			if (trials > 1 && trials >= link->watched)
				contradict(facts, ret, HYP_OUTSIDE, e, trials, strbuf_str(&seen));
		}
}

/* From birth to failure one thread alone wrote it, in every failing trial that was watched. */
static void by_one_thread(const struct facts *facts, struct verdict *ret)
{
	const struct evidence *seen = NULL;
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
	contradict(
		facts, ret, HYP_RACE, seen, trials,
		"one thread alone wrote it from its birth to the failure, in every failing trial "
		"that was watched");
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
	AUTO(strbuf_deinit) struct strbuf words = { 0 };

	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_CRASH && e->failing &&
		    shows_memory_error(e->crash->fault) && !crash_is_null_call(e->crash))
			VEC_PUSH(&seen, e);
	if (seen.count > 0) {
		evidence_describe(seen.items[0], &words);
		contradict(facts, ret, HYP_PLAIN, seen.items[0], EVIDENCE_TRIALS(&seen),
			   strbuf_str(&words));
	}
	VEC_DEINIT(&seen);
}

/* ---- by experiments that saw nothing ---- */

static void by_silence(const struct facts *facts, uint32_t spared, struct verdict *ret)
{
	for (unsigned int i = 0; i < HYPOTHESES; i++) {
		struct looked_at looked = ledger_look(facts, i);
		AUTO(strbuf_deinit) struct strbuf words = { 0 };

		if (!looked.any)
			continue;
		if (looked.excluded && !(spared & BIT(i)))
			strbuf_addf(&words, "%s showed none in %" PRIu64 " %strials",
				    experiment_words(looked.by), looked.telling,
				    looked.by == EXPERIMENT_GROWTH ? "" : "failing ");
		else
			strbuf_addf(&words, "%s looked at %" PRIu64 " %strial%s: it cannot be told",
				    experiment_words(looked.by), looked.telling,
				    looked.by == EXPERIMENT_GROWTH ? "" : "failing ",
				    looked.telling == 1 ? "" : "s");
		decide(&ret->ledger.items[i],
		       &(struct decision_about){ .status = looked.excluded && !(spared & BIT(i))
								   ? LEDGER_EXCLUDED
								   : LEDGER_OPEN,
						 .by = looked.by,
						 .telling = looked.telling,
						 .missed = looked.missed,
						 .because = strbuf_str(&words) });
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
		mem_free(entry->because);
		entry->because = mem_strdup("what was seen fits it, and does not prove it");
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

	for (unsigned int i = 0; i < HYPOTHESES; i++)
		VEC_PUSH(&ret->ledger, ((struct ledger_entry){ .id = mem_strdup(texts[i].id),
							       .text = mem_strdup(texts[i].text),
							       .by = EXPERIMENT_KINDS,
							       .missed = 1 }));
	if (rule && ret->firm)
		by_verdict(facts, rule, proof, ret);
	by_caught_writes(facts, ret);
	by_one_thread(facts, ret);
	by_crash(facts, ret);
	by_silence(facts, spared, ret);
	open_spared(facts, spared, rule, proof, ret);
	assert(!rule || ret->ledger.items[rule->hypothesis].status != LEDGER_EXCLUDED);
}
