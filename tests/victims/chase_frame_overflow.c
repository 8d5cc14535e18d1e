/*
 * A row on the stack with a label and a pointer behind it. label_make() is told of more room than
 * the label has, and writes over the pointer, which is another function's variable.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct totals {
	long rows;
};

struct row {
	char label[12];
	struct totals *totals;
};

APART static void label_make(char *to, size_t room, int number, const char *what)
{
	snprintf(to, room, "%s/%d", what, number);
}

APART static void row_count(struct row *row)
{
	row->totals->rows++;
}

APART static long table_print(struct totals *totals, const char *what)
{
	struct row row;

	row.totals = totals;
	for (int i = 0; i < 5; i++) {
		label_make(row.label, 32, i, what);
		row_count(&row);
	}
	return row.totals->rows;
}

int main(void)
{
	struct totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return 3;
	tell_truth("class narrow-write\n"
		   "class wide-write\n"
		   "writer chase_frame_overflow.c:label_make\n");
	for (int i = 0; i < 20; i++)
		printf("%ld rows\n", table_print(totals, "in"));
	printf("%ld rows\n", table_print(totals, "incoming-and-outgoing"));
	return 0;
}
