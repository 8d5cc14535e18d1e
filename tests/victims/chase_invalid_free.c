/*
 * Lines of a file. line_trim() moves the line's own pointer past the blanks, and line_drop() gives
 * that pointer to free.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct line {
	char *text;
	size_t len;
	struct line *next;
};

static struct line *lines;
static int line_count;

APART static struct line *line_new(const char *text)
{
	struct line *line = malloc(sizeof(*line));
	size_t len = strlen(text);

	if (!line)
		exit(3);
	line->text = malloc(len + 1);
	if (!line->text)
		exit(3);
	memcpy(line->text, text, len + 1);
	line->len = len;
	line->next = lines;
	lines = line;
	line_count++;
	return line;
}

APART static void line_trim(struct line *line)
{
	while (*line->text == ' ') {
		line->text++;
		line->len--;
	}
}

APART static size_t lines_measure(void)
{
	size_t sum = 0;

	for (struct line *line = lines; line; line = line->next)
		sum += line->len;
	return sum;
}

APART static void line_drop(struct line *line)
{
	free(line->text);
	free(line);
	line_count--;
}

int main(void)
{
	char text[80];
	size_t sum;

	tell_truth("class invalid-free\n"
		   "freer chase_invalid_free.c:line_drop\n"
		   "writer chase_invalid_free.c:line_trim\n"
		   "allocator chase_invalid_free.c:line_new\n");
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "%*s%d: line", i == 133 ? 4 : 0, "", i);
		line_trim(line_new(text));
	}
	sum = lines_measure();
	while (lines) {
		struct line *line = lines;

		lines = line->next;
		line_drop(line);
	}
	printf("sum %zu, %d left\n", sum, line_count);
	return 0;
}
