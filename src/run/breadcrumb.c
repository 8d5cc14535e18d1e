#include "run/breadcrumb.h"

#include <ctype.h>
#include <string.h>

#include "base/auto.h"

#define CRUMB_MAX 300

/* Numbers this long are ids, sizes or times rather than part of a name. */
#define LONG_NUMBER 5
#define HASH_DIGITS 8	   /* of a hash or an id, at least */
#define TMP_NAME_PYTHON 11 /* "tmp" and eight more */
#define TMP_NAME_SHELL 10  /* "tmp." and six, at least */

/* Length of the terminal escape sequence at `s` (ECMA-48 CSI, or ESC and one byte), or 0. */
static size_t escape_sequence(const char *s, size_t len)
{
	size_t n = 2;

	if (len < 2 || s[0] != '\033')
		return 0;
	if (s[1] != '[')
		return 2;
	while (n < len && (unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x40)
		n++;
	return n < len ? n + 1 : n;
}

void crumb_plain(const char *line, size_t len, struct strbuf *ret)
{
	for (size_t i = 0; i < len;) {
		size_t n = escape_sequence(line + i, len - i);

		if (n == 0)
			strbuf_addc(ret, line[i]);
		i += n > 0 ? n : 1;
	}
}

static size_t span(const char *s, size_t len, int (*accepts)(int))
{
	size_t n = 0;

	while (n < len && accepts((unsigned char)s[n]))
		n++;
	return n;
}

static bool ends_word(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(s, word, n) == 0 && (len == n || !isalnum((unsigned char)s[n]));
}

/* Is the whole number before `after` a duration or a size? */
static bool unit_follows(const char *after, size_t len)
{
	static const char *const units[] = { "ms", "us", "ns", "s", "sec", "KiB", "MiB", "bytes" };

	if (len > 0 && *after == ' ') {
		after++;
		len--;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (ends_word(after, len, units[i]))
			return true;
	return false;
}

/* Length of the ISO 8601 date at `s`, with the T when a time follows; 0 when there is none. */
static size_t date(const char *s, size_t len)
{
	static const char form[] = "dddd-dd-dd";

	if (len < sizeof(form) - 1)
		return 0;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? !isdigit((unsigned char)s[i]) : s[i] != form[i])
			return 0;
	if (len > sizeof(form) && s[10] == 'T' && isdigit((unsigned char)s[11]))
		return 11;
	return len > 10 && isalnum((unsigned char)s[10]) ? 0 : 10;
}

/* Length of the name drawn at random at `s`: a UUID, or so many hexadecimal digits, letters and
 * others mixed, that it is a hash or an id and no word. */
static size_t drawn(const char *s, size_t len)
{
	static const size_t groups[] = { 8, 4, 4, 4, 12 };
	size_t n = span(s, len, isxdigit), at = 0, changes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		if (span(s + at, len - at, isxdigit) != groups[i])
			break;
		at += groups[i];
		if (i + 1 == ARRAY_SIZE(groups))
			return at;
		if (at >= len || s[at++] != '-')
			break;
	}
	if (n < HASH_DIGITS || (n < len && (isalnum((unsigned char)s[n]) || s[n] == '_')))
		return 0;
	/* A name with a number behind it changes from letters to digits but once. */
	for (size_t i = 1; i < n; i++)
		changes += !isdigit((unsigned char)s[i]) != !isdigit((unsigned char)s[i - 1]);
	return changes > 1 ? n : 0;
}

/* Length of the name at `s`, behind a slash, as mktemp(1) and Python's tempfile draw them. */
static size_t temporary(const char *s, size_t len)
{
	size_t n = 3;
	bool shell;

	if (len <= n || memcmp(s, "tmp", n) != 0)
		return 0;
	shell = s[n] == '.';
	n += shell;
	while (n < len && (isalnum((unsigned char)s[n]) || s[n] == '_'))
		n++;
	return n == TMP_NAME_PYTHON || (shell && n >= TMP_NAME_SHELL) ? n : 0;
}

/* How much of what stands at `s` varies from run to run: an address, a date, a decimal fraction, a
 * time of day, a duration, a long number. 0 when it is just text. `s` begins a word. */
static size_t varying(const char *s, size_t len)
{
	size_t digits, n;

	if (len > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		n = span(s + 2, len - 2, isxdigit);
		return n > 0 ? n + 2 : 0;
	}
	n = drawn(s, len);
	if (n > 0)
		return n;
	n = date(s, len);
	if (n == 10)
		return n;
	digits = n + span(s + n, len - n, isdigit);
	if (digits == 0)
		return 0;
	n = digits;
	while (n + 1 < len && (s[n] == '.' || s[n] == ':') && isdigit((unsigned char)s[n + 1]))
		n += 1 + span(s + n + 1, len - n - 1, isdigit);
	if (n > digits || digits >= LONG_NUMBER || unit_follows(s + n, len - n))
		return n;
	return 0;
}

/* Length of a UTF-8 character of several bytes at `s`; 0: it is none. */
static size_t multibyte(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;

	if (c < 0xc2 || c >= 0xf5 || n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Length of the word at `s` if it holds bytes that are no text: memory that was printed. What a
 * terminal is driven with is no such byte. */
static size_t garbage(const char *s, size_t len)
{
	bool found = false;
	size_t n = 0;

	while (n < len && s[n] != ' ' && s[n] != '\t') {
		size_t escape = escape_sequence(s + n, len - n);
		size_t wide = multibyte(s + n, len - n);

		found |= escape == 0 && wide == 0 &&
			 ((unsigned char)s[n] < ' ' || (unsigned char)s[n] >= 0x7f);
		n += escape > 0 ? escape : wide > 0 ? wide : 1;
	}
	return found ? n : 0;
}

/* How much of the line from `at` on differs from run to run. */
static size_t run_specific(const char *line, size_t at, size_t len)
{
	size_t n = varying(line + at, len - at);

	if (n == 0 && (at == 0 || isspace((unsigned char)line[at - 1])))
		n = garbage(line + at, len - at);
	if (n == 0 && at > 0 && line[at - 1] == '/')
		n = temporary(line + at, len - at);
	return n;
}

char *crumb_from_line(const char *line, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf kept = { 0 };
	AUTO(strbuf_deinit) struct strbuf printable = { 0 };
	bool in_word = false;

	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	/* A character of several bytes is kept whole. */
	for (size_t i = 0; i < len && (kept.len < CRUMB_MAX || (line[i] & 0xc0) == 0x80);) {
		size_t n = escape_sequence(line + i, len - i);

		if (n == 0 && !in_word) {
			n = run_specific(line, i, len);
			if (n > 0)
				strbuf_addc(&kept, '*');
		}
		if (n == 0) {
			strbuf_addc(&kept, line[i]);
			in_word = isalnum((unsigned char)line[i]) || line[i] == '_';
			n = 1;
		}
		i += n;
	}
	strbuf_add_printable(&printable, strbuf_str(&kept), kept.len);
	return strbuf_take(&printable);
}

char *crumb_mask_numbers(const char *crumb)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	while (*crumb != '\0') {
		size_t digits = span(crumb, strlen(crumb), isdigit);
		char shown = *crumb;

		if (digits > 0)
			shown = '*';
		strbuf_addc(&sb, shown);
		crumb += digits > 0 ? digits : 1;
	}
	return strbuf_take(&sb);
}
