/*
 * Ten numbers are read into an array of eight, through the register that other functions keep their
 * frame in: the pointer behind the array, in the caller's frame, is gone. It had been given to that
 * function, and its caller's own copy is as it was.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct table {
	long sums[16];
	int rows;
};

APART static int line_split(const char *line, int *columns)
{
	int count = 0;

	while (*line) {
		char *end;
		long value = strtol(line, &end, 10);

		if (end == line)
			break;
		columns[count++] = (int)value;
		line = *end ? end + 1 : end;
	}
	return count;
}

APART static void row_add(struct table *table, const char *line)
{
	struct {
		int columns[8];
		struct table *table;
	} row;
	int count;

	row.table = table;
	count = line_split(line, row.columns);
	for (int i = 0; i < count && i < 8; i++)
		row.table->sums[i] += row.columns[i];
	row.table->rows++;
}

int main(void)
{
	struct table *table = calloc(1, sizeof(*table));

	tell_truth("class narrow-write\n"
		   "writer chase_frame_columns.c:line_split\n");
	if (!table)
		return 3;
	row_add(table, "3,1,4,1,5");
	row_add(table, "2,7,1,8,2,8,1,8");
	row_add(table, "31,41,59,26,53,58,97,93,23,84");
	printf("%d rows, first %ld\n", table->rows, table->sums[0]);
	return 0;
}
