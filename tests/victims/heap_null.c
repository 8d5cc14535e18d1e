/*
 * Dies of a NULL that nobody tested for, while a register and the stack still hold a pointer to a
 * block that was freed just before: no memory error at all.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	const char *name;
	struct entry *next;
	long value;
};

static struct entry *table;

static struct entry *find(const char *name)
{
	struct entry *entry;

	for (entry = table; entry; entry = entry->next)
		if (strcmp(entry->name, name) == 0)
			return entry;
	return NULL;
}

static __attribute__((noinline)) long value_of(const char *name)
{
	return find(name)->value;
}

static __attribute__((noinline)) long lookup(const char *line)
{
	register char *copy __asm__("r12") = strdup(line);
	char *volatile kept = copy;
	long value;

	copy[strcspn(copy, "=")] = 0;
	free(copy);
	__asm__ volatile("" : "+r"(copy));
	value = value_of("missing");
	__asm__ volatile("" : "+r"(copy));
	return value + (kept != NULL);
}

int main(void)
{
	static struct entry first = { "first", NULL, 1 };

	table = &first;
	printf("%ld\n", lookup("first=1"));
	return 0;
}
