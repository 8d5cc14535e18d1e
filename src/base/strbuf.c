#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void strbuf_deinit(struct strbuf *sb)
{
	mem_free(sb->data);
	*sb = (struct strbuf){ 0 };
}

void strbuf_clear(struct strbuf *sb)
{
	sb->len = 0;
	if (sb->data)
		sb->data[0] = '\0';
}

char *strbuf_reserve(struct strbuf *sb, size_t len)
{
	size_t need = sb->len + len + 1;

	if (need > sb->room) {
		size_t room = sb->room > 0 ? sb->room : 64;

		while (room < need)
			room *= 2;
		sb->data = mem_resize(sb->data, room, 1);
		sb->room = room;
	}
	return sb->data + sb->len;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(strbuf_reserve(sb, len), bytes, len);
	else
		(void)strbuf_reserve(sb, 0);
	sb->len += len;
	sb->data[sb->len] = '\0';
}

void strbuf_adds(struct strbuf *sb, const char *text)
{
	strbuf_add(sb, text, strlen(text));
}

void strbuf_addc(struct strbuf *sb, char c)
{
	strbuf_add(sb, &c, 1);
}

void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args)
{
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return;
	(void)vsnprintf(strbuf_reserve(sb, (size_t)len), (size_t)len + 1, fmt, args);
	sb->len += (size_t)len;
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(sb, fmt, args);
	va_end(args);
}

const char *strbuf_str(const struct strbuf *sb)
{
	return sb->data ? sb->data : "";
}

char *strbuf_take(struct strbuf *sb)
{
	char *text = sb->data ? sb->data : mem_strdup("");

	*sb = (struct strbuf){ 0 };
	return text;
}

/* Length of the well-formed UTF-8 sequence at `s`, or 0. Overlong forms, surrogates and
 * values above U+10FFFF count as broken (Unicode 15, table 3-7). */
static size_t utf8_sequence(const unsigned char *s, size_t len)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		size_t len;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].first_low || s[0] > forms[i].first_high || len < forms[i].len)
			continue;
		if (s[1] < forms[i].second_low || s[1] > forms[i].second_high)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		/* C1 control characters are as dangerous to a terminal as C0. */
		if (s[0] == 0xc2 && s[1] < 0xa0)
			return 0;
		return forms[i].len;
	}
	return 0;
}

/* Characters that end a line (U+2028, U+2029) or let the text around them be shown in another order
 * than it has (U+202A to U+202E, U+2066 to U+2069): what is read would not be what is there. */
static bool misleads(const unsigned char *s)
{
	return s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
				(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
}

void strbuf_add_printable(struct strbuf *sb, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		size_t seq = 1;

		if (s[i] == '\t' || (s[i] >= 0x20 && s[i] < 0x7f)) {
			strbuf_addc(sb, (char)s[i]);
		} else if ((seq = utf8_sequence(s + i, len - i)) > 0 &&
			   !(seq == 3 && misleads(s + i))) {
			strbuf_add(sb, s + i, seq);
		} else {
			strbuf_addf(sb, "\\x%02x", s[i]);
			seq = 1;
		}
		i += seq;
	}
}
