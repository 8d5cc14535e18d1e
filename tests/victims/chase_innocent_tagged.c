/*
 * Innocent: pointers that do not look like pointers. Small numbers and flags live in tagged words,
 * the upper sixteen bits carry a count, and a list is linked by the exclusive or of its neighbours.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

#define TAG_NUMBER 1u
#define TAG_OWNED 2u
#define ADDRESS_MASK (((uint64_t)1 << 48) - 4)

struct text {
	long len;
	char bytes[24];
};

struct link {
	uintptr_t both; /* previous ^ next */
	uint64_t word;
};

APART static struct text *text_new(int number)
{
	struct text *text = malloc(sizeof(*text));

	if (!text)
		exit(3);
	text->len = snprintf(text->bytes, sizeof(text->bytes), "text %d", number);
	return text;
}

APART static uint64_t word_number(long number)
{
	return (uint64_t)number << 2 | TAG_NUMBER;
}

APART static uint64_t word_text(struct text *text, uint64_t count)
{
	return count << 48 | (uintptr_t)text | TAG_OWNED;
}

APART static void word_touch(uint64_t *word)
{
	/* The count alone, as the half word that it is. */
	if (!(*word & TAG_NUMBER))
		((uint16_t *)word)[3]++;
}

APART static long word_value(uint64_t word)
{
	if (word & TAG_NUMBER)
		return (long)(word >> 2);
	return ((struct text *)(uintptr_t)(word & ADDRESS_MASK))->len + (long)(word >> 48);
}

APART static struct link *link_add(struct link *last, uint64_t word)
{
	struct link *link = malloc(sizeof(*link));

	if (!link)
		exit(3);
	link->word = word;
	link->both = (uintptr_t)last;
	if (last)
		last->both ^= (uintptr_t)link;
	return link;
}

APART static long list_walk(struct link *first)
{
	uintptr_t before = 0;
	long sum = 0;

	for (struct link *link = first; link;) {
		uintptr_t next = link->both ^ before;

		word_touch(&link->word);
		sum += word_value(link->word);
		before = (uintptr_t)link;
		link = (struct link *)next;
	}
	return sum;
}

APART static void list_drop(struct link *first)
{
	uintptr_t before = 0;

	while (first) {
		uintptr_t next = first->both ^ before;

		if (first->word & TAG_OWNED && !(first->word & TAG_NUMBER))
			free((void *)(uintptr_t)(first->word & ADDRESS_MASK));
		before = (uintptr_t)first;
		free(first); /* its address is still needed, its content is not */
		first = (struct link *)next;
	}
}

int main(void)
{
	struct link *first = NULL, *last = NULL;
	long sum = 0;

	tell_truth("class none\n");
	for (int i = 0; i < 200; i++) {
		last = link_add(last, i % 3 ? word_number(i) : word_text(text_new(i), 0));
		if (!first)
			first = last;
	}
	for (int round = 0; round < 50; round++)
		sum += list_walk(first);
	list_drop(first);
	printf("sum %ld\n", sum);
	return 0;
}
