/*
 * The executor cache on disk. Fusions are not stored: each entry is its records,
 * and reading replays them, or finds the entry that has the same ones.
 */
#include <stddef.h>

#include "cache.h"

#define SERDE_MAGIC 0x525a5546u /* "FUZR" */
#define SERDE_VERSION 2

void executor_cache_serialize(const struct executor_cache *cache, struct buffer *out)
{
	buffer_put_u32(out, SERDE_MAGIC);
	buffer_put_u32(out, SERDE_VERSION);
	buffer_put_u32(out, (uint32_t)cache->count);
	for (size_t i = 0; i < cache->count; i++) {
		const struct cache_entry *entry = cache->entries[i];

		definition_write(entry->definition, out);
		buffer_put_u32(out, entry->runs);
		buffer_put_u8(out, (uint8_t)entry->scheduler);
		buffer_put_u8(out, (uint8_t)entry->nsizes);
		for (size_t k = 0; k < entry->nsizes; k++)
			buffer_put_i64(out, entry->sizes[k]);
	}
}

static bool deserialize_entry(struct executor_cache *cache, struct buffer *in)
{
	struct definition *definition = definition_read(in);
	struct cache_entry *entry;
	unsigned runs;
	uint8_t scheduler, nsizes;

	if (!definition)
		return false;
	entry = executor_cache_obtain(cache, definition);
	definition_destroy(definition);
	runs = buffer_get_u32(in);
	scheduler = buffer_get_u8(in);
	nsizes = buffer_get_u8(in);
	if (!entry || in->short_read || nsizes > CACHE_MAX_SIZES || scheduler != entry->scheduler)
		return false;

	entry->nsizes = nsizes;
	for (size_t k = 0; k < nsizes; k++)
		entry->sizes[k] = buffer_get_i64(in);
	if (in->short_read)
		return false;
	if (runs > entry->runs)
		entry->runs = runs;
	entry->last_use = ++cache->clock;
	/* An entry that was never launched has nothing to be made concrete for. */
	return !entry->dynamic || !nsizes || cache_entry_concretize(entry);
}

bool executor_cache_deserialize(struct executor_cache *cache, struct buffer *in)
{
	uint32_t magic = buffer_get_u32(in);
	uint32_t version = buffer_get_u32(in);
	uint32_t count = buffer_get_u32(in);

	if (magic != SERDE_MAGIC || version != SERDE_VERSION)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!deserialize_entry(cache, in))
			return false;
	return true;
}
