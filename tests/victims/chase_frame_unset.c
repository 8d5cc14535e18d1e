/*
 * A variable on the stack is left unset where nothing was found, and used all the same. What stands
 * there was left by whoever had that part of the stack before: zero, as it happens.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct item {
	int key;
	long price;
};

static struct item items[] = { { 3, 120 }, { 5, 80 }, { 8, 200 } };

APART static int item_find(int key, struct item **ret)
{
	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++)
		if (items[i].key == key) {
			*ret = &items[i];
			return 0;
		}
	return -1;
}

APART static long stack_use(int rounds)
{
	volatile long words[32] = { 0 };

	for (int i = 0; i < rounds; i++)
		words[i % 32] = 0;
	return words[0];
}

APART static long order_price(int key, int count)
{
	struct item *item;

	(void)item_find(key, &item);
	return item->price * count;
}

int main(void)
{
	static const int keys[] = { 3, 5, 8, 6 };
	long sum = 0;

	tell_truth("class uninitialised\n"
		   "reader chase_frame_unset.c:order_price\n");
	for (int i = 0; i < 4; i++) {
		sum += stack_use(100);
		sum += order_price(keys[i], 2);
	}
	printf("%ld\n", sum);
	return 0;
}
