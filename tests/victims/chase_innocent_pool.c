/*
 * Innocent: a pool of its own inside one large block. Objects are given out again at the same
 * address at once, handed back objects are written to (the free list lies in them), and handles to
 * objects long gone are kept and told apart by a generation.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct object {
	union {
		struct object *next_free;
		long value;
	};
	uint32_t generation;
	uint32_t in_use;
};

struct handle {
	struct object *object;
	uint32_t generation;
};

struct pool {
	struct object *objects;
	struct object *free;
	int capacity;
};

static struct handle handles[400];

APART static struct pool *pool_new(int capacity)
{
	struct pool *pool = malloc(sizeof(*pool));

	if (!pool)
		exit(3);
	pool->objects = malloc((size_t)capacity * sizeof(struct object));
	if (!pool->objects)
		exit(3);
	memset(pool->objects, 0xa5, (size_t)capacity * sizeof(struct object));
	pool->capacity = capacity;
	pool->free = NULL;
	for (int i = capacity - 1; i >= 0; i--) {
		pool->objects[i].generation = 0;
		pool->objects[i].in_use = 0;
		pool->objects[i].next_free = pool->free;
		pool->free = &pool->objects[i];
	}
	return pool;
}

APART static struct handle pool_take(struct pool *pool, long value)
{
	struct object *object = pool->free;

	pool->free = object->next_free;
	object->value = value;
	object->in_use = 1;
	return (struct handle){ object, object->generation };
}

APART static void pool_give(struct pool *pool, struct handle handle)
{
	struct object *object = handle.object;

	if (object->generation != handle.generation || !object->in_use)
		return;
	object->generation++;
	object->in_use = 0;
	object->next_free = pool->free;
	pool->free = object;
}

APART static long handle_value(struct handle handle)
{
	return handle.object->generation == handle.generation ? handle.object->value : -1;
}

int main(void)
{
	struct pool *pool = pool_new(64);
	long sum = 0;
	char *tags[100];

	tell_truth("class none\n");
	for (int i = 0; i < 400; i++) {
		handles[i] = pool_take(pool, i);
		if (i >= 50)
			pool_give(pool, handles[i - 50 + i % 3]);
		if (i >= 60)
			pool_give(pool, handles[i - 60]);
		if (i % 4 == 0) {
			tags[i / 4] = malloc(16 + (size_t)i % 32);
			snprintf(tags[i / 4], 16, "tag %d", i);
		}
	}
	/* Old handles, most of them to objects that are somebody else's by now. */
	for (int i = 0; i < 400; i++)
		sum += handle_value(handles[i]);
	for (int i = 0; i < 100; i++)
		free(tags[i]);
	/* The pool goes, the handles stay; nobody follows them any more. */
	free(pool->objects);
	free(pool);
	printf("sum %ld\n", sum);
	return 0;
}
