#include "wire/secret_words.h"

#include <string.h>

/* Anywhere in a name. */
#define PARTS                                                                           \
	"secret|token|passw|passphrase|credential|apikey|privkey|privatekey|accesskey|" \
	"authkey|bearer|webhook|authorization|sessionid|sessid"

/* As a word of its own: SSH_KEY and --key, but not KEYBOARD or MONKEY. Where one begins with
 * another, the longer is first. */
#define WORDS                                                                              \
	"keys|key|pass|pwd|pw|auth|creds|cred|jwt|pat|dsn|cookies|cookie|otp|private|pem|" \
	"salt"

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

/* How much of `text` is one of the words in a list (a|b); 0: none. */
static size_t match(const char *text, size_t len, const char *list, bool exactly)
{
	for (size_t i = 0;; list += i + 1) {
		for (i = 0; i < len && list[i] && list[i] != '|'; i++)
			if ((exactly ? text[i] : lower(text[i])) != list[i])
				break;
		if (!list[i] || list[i] == '|')
			return i;
		i += strcspn(list + i, "|");
		if (!list[i])
			return 0;
	}
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
	size_t span;

	if (match(name + at, len - at, PARTS, false))
		return true;
	span = begins_word(name, at) ? match(name + at, len - at, WORDS, false) : 0;
	return span && ends_word(name, len, at + span);
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

/* Where a value in a text ends: in quotes; of a header or of JSON with its line; else as a word of
 * a shell. */
#define STOP_LINE "\"'\n"
#define STOP_WORD " \t\n;&|)\"'"

/* What stands in a variable is no value. */
static struct secret_span value_from(const char *word, size_t at, const char *stop)
{
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

static size_t digits_in(const char *text, size_t len)
{
	size_t digits = 0;

	for (size_t i = 0; i < len; i++)
		digits += text[i] >= '0' && text[i] <= '9';
	return digits;
}

/* Digits and more, as what was drawn by chance has, and few names. */
static bool is_mixed(const char *text, size_t len)
{
	size_t digits = digits_in(text, len);

	return digits > 0 && digits < len;
}

/* Tokens that say themselves what they are, whatever name they have: how each begins, how many
 * characters follow at least, and which there are besides letters and digits. */
static const struct {
	const char *starts, *more;
	size_t least;
} tokens[] = {
	{ "ghp_|gho_|ghs_|ghu_|ghr_|hf_|npm_", "", 30 },
	{ "github_pat_|pypi-|AIza|eyJ|SG.", "-_.", 30 },
	{ "sk-|xoxa-|xoxb-|xoxp-|xoxr-|xoxs-|glpat-|gldt-|glrt-|dckr_pat_|hvs.", "-_", 20 },
	{ "AKIA|ASIA|sk_live_|sk_test_|rk_live_|Bearer |ya29.", "-_.~+/=", 16 },
};

static struct secret_span token_at(const char *word, size_t at)
{
	for (size_t i = 0; i < COUNT(tokens); i++) {
		size_t start = match(word + at, SIZE_MAX, tokens[i].starts, true), len = start;

		while (start && word[at + len] &&
		       (is_word(word[at + len]) || strchr(tokens[i].more, word[at + len])))
			len++;
		if (len > start && len - start >= tokens[i].least && is_mixed(word + at, len))
			return (struct secret_span){ at, len };
	}
	return none;
}

/* The password of NAME:PASSWORD, as curl's --user has it. USER:GROUP of numbers or of one name, and
 * what stands in files, such as a test, are none. */
static struct secret_span login_from(const char *word, size_t at)
{
	char quote[2] = { 0 };
	size_t name, start;
	struct secret_span span;

	if (is_quote(word[at]))
		quote[0] = word[at];
	at += quote[0] != '\0';
	name = strcspn(word + at, ":/ \t\n\"'$");
	start = at + name + 1;
	if (name == 0 || word[start - 1] != ':' || word[start] == ':' || word[start] == '/')
		return none;
	span = value_from(word, start, quote[0] ? quote : STOP_WORD);
	if (digits_in(word + span.at, span.len) == span.len ||
	    (span.len == name && !memcmp(word + at, word + span.at, name)))
		return none;
	return span;
}

/* An option that wants NAME:PASSWORD. */
static bool is_login(const char *name, size_t len)
{
	static const char *const logins[] = { "-u", "-U", "--user", "--proxy-user" };

	for (size_t i = 0; i < COUNT(logins); i++)
		if (strlen(logins[i]) == len && !memcmp(logins[i], name, len))
			return true;
	return false;
}

/* Tools whose passwords have an option of one letter, which with others means something else. Their
 * names go on with letters, digits and dashes: mysqldump, mariadb-admin. */
static const struct {
	const char *names, *options;
	bool here, next; /* the value may stand in the same word, in the next one */
} tools[] = {
	{ "mysql|mariadb|7z|rar|unrar", "p", true, false },
	{ "sshpass|login|mongo|twine|cqlsh", "p", true, true },
	{ "zip|unzip|sqlcmd|bcp|ipmitool", "P", true, true },
	{ "redis-cli", "a", false, true },
	{ "http", "a", true, true },
	{ "ldap", "w", true, true },
	{ "snmp", "AXc", true, true },
	{ "openssl", "kK", false, true },
	{ "curl", "b", true, true },
};

#define TOOL_STOP " \t\n;&|()\"'`"

/* Is this word such a tool, with this option; 0: with any? */
static bool is_tool(const char *word, char option, bool next)
{
	size_t len = strcspn(word, TOOL_STOP), i, end;

	for (i = 0; i < len; i++)
		if (word[i] == '/')
			return is_tool(word + i + 1, option, next);
	for (i = 0; i < COUNT(tools); i++) {
		end = match(word, len, tools[i].names, true);
		while (end && end < len && (is_word(word[end]) || word[end] == '-'))
			end++;
		if (end && end == len &&
		    (!option ||
		     (strchr(tools[i].options, option) && (next ? tools[i].next : tools[i].here))))
			return true;
	}
	return false;
}

#define LOOK_BACK 256u

/* Is -X at `at` an option for a password: of the tool before this word, or of one in this line? */
static bool is_tools(const char *word, const struct secret_before *before, size_t at, bool next)
{
	size_t from = at > LOOK_BACK ? at - LOOK_BACK : 0, i;

	if (word[at] != '-' || !is_word(word[at + 1]))
		return false;
	for (i = at; i-- > from && !strchr(";&|\n", word[i]);)
		if ((i == 0 || strchr(TOOL_STOP "/", word[i - 1])) &&
		    is_tool(word + i, word[at + 1], next))
			return true;
	return at == 0 && before && before->tool && is_tool(before->tool, word[1], next);
}

void secret_before_move(struct secret_before *before, const char *word)
{
	before->word = word;
	if (word[0] != '-' && is_tool(word, '\0', false))
		before->tool = word;
}

/* -pPASSWORD, -uNAME:PASSWORD. What looks like a word, a number, a path or a setting is none, but
 * with a tool that is known. */
static struct secret_span attached_at(const char *word, const struct secret_before *before,
				      size_t at)
{
	struct secret_span span;

	if (word[at] != '-' || !word[at + 1])
		return none;
	if (is_login(word + at, 2))
		return login_from(word, at + 2);
	span = value_from(word, at + 2, STOP_WORD);
	if (span.len && is_tools(word, before, at, false))
		return span;
	if ((word[at + 1] != 'p' && word[at + 1] != 'P') || span.len < SECRET_SHORTEST ||
	    strcspn(word + span.at, "/:=,") < span.len || !is_mixed(word + span.at, span.len))
		return none;
	return span;
}

/* -passin pass:VALUE; the name before the colon. */
static bool is_passed(const char *word, size_t start, size_t end)
{
	return end - start == 4 && start > 1 && word[start - 1] == ' ' &&
	       match(word + start, 4, "pass", false) &&
	       match(word + name_start(word, start - 1), 5, "-pass", false);
}

/* NAME: VALUE of a header, "NAME" : VALUE of JSON, or a word that is NAME:VALUE; the colon is at
 * `at`. */
static struct secret_span header_at(const char *word, size_t at)
{
	size_t end = at, start, value = at + 1;

	if (word[at + 1] == '/' && word[at + 2] == '/')
		return password_at(word, at);
	while (word[value] == ' ')
		value++;
	while (end && word[end - 1] == ' ')
		end--;
	end = end && is_quote(word[end - 1]) ? end - 1 : at;
	start = name_start(word, end);
	if (is_passed(word, start, end))
		return value_from(word, value, STOP_WORD);
	if (end == at && value == at + 1 &&
	    (start > 0 || word[value] == ':' || memchr(word, '.', end)))
		return none;
	return secret_name(word + start, end - start) ? value_from(word, value, STOP_LINE) : none;
}

/* What signs a URL opens what it leads to: sig=, X-Amz-Signature=. */
static bool signs_url(const char *word, size_t start, size_t end)
{
	return start > 0 && (word[start - 1] == '?' || word[start - 1] == '&') &&
	       ((end - start >= 3 && match(word + end - 3, 3, "sig", false)) ||
		(end - start >= 9 && match(word + end - 9, 9, "signature", false)));
}

/* A port, perhaps, or where somebody listens. */
static struct secret_span unless_number(const char *word, struct secret_span span)
{
	for (size_t i = 0; i < span.len; i++)
		if (!strchr("0123456789.:", word[span.at + i]))
			return span;
	return none;
}

/* NAME=VALUE, --NAME VALUE; the sign is at `at`. */
static struct secret_span value_at(const char *word, const struct secret_before *before, size_t at)
{
	size_t start = name_start(word, at);

	if (word[at] == ' ' && (word[start] != '-' || word[at + 1] == '-'))
		return none;
	if (word[at] == ' ' && at - start == 2 && is_tools(word, before, start, true))
		return unless_number(word, value_from(word, at + 1, STOP_WORD));
	if (is_login(word + start, at - start))
		return login_from(word, at + 1);
	if (!secret_name(word + start, at - start) && !signs_url(word, start, at))
		return none;
	return value_from(word, at + 1, STOP_WORD);
}

/* The whole word is a value, or is NAME=VALUE. */
static struct secret_span whole_word(const char *word, const struct secret_before *before)
{
	const char *equals = strchr(word, '='), *option = before ? before->word : NULL;
	size_t at = equals ? (size_t)(equals - word) : 0;
	struct secret_span all = { 0, strlen(word) };

	if (equals && name_start(word, at) == 0 && secret_name(word, at))
		return (struct secret_span){ at + 1, strlen(word + at + 1) };
	if (!option || option[0] != '-')
		return none;
	if (is_login(option, strlen(option)))
		return login_from(word, 0);
	if (word[0] == '-' || strchr(option, '='))
		return none;
	if (option[1] && !option[2] && before->tool && is_tool(before->tool, option[1], true))
		return unless_number(word, all);
	return secret_name(option, strlen(option)) ? all : none;
}

struct secret_span secret_find(const char *word, const struct secret_before *before, size_t from)
{
	struct secret_span span = from == 0 ? whole_word(word, before) : none;

	for (; !span.len && word[from]; from++) {
		if (from == 0 || word[from - 1] == ' ')
			span = attached_at(word, before, from);
		if (!span.len && (from == 0 || !in_name(word[from - 1])))
			span = token_at(word, from);
		if (!span.len && word[from] == ':')
			span = header_at(word, from);
		else if (!span.len && (word[from] == '=' || word[from] == ' '))
			span = value_at(word, before, from);
	}
	return span;
}

/* Pieces of four bytes, by which memory is searched: how many follow each other in a secret is a
 * piece of it, wherever the rest has gone. */
#define GRAM 4u
#define PIECE_GRAMS 3u /* six bytes */

static uint32_t gram_of(const char *at)
{
	uint32_t gram;

	memcpy(&gram, at, sizeof(gram));
	return gram;
}

static uint32_t gram_slot(uint32_t gram)
{
	return (gram * 0x9e3779b1u) >> (32 - SECRETS_GRAM_BITS);
}

static bool is_gram(const struct secrets *secrets, const char *at)
{
	uint32_t gram = gram_of(at), next = secrets->heads[gram_slot(gram)];

	while (next && gram_of(secrets->text + next - 1) != gram)
		next = secrets->next[next - 1];
	return next;
}

static void grams_add(struct secrets *secrets, uint32_t at, uint32_t end)
{
	uint16_t *head;

	for (; at + GRAM <= end; at++) {
		if (is_gram(secrets, secrets->text + at))
			continue;
		head = &secrets->heads[gram_slot(gram_of(secrets->text + at))];
		secrets->next[at] = *head;
		*head = (uint16_t)(at + 1);
	}
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
	if (kept >= SECRET_SHORTEST)
		grams_add(secrets, at->at, secrets->used);
}

void secrets_add_words(struct secrets *secrets, char *const *words, bool arguments,
		       bool (*is_file)(const char *value))
{
	struct secret_before before = { 0 };

	for (; *words; words++) {
		struct secret_span span = secret_find(*words, &before, 0);

		for (; span.len; span = secret_find(*words, &before, span.at + span.len))
			if ((*words)[span.at + span.len] || !is_file(*words + span.at))
				secrets_add(secrets, *words + span.at, span.len,
					    (uint64_t)(uintptr_t)(*words + span.at));
		if (arguments)
			secret_before_move(&before, *words);
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
	for (size_t at = 0; at + value->len <= len; at++)
		if (bytes[at] == text[0] && !memcmp(bytes + at, text, value->len))
			cover(bytes, len, at, value->bytes);
}

/* In memory a copy may begin or end in the middle, be longer than what was copied, or be
 * overwritten in part, as on a stack that functions have left: six bytes in a row tell, at the ends
 * of what was copied four. Every third place is looked at, for six bytes have three. */
static void hide_pieces(const struct secrets *secrets, char *bytes, size_t len)
{
	size_t last = len - GRAM, at = 0, from, to;

	if (len < GRAM)
		return;
	for (; at <= last; at = at < last && last - at < PIECE_GRAMS ? last : at + PIECE_GRAMS) {
		if (!is_gram(secrets, bytes + at))
			continue;
		for (from = at; from && is_gram(secrets, bytes + from - 1); from--)
			;
		for (to = at; to < last && is_gram(secrets, bytes + to + 1); to++)
			;
		if (to - from + 1 >= PIECE_GRAMS || from == 0 || to == last)
			cover(bytes, len, from, to - from + GRAM);
		at = to;
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
		if (!address || value->bytes > value->len)
			hide_copies(value, text, bytes, len);
		if (!address)
			hide_rests(value, text, bytes, len);
	}
	if (address)
		hide_pieces(secrets, bytes, len);
}
