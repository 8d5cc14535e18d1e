/*
 * A text with two owners: document_drop() and index_drop() both free it, as only the
 * documents that were split by hand have a text of their own in the index.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct text {
	long words;
	char start[200];
};

struct document {
	struct text *text;
	struct document *next;
};

struct term {
	struct text *text;
	long hits;
};

static struct document *documents;
static struct term *terms[80];
static int term_count, texts;

APART static struct text *text_new(const char *start)
{
	struct text *text = calloc(1, sizeof(*text));

	if (!text)
		exit(3);
	snprintf(text->start, sizeof(text->start), "%s", start);
	texts++;
	return text;
}

APART static struct document *document_new(struct text *text)
{
	struct document *document = malloc(sizeof(*document));

	if (!document)
		exit(3);
	document->text = text;
	document->next = documents;
	documents = document;
	return document;
}

APART static void index_add(struct text *text)
{
	struct term *term = malloc(sizeof(*term));

	if (!term)
		exit(3);
	term->text = text;
	term->hits = 1;
	terms[term_count++] = term;
}

APART static long index_count(void)
{
	long words = 0;

	for (int i = 0; i < term_count; i++)
		words += terms[i]->text->words + terms[i]->hits;
	return words;
}

APART static void document_drop(struct document *document)
{
	free(document->text);
	free(document);
	texts--;
}

APART static void index_drop(struct term *term)
{
	free(term->text);
	free(term);
	texts--;
}

int main(void)
{
	long words;

	tell_truth("class double-free\n"
		   "freer chase_double_free.c:document_drop\n"
		   "freer chase_double_free.c:index_drop\n"
		   "allocator chase_double_free.c:text_new\n");
	for (int i = 0; i < 100; i++) {
		struct text *text = text_new("of the document");

		document_new(text);
		if (i % 2 == 0)
			index_add(text_new("of the index"));
		else if (i == 61)
			index_add(text);
	}
	words = index_count();
	while (documents) {
		struct document *document = documents;

		documents = document->next;
		document_drop(document);
	}
	for (int i = term_count - 1; i >= 0; i--)
		index_drop(terms[i]);
	printf("words %ld, %d texts left\n", words, texts);
	return 0;
}
