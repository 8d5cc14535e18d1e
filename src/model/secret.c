#include "model/secret.h"

#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "wire/secret.h"

/* The name of a file that is here is no secret: --key=server.pem. */
static struct secret_span find(const char *word, const char *before)
{
	struct secret_span span = secret_find(word, before);

	if (span.len > 0 && span.at + span.len == strlen(word) && access(word + span.at, F_OK) == 0)
		span.len = 0;
	return span;
}

char *secret_word(const char *word, const char *before)
{
	struct secret_span span = find(word, before);

	if (span.len == 0)
		return mem_strdup(word);
	return mem_printf("%.*s" SECRET_MARK "%s", (int)span.at, word, word + span.at + span.len);
}

void secret_words(char *const *words, struct strv *ret)
{
	const char *before = NULL;

	for (; words && *words; words++) {
		strv_take(ret, secret_word(*words, before));
		before = *words;
	}
}

bool secret_is_marked(const struct strv *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (strstr(words->items[i], SECRET_MARK))
			return true;
	return false;
}

unsigned int secret_print(char *const *words)
{
	uint64_t h = HASH_START;
	const char *before = NULL;
	bool any = false;

	for (; *words; words++) {
		struct secret_span span = find(*words, before);

		h = hash_bytes(h, *words + span.at, span.len);
		any |= span.len > 0;
		before = *words;
	}
	h ^= h >> 32;
	return any ? (unsigned int)((h ^ h >> 16) & 0xffff) | 1u : 0;
}

/* One for the process: redhand has one environment and one command. */
static struct secrets *known(void)
{
	static struct secrets *list;

	if (!list) {
		list = mem_alloc(sizeof(*list));
		secrets_add_words(list, environ, false);
	}
	return list;
}

void secret_learn(char *const *words)
{
	const char *before = NULL;

	for (; *words; words++) {
		struct secret_span span = find(*words, before);

		secrets_add(known(), *words + span.at, span.len, 0);
		before = *words;
	}
}

void secret_hide(char *bytes, size_t len)
{
	secrets_hide(known(), bytes, len, 0);
}
