/*
 * A buffer that grows, and a cursor into it. buffer_add() may move the bytes; cursor_put() goes on
 * writing where they were, and by then a record lives there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct buffer {
	char *bytes;
	size_t len, room;
};

struct cursor {
	char *at;
};

struct record {
	struct record *next;
	char text[40];
};

APART static void buffer_add(struct buffer *buffer, const char *text)
{
	size_t len = strlen(text);

	if (buffer->len + len + 1 > buffer->room) {
		buffer->room = 2 * buffer->room + len;
		buffer->bytes = realloc(buffer->bytes, buffer->room);
	}
	memcpy(buffer->bytes + buffer->len, text, len + 1);
	buffer->len += len;
}

APART static void cursor_put(struct cursor *cursor, char c)
{
	for (int i = 0; i < 8; i++)
		*cursor->at++ = c;
}

APART static struct record *record_new(struct record *next)
{
	struct record *record = malloc(sizeof(*record));

	if (!record)
		exit(3);
	record->next = next;
	return record;
}

APART static int records_count(const struct record *record)
{
	int count = 0;

	for (; record; record = record->next)
		count++;
	return count;
}

int main(void)
{
	struct buffer buffer = { malloc(48), 0, 48 };
	struct cursor cursor = { buffer.bytes };
	struct record *records = NULL;
	char *behind = strdup("records"); /* the buffer cannot grow where it is */

	tell_truth("class write-after-free\n"
		   "writer chase_realloc.c:cursor_put\n"
		   "freer chase_realloc.c:buffer_add\n");
	for (int i = 0; i < 20; i++)
		buffer_add(&buffer, "hello world ");
	for (int i = 0; i < 3; i++)
		records = record_new(records);
	cursor_put(&cursor, '#');
	printf("%d %s\n", records_count(records), behind);
	return 0;
}
