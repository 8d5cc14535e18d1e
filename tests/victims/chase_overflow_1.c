/*
 * A symbol table. name_fill() ends each name with a NUL for which name_reserve() left no room:
 * where the length is exactly what malloc gives, the byte is the next block's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct value {
	long number;
	long uses;
	int kind;
};

struct symbol {
	char *name;
	struct value *value;
	struct symbol *next;
};

static struct symbol *symbols[31];
static int symbol_count;

APART static char *name_reserve(size_t len)
{
	char *name = malloc(len);

	if (!name)
		exit(3);
	return name;
}

APART static void name_fill(char *name, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		name[i] = text[i];
	name[len] = '\0';
}

APART static struct value *value_new(long number)
{
	struct value *value = calloc(1, sizeof(*value));

	if (!value)
		exit(3);
	value->number = number;
	return value;
}

APART static unsigned name_hash(const char *text)
{
	unsigned hash = 5381;

	while (*text)
		hash = hash * 33 + (unsigned char)*text++;
	return hash % 31;
}

APART static struct symbol *symbol_define(const char *text, long number)
{
	struct symbol *symbol = malloc(sizeof(*symbol));
	size_t len = strlen(text);
	unsigned bucket = name_hash(text);

	if (!symbol)
		exit(3);
	symbol->name = name_reserve(len);
	symbol->value = value_new(number);
	name_fill(symbol->name, text, len);
	symbol->next = symbols[bucket];
	symbols[bucket] = symbol;
	symbol_count++;
	return symbol;
}

APART static long symbols_total(void)
{
	long total = 0;

	for (int i = 0; i < 31; i++)
		for (struct symbol *s = symbols[i]; s; s = s->next)
			total += s->value->number + (long)strlen(s->name);
	return total;
}

APART static void value_drop(struct value *value)
{
	free(value);
	symbol_count--;
}

APART static void symbols_drop(void)
{
	for (int i = 0; i < 31; i++)
		while (symbols[i]) {
			struct symbol *symbol = symbols[i];

			symbols[i] = symbol->next;
			value_drop(symbol->value);
			free(symbol->name);
			free(symbol);
		}
}

int main(void)
{
	char text[64];

	tell_truth("class overflow\n"
		   "writer chase_overflow_1.c:name_fill\n"
		   "allocator chase_overflow_1.c:name_reserve\n");
	for (int i = 0; i < 120; i++) {
		snprintf(text, sizeof(text), "module%d.local%d", i % 7, i);
		symbol_define(text, i);
	}
	symbol_define("module3.initialise_again", 1000); /* 24 characters */
	for (int i = 0; i < 120; i++) {
		snprintf(text, sizeof(text), "module%d.late%d", i % 5, i);
		symbol_define(text, i);
	}
	printf("total %ld\n", symbols_total());
	symbols_drop();
	return symbol_count;
}
