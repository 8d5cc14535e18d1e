/*
 * Price lists. pairs_update() trusts pairs_find() to find the article; for one that is not there
 * the pair before the first is written, which is the end of the block before the list's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct currency {
	const char *sign;
	long factor;
};

struct list {
	long *pairs; /* price, article */
	int count;
	int country;
	const char *title;
	struct currency *currency;
	struct currency *shown_in; /* the last eight bytes that malloc gives for this size */
};

static struct currency *currencies[4];

APART static struct currency *currency_new(const char *sign, long factor)
{
	struct currency *currency = malloc(sizeof(*currency));

	if (!currency)
		exit(3);
	currency->sign = sign;
	currency->factor = factor;
	return currency;
}

APART static long *pairs_new(int count)
{
	long *pairs = malloc((size_t)count * 2 * sizeof(*pairs));

	if (!pairs)
		exit(3);
	for (int i = 0; i < count; i++) {
		pairs[2 * i] = 100 + i;
		pairs[2 * i + 1] = 7 * i;
	}
	return pairs;
}

APART static struct list *list_new(int country, int count)
{
	struct list *list = malloc(sizeof(*list));

	if (!list)
		exit(3);
	list->country = country;
	list->count = count;
	list->title = "articles";
	list->currency = currencies[country % 4];
	list->shown_in = currencies[(country + 1) % 4];
	list->pairs = pairs_new(count);
	return list;
}

APART static int pairs_find(const struct list *list, long article)
{
	for (int i = 0; i < list->count; i++)
		if (list->pairs[2 * i + 1] == article)
			return i;
	return -1;
}

APART static void pairs_update(struct list *list, long article, long price)
{
	int i = pairs_find(list, article);

	list->pairs[2 * i] = price;
}

APART static long list_total(const struct list *list)
{
	long total = 0;

	for (int i = 0; i < list->count; i++)
		total += list->pairs[2 * i] * list->currency->factor;
	return total / list->shown_in->factor;
}

int main(void)
{
	struct list *lists[150];
	long total = 0;

	tell_truth("class underflow\n"
		   "writer chase_underflow.c:pairs_update\n"
		   "allocator chase_underflow.c:pairs_new\n");
	currencies[0] = currency_new("E", 100);
	currencies[1] = currency_new("$", 93);
	currencies[2] = currency_new("F", 104);
	currencies[3] = currency_new("K", 13);
	for (int i = 0; i < 150; i++)
		lists[i] = list_new(i, 5 + i % 9);
	for (int i = 0; i < 150; i++)
		pairs_update(lists[i], 7 * (i % 5), 200 + i);
	pairs_update(lists[83], 700, 4711);
	for (int i = 0; i < 150; i++)
		total += list_total(lists[i]);
	printf("total %ld\n", total);
	return 0;
}
