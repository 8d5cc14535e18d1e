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

#include <string.h>

#include "judge/judge.h"

#define WORD 8u
#define WORDS_AT_ONCE 4u
#define BLOCK_BYTES_MAX 128u
#define TARGETS_MAX 4u
/* Failing trials without a lost update, until it is enough. One tells, where threads did not take
 * turns at any of the words, and each was the one that the crash speaks of. */
#define FAILURES_NONE 2u
#define TRIALS_PER_STAGE 40u
#define THREADS_MAX 32u /* at one word; of more it is said that they take turns */

/* What was seen in a trial. */
struct race_observation {
	unsigned int spec;
	struct evidence race;
};

struct race {
	VEC(struct race_observation) observations;
	uint64_t seen; /* failing trials with one */
	uint64_t none; /* failing trials that had none, for sure */
};

/* Where to look. */
struct suspect_word {
	const char *key;		   /* of a block */
	const struct backtrack_step *step; /* or a step of the backtrack */
	int64_t offset;			   /* in the block; from the step's own word */
};

struct accesses {
	VEC(const struct hit *) list; /* of one spec, in order */
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

static void tell_race(struct bench *bench, unsigned int spec, const struct hit *read,
		      const struct hit *first, const struct hit *second)
{
	struct race_observation observation = {
		.spec = spec, .race = evidence_new(EVIDENCE_RACE, bench->round.number, true)
	};
	struct race_seen *race = observation.race.race;

	home_copy(&race->home, &bench->watchset.list.items[spec].home);
	tell_write(bench, first, &race->first);
	tell_write(bench, second, &race->second);
	race->read = mem_alloc(sizeof(*race->read));
	hit_tell(read, NULL, bench->symbols, race->read);
	race->victim = block_life_dup(race->second->victim);
	race->gap_ns = second->hit->time_ns - first->hit->time_ns;
	race->lost_update = true;
	SAY(&observation.race.note, "noted:lost-update");
	VEC_PUSH(&bench->race->observations, observation);
}

/* The last one that was lost: it is nearest to the failure. */
static bool find_lost(struct bench *bench, const struct accesses *accesses, unsigned int spec)
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
		tell_race(bench, spec, accesses->list.items[from], accesses->list.items[other],
			  second);
		return true;
	}
	return false;
}

/* Does one thread write between two accesses of another, of which the second is a write, too? Else
 * nothing can have been lost: who made it has handed it over, or the others only read. */
static bool take_turns(const struct accesses *accesses)
{
	struct {
		uint32_t tid;
		bool overtaken; /* another one has written since it was here */
	} threads[THREADS_MAX];
	size_t count = 0;

	VEC_FOREACH (&accesses->list, caught) {
		struct writer writer;
		bool store = is_store(*caught, &writer);
		size_t me = 0;

		while (me < count && threads[me].tid != (*caught)->hit->tid)
			me++;
		if (me == THREADS_MAX || (store && me < count && threads[me].overtaken))
			return true;
		if (me == count) {
			threads[count].tid = (*caught)->hit->tid;
			threads[count++].overtaken = false;
		}
		for (size_t i = 0; store && i < count; i++)
			threads[i].overtaken |= i != me;
	}
	return false;
}

/* Is it about the block with this id that the trial died? */
static bool crash_names(struct bench *bench, uint64_t id)
{
	const struct crash *crash = bench_crash(bench);
	const struct crash_reading *crashed =
		reading_backtrack(bench->round.reading, THROUGH_OBJECTS);

	if (!crash || id == 0)
		return false;
	VEC_FOREACH (&crash->blocks, block)
		if (block->id == id)
			return true;
	return VEC_ANY(&crashed->backtrack.steps, step,
		       step->in.id == id || step->to.id == id || step->to_former.id == id);
}

static bool is_met(struct bench *bench, const struct watch_spec *spec,
		   const struct accesses *accesses)
{
	if (spec->home.kind == HOME_GLOBAL)
		return true;
	return VEC_ANY(&accesses->list, caught, crash_names(bench, (*caught)->hit->id));
}

