#include "studies/heap/chance.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "wire/guard_word.h"

#define CONTEXTS_MAX 100000u
#define SUSPECT_P 0.05
#define SUSPECTS_MAX 10
#define FAILING_MAX 32
#define SURE 0.95	/* what is bet on a coin that decides all by itself */
#define FAILED_LEAST 3u /* until words are looked at */
#define ALL_FAILED 8u	/* trials; a coin that decides it does that once in 256 */
#define NONE_FAILED 16u /* once in 100, where two coins must agree */

void chance_deinit(struct chance *chance)
{
	VEC_FREE(&chance->failing, reading, reading_close(*reading));
	VEC_DEINIT(&chance->contexts);
	VEC_DEINIT(&chance->trials);
}

/* Where it stands, or where it would. */
static size_t place_of(const struct chance *chance, uint64_t stack_hash)
{
	return VEC_HOLDS_FOR(&chance->contexts, context, context->stack_hash < stack_hash);
}

static struct chance_context *context_of(struct chance *chance, uint64_t stack_hash)
{
	size_t at = place_of(chance, stack_hash);
	struct chance_context *items;

	if (at < chance->contexts.count && chance->contexts.items[at].stack_hash == stack_hash)
		return &chance->contexts.items[at];
	if (chance->contexts.count >= CONTEXTS_MAX)
		return NULL;
	VEC_PUSH(&chance->contexts, (struct chance_context){ 0 });
	items = chance->contexts.items;
	memmove(items + at + 1, items + at, (chance->contexts.count - 1 - at) * sizeof(items[0]));
	items[at] = (struct chance_context){ .stack_hash = stack_hash };
	return &items[at];
}

static bool find_settings(struct event_log *log, struct log_heap *ret)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item))
		if (item.head.type == LOG_HEAP && log_payload(&item, ret, sizeof(*ret)))
			return true;
	return false;
}

/* A trial, as it is read: with which coins, and how it ended. */
struct tossing {
	struct chance *chance;
	struct reading *reading;
	struct log_heap settings;
	bool failed;
};

/* Whom the failure goes with was there in nearly every failing trial: the first ones will do to
 * tell his stack. */
static void note_failed(struct tossing *t, struct chance_context *context)
{
	struct chance *chance = t->chance;
	bool kept = chance->failing.count > 0 &&
		    chance->failing.items[chance->failing.count - 1] == t->reading;

	if (context->failed_in || (!kept && chance->failing.count == FAILING_MAX))
		return;
	if (!kept)
		VEC_PUSH(&chance->failing, reading_share(t->reading));
	context->failed_in = t->reading;
}

static void count(struct tossing *t, struct chance_context *context, bool poisoned)
{
	uint64_t trial = reading_trial(t->reading);
	bool failed = t->failed;

	/* Threads have a row each, processes a log each: the coin is the same for all. */
	if (context->last_trial == trial)
		return;
	context->last_trial = trial;
	if (poisoned) {
		context->poisoned++;
		context->poisoned_failed += failed;
	} else {
		context->clear++;
		context->clear_failed += failed;
	}
	if (failed)
		note_failed(t, context);
}

static struct chance_context *toss(struct tossing *t, uint64_t hash)
{
	struct chance_context *context = context_of(t->chance, hash);

	if (context)
		count(t, context, canary_chance(t->settings.seed, hash, t->settings.poison_ppm));
	return context;
}

/* The words of a block that is longer than they are share coins: which it was is not asked. */
static void note_words(struct tossing *t, struct chance_context *context, uint64_t bytes)
{
	struct chance *chance = t->chance;
	uint64_t words = (bytes + 7) / 8;

	if (chance->trials.count == 0 ||
	    chance->trials.items[chance->trials.count - 1].number != reading_trial(t->reading))
		VEC_PUSH(&chance->trials,
			 ((struct chance_trial){ .number = reading_trial(t->reading),
						 .seed = t->settings.seed,
						 .failed = t->failed }));
	if (!context || chance->trials.count > CHANCE_TRIALS || words > CANARY_FRESH_WORDS)
		return;
	context->words = words > context->words ? words : context->words;
	context->seen[(chance->trials.count - 1) / 64] |= 1ull << (chance->trials.count - 1) % 64;
}

static void toss_all(struct tossing *t, const struct plan_heap *plan, struct event_log *log)
{
	bool fresh = plan->item.flags & PLAN_HEAP_FRESH;
	uint32_t rows = log_context_count(&log->reader);

	for (uint32_t row = 1; row < rows; row++) {
		struct chance_context *context;
		struct log_context found;

		/* Only contexts whose blocks were freed, or made, had a coin. */
		if (!log_context_row(&log->reader, row, &found) ||
		    (fresh ? found.allocs : found.frees_own) == 0)
			continue;
		context = toss(t, found.stack_hash);
		if (fresh)
			note_words(t, context, found.alloc_bytes);
	}
}

