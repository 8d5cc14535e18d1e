#include "ptrmap.h"

#include <stdint.h>
#include <stdlib.h>

#include "alloc.h"

#define PTRMAP_MIN_SLOTS 16

void ptrmap_init(struct ptrmap *map)
{
	*map = (struct ptrmap){ 0 };
}

void ptrmap_deinit(struct ptrmap *map)
{
	free(map->slots);
	ptrmap_init(map);
}

/* Heap pointers share their low bits and most of their high ones, so every bit
 * has to reach the bottom of the hash. */
static size_t hash_pointer(const void *key)
{
	uint64_t h = (uintptr_t)key;

	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	h ^= h >> 33;
	return (size_t)h;
}

static struct ptrmap_slot *find_slot(const struct ptrmap *map, const void *key)
{
	size_t i = hash_pointer(key) & map->mask;

	while (map->slots[i].key && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return &map->slots[i];
}

static void rebuild(struct ptrmap *map, size_t slots)
{
	struct ptrmap old = *map;
	size_t cursor = 0;
	struct ptrmap_slot *s;

	map->slots = fz_alloc(slots * sizeof(*map->slots));
	map->mask = slots - 1;
	while ((s = ptrmap_next(&old, &cursor)))
		*find_slot(map, s->key) = *s;
	free(old.slots);
}

void ptrmap_put(struct ptrmap *map, const void *key, void *value)
{
	struct ptrmap_slot *s;

	if (!map->slots)
		rebuild(map, PTRMAP_MIN_SLOTS);
	else if ((map->used + 1) * 4 > (map->mask + 1) * 3)
		rebuild(map, (map->mask + 1) * 2);

	s = find_slot(map, key);
	if (!s->key) {
		s->key = key;
		map->used++;
	}
	s->value = value;
}

void *ptrmap_get(const struct ptrmap *map, const void *key)
{
	return map->slots ? find_slot(map, key)->value : NULL;
}

struct ptrmap_slot *ptrmap_next(const struct ptrmap *map, size_t *cursor)
{
	if (!map->slots)
		return NULL;
	while (*cursor <= map->mask) {
		struct ptrmap_slot *s = &map->slots[(*cursor)++];

		if (s->key)
			return s;
	}
	return NULL;
}
