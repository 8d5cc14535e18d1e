/*
 * row_scale() takes the row's length for its last index. Its loop walks with a pointer that is in
 * the next block by the time it does harm: nothing at the store tells where it came from.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

#define LENGTH 5

struct cell {
	double *values;
	long count;
};

APART static double *row_new(void)
{
	double *row = malloc(LENGTH * sizeof(*row));

	if (!row)
		exit(3);
	for (int i = 0; i < LENGTH; i++)
		row[i] = i;
	return row;
}

APART static void row_scale(double *row, int last, double factor)
{
	for (int i = 0; i <= last + 1; i++)
		row[i] *= factor;
}

APART static struct cell *cell_new(void)
{
	struct cell *cell = malloc(sizeof(*cell));

	if (!cell)
		exit(3);
	cell->values = row_new();
	cell->count = LENGTH;
	return cell;
}

int main(void)
{
	double *rows[10], total = 0;
	struct cell *cells[10];

	tell_truth("class overflow\n"
		   "writer chase_running.c:row_scale\n"
		   "allocator chase_running.c:row_new\n");
	for (int i = 0; i < 10; i++) {
		rows[i] = row_new();
		cells[i] = cell_new();
	}
	row_scale(rows[4], LENGTH, 3.5);
	for (int i = 0; i < 10; i++)
		total += cells[i]->values[2];
	printf("total %f\n", total);
	return 0;
}