void chance_read(struct chance *chance, const struct plan_heap *plan, struct reading *reading,
		 bool failed)
{
	struct tossing t = { .chance = chance, .reading = reading, .failed = failed };
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	chance->read++;
	chance->failed += failed;
	VEC_FOREACH (&logs->list, log)
		if (find_settings(log, &t.settings))
			toss_all(&t, plan, log);
}

bool chance_idle(const struct chance *chance, bool steady)
{
	return (chance->read >= ALL_FAILED && chance->failed == chance->read) ||
	       (steady && chance->read >= NONE_FAILED && chance->failed == 0);
}

static void find_stack(const struct chance_context *context, struct stack *ret)
{
	struct event_logs *logs;

	if (!context->failed_in || reading_logs(context->failed_in, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log)
		for (uint32_t row = 1; row < log_context_count(&log->reader); row++) {
			struct log_context found;

			if (log_context_row(&log->reader, row, &found) &&
			    found.stack_hash == context->stack_hash &&
			    event_log_context(log, row, reading_symbols(context->failed_in), ret))
				return;
		}
}

static bool is_tested(const struct chance_context *context)
{
	return context->poisoned > 0 && context->clear > 0;
}

static double p_of(const struct chance_context *context)
{
	return fisher_greater(&(struct fisher_table){ .trials_a = context->poisoned,
						      .failed_a = context->poisoned_failed,
						      .trials_b = context->clear,
						      .failed_b = context->clear_failed });
}

uint64_t chance_needed(const struct chance *chance, uint32_t ppm)
{
	double contexts = chance->contexts.count > 0 ? (double)chance->contexts.count : 1;

	return (uint64_t)ceil(log(contexts / SUSPECT_P) / -log(ppm / 1e6));
}

/* Log of what a spec of 1 has become by betting, before each toss, on the side that came more
 * often so far (Krichevsky and Trofimov's estimate). A fair bet against a coin that knows nothing
 * of how its trial ends: the chance that it ever becomes 1/p is p at most. */
static double bet(double heads, double tails, double chance)
{
	return lgamma(heads + 0.5) + lgamma(tails + 0.5) - lgamma(heads + tails + 1) -
	       2 * lgamma(0.5) - heads * log(chance) - tails * log(1 - chance);
}

/* How often it failed, or did not, with either side of a coin. */
struct tosses {
	double heads_failed, tails_failed, heads_passed, tails_passed;
};

/* A coin whose side brings the failure nearly always is bet on as such, too, with half of the
 * spec. Over the trials that failed and those that passed; corrected for all coins. */
static double p_of_bets(const struct tosses *t, double chance, double coins)
{
	double open = bet(t->heads_failed, t->tails_failed, chance) +
		      bet(t->heads_passed, t->tails_passed, chance);
	double sure = (t->heads_failed + t->tails_passed) * log(SURE) +
		      (t->tails_failed + t->heads_passed) * log(1 - SURE) -
		      (t->heads_failed + t->heads_passed) * log(chance) -
		      (t->tails_failed + t->tails_passed) * log(1 - chance);

	/* Who fails less often when his blocks are overwritten is nobody's suspect. */
	if (t->heads_failed * t->tails_passed <= t->tails_failed * t->heads_passed)
		return 1;
	return fmin(1, coins * 2 / (exp(open) + exp(sure)));
}

static double coins_of(const struct chance *chance)
{
	double coins = 0;

	VEC_FOREACH (&chance->contexts, context)
		coins += 1 + (double)context->words;
	return coins;
}

static double p_anytime(const struct chance_context *c, uint32_t ppm, double coins)
{
	return p_of_bets(&(struct tosses){ (double)c->poisoned_failed, (double)c->clear_failed,
					   (double)(c->poisoned - c->poisoned_failed),
					   (double)(c->clear - c->clear_failed) },
			 ppm / 1e6, coins);
}

static void toss_word(const struct chance *chance, const struct chance_context *c, uint64_t word,
		      uint32_t ppm, struct tosses *ret)
{
	uint64_t hash = canary_word_hash(c->stack_hash, word);

	*ret = (struct tosses){ 0 };
	for (size_t i = 0; i < chance->trials.count && i < CHANCE_TRIALS; i++) {
		const struct chance_trial *trial = &chance->trials.items[i];
		bool heads = canary_chance(trial->seed, c->stack_hash, ppm) &&
			     canary_chance(trial->seed, hash, ppm);

		if (c->seen[i / 64] >> i % 64 & 1)
			*(heads ? (trial->failed ? &ret->heads_failed : &ret->heads_passed)
				: (trial->failed ? &ret->tails_failed : &ret->tails_passed)) += 1;
	}
}

/* The word of new blocks whose garbage the failure goes with best. */
struct word_found {
	const struct chance_context *context; /* NULL: none */
	uint64_t word;
	struct tosses tosses;
	double p;
};

static void find_word(const struct chance *chance, uint32_t ppm, double coins,
		      struct word_found *ret)
{
	*ret = (struct word_found){ .p = 1 };
	VEC_FOREACH (&chance->contexts, c) {
		/* A word that decides it takes its context with it. */
		if (c->poisoned_failed < FAILED_LEAST || 4 * c->clear_failed > c->poisoned_failed)
			continue;
		for (uint64_t word = 0; word < c->words; word++) {
			struct word_found found = { .context = c, .word = word };

			toss_word(chance, c, word, ppm, &found.tosses);
			found.p = p_of_bets(&found.tosses, ppm / 1e6 * ppm / 1e6, coins);
			if (found.p < ret->p)
				*ret = found;
		}
	}
}

bool chance_told(const struct chance *chance, uint32_t ppm, double p)
{
	double coins = coins_of(chance);
	struct word_found found;

	VEC_FOREACH (&chance->contexts, context)
		if (p_anytime(context, ppm, coins) <= p / 2)
			return true;
	find_word(chance, ppm, coins, &found);
	return found.p <= p / 2;
}

/* First of the suspects: it says more than its context. */
static void suspect_word(const struct chance *chance, uint32_t ppm, struct heap_report *ret)
{
	struct word_found found;
	struct heap_suspect suspect;
	const struct tosses *t = &found.tosses;

	find_word(chance, ppm, coins_of(chance), &found);
	if (!found.context || 2 * found.p >= SUSPECT_P)
		return;
	suspect = (struct heap_suspect){
		.context = mem_printf("%016" PRIx64, found.context->stack_hash),
		.word = (int64_t)found.word,
		.poisoned = rate_wilson((uint64_t)(t->heads_failed + t->heads_passed),
					(uint64_t)t->heads_failed, RATE_CONFIDENCE),
		.clear = rate_wilson((uint64_t)(t->tails_failed + t->tails_passed),
				     (uint64_t)t->tails_failed, RATE_CONFIDENCE),
		.p = 2 * found.p,
	};
	find_stack(found.context, &suspect.stack);
	VEC_PUSH(&ret->suspects, suspect);
}

struct tested {
	const struct chance_context *context;
	double p;
};

static int by_p(const void *a, const void *b)
{
	const struct tested *x = a, *y = b;

	return x->p < y->p ? -1 : x->p > y->p;
}

void chance_conclude(const struct chance *chance, uint32_t ppm, bool looked,
		     struct heap_report *ret)
{
	AUTO(mem_freep)
	struct tested *tested = mem_alloc((chance->contexts.count + 1) * sizeof(tested[0]));
	double largest = 0;
	size_t count = 0;

	VEC_FOREACH (&chance->contexts, context)
		if (is_tested(context))
			tested[count++] = (struct tested){ .context = context, .p = p_of(context) };
	ret->contexts = count;
	suspect_word(chance, ppm, ret);
	qsort(tested, count, sizeof(tested[0]), by_p);
	/* Holm's correction, as holm_adjust() has it, of what is sorted already and may be many. */
	for (size_t i = 0; i < count && i < SUSPECTS_MAX; i++) {
		const struct chance_context *context = tested[i].context;
		double p = tested[i].p * (double)(count - i);
		struct heap_suspect suspect;

		if (looked)
			p = 2 * fmin(p, p_anytime(context, ppm, coins_of(chance)));
		largest = p > largest ? p : largest;
		if (largest >= SUSPECT_P)
			break;
		suspect = (struct heap_suspect){
			.context = mem_printf("%016" PRIx64, context->stack_hash),
			.word = -1,
			.poisoned = rate_wilson(context->poisoned, context->poisoned_failed,
						RATE_CONFIDENCE),
			.clear =
				rate_wilson(context->clear, context->clear_failed, RATE_CONFIDENCE),
			.p = largest,
		};
		find_stack(context, &suspect.stack);
		VEC_PUSH(&ret->suspects, suspect);
	}
}
