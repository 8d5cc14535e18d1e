/*
 * Tokens point into a buffer that grows: where it moves, those from before are left behind in the
 * freed one. Nothing crashes of that; the program finds that its tokens are not what they were, and
 * gives up, or with an argument only says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct buffer {
	char *data;
	size_t used, size;
};

struct token {
	const char *text;
	size_t len;
	struct token *next;
};

static unsigned int random_below(unsigned int bound)
{
	static unsigned int state;
	struct timespec now;

	if (state == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		state = (unsigned int)now.tv_nsec * 2654435761u | 1;
	}
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % bound;
}

APART static const char *buffer_add(struct buffer *buffer, const char *text, size_t len)
{
	char *at;

	if (buffer->used + len + 1 > buffer->size) {
		buffer->size = 2 * (buffer->size + len);
		buffer->data = realloc(buffer->data, buffer->size);
		if (!buffer->data)
			exit(3);
	}
	at = buffer->data + buffer->used;
	memcpy(at, text, len);
	at[len] = '\0';
	buffer->used += len + 1;
	return at;
}

APART static unsigned int tokens_broken(const struct token *token)
{
	unsigned int broken = 0;

	for (; token; token = token->next)
		broken += strlen(token->text) != token->len;
	return broken;
}

int main(int argc, char **argv)
{
	struct buffer buffer = { malloc(300), 0, 300 };
	struct token *first = NULL, **last = &first;
	unsigned int words = 20 + random_below(40), broken;

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "freer chase_token.c:buffer_add\n");
	for (unsigned int i = 0; i < words; i++) {
		struct token *token = malloc(sizeof(*token));
		char word[16];

		if (!token || !buffer.data)
			exit(3);
		token->len = 1 + random_below(12);
		memset(word, 'a' + (int)random_below(26), token->len);
		token->text = buffer_add(&buffer, word, token->len);
		token->next = NULL;
		*last = token;
		last = &token->next;
	}
	broken = tokens_broken(first);
	if (broken > 0 && argc == 1)
		abort();
	printf(broken > 0 ? "FAILED: %u tokens are broken\n" : "ok\n", broken);
	return broken > 0;
}
