#include "report/screen.h"

#include <stdarg.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/text_parts.h"

#define ELLIPSIS "…" /* one column */

/* Columns that a text takes. A byte that continues a character takes none. */
static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

/* How many bytes of `text` go on one line of `room` columns: up to the last space that fits, or,
 * in a word that is too long, as many as fit. */
static size_t line_len(const char *text, size_t room)
{
	size_t columns = 0, at = 0, space = 0;

	for (; text[at] != '\0'; at++) {
		if (((unsigned char)text[at] & 0xc0) != 0x80 && columns++ == room)
			return space > 0 ? space : at;
		if (text[at] == ' ')
			space = at;
	}
	return at;
}

size_t screen_room(const struct screen *screen)
{
	return screen->columns - SCREEN_LABEL;
}

void screen_paint(const struct screen *screen, const char *code)
{
	if (screen->colour)
		(void)fputs(code, screen->out);
}

static void put_label(const struct screen *screen, const char *label)
{
	screen_paint(screen, "\033[2m");
	put(screen->out, "%-*.*s ", SCREEN_LABEL - 1, SCREEN_LABEL - 1, label);
	screen_paint(screen, "\033[0m");
}

void screen_row(const struct screen *screen, const char *label, const char *text, size_t lines)
{
	size_t room = screen_room(screen);
	bool first = true;

	while (*text != '\0' || first) {
		size_t len = line_len(text, room);
		bool last = lines > 0 && --lines == 0 && text[len] != '\0';

		if (last)
			len = line_len(text, room - 2);
		put_label(screen, first ? label : "");
		put(screen->out, "%.*s%s\n", (int)len, text, last ? " " ELLIPSIS : "");
		if (last)
			return;
		text += len;
		text += *text == ' ';
		first = false;
	}
}

void screen_rowf(const struct screen *screen, const char *label, size_t lines, const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&sb, fmt, args);
	va_end(args);
	screen_row(screen, label, strbuf_str(&sb), lines);
}

void screen_names(const struct screen *screen, const char *label, const char *text, size_t lines)
{
	size_t room = screen_room(screen);
	const char *end = text;

	for (const char *at = text; *at != '\0'; at = end) {
		bool first = at == text;

		/* One at least, and as many more as fit. */
		for (const char *next = at; *next != '\0';) {
			AUTO(mem_freep) char *line = NULL;
			const char *comma = strstr(next, ", ");

			next = comma ? comma + 2 : next + strlen(next);
			line = mem_strndup(at, (size_t)(next - at) - (comma ? 1 : 0));
			if (end != at && columns_of(line) > room)
				break;
			end = next;
		}
		put_label(screen, first ? label : "");
		if (lines > 0 && --lines == 0 && *end != '\0') {
			(void)fputs(ELLIPSIS "\n", screen->out);
			return;
		}
		put(screen->out, "%.*s\n", (int)(end - at - (*end != '\0' ? 1 : 0)), at);
	}
}

/* Bytes of the first word, as a shell reads it: quotes keep it together. */
static size_t word_len(const char *text)
{
	size_t at = 0;

	for (char quote = '\0'; text[at] != '\0' && (quote != '\0' || text[at] != ' '); at++) {
		/* In $'…' a backslash hides a quote; in '…' it hides nothing. */
		bool spelled = quote == '$' || (quote == '\0' && text[at] == '\\');

		if (spelled && text[at] == '\\' && text[at + 1] != '\0')
			at++;
		else if (text[at] == '\'' && quote == '\0')
			quote = at > 0 && text[at - 1] == '$' ? '$' : '\'';
		else if (text[at] == '\'')
			quote = '\0';
	}
	return at;
}

/* How many bytes of the command go on one line: whole words, one at least. */
static size_t command_len(const char *text, size_t room)
{
	size_t at = word_len(text);

	while (text[at] != '\0') {
		size_t next = at + 1 + word_len(text + at + 1);
		AUTO(mem_freep) char *line = mem_strndup(text, next);

		/* With room for the backslash. */
		if (columns_of(line) + (text[next] != '\0' ? 2 : 0) > room)
			break;
		at = next;
	}
	return at;
}

bool screen_command(const struct screen *screen, const char *label, const char *command,
		    size_t lines)
{
	size_t room = screen_room(screen), needed = 0;

	for (const char *at = command; *at != '\0'; at += *at == ' ') {
		at += command_len(at, room);
		needed++;
	}
	if (needed > lines)
		return false;
	for (const char *at = command; *at != '\0'; at += *at == ' ') {
		size_t len = command_len(at, room);

		put_label(screen, at == command ? label : "");
		put(screen->out, "%.*s%s\n", (int)len, at, at[len] != '\0' ? " \\" : "");
		at += len;
	}
	return true;
}

/* Without what stands in outermost <…> and, at the end, (…): Vec<…>::push(…). */
char *screen_name(const char *name)
{
	struct strbuf sb = { 0 };
	unsigned int depth = 0;

	for (const char *at = name; *at != '\0'; at++) {
		bool opens = *at == '<' || *at == '(', closes = *at == '>' || *at == ')';

		/* operator<, operator-> and the like open nothing. */
		if ((opens || closes) && sb.len >= 8 && depth == 0 &&
		    memmem(strbuf_str(&sb) + sb.len - 8, 8, "operator", 8))
			opens = closes = false;
		if (closes && depth > 0 && --depth == 0)
			strbuf_adds(&sb, at[-1] == '(' || at[-1] == '<' ? "" : ELLIPSIS);
		if (depth == 0)
			strbuf_addc(&sb, *at);
		depth += opens;
	}
	return strbuf_take(&sb);
}

/* The end of a path, from a slash on, in at most so many columns; its last part whatever happens.
 */
static const char *path_end(const char *path, size_t room)
{
	const char *end = strrchr(path, '/');

	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
		if (columns_of(at) <= room)
			return at;
	return end ? end : path;
}

void screen_frame(const struct frame *frame, size_t room, struct strbuf *sb)
{
	AUTO(mem_freep) char *name = NULL;
	AUTO(mem_freep) char *file = NULL;
	struct frame shown = *frame;
	struct strbuf whole = { 0 };
	size_t place;

	frame_describe(frame, &whole);
	if (columns_of(strbuf_str(&whole)) <= room || !frame->function) {
		strbuf_adds(sb, strbuf_str(&whole));
		strbuf_deinit(&whole);
		return;
	}
	/* First the path is made shorter, then the name; a place without its line is none. */
	name = screen_name(frame->function);
	place = columns_of(strbuf_str(&whole)) - columns_of(frame->function);
	strbuf_deinit(&whole);
	if (frame->file && frame->line > 0) {
		size_t others = place - columns_of(frame->file) + 1;
		size_t taken = others + columns_of(name);
		const char *end = path_end(frame->file, room > taken ? room - taken : 0);

		file = mem_printf(ELLIPSIS "%s", end);
		if (end != frame->file) {
			shown.file = file;
			place = others + columns_of(end);
		}
	}
	if (columns_of(frame->function) + place <= room) {
		mem_free(name);
		name = mem_strdup(frame->function);
	}
	if (columns_of(name) + place > room && room > place + 8) {
		size_t keep = 0;

		for (size_t left = room - place - 1; name[keep] != '\0'; keep++)
			if (((unsigned char)name[keep] & 0xc0) != 0x80 && left-- == 0)
				break;
		name[keep] = '\0';
		shown.function = mem_printf("%s" ELLIPSIS, name);
		mem_free(name);
		name = shown.function;
	}
	shown.function = name;
	frame_describe(&shown, sb);
}
