/*
 * Damage that guards could miss: what is written behind a block is what stood a word further on, or
 * the middle of a large block is written after its free. Nothing crashes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 3

static __attribute__((noinline)) long *rows_new(void)
{
	return calloc(ROWS, sizeof(long));
}

/* Counts one row too many: with the last row gone already, moves what lies behind the block. */
static __attribute__((noinline)) void rows_remove(long *rows, long at)
{
	memmove(&rows[at], &rows[at + 1], (size_t)(ROWS - at + 1) * sizeof(long));
}

/* Moves every row down by one, and one more. */
static __attribute__((noinline)) void rows_rotate(long *rows)
{
	volatile long *row = rows;
	long i;

	for (i = -2; i < ROWS - 1; i++)
		row[i] = row[i + 1];
}

struct page {
	char head[700];
	long uses;
	char body[3000];
};

static __attribute__((noinline)) struct page *page_new(void)
{
	return calloc(1, sizeof(struct page));
}

static __attribute__((noinline)) void page_use(struct page *page)
{
	((volatile struct page *)page)->uses++;
}

static __attribute__((noinline)) char *image_new(void)
{
	return calloc(100, 1000);
}

static __attribute__((noinline)) void image_mark(char *image)
{
	((volatile char *)image)[50000] = 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct page *page;
	long *rows = NULL;
	char *image;

	if (!strcmp(what, "remove") || !strcmp(what, "rotate"))
		rows = rows_new();
	if (!strcmp(what, "remove"))
		rows_remove(rows, ROWS);
	if (!strcmp(what, "rotate"))
		rows_rotate(rows);
	if (!strcmp(what, "middle")) {
		page = page_new();
		free(page);
		page_use(page);
	}
	if (!strcmp(what, "far")) {
		image = image_new();
		free(image);
		image_mark(image);
	}
	puts("done");
	free(rows);
	return 0;
}
