#include "base/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"

static enum log_level current = LOG_NORMAL;
static struct err last; /* what was told */

void log_set_level(enum log_level level)
{
	current = level;
}

bool log_shows(enum log_level level)
{
	return current >= level;
}

/* Names of programs, files and tests are in what is said, and a terminal obeys what
 * is in them. Lines stay: some messages point at the place in the line before. */
static void put(const char *mark, const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_addf(&sb, "redhand: %s", mark);
	for (size_t len = strcspn(text, "\n"); text[len] != '\0'; len = strcspn(text, "\n")) {
		strbuf_add_printable(&sb, text, len);
		strbuf_addc(&sb, '\n');
		text += len + 1;
	}
	strbuf_add_printable(&sb, text, strlen(text));
	strbuf_addc(&sb, '\n');
	(void)fputs(strbuf_str(&sb), stderr);
}

static void say(const char *mark, const char *fmt, va_list args)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_vaddf(&sb, fmt, args);
	put(mark, strbuf_str(&sb));
}

void log_debug(const char *fmt, ...)
{
	va_list args;

	if (!log_shows(LOG_DEBUG))
		return;
	va_start(args, fmt);
	say("debug: ", fmt, args);
	va_end(args);
}

void log_note(const char *fmt, ...)
{
	va_list args;

	if (!log_shows(LOG_NORMAL))
		return;
	va_start(args, fmt);
	say("", fmt, args);
	va_end(args);
}

void log_warning(const char *fmt, ...)
{
	va_list args;

	if (!log_shows(LOG_NORMAL))
		return;
	va_start(args, fmt);
	say("warning: ", fmt, args);
	va_end(args);
}

void log_err(const struct err *err)
{
	last = *err;
	put("", err->message);
	if (err->remedy[0] != '\0')
		put("try: ", err->remedy);
}

const struct err *log_last_err(void)
{
	return &last;
}
