/*
 * Listeners of an event. One of them adds another while it is being told: registry_add() moves
 * the table, and the iterator goes on in the old one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct handler {
	long told;
	int adds;
};

struct entry {
	long id;
	struct handler *handler;
};

struct registry {
	struct entry *entries;
	int count, capacity;
	long moves;
};

struct iterator {
	const struct entry *entries;
	int at, count;
};

static char *notes[200];
static int note_count;

APART static struct handler *handler_new(int adds)
{
	struct handler *handler = malloc(sizeof(*handler));

	if (!handler)
		exit(3);
	handler->told = 0;
	handler->adds = adds;
	return handler;
}

APART static struct registry *registry_new(int capacity)
{
	struct registry *registry = calloc(1, sizeof(*registry));

	if (!registry)
		exit(3);
	registry->entries = malloc((size_t)capacity * sizeof(struct entry));
	if (!registry->entries)
		exit(3);
	registry->capacity = capacity;
	return registry;
}

APART static void registry_add(struct registry *registry, long id, struct handler *handler)
{
	if (registry->count == registry->capacity) {
		struct entry *entries;

		registry->capacity *= 2;
		entries = realloc(registry->entries,
				  (size_t)registry->capacity * sizeof(struct entry));
		if (!entries)
			exit(3);
		registry->entries = entries;
		registry->moves++;
	}
	registry->entries[registry->count++] = (struct entry){ id, handler };
}

APART static void iterator_start(struct iterator *it, const struct registry *registry)
{
	it->entries = registry->entries;
	it->at = 0;
	it->count = registry->count;
}

APART static struct handler *iterator_next(struct iterator *it)
{
	return it->at < it->count ? it->entries[it->at++].handler : NULL;
}

APART static void note_add(long number)
{
	char *note = malloc(256);

	if (!note)
		exit(3);
	memset(note, '.', 256);
	snprintf(note, 256, "told for the %ldth time", number);
	notes[note_count++] = note;
}

APART static void handler_tell(struct registry *registry, struct handler *handler)
{
	handler->told++;
	if (handler->adds && handler->told == 3) {
		registry_add(registry, 100, handler_new(0));
		note_add(handler->told);
	}
}

APART static long registry_tell(struct registry *registry)
{
	struct handler *handler;
	struct iterator it;
	long told = 0;

	iterator_start(&it, registry);
	while ((handler = iterator_next(&it))) {
		handler_tell(registry, handler);
		told++;
	}
	return told;
}

int main(void)
{
	struct registry *registries[12];
	long told = 0;

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "holder chase_stale_iterator.c:iterator_start\n"
		   "freer chase_stale_iterator.c:registry_add\n"
		   "allocator chase_stale_iterator.c:registry_new\n"
		   "reader chase_stale_iterator.c:iterator_next\n"
		   "reader chase_stale_iterator.c:handler_tell\n");
	for (int i = 0; i < 12; i++) {
		registries[i] = registry_new(16);
		/* All have room for one more but the eighth. */
		for (int n = 0; n < (i == 7 ? 16 : 15); n++)
			registry_add(registries[i], n, handler_new(n == 11));
	}
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < 12; i++)
			told += registry_tell(registries[i]);
	printf("told %ld\n", told);
	return 0;
}
