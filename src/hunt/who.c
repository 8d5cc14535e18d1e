/*
 * Who did it? The chase: from the crash back to the write.
 *
 * Worth it when there is a crash, or damage that guards found, and something can be put into the
 * program. Where ids hide it, only
 * variables of the program can be watched; guards may show more. Costs what is left of the budget
 * at most; it ends with the third failing trial in which the victim was watched. Decides by
 * evidence: the verdict is drawn from what was caught.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "judge/judge.h"
#include "run/settings.h"
#include "search/stats/rate.h"

extern const struct experiment_ops experiment_guards_first, experiment_neighbours;

#define TRIALS 1500u
#define WANTED 3u
#define HOPS 3u
#define LOOK_LEAST 20u
#define LOOK_MOST TRIALS

/* A pointer that led far away from every block, or that the kernel would not have: whoever put it
 * where it was loaded from. */
static bool is_stray(const struct evidence *e)
{
	const struct home *from = lead_strayed(e);

	return from && (from->kind == HOME_GLOBAL || (from->kind == HOME_BLOCK && from->key));
}

static const struct evidence *find_stray(const struct inquiry *inq)
{
	return VEC_FIND(&inq->evidence.list, e, is_stray(e));
}

/* Where nothing failed: bytes that somebody must have written, in a block that is found again. */
static const struct evidence *damaged_bytes(const struct inquiry *inq)
{
	VEC_FOREACH (&inq->evidence.list, e)
		if (e->kind == EVIDENCE_CANARY && e->canary->block && e->canary->block->key)
			return e;
	return find_stray(inq);
}

/* What stood in a freed block came out, in the output or in a register: somebody reads such blocks.
 */
static bool read_by_somebody(const struct inquiry *inq)
{
	return VEC_ANY(&inq->evidence.list, e, evidence_by_somebody(e));
}

/* A wrong result and no damage: it may come from what stands in freed blocks, or in new ones. */
static bool may_read_freed(const struct inquiry *inq)
{
	if (read_by_somebody(inq))
		return !damaged_bytes(inq);
	if (inq->known.fails_guarded)
		return !inq->known.damaged;
	return inq->known.target && !hunt_crashes(inq) && !inq->known.damaged && inq->known.guarded;
}

static bool worth(struct inquiry *inq, struct said *why)
{
	if (inq->known.damaged) {
		const struct evidence *damage = damaged_bytes(inq);

		if (damage && damage->kind == EVIDENCE_CANARY && damage->canary->writer.count > 0)
			SAY(why, "why:explained"); /* a fence saw the writer */
		else if (damage)
			return true;
		return read_by_somebody(inq) || refcount_object(&inq->evidence);
	}
	if (!hunt_crashes(inq))
		return may_read_freed(inq) || find_stray(inq);
	if (inq->how.close.observer == OBSERVE_NONE) {
		SAY(why, "why:no-agent-who");
		return false;
	}
	return true;
}

static void says(void *ctx, const struct said *said)
{
	struct inquiry *inq = ctx;

	(void)decide(inq, inq->asking, said);
}

/* The observers that matter most show their effect only here, where they are used. */
static int tell_rates(struct inquiry *inq, const struct chase_result *result)
{
	const struct rate *without =
		inq->known.ids.rate.trials > 0 ? &inq->known.ids.rate : &inq->known.target_rate;
	struct rate watched =
		rate_wilson(result->watched_trials, result->watched_failed, RATE_CONFIDENCE);
	struct rate guarded =
		rate_wilson(result->guarded_trials, result->guarded_failed, RATE_CONFIDENCE);
	int r = observers_tell_effect(
		inq, inq->known.ids.unusable ? "with:watch-only" : "with:watch", without, &watched);

	return r == 0 ? observers_tell_effect(
				inq, "with:guards",
				inq->known.ids.rate.trials > 0 ? without : hunt_rate_of_all(inq),
				&guarded)
		      : r;
}

/* What was caught may be nothing: then guards may show which block it is about. */
static int look_further(struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	int r;

	judge_evidence(&inq->evidence, &verdict);
	if (verdict.class != VERDICT_NOT_CAUGHT || hunt_over(inq))
		return 0;
	r = choice_run(inq, &experiment_guards_first, NULL, hit_look_for_damage);
	return r < 0 || inq->known.damaged || inq->known.fenced || hunt_over(inq)
		       ? r
		       : fences_look(inq);
}

/* Where it has not failed under ids yet, they may hide it; without them it may be hidden, too. So
 * many clean trials in a row are no chance. */
static uint64_t look_trials(const struct inquiry *inq)
{
	uint64_t trials = rate_clean_runs(inq->known.target_rate.rate, 0.9999);

	if (inq->known.ids.trial != 0 && !inq->known.ids.unusable)
		return 0;
	return trials < LOOK_LEAST ? LOOK_LEAST : trials < LOOK_MOST ? trials : LOOK_MOST;
}

