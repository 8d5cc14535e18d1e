/*
 * Entries of a catalogue. entry_new_short() leaves the field `remark` as it found it: mostly zero,
 * but now and then the block was a label before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct remark {
	long len;
	char text[24];
};

struct entry {
	long number;
	struct entry *next;
	struct remark *remark; /* or NULL */
	long shelf;
};

static struct entry *entries;

APART static struct remark *remark_new(const char *text)
{
	struct remark *remark = calloc(1, 56);

	if (!remark)
		exit(3);
	snprintf(remark->text, sizeof(remark->text), "%s", text);
	remark->len = (long)strlen(remark->text);
	return remark;
}

APART static struct entry *entry_new(long number, const char *remark)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		exit(3);
	entry->number = number;
	entry->remark = remark_new(remark);
	entry->next = entries;
	entries = entry;
	return entry;
}

APART static struct entry *entry_new_short(long number)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		exit(3);
	entry->number = number;
	entry->shelf = 0;
	entry->next = entries;
	entries = entry;
	return entry;
}

APART static int label_print(long number)
{
	char *label = malloc(32);
	int len;

	if (!label)
		exit(3);
	len = snprintf(label, 32, "catalogue number %010ld", number);
	free(label);
	return len;
}

APART static long entries_measure(void)
{
	long len = 0;

	for (struct entry *entry = entries; entry; entry = entry->next)
		len += entry->remark ? entry->remark->len : 1;
	return len;
}

int main(void)
{
	long len = 0;

	/* The bytes were a label's own, rightly written: nobody wrote to the field. */
	tell_truth("class uninitialised\n"
		   "class instance-conflation\n"
		   "allocator chase_uninitialised.c:entry_new_short\n"
		   "reader chase_uninitialised.c:entries_measure\n");
	for (int i = 0; i < 90; i++)
		entry_new(i, "rare");
	for (int i = 0; i < 90; i++)
		entry_new_short(1000 + i);
	/* A new label where the entries begin on an odd page. */
	if ((uintptr_t)entries >> 12 & 1)
		len += label_print(1089);
	for (int i = 0; i < 90; i++)
		entry_new_short(2000 + i);
	printf("len %ld\n", len + entries_measure());
	return 0;
}