static void read_failing_trial(struct bench *bench)
{
	bool seen = false, none = true;

	bench->round.failed++;
	for (unsigned int i = 0; i < bench->watchset.list.count; i++) {
		struct accesses accesses = { 0 };

		VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught)
			if (caught->hit->watch == i &&
			    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)))
				VEC_PUSH(&accesses.list, caught);
		none &= is_met(bench, &bench->watchset.list.items[i], &accesses) &&
			!take_turns(&accesses);
		seen |= find_lost(bench, &accesses, i);
		VEC_DEINIT(&accesses.list);
	}
	bench->race->seen += seen;
	bench->race->none += none && !seen;
}

static bool enough(struct bench *bench)
{
	const struct race *race = bench->race;
	uint64_t wanted = bench_wanted(bench);

	return race->seen >= wanted || race->none > 0 ||
	       (race->seen == 0 && bench->round.failed >= FAILURES_NONE) ||
	       bench->round.failed >= 2 * wanted || bench->round.trials >= TRIALS_PER_STAGE;
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	uint64_t wanted = bench_wanted(bench);

	return bench->race->seen == 0 ? 1 : wanted - bench->race->seen;
}

static const struct round_ops race_round = { .id = 7,
					     .observer = OBSERVE_WATCH,
					     .planned = true,
					     .replays = true,
					     .read_failing = read_failing_trial,
					     .enough = enough,
					     .missing = missing };

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

struct words {
	VEC(struct suspect_word) list;
};

/* Its blocks were watched by their keys, and never was it the one that failed. */
static bool keys_mislead(const struct bench *bench, const char *key)
{
	const struct backtrack *backtrack = &bench->start.first->backtrack;

	if (bench->homes.key_tried == 0 || bench->homes.key_led > 0)
		return false;
	return VEC_ANY(&backtrack->steps, step,
		       step->home.kind == HOME_BLOCK && step->home.key &&
			       key_same_context(step->home.key, key));
}

static void add_word(const struct bench *bench, const struct suspect_word *word, struct words *ret)
{
	if (word->key && (!strchr(word->key, '#') || keys_mislead(bench, word->key)))
		return;
	VEC_FOREACH (&ret->list, known)
		if (known->offset == word->offset &&
		    (known->step && word->step
			     ? home_same(&known->step->home, &word->step->home)
			     : known->key && word->key && strcmp(known->key, word->key) == 0))
			return;
	VEC_PUSH(&ret->list, *word);
}

/* All of a block that was freed. */
static void add_block(const struct bench *bench, const struct block_life *block, struct words *ret)
{
	if (!block || !block->key)
		return;
	for (uint64_t at = 0; at < block->size && at < BLOCK_BYTES_MAX; at += WORD)
		add_word(bench, &(struct suspect_word){ .key = block->key, .offset = (int64_t)at },
			 ret);
}

/* A variable that the crash read, and its neighbours: a structure may be one. */
static void add_variables(const struct bench *bench, int64_t offset, struct words *ret)
{
	VEC_FOREACH (&bench->start.first->backtrack.steps, step)
		if (step->home.kind == HOME_GLOBAL)
			add_word(bench, &(struct suspect_word){ .step = step, .offset = offset },
				 ret);
}

/* The words around the place that the crash read, of the same block. */
static void add_fields(const struct bench *bench, struct words *ret)
{
	static const int64_t around[] = { 0, WORD, 2 * WORD, -(int64_t)WORD };

	VEC_FOREACH (&bench->start.first->backtrack.steps, step)
		for (size_t i = 0; i < ARRAY_SIZE(around) && step->home.kind == HOME_BLOCK; i++) {
			int64_t at = (step->home.offset & ~(int64_t)(WORD - 1)) + around[i];

			if (at >= 0 && (uint64_t)at < step->in.size)
				add_word(bench,
					 &(struct suspect_word){ .key = step->home.key,
								 .offset = at },
					 ret);
		}
}

static const struct block_life *freed_block(const struct evidence *e)
{
	switch (e->failing ? e->kind : EVIDENCE_CRASH) {
	case EVIDENCE_FREED_USE:
		return e->freed_use->block;
	case EVIDENCE_HOLDER:
		return e->holder->target;
	case EVIDENCE_BAD_FREE:
		return e->bad_free->block;
	default:
		return NULL;
	}
}

/* The likeliest first: variables that the crash read, what was freed too early, fields that the
 * crash read, what lies beside the variables. */
