/*
 * Two threads at one word.
 *
 * Writes alone do not show a race: two threads may well write a field one after the other. What
 * shows it is a read by one thread, a write by another, and then a write by the first, in the same
 * activation of one function and without having looked again: what the other wrote is lost. So here
 * the CPU's watchpoints show reads, too, on the words of a block that was freed while it was used,
 * or of what the crash read; four at a time.
 *
 * The order of traps is that of the accesses wherever a lock orders them: a trap is taken before
 * the next instruction, and so before the unlock. Instructions that are atomic by themselves are no
 * race, whatever the order looks like.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <string.h>

#include "judge/judge.h"

#define WORD 8u
#define WORDS_AT_ONCE 4u
#define BLOCK_BYTES_MAX 128u
#define TARGETS_MAX 4u
/* Failing trials with only one thread there, until it is enough; of a variable one tells, for no
 * key can have led elsewhere. */
#define FAILURES_ALONE 2u
#define TRIALS_PER_STAGE 40u

/* What was seen in a trial. */
struct race_sight {
	unsigned int stake;
	struct evidence race;
};

struct race {
	VEC(struct race_sight) sights;
	uint64_t seen;	   /* failing trials with one */
	uint64_t together; /* failing trials in which two threads came by */
	uint64_t touched;  /* failing trials in which anybody did */
};

/* Where to look. */
struct suspect_object {
	const char *key; /* of a block */
	uint64_t size;
	const struct backtrack_step *step; /* or a step of the backtrack */
};

/* ---- one trial ---------------------------------------------------------------------------------
 */

struct accesses {
	VEC(const struct hit *) list; /* of one stake, in order */
};

static bool is_change(const struct hit *caught)
{
	return memcmp(caught->hit->old, caught->hit->new, sizeof(caught->hit->new)) != 0;
}

static bool is_store(const struct hit *caught, struct writer *ret)
{
	return hit_decode(caught, NULL, ret) == 0 && !ret->system_call && ret->covers;
}

static bool is_atomic(const struct writer *writer)
{
	return strncmp(writer->store.text, "lock ", 5) == 0 ||
	       strncmp(writer->store.text, "xchg", 4) == 0;
}

/* Did the access at `i` change what lies where the other wrote? Whose trap comes first finds the
 * change, be it a read: then it is the store's right behind it, which finds none. */
static bool changes(const struct accesses *accesses, size_t i, const struct writer *other)
{
	struct writer writer, reader;

	if (!is_store(accesses->list.items[i], &writer) || writer.low >= other->high ||
	    other->low >= writer.high)
		return false;
	return is_change(accesses->list.items[i]) ||
	       (i > 0 && is_change(accesses->list.items[i - 1]) &&
		!is_store(accesses->list.items[i - 1], &reader));
}

/* The write of another thread between the access `from` and the one at `to`; -1: none. */
static int between(const struct accesses *accesses, size_t from, size_t to,
		   const struct writer *writer)
{
	uint32_t tid = accesses->list.items[to]->hit->tid;

	for (size_t i = to; i-- > from + 1;)
		if (accesses->list.items[i]->hit->tid != tid && changes(accesses, i, writer))
			return (int)i;
	return -1;
}

/* The same thread's access before; -1: none. */
static int before(const struct accesses *accesses, size_t at)
{
	for (size_t i = at; i-- > 0;)
		if (accesses->list.items[i]->hit->tid == accesses->list.items[at]->hit->tid)
			return (int)i;
	return -1;
}

static void tell_write(struct bench *bench, const struct hit *caught, struct write_seen **ret)
{
	struct writer writer;
	bool decoded = hit_decode(caught, bench->symbols, &writer) == 0;

	*ret = mem_alloc(sizeof(**ret));
	hit_tell(caught, decoded ? &writer : NULL, bench->symbols, *ret);
}

