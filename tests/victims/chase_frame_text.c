/*
 * A name without its end is copied into a variable on the stack, and the pointer behind that is
 * gone. It is then passed on with an offset, to a function that has overwritten the register by the
 * time it fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct card {
	char name[16];
	char note[48];
};

APART static void card_name(struct card *card, const char *name)
{
	strncpy(card->name, name, sizeof(card->name));
}

APART static void text_copy(char *to, const char *from)
{
	strcpy(to, from);
}

APART static size_t card_length(const struct card *card)
{
	struct {
		char name[24];
		const struct card *card;
	} line;
	size_t length;

	line.card = card;
	text_copy(line.name, card->name);
	length = strlen(line.name);
	return length + strlen(line.card->note);
}

int main(void)
{
	static const char *const names[] = { "oak", "ash", "sixteen-letters-", "elm" };
	size_t sum = 0;

	tell_truth("class wide-write\n"
		   "class narrow-write\n"
		   "writer chase_frame_text.c:text_copy\n");
	for (int i = 0; i < 4; i++) {
		struct card *card = calloc(1, sizeof(*card));

		if (!card)
			return 3;
		card_name(card, names[i]);
		strcpy(card->note, "a note of more than sixteen letters");
		sum += card_length(card);
	}
	printf("%zu\n", sum);
	return 0;
}
