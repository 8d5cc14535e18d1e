#include "object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dict.h"

/* Enough that an address comes back only after thousands of other objects: a stale pointer
 * then meets a quiet object instead of somebody else's. */
#define POOL_MIN 4096
#define POOL_SLOTS 8192
#define NOTE_EVERY 2048

struct values_pool {
	struct values *free[64];
	int count;
};

static struct values_pool spare;

static void *checked(void *memory)
{
	if (!memory) {
		fputs("tagflip: out of memory\n", stderr);
		exit(2);
	}
	return memory;
}

static struct values *values_new(void)
{
	struct values *self;

	if (spare.count > 0)
		self = spare.free[--spare.count];
	else
		self = checked(malloc(sizeof(*self)));
	memset(self, 0, sizeof(*self));
	return self;
}

static void values_free(struct values *self)
{
	if (spare.count < 64)
		spare.free[spare.count++] = self;
	else
		free(self);
}

void type_init(struct type *self)
{
	self->empty = checked(calloc(1, sizeof(*self->empty)));
	self->pool = checked(calloc(POOL_SLOTS, sizeof(struct object *)));
	type_cache_refresh(self);
}

/* Names and their order make up the version; a change invalidates compiled code. */
static uint32_t type_version(const struct type *self)
{
	uint32_t hash = 2166136261u;

	for (int round = 0; round < 16; round++) {
		for (const char *c = self->name; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 16777619u;
		for (int i = 0; i < VALUES_MAX && self->keys[i]; i++) {
			for (const char *c = self->keys[i]; *c; c++)
				hash = (hash ^ (unsigned char)*c) * 16777619u;
		}
	}
	return hash;
}

void type_cache_refresh(struct type *self)
{
	uint32_t version = type_version(self);

	if (atomic_load(&self->cache.version) == version)
		return;
	if (!atomic_load(&self->cache.slot))
		atomic_store(&self->cache.slot, slot_encode(self->empty));
	atomic_store(&self->cache.version, version);
	atomic_fetch_or(&self->cache.slot, SLOT_VALUES);
}

void type_cache_open(struct type *self)
{
	atomic_store(&self->cache.version, 0);
	atomic_store(&self->cache.slot, (uintptr_t)self->empty - 2);
}

struct object *object_alloc(struct type *type)
{
	struct object *self;

	if (type->pool_count < POOL_MIN) {
		self = checked(calloc(1, sizeof(*self)));
		self->type = type;
		self->slot = slot_encode(type->empty);
		type->born++;
		return self;
	}
	self = type->pool[type->pool_first];
	type->pool_first = (type->pool_first + 1) % POOL_SLOTS;
	type->pool_count--;
	type->recycled++;
	return self;
}

void object_free(struct object *self)
{
	struct type *type = self->type;

	if (type->pool_count == POOL_SLOTS) {
		object_drop_attrs(self);
		free(self);
		return;
	}
	type->pool[(type->pool_first + type->pool_count++) % POOL_SLOTS] = self;
}

struct object *object_new(struct type *type)
{
	struct object *self = object_alloc(type);

	self->refcnt = 1;
	if (atomic_load_explicit(&type->note_due, memory_order_relaxed) &&
	    type->recycled % NOTE_EVERY == 0) {
		atomic_store(&type->note_due, false);
		object_drop_attrs(self);
		self->slot = (uintptr_t)dict_new(type->dict_type);
	}
	return self;
}

void object_decref(struct object *self)
{
	if (--self->refcnt == 0)
		object_free(self);
}

static int type_key_index(const struct type *self, const char *name)
{
	for (int i = 0; i < VALUES_MAX && self->keys[i]; i++) {
		if (strcmp(self->keys[i], name) == 0)
			return i;
	}
	return -1;
}

/* Moves the inline values into a dictionary, for a name that has no place among them. */
static struct dict *object_make_dict(struct object *self)
{
	struct values *values = slot_values(self->slot);
	struct dict *dict = dict_new(&dict_type);

	for (int i = 0; i < VALUES_MAX && self->type->keys[i]; i++) {
		if (values->items[i])
			(void)dict_set_item(dict, self->type->keys[i], values->items[i]);
	}
	if (values != self->type->empty)
		values_free(values);
	self->slot = (uintptr_t)dict;
	return dict;
}

int object_store_attr(struct object *self, const char *name, void *value)
{
	struct values *values;
	int index;

	if (!slot_is_values(self->slot))
		return dict_set_item((struct dict *)self->slot, name, value);
	index = type_key_index(self->type, name);
	if (index < 0)
		return dict_set_item(object_make_dict(self), name, value);
	if (slot_values(self->slot) == self->type->empty)
		self->slot = slot_encode(values_new());
	values = slot_values(self->slot);
	if (!values->items[index])
		values->used++;
	values->items[index] = value;
	return 0;
}

void *object_load_attr(const struct object *self, const char *name)
{
	int index;

	if (!slot_is_values(self->slot))
		return dict_get_item((const struct dict *)self->slot, name);
	index = type_key_index(self->type, name);
	return index < 0 ? NULL : slot_values(self->slot)->items[index];
}

void object_clear_attrs(struct object *self)
{
	if (slot_is_values(self->slot)) {
		if (slot_values(self->slot)->used)
			memset(slot_values(self->slot), 0, sizeof(struct values));
		return;
	}
	dict_free((struct dict *)self->slot);
	self->slot = slot_encode(self->type->empty);
}

void object_drop_attrs(struct object *self)
{
	if (!slot_is_values(self->slot))
		dict_free((struct dict *)self->slot);
	else if (slot_values(self->slot) != self->type->empty)
		values_free(slot_values(self->slot));
}
