/*
 * Lines, for the growth series, for telling when a block was damaged, and as a chance to look at
 * what is watched. libc writes its streams with calls that no hook sees, so the lines are noticed
 * where the program makes them: a checkpoint is taken before the first byte of each line on stdout
 * and stderr, with the number of bytes that went before it on that stream. This is the place in the
 * program, also when the stream is written out much later.
 *
 * Nothing is recorded unless the plan asks for one of them; each call goes on unchanged.
 */
/* libc's own inline putchar() and vprintf() would stand before ours; clang then hides ours. */
#define __NO_INLINE__ 1
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/real.h"

/* Some are macros too. */
#undef putc
#undef putchar
#undef fputs_unlocked
#undef fwrite_unlocked

EXPORT int _IO_putc(int c, FILE *stream);
EXPORT int __printf_chk(int flag, const char *format, ...);
EXPORT int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
EXPORT int __vprintf_chk(int flag, const char *format, va_list list);
EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list);

/* The descriptor that a stream stands for, if lines on it are followed; else -1. */
static inline int followed(FILE *stream)
{
	if (likely(!agent_switch.lines))
		return -1;
	return stream == stdout ? STDOUT_FILENO : stream == stderr ? STDERR_FILENO : -1;
}

static __attribute__((noinline)) void line_begin(int fd, const void *bytes, size_t count)
{
	FEATURES_TELL(line.begin, fd, bytes, count);
}

static void bytes_begin(int fd, const void *bytes, size_t count)
{
	if (unlikely(fd >= 0) && count)
		line_begin(fd, bytes, count);
}

static void bytes_end(int fd, const void *bytes, size_t count)
{
	if (unlikely(fd >= 0) && count)
		FEATURES_TELL(line.end, fd, count, ((const char *)bytes)[count - 1] == '\n');
}

EXPORT int puts(const char *text)
{
	int fd = followed(stdout), r;
	size_t count = fd >= 0 ? strlen(text) : 0;

	if (unlikely(fd >= 0))
		line_begin(fd, text, count);
	r = real.puts(text);
	if (unlikely(fd >= 0) && r >= 0)
		FEATURES_TELL(line.end, fd, count + 1, true);
	return r;
}

static int fputs_noted(int (*behind)(const char *, FILE *), const char *text, FILE *stream)
{
	int fd = followed(stream), r;
	size_t count = fd >= 0 ? strlen(text) : 0;

	bytes_begin(fd, text, count);
	r = behind(text, stream);
	if (r >= 0)
		bytes_end(fd, text, count);
	return r;
}

EXPORT int fputs(const char *text, FILE *stream)
{
	return fputs_noted(real.fputs, text, stream);
}

EXPORT int fputs_unlocked(const char *text, FILE *stream)
{
	return fputs_noted(real.fputs_unlocked, text, stream);
}

EXPORT int fputc(int c, FILE *stream)
{
	int fd = followed(stream), r;
	char byte = (char)c;

	bytes_begin(fd, &byte, 1);
	r = real.fputc(c, stream);
	if (r != EOF)
		bytes_end(fd, &byte, 1);
	return r;
}

EXPORT __attribute__((alias("fputc"))) int putc(int c, FILE *stream);
EXPORT __attribute__((alias("fputc"), nonnull)) int _IO_putc(int c, FILE *stream);

EXPORT int putchar(int c)
{
	return fputc(c, stdout);
}

static size_t fwrite_noted(size_t (*behind)(const void *, size_t, size_t, FILE *),
			   const void *bytes, size_t size, size_t count, FILE *stream)
{
	int fd = followed(stream);
	size_t r;

	bytes_begin(fd, bytes, size * count);
	r = behind(bytes, size, count, stream);
	bytes_end(fd, bytes, size * r);
	return r;
}

EXPORT size_t fwrite(const void *bytes, size_t size, size_t count, FILE *stream)
{
	return fwrite_noted(real.fwrite, bytes, size, count, stream);
}

EXPORT size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *stream)
{
	return fwrite_noted(real.fwrite_unlocked, bytes, size, count, stream);
}

/* What a format makes is not known here, only how long it was. The text of the checkpoint is the
 * format, as far as it goes without a conversion. */
static void format_begin(int fd, const char *format)
{
	if (likely(fd < 0))
		return;
	line_begin(fd, format, strcspn(format, "%"));
}

static int format_end(int fd, const char *format, int r)
{
	size_t count;

	if (likely(fd < 0) || r <= 0)
		return r;
	count = strlen(format);
	FEATURES_TELL(line.end, fd, (size_t)r, count && format[count - 1] == '\n');
	return r;
}

static int vfprintf_noted(FILE *stream, const char *format, va_list list)
{
	int fd = followed(stream);

	format_begin(fd, format);
	return format_end(fd, format, real.vfprintf(stream, format, list));
}

static int vfprintf_chk_noted(FILE *stream, int flag, const char *format, va_list list)
{
	int fd = followed(stream);

	format_begin(fd, format);
	return format_end(fd, format, real.vfprintf_chk(stream, flag, format, list));
}

EXPORT int vfprintf(FILE *stream, const char *format, va_list list)
{
	return vfprintf_noted(stream, format, list);
}

EXPORT int vprintf(const char *format, va_list list)
{
	return vfprintf_noted(stdout, format, list);
}

EXPORT int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list)
{
	return vfprintf_chk_noted(stream, flag, format, list);
}

EXPORT int __vprintf_chk(int flag, const char *format, va_list list)
{
	return vfprintf_chk_noted(stdout, flag, format, list);
}

#define PRINT_HOOK(name, arguments, call) \
	EXPORT int name arguments         \
	{                                 \
		va_list list;             \
		int r;                    \
                                          \
		va_start(list, format);   \
		r = call;                 \
		va_end(list);             \
		return r;                 \
	}

PRINT_HOOK(fprintf, (FILE * stream, const char *format, ...), vfprintf_noted(stream, format, list))
PRINT_HOOK(printf, (const char *format, ...), vfprintf_noted(stdout, format, list))
PRINT_HOOK(__fprintf_chk, (FILE * stream, int flag, const char *format, ...),
	   vfprintf_chk_noted(stream, flag, format, list))
PRINT_HOOK(__printf_chk, (int flag, const char *format, ...),
	   vfprintf_chk_noted(stdout, flag, format, list))

static inline int followed_fd(int fd)
{
	return unlikely(agent_switch.lines) && (fd == STDOUT_FILENO || fd == STDERR_FILENO) ? fd
											    : -1;
}

static void write_begin(int fd, const void *bytes, size_t count)
{
	FEATURES_TELL(line.write, fd, bytes, count);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
	int line = followed_fd(fd);
	ssize_t r;

	if (unlikely(line >= 0) && count)
		write_begin(line, bytes, count);
	r = real.write(fd, bytes, count);
	if (r > 0)
		bytes_end(line, bytes, (size_t)r);
	return r;
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	int line = followed_fd(fd);
	ssize_t r;

	if (unlikely(line >= 0) && count > 0)
		write_begin(line, parts[0].iov_base, parts[0].iov_len);
	r = real.writev(fd, parts, count);
	/* Where it ended is not looked for: the next line begins a checkpoint in any case. */
	if (unlikely(line >= 0) && r > 0)
		FEATURES_TELL(line.end, line, (size_t)r, true);
	return r;
}
