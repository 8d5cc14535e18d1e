/*
 * No bad write: a menu is read four entries behind its end. What stands there was a note's, which
 * was freed rightly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "chase_truth.h"

#define ENTRIES 11
#define MENUS 6

struct dish {
	long price;
	char name[40];
};

APART static struct dish *dish_new(long price)
{
	struct dish *dish = calloc(1, sizeof(*dish));

	if (!dish)
		exit(3);
	dish->price = price;
	return dish;
}

APART static char *note_new(void)
{
	char *note = malloc(ENTRIES * sizeof(struct dish *));

	if (!note)
		exit(3);
	memset(note, 'n', ENTRIES * sizeof(struct dish *));
	return note;
}

APART static void note_drop(char *note)
{
	free(note);
}

APART static long menu_price(struct dish **menu, unsigned int at)
{
	return menu[at]->price;
}

int main(void)
{
	struct dish **menus[MENUS];
	unsigned char random;
	long sum = 0;

	tell_truth("class over-read\n"
		   "class not-caught\n"
		   "reader chase_beyond.c:menu_price\n");
	for (int i = 0; i < MENUS; i++) {
		char *note;

		menus[i] = malloc(ENTRIES * sizeof(struct dish *));
		note = note_new();
		if (!menus[i])
			return 3;
		for (int k = 0; k < ENTRIES; k++)
			menus[i][k] = dish_new(k);
		note_drop(note);
	}
	if (getrandom(&random, 1, 0) != 1)
		return 3;
	for (int i = 0; i < MENUS; i++)
		sum += menu_price(menus[i], random % 2 ? ENTRIES + 4 : (unsigned int)i);
	printf("%ld\n", sum);
	return 0;
}
