/* A small dictionary from names to pointers. */
#ifndef TAGFLIP_DICT_H
#define TAGFLIP_DICT_H

#include "object.h"

struct dict {
	size_t refcnt;
	const struct type *type;
	size_t used;
	size_t capacity;
	struct dict_entry *entries;
};

struct dict_entry {
	const char *name;
	void *value;
};

/* The type of ordinary dictionaries. */
extern const struct type dict_type;

struct dict *dict_new(const struct type *type);
void dict_free(struct dict *self);

/* 0, or -1 if it is no dictionary. */
int dict_set_item(struct dict *self, const char *name, void *value);
void *dict_get_item(const struct dict *self, const char *name);

#endif
