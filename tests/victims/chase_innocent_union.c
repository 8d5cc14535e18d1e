/*
 * Innocent: memory seen as several types. Values are written as doubles and read as integers, a
 * field of 64 bits is written in halves and bytes, two neighbouring fields by one wide store, and a
 * pointer field holds a number while a flag says so.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct value {
	uint32_t kind; /* one store writes both of these */
	uint32_t weight;
	union {
		double real;
		int64_t integer;
		struct value *pointer;
		uint32_t halves[2];
		uint8_t bytes[8];
	};
};

enum { REAL, INTEGER, POINTER, HALVES, KINDS };

static struct value *values[200];

APART static struct value *value_new(void)
{
	struct value *value = malloc(sizeof(*value));

	if (!value)
		exit(3);
	memset(value, 0xff, sizeof(*value));
	return value;
}

APART static void value_label(struct value *value, uint32_t kind, uint32_t weight)
{
	uint64_t both = (uint64_t)weight << 32 | kind;

	memcpy(&value->kind, &both, sizeof(both));
}

APART static void value_set(struct value *value, int number)
{
	value_label(value, (uint32_t)(number % KINDS), (uint32_t)number);
	switch (number % KINDS) {
	case REAL:
		value->real = number * 0.5;
		value->bytes[0] |= 1;
		break;
	case INTEGER:
		value->integer = -number;
		value->halves[1] = 0;
		break;
	case POINTER:
		value->pointer = number ? values[number - 1] : NULL;
		break;
	case HALVES:
		value->halves[0] = (uint32_t)number;
		value->halves[1] = 0xdeadbeef;
		break;
	}
}

APART static uint64_t value_hash(const struct value *value)
{
	if (value->kind == POINTER)
		return value->pointer ? value->pointer->weight : 0;
	return (uint64_t)value->integer * 31 + value->bytes[3];
}

APART static uint64_t values_hash(void)
{
	uint64_t hash = 0;

	for (int i = 0; i < 200; i++)
		hash = hash * 17 + value_hash(values[i]);
	return hash;
}

int main(void)
{
	uint64_t hash = 0;

	tell_truth("class none\n");
	for (int i = 0; i < 200; i++) {
		values[i] = value_new();
		value_set(values[i], i);
	}
	for (int round = 1; round < 20; round++) {
		hash ^= values_hash();
		/* What was a pointer becomes a number and the other way round. */
		for (int i = 0; i < 200; i++)
			value_set(values[(i + 100) % 200], (i * round) % 200);
	}
	for (int i = 0; i < 200; i++)
		free(values[i]);
	printf("hash %016lx\n", (unsigned long)hash);
	return 0;
}
