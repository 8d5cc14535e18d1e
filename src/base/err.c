#include "base/err.h"

#include <stdio.h>
#include <string.h>

static void set_message(struct err *err, int code, const char *fmt, va_list args)
{
	err->code = code;
	err->remedy[0] = '\0';
	(void)vsnprintf(err->message, sizeof(err->message), fmt, args);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	va_start(args, fmt);
	set_message(err, code, fmt, args);
	va_end(args);
	return code;
}

int err_set_errno(struct err *err, int code, const char *fmt, ...)
{
	va_list args;
	size_t len;

	if (!err)
		return code;
	va_start(args, fmt);
	set_message(err, code, fmt, args);
	va_end(args);
	len = strlen(err->message);
	(void)snprintf(err->message + len, sizeof(err->message) - len, ": %s", strerror(-code));
	return code;
}

int err_set_remedy(struct err *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return 0;
	if (err->remedy[0] != '\0')
		return err->code;
	va_start(args, fmt);
	(void)vsnprintf(err->remedy, sizeof(err->remedy), fmt, args);
	va_end(args);
	return err->code;
}

int err_set_prefix(struct err *err, const char *fmt, ...)
{
	char before[256], rest[sizeof(err->message)];
	va_list args;

	if (!err)
		return 0;
	va_start(args, fmt);
	(void)vsnprintf(before, sizeof(before), fmt, args);
	va_end(args);
	memcpy(rest, err->message, sizeof(rest));
	(void)snprintf(err->message, sizeof(err->message), "%s: %.700s", before, rest);
	return err->code;
}
