/*
 * Tables of measurements. row_fill() takes the width of the widest table for all of them: the rows
 * of the narrow one are overrun by 64 bytes, and a cell's owner lies behind such a row.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct owner {
	const char *name;
	long cells;
};

struct cell {
	long x, y;
	struct owner *owner;
	long seen;
};

struct table {
	int width, height;
	long **rows;
	struct cell **cells;
};

static int widest;

APART static struct owner *owner_new(const char *name)
{
	struct owner *owner = calloc(1, sizeof(*owner));

	if (!owner)
		exit(3);
	owner->name = name;
	return owner;
}

APART static long *row_new(int width)
{
	long *row = calloc((size_t)width, sizeof(*row));

	if (!row)
		exit(3);
	return row;
}

APART static struct cell *cell_new(int x, int y, struct owner *owner)
{
	struct cell *cell = malloc(sizeof(*cell));

	if (!cell)
		exit(3);
	*cell = (struct cell){ x, y, owner, 0 };
	owner->cells++;
	return cell;
}

APART static struct table *table_new(int width, int height, struct owner *owner)
{
	struct table *table = malloc(sizeof(*table));

	if (!table)
		exit(3);
	table->width = width;
	table->height = height;
	table->rows = calloc((size_t)height, sizeof(*table->rows));
	table->cells = calloc((size_t)height, sizeof(*table->cells));
	for (int y = 0; y < height; y++) {
		table->rows[y] = row_new(width);
		table->cells[y] = cell_new(0, y, owner);
	}
	if (width > widest)
		widest = width;
	return table;
}

APART static void row_fill(struct table *table, int y, long start)
{
	long *row = table->rows[y];

	for (int x = 0; x < widest; x++)
		row[x] = start + x;
}

APART static long row_sum(const struct table *table, int y)
{
	long sum = 0;

	for (int x = 0; x < table->width; x++)
		sum += table->rows[y][x];
	return sum;
}

APART static long cells_count(const struct table *table)
{
	long count = 0;

	for (int y = 0; y < table->height; y++) {
		table->cells[y]->seen++;
		count += table->cells[y]->owner->cells;
	}
	return count;
}

int main(void)
{
	struct owner *north = owner_new("north"), *south = owner_new("south");
	struct table *wide, *narrow;
	long sum = 0;

	tell_truth("class overflow\n"
		   "writer chase_overflow_64.c:row_fill\n"
		   "allocator chase_overflow_64.c:row_new\n");
	wide = table_new(21, 90, north);
	narrow = table_new(13, 60, south);
	for (int y = 0; y < wide->height; y++)
		row_fill(wide, y, 100 * y);
	/* One row only comes with new values. */
	row_fill(narrow, 41, 4100);
	for (int y = 0; y < wide->height; y++)
		sum += row_sum(wide, y);
	for (int y = 0; y < narrow->height; y++)
		sum += row_sum(narrow, y);
	printf("sum %ld\n", sum);
	printf("cells %ld\n", cells_count(wide));
	printf("cells %ld\n", cells_count(narrow));
	return 0;
}
