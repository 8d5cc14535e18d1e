#include "engine/heap/chance.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "engine/stats/fisher.h"
#include "engine/stats/rate.h"
#include "wire/canary.h"

#define CONTEXTS_MAX 100000u
#define SUSPECT_P 0.05
#define SUSPECTS_MAX 10

void chance_deinit(struct chance *chance)
{
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

static void count(struct chance_context *context, bool poisoned, uint64_t trial, bool failed)
{
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
		context->failed_trial = trial;
}

static void toss(struct chance *chance, const struct log_heap *settings, uint64_t hash,
		 uint64_t trial, bool failed)
{
	struct chance_context *context = context_of(chance, hash);

	if (context)
		count(context, canary_chance(settings->seed, hash, settings->poison_ppm), trial,
		      failed);
}

void chance_read(struct chance *chance, const struct plan_heap *plan, struct event_logs *logs,
		 uint64_t trial, bool failed)
{
	bool fresh = plan->item.flags & PLAN_HEAP_FRESH;

	VEC_FOREACH (&logs->list, log) {
		uint32_t rows = log_context_count(&log->reader);
		struct log_heap settings;

		if (!find_settings(log, &settings))
			continue;
		for (uint32_t row = 1; row < rows; row++) {
			struct log_context found;

			/* Only contexts whose blocks were freed, or made, had a coin. */
			if (!log_context_row(&log->reader, row, &found) ||
			    (fresh ? found.allocs : found.frees_own) == 0)
				continue;
			if (!fresh || plan->sweep_count == 0)
				toss(chance, &settings, found.stack_hash, trial, failed);
			else if (found.stack_hash == plan->sweep_hashes[0])
				for (uint64_t word = 0; word < CANARY_FRESH_WORDS; word++)
					toss(chance, &settings,
					     canary_word_hash(found.stack_hash, word), trial,
					     failed);
		}
	}
}

static void find_stack(const struct chance_context *context, int trials, struct symbols *symbols,
		       struct stack *ret)
{
	AUTO(event_logs_deinit) struct event_logs logs = { 0 };
	char name[24];

	(void)snprintf(name, sizeof(name), "%" PRIu64, context->failed_trial);
	if (context->failed_trial == 0 || event_logs_open(trials, name, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs.list, log)
		for (uint32_t row = 1; row < log_context_count(&log->reader); row++) {
			struct log_context found;

			if (log_context_row(&log->reader, row, &found) &&
			    found.stack_hash == context->stack_hash &&
			    event_log_context(log, row, symbols, ret))
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

struct tested {
	const struct chance_context *context;
	double p;
};

static int by_p(const void *a, const void *b)
{
	const struct tested *x = a, *y = b;

	return x->p < y->p ? -1 : x->p > y->p;
}

void chance_conclude(const struct chance *chance, int trials, struct symbols *symbols,
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
		find_stack(context, trials, symbols, &suspect.stack);
		VEC_PUSH(&ret->suspects, suspect);
	}
}
