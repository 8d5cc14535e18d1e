#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static enum log_level current = LOG_NORMAL;

void log_set_level(enum log_level level)
{
	current = level;
}

bool log_shows(enum log_level level)
{
	return current >= level;
}

static void say(const char *mark, const char *fmt, va_list args)
{
	flockfile(stderr);
	(void)fprintf(stderr, "redhand: %s", mark);
	(void)vfprintf(stderr, fmt, args);
	(void)fputc('\n', stderr);
	funlockfile(stderr);
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
	(void)fprintf(stderr, "redhand: %s\n", err->message);
	if (err->remedy[0] != '\0')
		(void)fprintf(stderr, "redhand: try: %s\n", err->remedy);
}
