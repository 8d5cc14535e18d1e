#include "wire/secret.h"

#include <string.h>

/* Anywhere in a name. */
static const char *const parts[] = { "secret",	     "token",	"passw",   "passphrase",
				     "credential",   "apikey",	"privkey", "privatekey",
				     "accesskey",    "authkey", "bearer",  "webhook",
				     "authorization" };

/* As a word of its own: SSH_KEY and --key, but not KEYBOARD or MONKEY. */
static const char *const whole[] = { "key",	"keys",	 "pass",    "pwd", "pw",  "auth",
				     "cred",	"creds", "jwt",	    "pat", "dsn", "cookie",
				     "cookies", "otp",	 "private", "pem", "salt" };

/* Look like one and are none. */
static const char *const harmless[] = { "PWD", "OLDPWD" };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c + ('a' - 'A'));
	return c;
}

static bool is_word(char c)
{
	c = lower(c);
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* How much of `name` is `word`, whatever the case; 0: it is another. */
static size_t match(const char *name, size_t len, const char *word)
{
	size_t i;

	for (i = 0; word[i]; i++)
		if (i >= len || lower(name[i]) != word[i])
			return 0;
	return i;
}

/* secretKey and APIkey are two words each: a change of case begins one, too. */
static bool begins_word(const char *name, size_t at)
{
	return at == 0 || !is_word(name[at - 1]) ||
	       (name[at] >= 'A' && name[at] <= 'Z' && name[at - 1] >= 'a' && name[at - 1] <= 'z');
}

static bool ends_word(const char *name, size_t len, size_t at)
{
	return at >= len || !is_word(name[at]) || (name[at] >= '0' && name[at] <= '9') ||
	       (name[at] >= 'A' && name[at] <= 'Z' && name[at - 1] >= 'a' && name[at - 1] <= 'z');
}

static bool secret_at(const char *name, size_t len, size_t at)
{
	size_t i, span;

	for (i = 0; i < COUNT(parts); i++)
		if (match(name + at, len - at, parts[i]))
			return true;
	if (!begins_word(name, at))
		return false;
	for (i = 0; i < COUNT(whole); i++) {
		span = match(name + at, len - at, whole[i]);
		if (span && ends_word(name, len, at + span))
			return true;
	}
	return false;
}

/* The letters that the names above begin with: most of a name is none of them. */
static bool may_begin(char c)
{
#define LETTER(c) (1u << ((c) - 'a'))
	const uint32_t letters = LETTER('s') | LETTER('t') | LETTER('p') | LETTER('c') |
				 LETTER('a') | LETTER('w') | LETTER('k') | LETTER('j') |
				 LETTER('d') | LETTER('o') | LETTER('b');

	c = lower(c);
	return c >= 'a' && c <= 'z' && letters & LETTER(c);
#undef LETTER
}

bool secret_name(const char *name, size_t len)
{
	size_t i;

	for (; len && *name == '-'; name++)
		len--;
	for (i = 0; i < COUNT(harmless); i++)
		if (strlen(harmless[i]) == len && !memcmp(harmless[i], name, len))
			return false;
	for (i = 0; i < len; i++)
		if (may_begin(name[i]) && secret_at(name, len, i))
			return true;
	return false;
}

static const struct secret_span none = { 0, 0 };

/* scheme://user:PASSWORD@host; `at` is where "://" stands. */
static struct secret_span password_at(const char *word, size_t at)
{
	const char *user = word + at + 3, *host = user + strcspn(user, "/? "), *start;

	while (host > user && *host != '@')
		host--;
	if (*host != '@')
		return none;
	start = memchr(user, ':', (size_t)(host - user));
	if (start)
		start++;
	/* https://TOKEN@host has no user. */
	else if (at >= 4 &&
		 (!memcmp(word + at - 4, "http", 4) || !memcmp(word + at - 4, "ttps", 4)))
		start = user;
	if (!start || start == host)
		return none;
	return (struct secret_span){ (size_t)(start - word), (size_t)(host - start) };
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

static bool in_name(char c)
{
	return is_word(c) || c == '_' || c == '-' || c == '.';
}

/* Where the name that ends before `end` begins. */
static size_t name_start(const char *word, size_t end)
{
	while (end && in_name(word[end - 1]))
		end--;
	return end;
}

/* A value in a text: in quotes; of a header or of JSON to the end of its line; else a word of a
 * shell. What stands in a variable is no value. */
static struct secret_span value_from(const char *word, size_t at, bool to_line_end)
{
	const char *stop = to_line_end ? "\"'\n" : " \t\n;&|)\"'";
	char quote[2] = { word[at], '\0' };
	size_t len;

	if (is_quote(word[at])) {
		at++;
		stop = quote;
	}
	for (len = 0; word[at + len] && !strchr(stop, word[at + len]); len++)
		;
	return word[at] == '$' ? none : (struct secret_span){ at, len };
}

/* NAME=VALUE, "NAME": VALUE, --NAME VALUE, or a URL, where its sign stands at `at`. */
static struct secret_span value_at(const char *word, size_t at)
{
	bool header = word[at] == ':', option = word[at] == ' ';
	size_t end = at, start, value = at + 1;

	if (header && word[at + 1] == '/' && word[at + 2] == '/')
		return password_at(word, at);
	if (header && at && is_quote(word[at - 1]))
		end--;
	else if (header && word[at + 1] != ' ')
		return none;
	start = name_start(word, end);
	if (start == end || (option && (word[start] != '-' || word[value] == '-')) ||
	    !secret_name(word + start, end - start))
		return none;
	while (header && word[value] == ' ')
		value++;
	return value_from(word, value, header);
}

/* The whole word is a value, or is NAME=VALUE. */
static struct secret_span whole_word(const char *word, const char *before)
{
	const char *equals = strchr(word, '=');
	size_t at = equals ? (size_t)(equals - word) : 0;

	if (equals && name_start(word, at) == 0 && secret_name(word, at))
		return (struct secret_span){ at + 1, strlen(word + at + 1) };
	if (before && before[0] == '-' && word[0] != '-' && !strchr(before, '=') &&
	    secret_name(before, strlen(before)))
		return (struct secret_span){ 0, strlen(word) };
	return none;
}

struct secret_span secret_find(const char *word, const char *before, size_t from)
{
	struct secret_span span = from == 0 ? whole_word(word, before) : none;

	for (; !span.len && word[from]; from++)
		if (word[from] == '=' || word[from] == ':' || word[from] == ' ')
			span = value_at(word, from);
	return span;
}

void secrets_add(struct secrets *secrets, const char *value, size_t len, uint64_t address)
{
	struct secret_value *at = &secrets->values[secrets->count];
	size_t kept = len < SECRET_BYTES ? len : SECRET_BYTES;

	if (!len || secrets->count >= SECRETS_MAX)
		return;
	if (kept > SECRETS_BYTES - secrets->used)
		kept = SECRETS_BYTES - secrets->used;
	at->address = address;
	at->bytes = len;
	at->at = secrets->used;
	at->len = (uint32_t)kept;
	memcpy(secrets->text + secrets->used, value, kept);
	secrets->used += (uint32_t)kept;
	secrets->count++;
}

void secrets_add_words(struct secrets *secrets, char *const *words, bool arguments)
{
	const char *before = NULL;

	for (; *words; words++) {
		struct secret_span span = secret_find(*words, before, 0);

		for (; span.len; span = secret_find(*words, before, span.at + span.len))
			secrets_add(secrets, *words + span.at, span.len,
				    (uint64_t)(uintptr_t)(*words + span.at));
		before = arguments ? *words : NULL;
	}
}

static void cover(char *bytes, size_t len, size_t at, size_t span)
{
	memset(bytes + at, '*', span < len - at ? span : len - at);
}

/* The value where it stands. */
static void hide_place(const struct secret_value *value, char *bytes, size_t len, uint64_t address)
{
	uint64_t from = value->address > address ? value->address : address;
	uint64_t to = value->address + value->bytes;

	if (!address || !value->address || from >= to || from - address >= len)
		return;
	cover(bytes, len, (size_t)(from - address), (size_t)(to - from));
}

static void hide_copies(const struct secret_value *value, const char *text, char *bytes, size_t len)
{
	char *at = bytes, *end = bytes + len;

	while (value->len <= (size_t)(end - at)) {
		at = memchr(at, text[0], (size_t)(end - at) - value->len + 1);
		if (!at)
			return;
		if (!memcmp(at, text, value->len)) {
			cover(bytes, len, (size_t)(at - bytes), value->bytes);
			at += value->len;
		} else {
			at++;
		}
	}
}

/* One that was cut by the ends of what was copied. */
static void hide_rests(const struct secret_value *value, const char *text, char *bytes, size_t len)
{
	size_t most = value->len - 1 < len ? value->len - 1 : len, part;

	for (part = most; part >= SECRET_SHORTEST; part--)
		if (bytes[0] == text[value->len - part] &&
		    !memcmp(bytes, text + value->len - part, part))
			cover(bytes, len, 0, part);
	for (part = most; part >= SECRET_SHORTEST; part--)
		if (bytes[len - part] == text[0] && !memcmp(bytes + len - part, text, part))
			cover(bytes, len, len - part, part);
}

void secrets_hide(const struct secrets *secrets, char *bytes, size_t len, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < secrets->count && len; i++) {
		const struct secret_value *value = &secrets->values[i];
		const char *text = secrets->text + value->at;

		hide_place(value, bytes, len, address);
		if (value->len < SECRET_SHORTEST)
			continue;
		hide_copies(value, text, bytes, len);
		hide_rests(value, text, bytes, len);
	}
}
