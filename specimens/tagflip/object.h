/*
 * The object model.
 *
 * Attributes live in inline values or in a dictionary; one word of the object, `slot`, says which:
 * a dictionary's address as it is (low bit clear), or the address of the values minus one (low bit
 * set). An object starts with its type's empty values, which all instances share and nobody writes
 * to; the first store gives it values of its own.
 *
 * Objects are recycled, per type and oldest first. Whoever leaves a scope resets its slot to the
 * empty values, so a recycled object is ready for use.
 */
#ifndef TAGFLIP_OBJECT_H
#define TAGFLIP_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUES_MAX 4
#define SLOT_VALUES 1u

#define FLAG_TIER2 1u /* entered by tier 2 code */

#define DEPTH_OPEN 0x80000000u

#define TYPE_DICT 1u
#define TYPE_TIER2 2u /* the optimising compiler knows it */

struct object;
struct code;

/* What compiled code reads without asking the type. */
struct type_cache {
	_Atomic uintptr_t slot; /* encodes the empty values */
	_Atomic uint32_t version;
};

struct type {
	const char *name;
	const char *keys[VALUES_MAX]; /* of the inline values */
	int (*enter)(struct object *self);
	int (*exit)(struct object *self);
	struct values *empty;
	const struct type *dict_type;
	struct type_cache cache;
	_Atomic(const struct code *) code;
	_Atomic long calls;
	_Atomic bool note_due; /* the next numbered instance will get a note */
	struct object **pool;  /* a ring of those given back, oldest first */
	size_t pool_first;
	size_t pool_count;
	long born;
	long recycled;
	uint64_t reserved[2];
	uint64_t flags;
};

_Static_assert(offsetof(struct type, flags) == 0xa8, "compiled code checks flags there");

struct object {
	size_t refcnt;
	struct type *type;
	uint32_t flags;
	uint32_t depth; /* nesting, with DEPTH_OPEN between enter and exit */
	uintptr_t slot;
};

_Static_assert(offsetof(struct object, flags) == 0x10, "compiled code stores there");
_Static_assert(offsetof(struct object, depth) == 0x14, "compiled code stores there");
_Static_assert(offsetof(struct object, slot) == 0x18, "compiled code stores there");

struct values {
	void *items[VALUES_MAX];
	size_t used; /* how many of them are set */
};

void type_init(struct type *self);

/* Brings the cache up to date, when it is not. */
void type_cache_refresh(struct type *self);

/* Declares the cache out of date: the next refresh completes it. */
void type_cache_open(struct type *self);

/* A new reference. */
struct object *object_new(struct type *type);
void object_decref(struct object *self);

/* Memory for one object of a type, recycled when there is enough; and back. */
struct object *object_alloc(struct type *type);
void object_free(struct object *self);

int object_store_attr(struct object *self, const char *name, void *value);
void *object_load_attr(const struct object *self, const char *name);

/* Forgets all attributes; the values stay with the object, for its next use. */
void object_clear_attrs(struct object *self);

/* Gives back the object's own values or dictionary; the slot is stale afterwards. */
void object_drop_attrs(struct object *self);

static inline bool slot_is_values(uintptr_t slot)
{
	return slot & SLOT_VALUES;
}

static inline struct values *slot_values(uintptr_t slot)
{
	return (struct values *)(slot + 1);
}

static inline uintptr_t slot_encode(const struct values *values)
{
	return (uintptr_t)values - 1;
}

#endif
