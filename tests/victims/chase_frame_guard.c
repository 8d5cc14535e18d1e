/*
 * A message is copied into a buffer on the stack that is too small for it, by a function that is
 * only given the address. Built with -fstack-protector-all: it ends in the C library's alarm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chase_truth.h"

struct message {
	size_t len;
	char text[64];
};

APART static void text_copy(char *to, const struct message *message)
{
	for (size_t i = 0; i < message->len; i++)
		to[i] = message->text[i];
}

APART static int message_sum(const struct message *message)
{
	char text[24] = { 0 };
	int sum = 0;

	text_copy(text, message);
	for (size_t i = 0; i < sizeof(text); i++)
		sum += text[i];
	return sum;
}

int main(void)
{
	struct message *message = malloc(sizeof(*message));

	if (!message)
		return 3;
	tell_truth("class overflow\n"
		   "writer chase_frame_guard.c:text_copy\n");
	memset(message->text, 'q', sizeof(message->text));
	for (message->len = 0; message->len < 20; message->len++)
		printf("%d\n", message_sum(message));
	message->len = 48;
	printf("%d\n", message_sum(message));
	return 0;
}
