#include "model/known_secrets.h"

#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/hash.h"
#include "wire/secret_words.h"

#define LINE_SHORTEST 16

/* The name of a file that is here is no secret: --key=server.pem, SSH_AUTH_SOCK. */
static bool is_file(const char *value, size_t len)
{
	AUTO(mem_freep) char *name = mem_strndup(value, len);

	return access(name, F_OK) == 0;
}

static struct secret_span find(const char *word, const struct secret_before *before, size_t from)
{
	struct secret_span span = secret_find(word, before, from);

	while (span.len > 0 && is_file(word + span.at, span.len))
		span = secret_find(word, before, span.at + span.len);
	return span;
}

static char *masked(const char *word, const struct secret_before *before)
{
	struct strbuf sb = { 0 };
	struct secret_span span = find(word, before, 0);
	size_t at = 0;

	for (; span.len > 0; span = find(word, before, at)) {
		strbuf_add(&sb, word + at, span.at - at);
		strbuf_adds(&sb, SECRET_MARK);
		at = span.at + span.len;
	}
	strbuf_adds(&sb, word + at);
	return strbuf_take(&sb);
}

char *secret_word(const char *word)
{
	return masked(word, NULL);
}

void secret_words(char *const *words, struct strv *ret)
{
	struct secret_before before = { 0 };

	for (; words && *words; words++) {
		strv_take(ret, masked(*words, &before));
		secret_before_move(&before, *words);
	}
}

bool secret_is_marked(const struct strv *words)
{
	return VEC_ANY(words, item, strstr(*item, SECRET_MARK));
}

typedef void (*value_fn)(void *ctx, const char *value, size_t len);

static void each_value(char *const *words, bool arguments, value_fn fn, void *ctx)
{
	struct secret_before before = { 0 };

	for (; words && *words; words++) {
		struct secret_span span = find(*words, &before, 0);

		for (; span.len > 0; span = find(*words, &before, span.at + span.len))
			fn(ctx, *words + span.at, span.len);
		if (arguments)
			secret_before_move(&before, *words);
	}
}

static void is_mark(void *ctx, const char *value, size_t len)
{
	*(bool *)ctx |= len == strlen(SECRET_MARK) && memcmp(value, SECRET_MARK, len) == 0;
}

bool secret_is_lost(char *const *words)
{
	bool lost = false;

	each_value(words, true, is_mark, &lost);
	return lost;
}

static void add_hash(void *ctx, const char *value, size_t len)
{
	*(uint64_t *)ctx = hash_bytes(*(uint64_t *)ctx, value, len);
}

unsigned int secret_print(char *const *words)
{
	uint64_t h = HASH_START;

	each_value(words, true, add_hash, &h);
	if (h == HASH_START)
		return 0;
	h ^= h >> 32;
	return (unsigned int)((h ^ h >> 16) & 0xffff) | 1u;
}

/* Of several lines, such as a private key, each may be printed by itself. */
static void learn(void *ctx, const char *value, size_t len)
{
	struct secrets *list = ctx;
	const char *end = value + len, *newline;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->values[i].bytes == len &&
		    memcmp(list->text + list->values[i].at, value, list->values[i].len) == 0)
			return;
	secrets_add(list, value, len, 0);
	for (const char *at = value; memchr(value, '\n', len) && at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		newline = newline ? newline : end;
		if (newline - at >= LINE_SHORTEST)
			secrets_add(list, at, (size_t)(newline - at), 0);
	}
}

/* It may be a line for a shell, whose first word is the value. */
static void learn_argument(void *ctx, const char *value, size_t len)
{
	const char *space = memchr(value, ' ', len);

	learn(ctx, value, len);
	if (space && space - value >= SECRET_SHORTEST)
		learn(ctx, value, (size_t)(space - value));
}

/* One for the process: redhand has one environment and one command. */
static struct secrets *known(void)
{
	static struct secrets *list;

	if (!list) {
		list = mem_alloc(sizeof(*list));
		each_value(environ, false, learn, list);
	}
	return list;
}

void secret_learn(char *const *words)
{
	each_value(words, true, learn_argument, known());
}

void secret_hide(char *bytes, size_t len)
{
	secrets_hide(known(), bytes, len, 0);
}
