#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/wording.h"

/* The sentence behind a statement, for a look; the next few calls leave it alone. */
static inline const char *sentence_of(const struct said *said)
{
	static char texts[8][2048];
	static unsigned int next;
	char *text = texts[next++ % ARRAY_SIZE(texts)];
	AUTO(mem_freep) char *words = words_of(said);

	(void)snprintf(text, sizeof(texts[0]), "%s", words ? words : "");
	return text;
}

static inline bool says(const struct said *said, const char *phrase)
{
	return strstr(sentence_of(said), phrase) != NULL;
}
