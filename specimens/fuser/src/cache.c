#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "evaluate.h"
#include "pass.h"
#include "ptrmap.h"

struct executor_cache *executor_cache_create(size_t max_cold)
{
	struct executor_cache *cache = fz_alloc(sizeof(*cache));

	cache->max_cold = max_cold;
	cache->hot = fz_alloc(sizeof(*cache->hot));
	ptrmap_init(cache->hot);
	return cache;
}

static void entry_destroy(struct cache_entry *entry)
{
	definition_destroy(entry->definition);
	ir_container_destroy(entry->concrete);
	ir_container_destroy(entry->pinned);
	ir_container_destroy(entry->fusion);
	free(entry->plan);
	free(entry);
}

void executor_cache_destroy(struct executor_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->count; i++)
		entry_destroy(cache->entries[i]);
	free(cache->entries);
	ptrmap_deinit(cache->hot);
	free(cache->hot);
	free(cache);
}

size_t executor_cache_hot_count(const struct executor_cache *cache)
{
	return cache->hot->used;
}

struct cache_entry *executor_cache_find(const struct executor_cache *cache,
					const struct definition *definition)
{
	uint64_t hash = definition_hash(definition);

	for (size_t i = 0; i < cache->count; i++) {
		struct cache_entry *entry = cache->entries[i];

		if (entry->hash == hash && definition_equal(entry->definition, definition))
			return entry;
	}
	return NULL;
}

static void evict_cold(struct executor_cache *cache)
{
	size_t oldest = cache->count;

	if (cache->count - cache->hot->used < cache->max_cold)
		return;
	for (size_t i = 0; i < cache->count; i++) {
		const struct cache_entry *entry = cache->entries[i];

		if (entry->hot)
			continue;
		if (oldest == cache->count || entry->last_use < cache->entries[oldest]->last_use)
			oldest = i;
	}
	if (oldest == cache->count)
		return;
	entry_destroy(cache->entries[oldest]);
	cache->entries[oldest] = cache->entries[--cache->count];
	cache->stats.evictions++;
}

struct cache_entry *executor_cache_obtain(struct executor_cache *cache,
					  const struct definition *definition)
{
	struct cache_entry *entry = executor_cache_find(cache, definition);
	struct ir_container *fusion;
	char label[IR_LABEL_SIZE];

	if (entry) {
		cache->stats.hits++;
		return entry;
	}
	snprintf(label, sizeof(label), "fusion%u", cache->stats.misses);
	fusion = definition_replay(definition, label);
	if (!fusion)
		return NULL;
	cache->stats.misses++;
	evict_cold(cache);

	entry = fz_alloc(sizeof(*entry));
	entry->definition = definition_copy(definition);
	entry->hash = fusion->definition_hash;
	entry->fusion = fusion;
	entry->scheduler = scheduler_for(fusion);
	entry->dynamic = ir_container_is_dynamic(fusion);
	cache->entries = fz_grow(cache->entries, &cache->capacity, cache->count + 1,
				 sizeof(struct cache_entry *));
	cache->entries[cache->count++] = entry;
	return entry;
}

/* Moves the fusion aside into `scratch` and rebuilds it smaller in its place. */
static bool compact_entry(struct cache_entry *entry, struct ir_container *scratch)
{
	ir_container_swap(entry->fusion, scratch);
	if (!pass_compact(scratch, entry->fusion)) {
		ir_container_clear(entry->fusion);
		ir_container_restore(entry->fusion, scratch);
		return false;
	}
	ir_container_clear(scratch);
	return true;
}

static struct alias_plan *plan_aliases(const struct ir_container *fusion)
{
	const struct ir_storage *s = fusion->storage;
	struct alias_plan *plan = fz_alloc(sizeof(*plan));

	for (size_t i = 0; i < s->aliases.count && plan->count < ALIAS_PLAN_PAIRS; i++) {
		struct alias_pair *pair = &plan->pairs[plan->count++];
		int64_t elements = ir_val_elements(s->aliases.at[i].input);

		for (size_t k = 0; k < s->outputs.count; k++)
			if (s->outputs.at[k] == s->aliases.at[i].output)
				pair->output = (uint32_t)k;
		for (size_t k = 0; k < s->inputs.count; k++)
			if (s->inputs.at[k] == s->aliases.at[i].input)
				pair->input = (uint32_t)k;
		pair->bytes = elements * (int64_t)sizeof(double);
	}
	return plan;
}