#define STORED_MAX 8u

struct who {
	struct bench bench;
	struct chase_request request;
	struct chase_result result;
	struct target match; /* only seen through: the inquiry's is the one that is freed */
	char *settings;	     /* of its series: which list, and whether with ids */
	struct stored_trial stored[STORED_MAX];
	struct signature member; /* of the family, that is chased instead; id "": none */
};

struct gathering {
	struct inquiry *inq;
	unsigned int arm;
	bool others; /* other ways in which it shows itself, instead of the most frequent one */
};

/* A trial may have shown others beside it, such as a test that fails in every run. */
static bool shown_as(const struct inquiry *inq, const char *signatures,
		     char ret[SIGNATURE_ID_LEN + 1])
{
	while ((signatures = signature_next_id(signatures, ret)) != NULL) {
		AUTO(signature_deinit) struct signature s = { 0 };

		if (case_signature(inq->cs, ret, &s, NULL) == 0 && target_is(&inq->known.match, &s))
			return true;
	}
	return false;
}

static void gather(void *ctx, const struct run_row *row)
{
	struct gathering *gathering = ctx;
	struct inquiry *inq = gathering->inq;
	struct stored_trial *to = &inq->who->stored[inq->who->request.start.stored_count];
	const char *id = inq->known.match.signature.id;
	bool main = strstr(row->signatures, id) != NULL;

	if (row->arm != gathering->arm || row->signatures[0] == '\0' || !row->kept ||
	    inq->who->request.start.stored_count == STORED_MAX || gathering->others == main ||
	    !shown_as(inq, main ? id : row->signatures, to->signature))
		return;
	to->trial = row->trial;
	to->signal = row->signal;
	inq->who->request.start.stored_count++;
}

/* One corruption dies in many ways. The most frequent one may be a late consequence that nothing
 * leads back from; another member of the family can be read back. */
static void chase_member(void *ctx, const struct signature *signature)
{
	struct inquiry *inq = ctx;
	struct who *who = inq->who;

	if (!inq->known.target || who->match.exact || target_is(&who->match, signature))
		return;
	signature_deinit(&who->member);
	signature_copy(&who->member, signature);
	who->match.signature = who->member;
	BENCH_SAY(&who->bench, "chase:member", said_text(who->member.summary));
}

static int gather_stored(struct inquiry *inq)
{
	struct gathering first = { .inq = inq, .arm = inq->known.ids.arm };
	struct gathering then = { .inq = inq, .arm = inq->known.ids.arm, .others = true };
	int r;

	inq->who->request.start.stored = inq->who->stored;
	if (inq->known.ids.series.value == 0 || inq->known.ids.unusable || inq->known.damaged ||
	    !hunt_crashes(inq))
		return 0;
	r = case_runs(inq->cs, inq->known.ids.series, gather, &first, inq->err);
	return r == 0 ? case_runs(inq->cs, inq->known.ids.series, gather, &then, inq->err) : r;
}

static char *settings_of(const struct inquiry *inq)
{
	AUTO(mem_freep) char *list = mem_printf("list %s\n", inq->how.short_list);
	AUTO(mem_freep)
	char *settings = inq->how.short_list[0] != '\0'
				 ? series_settings_with(inq->how.close_settings, "list", list)
				 : mem_strdup(inq->how.close_settings);

	return inq->known.ids.unusable
		       ? series_settings_with(settings, "without-ids", "without-ids 1\n")
		       : TAKE(settings);
}

/* The first crash began the chase; others may be more frequent. */
static bool seen_once(const struct inquiry *inq)
{
	return inq->known.target && !inq->known.match.exact &&
	       inq->known.target->rate.failed <= 1 && inq->known.ids.series.value != 0 &&
	       inq->how.plain.observer == OBSERVE_IDS && inq->how.short_list[0] == '\0';
}

