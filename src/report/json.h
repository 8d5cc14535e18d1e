#pragma once

#include <jansson.h>
#include <stdio.h>

#include "model/crash.h"
#include "model/rate.h"

/* Helpers for the JSON reports. Private to report/. */

/* Text or null. Bytes that are not UTF-8 (a user's own argument) are made printable. */
json_t *json_text(const char *text);

/* A number, or null for what is not one. */
json_t *json_number(double value);

json_t *json_strings(char *const *items);

/* Adds trials, failed, rate, low and high to an object. */
void json_add_rate(json_t *object, const struct rate *rate);

/* A list of frames; what a fault was (crash_json.c). */
json_t *json_stack(const struct stack *stack);
json_t *json_site(const struct stack *stack); /* its first frame, with all of it; or null */
json_t *json_fault(const struct crash *crash);

/* Prints the document and frees it. */
void json_print(json_t *document, FILE *out);
