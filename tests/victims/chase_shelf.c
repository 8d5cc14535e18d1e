/*
 * A number is stored into the wrong member, the label, of one item or another. When strlen() faults
 * no register and nothing on the stack leads to the item any more: only the table does.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "chase_truth.h"

#define ITEMS 32

struct item {
	const char *label;
	uint64_t ticket;
};

static struct item *items[ITEMS];

APART static struct item *item_new(void)
{
	struct item *item = malloc(sizeof(*item));

	if (!item)
		exit(3);
	item->label = strdup("an item of the shelf");
	item->ticket = 0;
	return item;
}

APART static void item_mark(struct item *item, uint64_t ticket, int hurry)
{
	if (hurry)
		item->label = (const char *)ticket;
	else
		item->ticket = ticket;
}

APART static size_t weigh(void)
{
	size_t sum = 0;

	for (int i = 0; i < ITEMS; i++)
		sum += strlen(items[i]->label);
	return sum;
}

int main(void)
{
	uint64_t ticket;
	uint8_t at;

	tell_truth("class narrow-write\n"
		   "writer chase_shelf.c:item_mark\n"
		   "allocator chase_shelf.c:item_new\n");
	for (int i = 0; i < ITEMS; i++)
		items[i] = item_new();
	if (getrandom(&at, sizeof(at), 0) != sizeof(at))
		return 3;
	ticket = 0x7300000000000000 | (uint64_t)at << 20;
	item_mark(items[at % ITEMS], ticket, 1);
	printf("%zu\n", weigh());
	return 0;
}
