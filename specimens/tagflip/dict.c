#include "dict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct type dict_type = { .name = "dict", .flags = TYPE_DICT };

struct dict *dict_new(const struct type *type)
{
	struct dict *self = calloc(1, sizeof(*self));

	if (!self) {
		fputs("tagflip: out of memory\n", stderr);
		exit(2);
	}
	self->refcnt = 1;
	self->type = type;
	return self;
}

void dict_free(struct dict *self)
{
	free(self->entries);
	free(self);
}

static struct dict_entry *dict_find(const struct dict *self, const char *name)
{
	for (size_t i = 0; i < self->used; i++) {
		if (strcmp(self->entries[i].name, name) == 0)
			return &self->entries[i];
	}
	return NULL;
}

int dict_set_item(struct dict *self, const char *name, void *value)
{
	struct dict_entry *entry;

	if (!(self->type->flags & TYPE_DICT))
		return -1;
	entry = dict_find(self, name);
	if (!entry) {
		if (self->used == self->capacity) {
			size_t capacity = self->capacity ? self->capacity * 2 : 4;
			struct dict_entry *entries =
				realloc(self->entries, capacity * sizeof(*entries));

			if (!entries) {
				fputs("tagflip: out of memory\n", stderr);
				exit(2);
			}
			self->entries = entries;
			self->capacity = capacity;
		}
		entry = &self->entries[self->used++];
		entry->name = name;
	}
	entry->value = value;
	return 0;
}

void *dict_get_item(const struct dict *self, const char *name)
{
	struct dict_entry *entry = dict_find(self, name);

	return entry ? entry->value : NULL;
}