static void fill_request(struct inquiry *inq)
{
	const struct hunt_request *request = inq->request;
	struct who *who = inq->who;

	who->match = inq->known.match;
	/* Those who read what has come to stand in the file die of it, too, but lead elsewhere. */
	who->match.cuts = true;
	/* The way back from the fault is another for each member: one of them is chased. */
	who->match.members.count = 0;
	who->settings = settings_of(inq);
	who->request = (struct chase_request){ .identity = inq->how.close.identity,
					       .settings = inq->how.close.settings,
					       .program = inq->how.program,
					       .program_path = request->program_path,
					       .slot_env = inq->how.env,
					       .jobs = inq->how.jobs,
					       .start.lead = inq->known.damaged ? damaged_bytes(inq)
							     : hunt_crashes(inq) ? NULL
										 : find_stray(inq),
					       .start.freed = may_read_freed(inq),
					       .start.guarded_s = inq->known.guarded_s,
					       .target = inq->known.target ? &who->match : NULL,
					       .others = &inq->known.others,
					       .start.seen_once = seen_once(inq),
					       .start.without_ids = inq->known.ids.unusable,
					       .start.chosen = chase_member,
					       .start.chosen_ctx = inq,
					       .limits.look = look_trials(inq),
					       .start.rate = inq->known.ids.rate.trials > 0
								     ? inq->known.ids.rate
								     : inq->known.target_rate,
					       .limits.trials = hunt_trials(inq, TRIALS),
					       .fresh = request->fresh,
					       .limits.wanted = WANTED,
					       .limits.proofs = true,
					       .limits.hops = HOPS,
					       .limits.deadline_s = inq->spending.budget.deadline_s,
					       .progress = request->show.progress,
					       .progress_ctx = request->show.ctx,
					       .say = says,
					       .say_ctx = inq };
	who->request.identity.settings = who->settings;
}

static int begin(struct inquiry *inq)
{
	int r;

	inq->who = mem_alloc(sizeof(*inq->who));
	*inq->who = (struct who){ 0 };
	fill_request(inq);
	r = gather_stored(inq);
	if (r == 0)
		r = bench_open(&inq->who->bench, inq->cs, &inq->who->request, &inq->who->result,
			       inq->err);
	inq->bench = &inq->who->bench;
	/* All that is known is judged together; but what it begins with must stay where it is. */
	if (!inq->who->request.start.lead) {
		inq->who->result.evidence.list = inq->evidence.list;
		inq->evidence = (struct evidence_list){ 0 };
	}
	return r;
}

/* What was seen comes back; the bench is gone. Returns how often it did not fail, when it never
 * did. */
static uint64_t end(struct inquiry *inq, uint64_t *ret_guarded)
{
	struct who *who = inq->who;
	struct chase_result *result = &who->result;
	uint64_t clean;

	/* What was watched counts, whatever else was still to be asked. */
	homes_settle(&who->bench, true);
	bench_close(&who->bench);
	inq->bench = NULL;
	inq->ret->interrupted |= result->interrupted;
	hunt_count(inq, result->evidence.trials, result->evidence.failed, 0);
	inq->known.plain_fault = who->bench.guards.same_fault;
	clean = result->found ? 0 : result->evidence.trials;
	*ret_guarded = result->guarded_trials;
	VEC_FOREACH (&result->evidence.list, e)
		VEC_PUSH(&inq->evidence.list, *e);
	result->evidence.list.count = 0;
	return clean;
}

static void release(struct inquiry *inq)
{
	chase_result_deinit(&inq->who->result);
	signature_deinit(&inq->who->member);
	mem_free(inq->who->settings);
	mem_free(inq->who);
	inq->who = NULL;
}

/* A freed block's poison was used: who had read it may have returned since, and where it was
 * followed says little. */
static bool read_elsewhere(const struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	bool poison = false;

	judge_evidence(&inq->evidence, &verdict);
	if (verdict.class != VERDICT_USE_AFTER_FREE && verdict.class != VERDICT_DANGLING_HOLDER)
		return false;
	VEC_FOREACH (&inq->evidence.list, e) {
		if (e->kind != EVIDENCE_FREED_USE)
			continue;
		if (e->freed_use->first || e->freed_use->fenced)
			return false;
		poison |= e->freed_use->poison && e->freed_use->user.count > 0;
	}
	return poison;
}

/* Nothing fails, and no block was damaged: what is written out of an array into the variable beside
 * it shows to neither guards nor fences. */
static int look_beside(struct inquiry *inq)
{
	uint64_t guarded;
	int r;

	if (inq->known.target || inq->known.damaged || inq->known.fails_guarded ||
	    !inq->known.fenced || inq->known.too_slow || hunt_over(inq))
		return 0;
	r = begin(inq);
	if (r == 0 && experiment_neighbours.applies(inq, NULL))
		r = choice_run(inq, &experiment_neighbours, NULL, experiment_neighbours.run);
	(void)end(inq, &guarded);
	release(inq);
	return r;
}

bool who_begin(struct inquiry *inq, struct said *why, int *ret_r)
{
	if (!worth(inq, why)) {
		if (!inq->known.fenced && !hunt_over(inq) && read_elsewhere(inq))
			*ret_r = fences_look(inq);
		if (*ret_r == 0)
			*ret_r = look_beside(inq);
		return false;
	}
	*ret_r = begin(inq);
	return true;
}

void who_between(struct inquiry *inq)
{
	homes_settle(inq->bench, inquiry_over(inq));
}