static void pin_entry(struct cache_entry *entry)
{
	if (entry->scheduler == SCHED_NO_OP)
		entry->plan = plan_aliases(entry->fusion);
	else
		entry->pinned = ir_container_copy(entry->fusion);
}

static void pack_hot_entries(struct executor_cache *cache)
{
	struct ir_container *scratch = ir_container_create(IR_KIND_FUSION, "scratch");
	struct ptrmap_slot *slot;
	size_t cursor = 0;

	while ((slot = ptrmap_next(cache->hot, &cursor))) {
		struct cache_entry *entry = slot->value;

		entry->compacted = compact_entry(entry, scratch);
	}
	ir_container_destroy(scratch);

	cursor = 0;
	while ((slot = ptrmap_next(cache->hot, &cursor))) {
		struct cache_entry *entry = slot->value;

		if (entry->compacted)
			pin_entry(entry);
	}
	cache->packed = true;
}

static void promote(struct executor_cache *cache, struct cache_entry *entry)
{
	entry->hot = true;
	ptrmap_put(cache->hot, entry->fusion, entry);
	cache->stats.promotions++;
	if (!cache->lane[entry->scheduler])
		cache->lane[entry->scheduler] = entry;
	for (int i = 0; i < SCHED_COUNT; i++)
		if (!cache->lane[i])
			return;
	if (!cache->packed)
		pack_hot_entries(cache);
}

bool cache_entry_concretize(struct cache_entry *entry)
{
	struct ir_container *concrete = ir_container_copy(entry->fusion);

	if (!pass_concretize(concrete, entry->sizes, entry->nsizes)) {
		ir_container_destroy(concrete);
		entry->nsizes = 0;
		return false;
	}
	ir_container_destroy(entry->concrete);
	entry->concrete = concrete;
	return true;
}

/* Notes the arguments' extents; returns whether they differ from last time. */
static bool note_sizes(struct cache_entry *entry, struct tensor *const *args, int nargs)
{
	int64_t sizes[CACHE_MAX_SIZES] = { 0 };
	size_t n = 0;
	bool changed;

	for (int i = 0; i < nargs; i++)
		for (int d = 0; d < args[i]->rank && n < CACHE_MAX_SIZES; d++)
			sizes[n++] = args[i]->size[d];
	changed = n != entry->nsizes || memcmp(sizes, entry->sizes, sizeof(sizes)) != 0;
	memcpy(entry->sizes, sizes, sizeof(sizes));
	entry->nsizes = n;
	return changed;
}

static void write_alias(struct tensor *const *args, struct tensor *const *out, size_t output,
			size_t input)
{
	memcpy(args[input]->data, out[output]->data,
	       (size_t)args[input]->elements * sizeof(*args[input]->data));
}

static void write_aliases(const struct cache_entry *entry, struct tensor *const *args,
			  struct tensor *const *out)
{
	const struct ir_storage *s = entry->fusion->storage;

	if (entry->plan) {
		for (uint32_t i = 0; i < entry->plan->count; i++)
			write_alias(args, out, entry->plan->pairs[i].output,
				    entry->plan->pairs[i].input);
		return;
	}
	for (size_t i = 0; i < s->aliases.count; i++)
		for (size_t o = 0; o < s->outputs.count; o++)
			for (size_t k = 0; k < s->inputs.count; k++)
				if (s->outputs.at[o] == s->aliases.at[i].output &&
				    s->inputs.at[k] == s->aliases.at[i].input)
					write_alias(args, out, o, k);
}

bool executor_cache_run(struct executor_cache *cache, const struct definition *definition,
			struct tensor *const *args, int nargs, struct tensor **out)
{
	struct cache_entry *entry = executor_cache_obtain(cache, definition);
	const struct ir_container *launched;
	bool resized;

	if (!entry)
		return false;
	entry->last_use = ++cache->clock;
	resized = note_sizes(entry, args, nargs);
	if (entry->dynamic && (resized || !entry->concrete) && !cache_entry_concretize(entry))
		return false;

	if (entry->dynamic)
		launched = entry->concrete;
	else
		launched = entry->pinned ? entry->pinned : entry->fusion;
	if (!evaluate(launched, args, nargs, out))
		return false;
	write_aliases(entry, args, out);

	entry->runs++;
	if (entry->runs == CACHE_PROMOTE_RUNS && !entry->hot)
		promote(cache, entry);
	return true;
}
