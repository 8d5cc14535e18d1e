/*
 * Innocent: buffers that use all that malloc gave, as malloc_usable_size() says, down to the last
 * byte before the next block; they grow by realloc, shrink, and move.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct buffer {
	char *bytes;
	size_t len, room;
};

APART static void buffer_init(struct buffer *buffer, size_t len)
{
	buffer->bytes = malloc(len);
	if (!buffer->bytes)
		exit(3);
	buffer->len = 0;
	buffer->room = malloc_usable_size(buffer->bytes);
}

APART static void buffer_resize(struct buffer *buffer, size_t len)
{
	char *bytes = realloc(buffer->bytes, len);

	if (!bytes)
		exit(3);
	buffer->bytes = bytes;
	buffer->room = malloc_usable_size(bytes);
	if (buffer->len > buffer->room)
		buffer->len = buffer->room;
}

APART static void buffer_fill(struct buffer *buffer, char with)
{
	memset(buffer->bytes + buffer->len, with, buffer->room - buffer->len);
	buffer->len = buffer->room;
	buffer->bytes[buffer->room - 1] = '\n';
}

APART static long buffer_sum(const struct buffer *buffer)
{
	long sum = 0;

	for (size_t i = 0; i < buffer->len; i++)
		sum += buffer->bytes[i];
	return sum;
}

APART static void buffer_drop(struct buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
}

int main(void)
{
	static struct buffer buffers[150];
	long sum = 0;

	tell_truth("class none\n");
	for (int i = 0; i < 150; i++) {
		buffer_init(&buffers[i], 1 + (size_t)i * 3);
		buffer_fill(&buffers[i], 'a');
	}
	for (int i = 0; i < 150; i += 2) {
		buffer_resize(&buffers[i], 40 + (size_t)i * 5);
		buffer_fill(&buffers[i], 'b');
	}
	for (int i = 0; i < 150; i += 3) {
		buffer_resize(&buffers[i], 10);
		buffer_fill(&buffers[i], 'c');
	}
	for (int i = 0; i < 150; i++)
		sum += buffer_sum(&buffers[i]);
	for (int i = 0; i < 150; i++)
		buffer_drop(&buffers[i]);
	printf("%s\n", sum > 0 ? "all full" : "empty");
	return 0;
}