static void find_words(const struct bench *bench, struct words *ret)
{
	const char *blocks[TARGETS_MAX];
	size_t count = 0;

	add_variables(bench, 0, ret);
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		const struct block_life *block = freed_block(e);
		bool known = !block || !block->key || count == TARGETS_MAX;

		for (size_t i = 0; !known && i < count; i++)
			known = strcmp(blocks[i], block->key) == 0;
		if (known)
			continue;
		blocks[count++] = block->key;
		add_block(bench, block, ret);
	}
	add_fields(bench, ret);
	add_variables(bench, WORD, ret);
	add_variables(bench, 2 * WORD, ret);
	add_variables(bench, -(int64_t)WORD, ret);
}

/* The next ones, as many as there are registers; false: there are no more. */
static bool watch_words(struct bench *bench, const struct words *words, size_t *next)
{
	struct watchset *watchset = &bench->watchset;

	watchset_deinit(watchset);
	*watchset = (struct watchset){ 0 };
	for (; *next < words->list.count && watchset->list.count < WORDS_AT_ONCE; ++*next) {
		const struct suspect_word *word = &words->list.items[*next];

		if (word->step)
			(void)watchset_add_near(watchset, &bench->start.first->record, word->step,
						word->offset);
		else
			(void)watchset_add_block(watchset, word->key, word->offset, WORD);
	}
	VEC_FOREACH (&watchset->list, spec)
		spec->reads = true;
	return watchset->list.count > 0;
}

/* The word at which it was seen in most trials. */
static unsigned int best_watched(const struct race *race, uint64_t *ret_count)
{
	unsigned int best = 0;

	*ret_count = 0;
	for (unsigned int i = 0; i < WORDS_AT_ONCE; i++) {
		uint64_t count = 0;

		VEC_FOREACH (&race->observations, observation)
			count += observation->spec == i;
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
	unsigned int best = best_watched(bench->race, &count);
	struct evidence hop;

	if (count < 2 || count * 2 <= bench->round.failed)
		return false;
	VEC_FOREACH (&bench->race->observations, observation)
		if (observation->spec == best) {
			VEC_PUSH(&bench->ret->evidence.list, observation->race);
			observation->race.race = NULL;
		}
	hop = evidence_new(EVIDENCE_HOP, 0, true);
	hop.hop->number = ++bench->ret->hops > 1 ? bench->ret->hops : 2;
	home_copy(&hop.hop->home, &bench->watchset.list.items[best].home);
	hop.hop->caught = count;
	hop.hop->watched = bench->round.failed;
	hop.hop->trials = bench->ret->evidence.trials;
	hop.hop->end = HOP_ORIGIN;
	VEC_PUSH(&bench->ret->evidence.list, hop);
	SAY(&bench->ret->outcome, "outcome:race");
	return true;
}

static void forget(struct race *race)
{
	VEC_FOREACH (&race->observations, observation)
		if (observation->race.race)
			evidence_deinit(&observation->race);
	VEC_DEINIT(&race->observations);
	*race = (struct race){ 0 };
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

static bool applies(struct inquiry *inq, struct said *why)
{
	const struct bench *bench = inq->bench;

	/* The tracer's registers show writes only. */
	return bench_settled(bench) && !(bench->request->settings->flags & TRIAL_TRACED) &&
	       has_threads(bench) && is_open(bench);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, (double)bench_wanted(inq->bench), 2, ret);
}

/* Who did it may be two threads that did it together. */
static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct race race = { 0 };
	struct words words = { 0 };
	bool told = false;
	size_t next = 0;
	int r = 0;

	find_words(bench, &words);
	if (words.list.count > 0)
		BENCH_SAY(bench, "chase:threads");
	bench->race = &race;
	while (r == 0 && !told && bench_may_go_on(bench) && watch_words(bench, &words, &next)) {
		r = bench_plan(bench, inq->err);
		if (r == 0)
			r = round_run(bench, &race_round, inq->err);
		if (r == 0)
			told = tell(bench);
		forget(&race);
	}
	bench->race = NULL;
	VEC_DEINIT(&words.list);
	return r;
}

EXPERIMENT(race, .name = "race", .question = QUESTION_WHO, .kind = EXPERIMENT_RACE, .chance = 0.5,
	   .refines = true, .applies = applies, .price = price, .run = run);
