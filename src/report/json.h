#pragma once

#include <jansson.h>
#include <stdio.h>

#include "model/crash.h"
#include "model/rate.h"
#include "model/said.h"

/* Helpers for the JSON reports. Private to report/. */

static inline void set(json_t *object, const char *key, json_t *value)
{
	(void)json_object_set_new(object, key, value);
}

static inline json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* Text or null. Bytes that are not UTF-8 (a user's own argument) are made printable. */
json_t *json_text(const char *text);

/* A number, or null for what is not one. */
json_t *json_number(double value);

json_t *json_strings(char *const *items);
json_t *json_strv(const struct strv *list);

/* The words of a statement, or null; of several. */
json_t *json_said(const struct said *said);
json_t *json_said_list(const struct said_list *list);

/* The ids of a statement and of its parts: what it says, whatever its words. */
json_t *json_said_ids(const struct said *said);

/* A command or variables (NULL: none), without their secrets. */
json_t *json_command(char *const *words);

/* Adds trials, failed, rate, low and high to an object. */
void json_add_rate(json_t *object, const struct rate *rate);
json_t *json_rate(const struct rate *rate);

/* 64-bit values as hexadecimal text: numbers of JSON lose their last bits in most readers. */
json_t *json_hex(uint64_t value);

/* A list of frames; whose code it was (not the C library's routine), with the whole stack, or null
 * for an empty one; a block with its life; what a fault was (crash_json.c). */
json_t *json_stack(const struct stack *stack);
json_t *json_site(const struct stack *stack);
json_t *json_block(const struct block_life *block);

/* by, failing_trials and missed of an entry of the ledger, into its object. */
struct ledger_entry; /* model/verdict.h */
void json_ledger_basis(json_t *object, const struct ledger_entry *entry);
json_t *json_fault(const struct crash *crash);

/* Prints the document and frees it. */
void json_print(json_t *document, FILE *out);
