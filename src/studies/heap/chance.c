#include "studies/heap/chance.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "wire/canary.h"

#define CONTEXTS_MAX 100000u
#define SUSPECT_P 0.05
#define SUSPECTS_MAX 10
#define FAILING_MAX 32

void chance_deinit(struct chance *chance)
{
	VEC_FOREACH (&chance->failing, reading)
		reading_close(*reading);
	VEC_DEINIT(&chance->failing);
	VEC_DEINIT(&chance->contexts);
}

/* Where it stands, or where it would. */
static size_t place_of(const struct chance *chance, uint64_t stack_hash)
{
	size_t low = 0, high = chance->contexts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (chance->contexts.items[middle].stack_hash < stack_hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

static void toss(struct tossing *t, uint64_t hash)
{
	struct chance_context *context = context_of(t->chance, hash);

	if (context)
		count(t, context, canary_chance(t->settings.seed, hash, t->settings.poison_ppm));
}

static void toss_all(struct tossing *t, const struct plan_heap *plan, struct event_log *log)
{
	bool fresh = plan->item.flags & PLAN_HEAP_FRESH;
	uint32_t rows = log_context_count(&log->reader);

	for (uint32_t row = 1; row < rows; row++) {
		struct log_context found;

		/* Only contexts whose blocks were freed, or made, had a coin. */
		if (!log_context_row(&log->reader, row, &found) ||
		    (fresh ? found.allocs : found.frees_own) == 0)
			continue;
		if (!fresh || plan->sweep_count == 0)
			toss(t, found.stack_hash);
		else if (found.stack_hash == plan->sweep_hashes[0])
			for (uint64_t word = 0; word < CANARY_FRESH_WORDS; word++)
				toss(t, canary_word_hash(found.stack_hash, word));
	}
}

void chance_read(struct chance *chance, const struct plan_heap *plan, struct reading *reading,
		 bool failed)
{
	struct tossing t = { .chance = chance, .reading = reading, .failed = failed };
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log)
		if (find_settings(log, &t.settings))
			toss_all(&t, plan, log);
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

/* Log of what a stake of 1 has become by betting, before each toss, on the side that came more
 * often so far (Krichevsky and Trofimov's estimate). A fair bet against a coin that knows nothing
 * of how its trial ends: the chance that it ever becomes 1/p is p at most. */
static double bet(double heads, double tails, double chance)
{
	return lgamma(heads + 0.5) + lgamma(tails + 0.5) - lgamma(heads + tails + 1) -
	       2 * lgamma(0.5) - heads * log(chance) - tails * log(1 - chance);
}

/* The same of a context, over the trials that failed and those that passed; corrected for all
 * contexts. */
static double p_anytime(const struct chance_context *c, uint32_t ppm, size_t contexts)
{
	double chance = ppm / 1e6, stake;

	/* Who fails less often when his blocks are overwritten is nobody's suspect. */
	if (c->poisoned_failed * c->clear <= c->clear_failed * c->poisoned)
		return 1;
	stake = bet((double)c->poisoned_failed, (double)c->clear_failed, chance) +
		bet((double)(c->poisoned - c->poisoned_failed),
		    (double)(c->clear - c->clear_failed), chance);
	return fmin(1, (double)contexts * exp(-stake));
}

bool chance_told(const struct chance *chance, uint32_t ppm, double p)
{
	VEC_FOREACH (&chance->contexts, context)
		if (p_anytime(context, ppm, chance->contexts.count) <= p / 2)
			return true;
	return false;
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
	qsort(tested, count, sizeof(tested[0]), by_p);
	/* Holm's correction, as holm_adjust() has it, of what is sorted already and may be many. */
	for (size_t i = 0; i < count && i < SUSPECTS_MAX; i++) {
		const struct chance_context *context = tested[i].context;
		double p = tested[i].p * (double)(count - i);
		struct heap_suspect suspect;

		if (looked)
			p = 2 * fmin(p, p_anytime(context, ppm, chance->contexts.count));
		largest = p > largest ? p : largest;
		if (largest >= SUSPECT_P)
			break;
		suspect = (struct heap_suspect){
			.context = mem_printf("%016" PRIx64, context->stack_hash),
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
