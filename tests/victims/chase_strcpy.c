/*
 * Documents with titles. title_set() copies a title of any length into what title_new() got for
 * the usual ones. Which document gets the long title depends on where the heap begins.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct style {
	int size;
	int weight;
};

struct document {
	struct style *style;
	char *title;
	long pages;
	struct document *next;
};

static struct document *shelf[11];
static struct document **catalogue;
static const char *const titles[] = {
	"minutes",
	"budget",
	"letter to the council",
	"plan",
	"on the preservation of historical water mills in the lower valley",
};

APART static struct style *style_new(int size)
{
	struct style *style = malloc(sizeof(*style));

	if (!style)
		exit(3);
	style->size = size;
	style->weight = 400;
	return style;
}

APART static char *title_new(void)
{
	char *title = calloc(1, 40);

	if (!title)
		exit(3);
	return title;
}

APART static void title_set(char *title, const char *text)
{
	strcpy(title, text);
	title[0] -= 'a' - 'A';
}

/* By address, as sets of pointers are usually kept. */
APART static void shelf_put(struct document *document)
{
	struct document **place = &shelf[((uintptr_t)document >> 5) % 11];

	document->next = *place;
	*place = document;
}

APART static struct document *document_new(int number)
{
	struct document *document = malloc(sizeof(*document));

	if (!document)
		exit(3);
	document->style = style_new(9 + number % 4);
	document->title = title_new();
	document->pages = number;
	shelf_put(document);
	return document;
}

/* The documents as they came. */
APART static void catalogue_start(int count)
{
	catalogue = calloc((size_t)count, sizeof(*catalogue));
	if (!catalogue)
		exit(3);
	for (int i = 0; i < 11; i++)
		for (struct document *d = shelf[i]; d; d = d->next)
			catalogue[d->pages] = d;
}

/* The first two shelves are named today. */
APART static void shelf_name(void)
{
	for (int i = 0; i < 2; i++)
		if (shelf[i])
			title_set(shelf[i]->title, titles[(size_t)shelf[i]->pages % 5]);
}

APART static long catalogue_print(int count)
{
	long ink = 0;

	for (int i = 0; i < count; i++) {
		const struct document *d = catalogue[i];

		ink += d->style->size * d->pages + (long)strlen(d->title);
	}
	return ink;
}

int main(void)
{
	tell_truth("class overflow\n"
		   "writer chase_strcpy.c:title_set\n"
		   "allocator chase_strcpy.c:title_new\n");
	for (int i = 0; i < 180; i++)
		document_new(i);
	catalogue_start(180);
	shelf_name();
	printf("ink %ld\n", catalogue_print(180));
	return 0;
}
