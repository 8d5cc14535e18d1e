/*
 * Names are copied into a table on the stack that has room for fewer of them, by a function that is
 * only given the address. Built without guards of frames: what it returns to is a name, five
 * letters, where no code is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chase_truth.h"

struct names {
	size_t count;
	char name[8][8];
};

APART static void names_copy(char (*to)[8], const struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		memcpy(to[i], names->name[i], sizeof(to[i]));
}

APART static int names_sum(const struct names *names)
{
	char table[3][8] = { 0 };
	int sum = 0;

	names_copy(table, names);
	for (size_t i = 0; i < sizeof(table); i++)
		sum += table[0][i];
	return sum;
}

int main(void)
{
	struct names *names = calloc(1, sizeof(*names));

	if (!names)
		return 3;
	tell_truth("class overflow\n"
		   "writer chase_frame_astray.c:names_copy\n");
	for (size_t i = 0; i < 8; i++)
		strcpy(names->name[i], "quoin");
	for (int i = 0; i < 40; i++) {
		names->count = i % 3;
		printf("%d\n", names_sum(names));
	}
	names->count = 8;
	printf("%d\n", names_sum(names));
	return 0;
}
