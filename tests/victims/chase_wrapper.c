/*
 * All memory comes through xalloc(). title_format() believes that a title has 64 bytes; it has 16.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct page {
	long *counts;
	char text[4000];
};

struct entry {
	char *title;
	struct entry *next;
};

APART static void *xalloc(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(3);
	}
	return p;
}

APART static char *title_new(void)
{
	char *title = xalloc(16);

	title[0] = '\0';
	return title;
}

APART static void title_format(char *title, int number)
{
	snprintf(title, 64, "%0*d", number == 7 ? 44 : 8, number);
}

APART static struct entry *entry_new(struct entry *next)
{
	struct entry *entry = xalloc(sizeof(*entry));

	entry->title = title_new();
	entry->next = next;
	return entry;
}

APART static long *counts_new(void)
{
	long *counts = xalloc(40 * sizeof(*counts));

	memset(counts, 0, 40 * sizeof(*counts));
	return counts;
}

APART static struct page *page_new(void)
{
	struct page *page = xalloc(sizeof(*page));

	page->counts = counts_new();
	return page;
}

APART static struct page *chapter_open(void)
{
	struct page *page = page_new();

	page->text[0] = '\0';
	return page;
}

APART static struct page *book_open(void)
{
	char heading[100];
	struct page *page;

	snprintf(heading, sizeof(heading), "book of %d chapters", 1);
	page = chapter_open();
	memcpy(page->text, heading, sizeof(heading));
	return page;
}

int main(void)
{
	struct entry *entries = NULL;
	struct page *page = book_open();
	long total = 0;
	int number = 0;

	tell_truth("class overflow\n"
		   "writer chase_wrapper.c:title_format\n"
		   "allocator chase_wrapper.c:title_new\n");
	for (int i = 0; i < 12; i++)
		entries = entry_new(entries);
	for (struct entry *entry = entries; entry; entry = entry->next)
		title_format(entry->title, number++);
	for (struct entry *entry = entries; entry; entry = entry->next)
		total += (long)strlen(entry->title);
	printf("total %ld\n", total + page->counts[0]);
	return 0;
}
