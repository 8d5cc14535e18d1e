/*
 * An order's discount is set where there is a coupon, and asked for in every order: what it is
 * otherwise hangs on whose block it was before. Nothing crashes of that; the bill is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct order {
	unsigned int id, count;
	double price;
	int coupon, discount;
	char note[24];
};

static unsigned int random_below(unsigned int bound)
{
	static unsigned int state;
	struct timespec now;

	if (state == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		state = (unsigned int)now.tv_nsec * 2654435761u | 1;
	}
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % bound;
}

APART static struct order *order_new(unsigned int id, int coupon)
{
	struct order *order = malloc(sizeof(*order));

	if (!order)
		exit(3);
	order->id = id;
	order->count = 1 + id % 3;
	order->price = 9.5;
	if (coupon) {
		order->coupon = 1;
		order->discount = 10;
	}
	strcpy(order->note, "-");
	return order;
}

APART static double order_total(const struct order *order)
{
	double total = order->count * order->price;

	return order->coupon ? total * (100 - order->discount) / 100 : total;
}

/* What the rest of a program does to the heap. */
APART static void label_print(void)
{
	char *label = malloc(sizeof(struct order));

	if (!label)
		exit(3);
	memset(label, random_below(40) == 0 ? 'x' : 0, sizeof(struct order));
	if (label[random_below(sizeof(struct order))] == 'y') /* it is looked at */
		exit(4);
	free(label);
}

int main(void)
{
	double billed = 0, due = 0;

	tell_truth("class uninitialised\n"
		   "allocator chase_unset.c:order_new\n");
	for (unsigned int i = 0; i < 30; i++) {
		int coupon = random_below(5) == 0;
		struct order *order;

		label_print();
		order = order_new(i, coupon);
		billed += order_total(order);
		due += order->count * 9.5 * (coupon ? 0.9 : 1.0);
		if (!coupon && random_below(2) == 0)
			free(order);
	}
	if (billed < due - 0.01 || billed > due + 0.01) {
		fprintf(stderr, "billed %g, not %g\n", billed, due);
		abort();
	}
	return 0;
}