static void tell_race(struct bench *bench, unsigned int stake, const struct hit *first,
		      const struct hit *second)
{
	struct race_sight sight = {
		.stake = stake, .race = evidence_new(EVIDENCE_RACE, bench->round.number, true)
	};
	struct race_seen *race = sight.race.race;

	home_copy(&race->home, &bench->stakeout.list.items[stake].home);
	tell_write(bench, first, &race->first);
	tell_write(bench, second, &race->second);
	race->victim = block_life_dup(race->second->victim);
	race->gap_ns = second->hit->time_ns - first->hit->time_ns;
	race->lost_update = true;
	sight.race.note = mem_strdup(
		"the second thread had read it before the first one wrote, and did not look again");
	VEC_PUSH(&bench->race->sights, sight);
}

/* The last one that was lost: it is nearest to the failure. */
static bool find_lost(struct bench *bench, const struct accesses *accesses, unsigned int stake)
{
	for (size_t to = accesses->list.count; to-- > 0;) {
		const struct hit *second = accesses->list.items[to];
		int from = before(accesses, to), other;
		struct writer writer, reader;

		if (from < 0 || !is_store(second, &writer) || is_atomic(&writer) ||
		    is_change(accesses->list.items[from]) ||
		    is_store(accesses->list.items[from], &reader) ||
		    accesses->list.items[from]->hit->gregs[LOG_GREG_RSP] !=
			    second->hit->gregs[LOG_GREG_RSP])
			continue;
		other = between(accesses, (size_t)from, to, &writer);
		if (other < 0)
			continue;
		tell_race(bench, stake, accesses->list.items[other], second);
		return true;
	}
	return false;
}

static void read_failing_trial(struct bench *bench)
{
	bool seen = false, together = false, touched = false;

	bench->round.failed++;
	for (unsigned int i = 0; i < bench->stakeout.list.count; i++) {
		struct accesses accesses = { 0 };

		VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught)
			if (caught->hit->watch == i &&
			    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)))
				VEC_PUSH(&accesses.list, caught);
		for (size_t k = 1; k < accesses.list.count; k++)
			together |= accesses.list.items[k]->hit->tid !=
				    accesses.list.items[0]->hit->tid;
		touched |= accesses.list.count > 0;
		seen |= find_lost(bench, &accesses, i);
		VEC_DEINIT(&accesses.list);
	}
	bench->race->seen += seen;
	bench->race->together += together;
	bench->race->touched += touched;
}

static bool is_of_variable(const struct bench *bench)
{
	return bench->stakeout.list.count > 0 &&
	       bench->stakeout.list.items[0].home.kind == HOME_GLOBAL;
}

static bool enough(struct bench *bench)
{
	return bench->race->seen >= bench->request->limits.wanted ||
	       (bench->race->together == 0 &&
		bench->round.failed >= (is_of_variable(bench) ? 1 : FAILURES_ALONE)) ||
	       bench->round.failed >= 2 * bench->request->limits.wanted ||
	       bench->round.trials >= TRIALS_PER_STAGE;
}

static const struct round_ops race_round = { .id = 7,
					     .observer = OBSERVE_WATCH,
					     .planned = true,
					     .replays = true,
					     .read_failing = read_failing_trial,
					     .enough = enough };

/* ---- where to look -----------------------------------------------------------------------------
 */

static bool has_threads(const struct bench *bench)
{
	bool found = false;

	if (!bench->start.first->has_record)
		return false;
	VEC_FOREACH (&bench->start.first->logs->list, log) {
		struct log_item item;
		unsigned int started = 0;

		log_reader_rewind(&log->reader);
		while (log_reader_next(&log->reader, &item))
			started += item.head.type == LOG_THREAD_START;
		found |= started > 1;
	}
	return found;
}

struct targets {
	VEC(struct suspect_object) list;
};

