/*
 * The executor cache: one entry per definition ever run, with its fusion ready
 * to go.
 *
 * New entries are cold, and the least recently used cold one makes room when
 * there are too many. A definition that is run often is promoted: it stays for
 * good. Once every scheduler has a promoted fusion the promoted ones are packed:
 * their fusions are compacted and what each launch needs is made once.
 */
#ifndef FUSER_CACHE_H
#define FUSER_CACHE_H

#include "definition.h"
#include "scheduler.h"
#include "tensor.h"

#define CACHE_DEFAULT_COLD 24
#define CACHE_PROMOTE_RUNS 3
#define CACHE_MAX_SIZES 16
#define ALIAS_PLAN_PAIRS 8

struct alias_pair {
	uint32_t output;
	uint32_t input;
	int64_t offset;
	int64_t bytes;
};

/* What a fusion without a kernel does at launch. */
struct alias_plan {
	uint32_t count;
	uint32_t flags;
	struct alias_pair pairs[ALIAS_PLAN_PAIRS];
};

struct cache_entry {
	struct definition *definition;
	uint64_t hash;
	struct ir_container *fusion;
	enum scheduler scheduler;
	bool dynamic;
	bool hot;
	bool compacted;
	unsigned runs;
	uint64_t last_use;
	int64_t sizes[CACHE_MAX_SIZES]; /* extents of the inputs at the last launch */
	size_t nsizes;
	struct ir_container *concrete; /* the fusion at those extents; dynamic ones only */
	struct ir_container *pinned;   /* packed entries: what is launched */
	struct alias_plan *plan;       /* packed entries of SCHED_NO_OP */
};

struct cache_stats {
	unsigned hits;
	unsigned misses;
	unsigned evictions;
	unsigned promotions;
};

struct executor_cache {
	struct cache_entry **entries;
	size_t count;
	size_t capacity;
	size_t max_cold;
	uint64_t clock;
	struct cache_entry *lane[SCHED_COUNT]; /* the first promoted entry of each */
	struct ptrmap *hot;		       /* fusion -> entry */
	bool packed;
	struct cache_stats stats;
};

struct executor_cache *executor_cache_create(size_t max_cold);
void executor_cache_destroy(struct executor_cache *cache);

/*
 * Runs a definition and stores a new tensor per output in out[]. An output that
 * aliases an input is written to that argument as well. False when the definition
 * is wrong or the arguments do not fit.
 */
bool executor_cache_run(struct executor_cache *cache, const struct definition *definition,
			struct tensor *const *args, int nargs, struct tensor **out);

struct cache_entry *executor_cache_find(const struct executor_cache *cache,
					const struct definition *definition);
size_t executor_cache_hot_count(const struct executor_cache *cache);

/* cache_serde.c: the cache as records. */
void executor_cache_serialize(const struct executor_cache *cache, struct buffer *out);

/* Adds what was serialized; entries that are there already are brought up to
 * date. False when the bytes are damaged; what came before is kept. */
bool executor_cache_deserialize(struct executor_cache *cache, struct buffer *in);

/* For the serializer: the entry of that definition, made if need be. */
struct cache_entry *executor_cache_obtain(struct executor_cache *cache,
					  const struct definition *definition);

/* Makes entry->concrete for entry->sizes. */
bool cache_entry_concretize(struct cache_entry *entry);

#endif
