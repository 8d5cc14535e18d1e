#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/vec.h"

/*
 * Just enough JSON to read what a framework prints about itself: values as a tree.
 */
enum json_kind { JSON_NOTHING, JSON_TRUTH, JSON_TEXT, JSON_LIST, JSON_TABLE };

struct json_value {
	enum json_kind kind; /* JSON_NOTHING: null */
	bool truth;	     /* JSON_TRUTH */
	char *text;	     /* JSON_TEXT; a number is the text that it was written as */
	char *key;	     /* within a table */
	VEC(struct json_value) items;
};

int json_read(const char *text, struct json_value *ret, struct err *err);
void json_value_deinit(struct json_value *value);

/* The item of a table with this key, or NULL; `table` may be NULL. */
const struct json_value *json_get(const struct json_value *table, const char *key);

/* The text of an item, or NULL when it is none. */
const char *json_get_text(const struct json_value *table, const char *key);