static void add_block(struct targets *targets, const struct block_life *block)
{
	size_t blocks = 0;

	if (!block || !block->key || !strchr(block->key, '#'))
		return;
	VEC_FOREACH (&targets->list, known) {
		if (known->key && strcmp(known->key, block->key) == 0)
			return;
		blocks += known->key != NULL;
	}
	if (blocks >= TARGETS_MAX)
		return;
	VEC_PUSH(&targets->list,
		 ((struct suspect_object){ .key = block->key, .size = block->size }));
}

static void add_steps(const struct bench *bench, enum home_kind kind, struct targets *ret)
{
	VEC_FOREACH (&bench->start.first->backtrack.steps, step) {
		bool known = false;

		VEC_FOREACH (&ret->list, target)
			known |= target->step && home_same(&target->step->home, &step->home);
		if (!known && ret->list.count < 2 * TARGETS_MAX && step->home.kind == kind)
			VEC_PUSH(&ret->list, ((struct suspect_object){ .step = step }));
	}
}

/* Variables that the crash read first: one trial tells of each. Then what was freed too early, then
 * blocks that the crash read. */
static void find_targets(const struct bench *bench, struct targets *ret)
{
	add_steps(bench, HOME_GLOBAL, ret);
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		if (!e->failing)
			continue;
		if (e->kind == EVIDENCE_FREED_USE)
			add_block(ret, e->freed_use->block);
		else if (e->kind == EVIDENCE_HOLDER)
			add_block(ret, e->holder->target);
		else if (e->kind == EVIDENCE_BAD_FREE)
			add_block(ret, e->bad_free->block);
	}
	add_steps(bench, HOME_BLOCK, ret);
}

/* Where the crash read, the words around that place; all of a block that was freed. */
static bool word_offset(const struct suspect_object *target, unsigned int window, unsigned int i,
			int64_t *ret)
{
	static const int64_t around[WORDS_AT_ONCE] = { 0, 8, 16, -8 };
	uint64_t size = target->size;

	*ret = (int64_t)(window * WORDS_AT_ONCE + i) * WORD;
	if (target->step) {
		size = target->step->in.size;
		*ret = (target->step->home.offset & ~(int64_t)(WORD - 1)) + around[i];
		if (target->step->home.kind == HOME_GLOBAL || window > 0)
			return window == 0;
	}
	return *ret >= 0 && (uint64_t)*ret < size &&
	       (target->step || *ret < (int64_t)BLOCK_BYTES_MAX);
}

/* The window's words of a target; false: there are no more. */
static bool stake_words(struct bench *bench, const struct suspect_object *target,
			unsigned int window)
{
	struct stakeout *stakeout = &bench->stakeout;
	const struct home *home = target->step ? &target->step->home : NULL;

	stakeout_deinit(stakeout);
	*stakeout = (struct stakeout){ 0 };
	for (unsigned int i = 0; i < WORDS_AT_ONCE; i++) {
		int64_t offset;

		if (!word_offset(target, window, i, &offset))
			continue;
		if (home && home->kind == HOME_GLOBAL)
			(void)stakeout_add_near(stakeout, &bench->start.first->record, target->step,
						offset - (home->offset & ~(int64_t)(WORD - 1)));
		else
			(void)stakeout_add_block(stakeout, home ? home->key : target->key, offset,
						 WORD);
	}
	VEC_FOREACH (&stakeout->list, stake)
		stake->reads = true;
	return stakeout->list.count > 0;
}

/* ---- what follows ------------------------------------------------------------------------------
 */

/* The word at which it was seen in most trials. */
static unsigned int best_stake(const struct race *race, uint64_t *ret_count)
{
	unsigned int best = 0;

	*ret_count = 0;
	for (unsigned int i = 0; i < WORDS_AT_ONCE; i++) {
		uint64_t count = 0;

		VEC_FOREACH (&race->sights, sight)
			count += sight->stake == i;
		if (count > *ret_count) {
			*ret_count = count;
			best = i;
		}
	}
	return best;
}

