/*
 * Messages over a pipe. message_receive() takes what is there for one message: when two lie in the
 * pipe, the second goes past the end of the first one's body.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

#define BODY 104

struct sender {
	const char *name;
	long messages;
};

struct message {
	struct sender *sender;
	char *body;
	long number;
	struct message *next;
};

static struct message *inbox;

APART static struct sender *sender_new(const char *name)
{
	struct sender *sender = calloc(1, sizeof(*sender));

	if (!sender)
		exit(3);
	sender->name = name;
	return sender;
}

APART static char *body_new(void)
{
	char *body = calloc(1, BODY);

	if (!body)
		exit(3);
	return body;
}

APART static struct message *message_new(struct sender *sender, long number)
{
	char *body = body_new();
	struct message *message = malloc(sizeof(*message));

	if (!message)
		exit(3);
	message->sender = sender;
	message->body = body;
	message->number = number;
	message->next = inbox;
	inbox = message;
	return message;
}

APART static long message_receive(struct message *message, int from)
{
	char *body = message->body;
	long got = read(from, body, 4096);

	if (got <= 0)
		exit(3);
	return got;
}

APART static void message_send(int to, int number)
{
	char text[BODY];

	memset(text, 'a' + number % 26, sizeof(text));
	if (write(to, text, sizeof(text)) != (ssize_t)sizeof(text))
		exit(3);
}

APART static long inbox_count(void)
{
	long bytes = 0;

	for (struct message *m = inbox; m; m = m->next) {
		m->sender->messages++;
		bytes += m->body[0] == m->body[BODY - 1];
	}
	return bytes;
}

int main(void)
{
	struct sender *senders[2] = { sender_new("left"), sender_new("right") };
	struct message *messages[150];
	int ends[2];
	long got = 0;

	tell_truth("class overflow\n"
		   "writer chase_read.c:message_receive\n"
		   "allocator chase_read.c:body_new\n");
	if (pipe(ends) < 0)
		return 3;
	for (int i = 0; i < 150; i++)
		messages[i] = message_new(senders[i % 2], i);
	for (int i = 0; i < 150; i++) {
		message_send(ends[1], i);
		/* The sender is ahead once. */
		if (i == 95)
			message_send(ends[1], i + 1);
		got += message_receive(messages[i], ends[0]);
	}
	printf("got %ld bytes\n", got);
	printf("whole %ld\n", inbox_count());
	return 0;
}
