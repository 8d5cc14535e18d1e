#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/members.h"
#include "model/crash.h"
#include "model/rate_seen.h"
#include "model/said.h"
#include "model/signature.h"

/* Helpers for the JSON reports. Private to report/. */

/*
 * A document is written as what it is made of:
 *
 *	OBJECT(KEY("state", live ? "live" : "freed"), MEMBERS(block, size, allocated),
 *	       RATE(&arm->rate), KEY("arms", EACH(&s->arms, arm, OBJECT(MEMBERS(arm, name)))))
 *
 * KEY: a value as its type is told; what another function made stays as it is. MEMBERS: those of a
 * struct under their own names. A stack is its site. An array that is no text has no such type, so
 * it does not compile.
 */
struct json_row {
	const char *key; /* NULL: the keys of `value`, which is an object or null */
	json_t *value;
};
json_t *json_rows(const struct json_row *rows); /* the last one is empty */

static inline struct json_row json_row(const char *key, json_t *value)
{
	return (struct json_row){ key, value };
}

#define OBJECT(...) json_rows((const struct json_row[]){ __VA_ARGS__, { NULL, NULL } })
#define KEY(name, ...) json_row(name, JSON_VALUE((__VA_ARGS__)))
#define KEY_IF(condition, name, ...) \
	json_row(name, (condition) ? JSON_VALUE((__VA_ARGS__)) : NULL) /* else it is not there */
#define ALL_OF(object) json_row(NULL, object)
#define MEMBERS(from, ...) FOR_MEMBERS(MEMBER_ROW, from, __VA_ARGS__)
#define MEMBER_ROW(from, m) json_row(#m, JSON_OF((from)->m))
#define RATE(of) MEMBERS(of, trials, failed, rate, low, high)

/* How the documents of commands that run trials begin. */
#define DOCUMENT(schema, of)                                \
	KEY("schema", schema), KEY("case", (of)->case_dir), \
		KEY("program", json_command((of)->program)), MEMBERS(of, seconds, interrupted)

/* A value, or null: where a condition does not hold; for 0. The value is not looked at then. */
#define OR_NULL(condition, ...) ((condition) ? JSON_VALUE((__VA_ARGS__)) : json_null())
#define UNLESS_0(value) OR_NULL((value) != 0, value)

/* A list of a value of each `item` in a VEC; of each that a condition holds for. */
#define EACH(vec, item, ...) EACH_IF(vec, item, true, __VA_ARGS__)
#define EACH_IF(vec, item, condition, ...) \
	EACH_IN(JSON_NAME(list_, __COUNTER__), vec, item, condition, __VA_ARGS__)
#define EACH_IN(list, vec, item, condition, ...)                                              \
	({                                                                                    \
		json_t *list = json_array();                                                  \
                                                                                              \
		VEC_FOREACH (vec, item)                                                       \
			if (condition)                                                        \
				(void)json_array_append_new(list, JSON_VALUE((__VA_ARGS__))); \
		list;                                                                         \
	})
#define JSON_NAME(a, b) JSON_NAME_OF(a, b)
#define JSON_NAME_OF(a, b) a##b

static inline json_t *json_of_json(json_t *value)
{
	return value;
}

static inline json_t *json_of_bool(bool value)
{
	return json_boolean(value);
}

#define JSON_OF(x) \
	_Generic((x),                                                       \
		 json_t *: json_of_json,                                    \
		 char *: json_text,                                         \
		 const char *: json_text,                                   \
		 unsigned int: json_integer,                                \
		 int: json_integer,                                         \
		 uint64_t: json_integer,                                    \
		 int64_t: json_integer,                                     \
		 bool: json_of_bool,                                        \
		 double: json_number,                                       \
		 struct strv: json_strv,                                 \
		 struct said: json_said,                                 \
		 struct said_list: json_said_list,                       \
		 struct rate: json_rate,                                 \
		 struct stack: json_site)(x)
#define JSON_VALUE(x) JSON_VALUE_IN(JSON_NAME(value_, __COUNTER__), x)
#define JSON_VALUE_IN(name, x)          \
	({                              \
		__auto_type name = (x); \
                                        \
		JSON_OF(name);          \
	})

/* A list of one; of none for NULL. */
json_t *json_one(json_t *value);

/* What `make` makes of each in a VEC. */
#define JSON_LIST(vec, make) EACH(vec, item_, make(item_))

/* Text or null. Bytes that are not UTF-8 (a user's own argument) are made printable. */
json_t *json_text(const char *text);

/* A number, or null for what is not one. */
json_t *json_number(double value);

json_t *json_strv(struct strv list);

/* The words of a statement, or null; of several. */
json_t *json_said(struct said said);
json_t *json_said_list(struct said_list list);

/* The ids of a statement and of its parts: what it says, whatever its words. */
json_t *json_said_ids(const struct said *said);

/* A command or variables (NULL: none), without their secrets. */
json_t *json_command(char *const *words);

json_t *json_rate(struct rate rate);

/* 64-bit values as hexadecimal text: numbers of JSON lose their last bits in most readers. */
json_t *json_hex(uint64_t value);
json_t *json_bytes(const uint8_t *bytes, size_t len); /* two digits each */

/* A list of frames; whose code it was (not the C library's routine), with the whole stack, or null
 * for an empty one; a block with its life. */
json_t *json_stack(const struct stack *stack);
json_t *json_site(struct stack stack);
json_t *json_block(const struct block_life *block);

/* by, failing_trials and missed of an entry of the ledger. */
struct ledger_entry; /* model/verdict.h */
json_t *json_ledger_basis(const struct ledger_entry *entry);

/* What a fault was. */
json_t *json_fault(const struct crash *crash);

/* Prints the document and frees it. */
void json_print(json_t *document, FILE *out);
