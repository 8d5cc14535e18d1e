#pragma once

#include <jansson.h>
#include <stdio.h>

#include "model/crash.h"
#include "model/rate.h"
#include "model/said.h"
#include "model/signature.h"

/* Helpers for the JSON reports. Private to report/. */

static inline void set(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

static inline json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* Members of a struct under their own names, each as its type is told: PUT(object, window, last,
 * next, count). A stack is its site. An array has no address of such a type, so it does not
 * compile. */
#define PUT(object, from, ...)                                                               \
	PUT_PICK(__VA_ARGS__, PUT_16, PUT_15, PUT_14, PUT_13, PUT_12, PUT_11, PUT_10, PUT_9, \
		 PUT_8, PUT_7, PUT_6, PUT_5, PUT_4, PUT_3, PUT_2, PUT_1)                     \
	(object, from, __VA_ARGS__)
#define PUT_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, put, ...) put
#define PUT_1(o, f, m) set(o, #m, JSON_OF((f)->m))
#define PUT_2(o, f, m, ...) (PUT_1(o, f, m), PUT_1(o, f, __VA_ARGS__))
#define PUT_3(o, f, m, ...) (PUT_1(o, f, m), PUT_2(o, f, __VA_ARGS__))
#define PUT_4(o, f, m, ...) (PUT_1(o, f, m), PUT_3(o, f, __VA_ARGS__))
#define PUT_5(o, f, m, ...) (PUT_1(o, f, m), PUT_4(o, f, __VA_ARGS__))
#define PUT_6(o, f, m, ...) (PUT_1(o, f, m), PUT_5(o, f, __VA_ARGS__))
#define PUT_7(o, f, m, ...) (PUT_1(o, f, m), PUT_6(o, f, __VA_ARGS__))
#define PUT_8(o, f, m, ...) (PUT_1(o, f, m), PUT_7(o, f, __VA_ARGS__))
#define PUT_9(o, f, m, ...) (PUT_1(o, f, m), PUT_8(o, f, __VA_ARGS__))
#define PUT_10(o, f, m, ...) (PUT_1(o, f, m), PUT_9(o, f, __VA_ARGS__))
#define PUT_11(o, f, m, ...) (PUT_1(o, f, m), PUT_10(o, f, __VA_ARGS__))
#define PUT_12(o, f, m, ...) (PUT_1(o, f, m), PUT_11(o, f, __VA_ARGS__))
#define PUT_13(o, f, m, ...) (PUT_1(o, f, m), PUT_12(o, f, __VA_ARGS__))
#define PUT_14(o, f, m, ...) (PUT_1(o, f, m), PUT_13(o, f, __VA_ARGS__))
#define PUT_15(o, f, m, ...) (PUT_1(o, f, m), PUT_14(o, f, __VA_ARGS__))
#define PUT_16(o, f, m, ...) (PUT_1(o, f, m), PUT_15(o, f, __VA_ARGS__))

enum json_kind {
	JSON_OF_TEXT,
	JSON_OF_ID,
	JSON_OF_UINT,
	JSON_OF_INT,
	JSON_OF_U64,
	JSON_OF_I64,
	JSON_OF_BOOL,
	JSON_OF_REAL,
	JSON_OF_STRV,
	JSON_OF_SAID,
	JSON_OF_SAID_LIST,
	JSON_OF_STACK,
	JSON_OF_RATE,
};
json_t *json_of(enum json_kind kind, const void *at);

#define JSON_OF(x) \
	json_of(_Generic((__typeof__(x) const *)0,                                        \
			 const char(*)[SIGNATURE_ID_LEN + 1]: JSON_OF_ID,                 \
			 char *const *: JSON_OF_TEXT,                                     \
			 const char *const *: JSON_OF_TEXT,                               \
			 const unsigned int *: JSON_OF_UINT,                              \
			 const int *: JSON_OF_INT,                                        \
			 const uint64_t *: JSON_OF_U64,                                   \
			 const int64_t *: JSON_OF_I64,                                    \
			 const bool *: JSON_OF_BOOL,                                      \
			 const double *: JSON_OF_REAL,                                    \
			 const struct strv *: JSON_OF_STRV,                               \
			 const struct said *: JSON_OF_SAID,                               \
			 const struct said_list *: JSON_OF_SAID_LIST,                     \
			 const struct rate *: JSON_OF_RATE,                               \
			 const struct stack *: JSON_OF_STACK),                            \
		&(x))

/* What `make` makes of each in a VEC. */
#define JSON_LIST(vec, make)                                                  \
	({                                                                    \
		json_t *json_list_ = json_array();                            \
                                                                              \
		VEC_FOREACH (vec, item_)                                      \
			(void)json_array_append_new(json_list_, make(item_)); \
		json_list_;                                                   \
	})

/* Text or null. Bytes that are not UTF-8 (a user's own argument) are made printable. */
json_t *json_text(const char *text);

/* A number, or null for what is not one. */
json_t *json_number(double value);

json_t *json_strv(const struct strv *list);

/* The words of a statement, or null; of several. */
json_t *json_said(const struct said *said);
json_t *json_said_list(const struct said_list *list);

/* The ids of a statement and of its parts: what it says, whatever its words. */
json_t *json_said_ids(const struct said *said);

/* A command or variables (NULL: none), without their secrets. */
json_t *json_command(char *const *words);

/* Adds trials, failed, rate, low and high to an object; such an object. */
void json_add_rate(json_t *object, const struct rate *rate);
json_t *json_rate(const struct rate *rate);

/* 64-bit values as hexadecimal text: numbers of JSON lose their last bits in most readers. */
json_t *json_hex(uint64_t value);
json_t *json_bytes(const uint8_t *bytes, size_t len); /* two digits each */

/* A list of frames; whose code it was (not the C library's routine), with the whole stack, or null
 * for an empty one; a block with its life; what a fault was (crash_json.c). */
json_t *json_stack(const struct stack *stack);
json_t *json_site(const struct stack *stack);
json_t *json_block(const struct block_life *block);

/* by, failing_trials and missed of an entry of the ledger, into its object. */
struct ledger_entry; /* model/verdict.h */
void json_ledger_basis(json_t *object, const struct ledger_entry *entry);
json_t *json_fault(const struct crash *crash);

/* How the documents of commands that run trials begin. */
json_t *json_document(const char *schema, const char *case_dir, char *const *program,
		      double seconds, bool interrupted);

/* Prints the document and frees it. */
void json_print(json_t *document, FILE *out);