/* Tells how it ended. */
static int tell(struct inquiry *inq, int r)
{
	struct chase_result *result = &inq->who->result;

	/* From the damage that guards found to whoever did it there may be no way. */
	if (r < 0 && (inq->known.damaged || may_read_freed(inq))) {
		struct err why = *inq->err;

		*inq->err = (struct err){ 0 };
		return DECIDE(inq, "chase:failed", said_text(why.message));
	}
	if (r == 0)
		r = tell_rates(inq, result);
	if (r == 0 && !result->interrupted)
		r = decide(inq, inq->asking, &result->outcome);
	inq->known.chased = r == 0 && !result->interrupted;
	return r;
}

static int ask_once_more(struct inquiry *inq, uint64_t *ret_guarded)
{
	int r = begin(inq);

	if (r == 0)
		r = strategist_ask(inq, QUESTION_WHO);
	(void)end(inq, ret_guarded);
	r = tell(inq, r);
	release(inq);
	return r;
}

/* What was seen is about a failure that does not come again. */
static int ask_of_another(struct inquiry *inq, uint64_t *ret_guarded)
{
	int r;

	evidence_list_deinit(&inq->evidence);
	inq->evidence = (struct evidence_list){ 0 };
	r = rate_again(inq);
	hunt_allow(inq, 1);
	return r == 0 && !hunt_over(inq) ? ask_once_more(inq, ret_guarded) : r;
}

/* Guards found damage, and who did it was not caught: of many alike, four registers watch the wrong
 * ones. Fences see whoever does it, in all of them; and where the damage may have come out of
 * another block as well, they say which. */
static bool damage_unclear(const struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	bool damage;

	judge_evidence(&inq->evidence, &verdict);
	damage = verdict.class == VERDICT_WRITE_AFTER_FREE || verdict.class == VERDICT_OVERFLOW ||
		 verdict.class == VERDICT_UNDERFLOW;
	return damage && (verdict.writer.count == 0 || !verdict.firm);
}

static bool is_text(const struct verdict *verdict)
{
	unsigned int letters = 0;

	for (unsigned int i = 0; i < verdict->value_len; i++) {
		unsigned char c = (unsigned char)(verdict->new >> 8 * i);

		if (c >= ' ' && c < 0x7f)
			letters++;
		else if (c != '\0' && c != '\n' && c != '\t')
			return false;
	}
	return letters >= 4;
}

/* Text, or a store that knows nothing of the field, in a block that is the writer's own: whoever
 * took it for something else may have had no right to that block. */
static bool owner_may_have_written(const struct inquiry *inq)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&inq->evidence, &verdict);
	return (verdict.class == VERDICT_WIDE_WRITE || verdict.class == VERDICT_NARROW_WRITE) &&
	       (verdict.class == VERDICT_WIDE_WRITE || is_text(&verdict)) &&
	       verdict.home.kind == HOME_BLOCK;
}

/* Where it did not fail under ids, they may hide it. */
static int look_without_ids(struct inquiry *inq, uint64_t clean, uint64_t *ret_guarded)
{
	struct rate seen = rate_wilson(clean, 0, RATE_CONFIDENCE);
	int r = observers_drop_ids(inq, &seen);

	hunt_allow(inq, 1);
	return r == 0 && inq->known.ids.hide_it && !hunt_over(inq) ? ask_once_more(inq, ret_guarded)
								   : r;
}

static bool fences_may_tell(const struct inquiry *inq)
{
	return !inq->known.fenced && !hunt_over(inq);
}

/* What nobody looked at yet, when it was no damage. */
static int look_at_rest(struct inquiry *inq, bool with_ids, uint64_t clean, uint64_t *guarded)
{
	int r = 0;

	/* Reads out of bounds may have led there: guards do not see them. */
	if (inq->known.plain_fault && fences_may_tell(inq))
		return fences_look(inq);
	if (with_ids && clean > 0 && inq->known.ids.trial == 0 && !hunt_over(inq))
		r = look_without_ids(inq, clean, guarded);
	return r == 0 && inq->known.chased && *guarded == 0 ? look_further(inq) : r;
}

int who_end(struct inquiry *inq, int r)
{
	bool from_damage = inq->known.damaged || may_read_freed(inq);
	bool with_ids = !inq->known.ids.unusable, strayed = inq->who->bench.start.strayed;
	uint64_t guarded = 0, clean = end(inq, &guarded);

	r = strayed ? r : tell(inq, r);
	release(inq);
	if (r == 0 && strayed && !hunt_over(inq))
		r = ask_of_another(inq, &guarded);
	if (r == 0 && fences_may_tell(inq) &&
	    (damage_unclear(inq) || read_elsewhere(inq) || owner_may_have_written(inq)))
		r = fences_look(inq);
	return from_damage || r < 0 ? r : look_at_rest(inq, with_ids, clean, &guarded);
}