static bool tell(struct bench *bench)
{
	uint64_t count;
	unsigned int best = best_stake(bench->race, &count);
	struct evidence hop;

	if (count < 2 || count * 2 <= bench->round.failed)
		return false;
	VEC_FOREACH (&bench->race->sights, sight)
		if (sight->stake == best) {
			VEC_PUSH(&bench->ret->evidence.list, sight->race);
			sight->race.race = NULL;
		}
	hop = evidence_new(EVIDENCE_HOP, 0, true);
	hop.hop->number = ++bench->ret->hops > 1 ? bench->ret->hops : 2;
	home_copy(&hop.hop->home, &bench->stakeout.list.items[best].home);
	hop.hop->caught = count;
	hop.hop->watched = bench->round.failed;
	hop.hop->trials = bench->ret->evidence.trials;
	hop.hop->end = HOP_ORIGIN;
	VEC_PUSH(&bench->ret->evidence.list, hop);
	mem_free(bench->ret->outcome);
	bench->ret->outcome =
		mem_strdup("two threads were seen at one word, and an update was lost");
	return true;
}

static void forget(struct race *race)
{
	VEC_FOREACH (&race->sights, sight)
		if (sight->race.race)
			evidence_deinit(&sight->race);
	VEC_DEINIT(&race->sights);
	*race = (struct race){ 0 };
}

static int look_at(struct bench *bench, const struct suspect_object *target, bool *ret_told,
		   struct err *err)
{
	bool led =
		true; /* the watch to the target; who never meets it need not ask for more words */
	int r = 0;

	for (unsigned int window = 0; r == 0 && !*ret_told && led && bench_may_go_on(bench) &&
				      stake_words(bench, target, window);
	     window++) {
		r = bench_plan(bench, err);
		if (r == 0)
			r = round_run(bench, &race_round, err);
		if (r == 0)
			*ret_told = tell(bench);
		led = bench->race->touched > 0;
		forget(bench->race);
	}
	return r;
}

/* Would it say anything new? Where a block was overrun, or nobody ever wrote, two threads are no
 * question. */
static bool is_open(const struct bench *bench)
{
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	judge_evidence(&bench->ret->evidence, &verdict);
	switch (verdict.class) {
	case VERDICT_NOT_CAUGHT:
	case VERDICT_USE_AFTER_FREE:
	case VERDICT_WRITE_AFTER_FREE:
	case VERDICT_DANGLING_HOLDER:
	case VERDICT_DOUBLE_FREE:
	case VERDICT_RACE:
	case VERDICT_NARROW_WRITE:
	case VERDICT_WIDE_WRITE:
		return true;
	default:
		return false;
	}
}

static bool applies(struct inquiry *inq, struct strbuf *why)
{
	const struct bench *bench = inq->bench;

	/* The tracer's registers show writes only. */
	return bench_settled(bench) && !(bench->request->settings->flags & TRIAL_TRACED) &&
	       has_threads(bench) && is_open(bench);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, (double)inq->bench->request->limits.wanted, 2, ret);
}

/* Who did it may be two threads that did it together. */
static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct race race = { 0 };
	struct targets targets = { 0 };
	bool told = false;
	int r = 0;

	find_targets(bench, &targets);
	if (targets.list.count > 0)
		bench_say(bench,
			  "it has threads: watching who reads and writes what was freed, and "
			  "what the crash read");
	bench->race = &race;
	VEC_FOREACH (&targets.list, target)
		if (r == 0 && !told)
			r = look_at(bench, target, &told, inq->err);
	bench->race = NULL;
	VEC_DEINIT(&targets.list);
	return r;
}

const struct experiment_ops experiment_race = { .name = "race",
						.question = QUESTION_WHO,
						.kind = EXPERIMENT_RACE,
						.chance = 0.5,
						.refines = true,
						.applies = applies,
						.price = price,
						.run = run };
