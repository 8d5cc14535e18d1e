/*
 * Baskets with room for six goods inside. basket_copy() copies the whole structure, and with it
 * the cursor, which points into the basket it came from.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct article {
	long price;
	long sold;
};

struct good {
	struct article *article;
	long pieces;
};

struct basket {
	long number;
	struct good goods[6];
	struct good *cursor; /* into goods */
	long total;
};

static char *receipts[100];
static int receipt_count, baskets;

APART static struct article *article_new(long price)
{
	struct article *article = calloc(1, sizeof(*article));

	if (!article)
		exit(3);
	article->price = price;
	return article;
}

APART static struct basket *basket_new(long number)
{
	struct basket *basket = calloc(1, sizeof(*basket));

	if (!basket)
		exit(3);
	basket->number = number;
	basket->cursor = basket->goods;
	baskets++;
	return basket;
}

APART static void basket_put(struct basket *basket, struct article *article, long pieces)
{
	basket->cursor->article = article;
	basket->cursor->pieces = pieces;
	if (basket->cursor < &basket->goods[5])
		basket->cursor++;
	basket->cursor->article = article;
}

APART static struct basket *basket_copy(const struct basket *basket)
{
	struct basket *copy = malloc(sizeof(*copy));

	if (!copy)
		exit(3);
	*copy = *basket;
	baskets++;
	return copy;
}

APART static void basket_drop(struct basket *basket)
{
	free(basket);
	baskets--;
}

APART static void receipt_print(long number)
{
	char *receipt = malloc(sizeof(struct basket));

	if (!receipt)
		exit(3);
	memset(receipt, '-', sizeof(struct basket));
	snprintf(receipt, 64, "receipt %ld", number);
	receipts[receipt_count++] = receipt;
}

/* The article that was put last is counted as sold. */
APART static long basket_sell(struct basket *basket)
{
	basket->cursor->article->sold++;
	return basket->cursor->article->price;
}

int main(void)
{
	struct article *articles[4];
	struct basket *all[60], *saved[60] = { NULL };
	long sum = 0;

	tell_truth("class dangling-holder\n"
		   "class use-after-free\n"
		   "holder chase_struct_copy.c:basket_copy\n"
		   "writer chase_struct_copy.c:basket_copy\n"
		   "freer chase_struct_copy.c:basket_drop\n"
		   "allocator chase_struct_copy.c:basket_new\n"
		   "reader chase_struct_copy.c:basket_sell\n");
	for (int i = 0; i < 4; i++)
		articles[i] = article_new(10 + i);
	for (int i = 0; i < 60; i++) {
		all[i] = basket_new(i);
		for (int n = 0; n <= i % 3; n++)
			basket_put(all[i], articles[(i + n) % 4], n + 1);
	}
	for (int i = 0; i < 60; i++)
		sum += basket_sell(all[i]);
	saved[37] = basket_copy(all[37]);
	for (int i = 30; i < 40; i++) {
		basket_drop(all[i]);
		receipt_print(i);
	}
	sum += basket_sell(saved[37]);
	printf("sum %ld, %d baskets\n", sum, baskets);
	return 0;
}
