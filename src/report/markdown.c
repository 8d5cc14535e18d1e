#include "report/markdown.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "report/text_parts.h"
#include "report/wording.h"

static bool word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* An underscore inside of a word is no markup, and names are full of them. */
static bool inside_word(const char *text, size_t at)
{
	return at > 0 && word(text[at - 1]) && word(text[at + 1]);
}

static void put_escaped(const char *text, size_t at, FILE *out)
{
	switch (text[at]) {
	case '<':
		put(out, "&lt;");
		return;
	case '>':
		put(out, "&gt;");
		return;
	case '&':
		put(out, "&amp;");
		return;
	case '@': /* would call somebody */
		put(out, "&#64;");
		return;
	case ':': /* would become a link */
		(void)fputs(text[at + 1] == '/' && text[at + 2] == '/' ? "&#58;" : ":", out);
		return;
	case '_':
		(void)fputs(inside_word(text, at) ? "_" : "\\_", out);
		return;
	default:
		if (text[at] != '\0' && strchr("\\`*[]|~#$", text[at]))
			(void)fputc('\\', out);
		(void)fputc(text[at], out);
	}
}

void md_text(const char *text, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strlen(text));
	for (size_t i = 0; i < sb.len; i++)
		put_escaped(sb.data, i, out);
}

static size_t longest_run(const char *text, char c)
{
	size_t longest = 0, run = 0;

	for (; *text != '\0'; text++) {
		run = *text == c ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void put_times(char c, size_t times, FILE *out)
{
	while (times-- > 0)
		(void)fputc(c, out);
}

/* A span's fence is longer than any run of backticks in it (CommonMark 6.1); a table's row is split
 * at every bar that has no backslash, in code spans, too (GFM 4.10). */
static void put_span(const char *text, bool cell, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	size_t ticks;

	strbuf_add_printable(&sb, text, strlen(text));
	ticks = longest_run(strbuf_str(&sb), '`') + 1;
	if (sb.len == 0)
		return;
	put_times('`', ticks, out);
	if (ticks > 1 || sb.data[0] == ' ')
		(void)fputc(' ', out);
	for (size_t i = 0; i < sb.len; i++) {
		if (cell && sb.data[i] == '|')
			(void)fputc('\\', out);
		(void)fputc(sb.data[i], out);
	}
	if (ticks > 1 || sb.data[sb.len - 1] == ' ')
		(void)fputc(' ', out);
	put_times('`', ticks, out);
}

void md_code(const char *text, FILE *out)
{
	put_span(text, false, out);
}

void md_cell_code(const char *text, FILE *out)
{
	put_span(text, true, out);
}

void md_fence(FILE *out)
{
	put(out, "```\n");
}

void md_fenced(const char *text, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strlen(text));
	/* Only a line of nothing but backticks ends the block. */
	if (strspn(strbuf_str(&sb), " \t`") == sb.len)
		(void)fputc('.', out);
	put(out, "%s\n", strbuf_str(&sb));
}

void md_said(const struct said *said, FILE *out)
{
	AUTO(mem_freep) char *text = words_of(said);

	if (text)
		md_text(text, out);
}
