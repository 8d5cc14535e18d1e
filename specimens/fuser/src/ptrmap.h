/*
 * A map from one pointer to another: open addressing, linear probing, a power of
 * two of slots. Nothing is ever removed except by clearing the whole map.
 */
#ifndef FUSER_PTRMAP_H
#define FUSER_PTRMAP_H

#include <stddef.h>

struct ptrmap_slot {
	const void *key; /* NULL: empty */
	void *value;
};

struct ptrmap {
	struct ptrmap_slot *slots;
	size_t mask; /* number of slots - 1; meaningless while slots is NULL */
	size_t used;
};

void ptrmap_init(struct ptrmap *map);
void ptrmap_deinit(struct ptrmap *map);

/* A second put of the same key replaces the value. */
void ptrmap_put(struct ptrmap *map, const void *key, void *value);
void *ptrmap_get(const struct ptrmap *map, const void *key);

/* Steps through the occupied slots: start with *cursor = 0, NULL means the end. */
struct ptrmap_slot *ptrmap_next(const struct ptrmap *map, size_t *cursor);

#endif
