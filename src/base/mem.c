#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *ptr)
{
	if (!ptr) {
		(void)fputs("redhand: out of memory; the case keeps every finished trial\n",
			    stderr);
		abort();
	}
	return ptr;
}

void *mem_alloc(size_t size)
{
	return checked(calloc(1, size > 0 ? size : 1));
}

void *mem_resize(void *ptr, size_t count, size_t size)
{
	if (size > 0 && count > SIZE_MAX / size)
		return checked(NULL);
	return checked(realloc(ptr, count * size > 0 ? count * size : 1));
}

char *mem_strdup(const char *text)
{
	return checked(strdup(text));
}

char *mem_strndup(const char *text, size_t len)
{
	return checked(strndup(text, len));
}

char *mem_printf(const char *fmt, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	return checked(len < 0 ? NULL : text);
}

void mem_free(void *ptr)
{
	free(ptr);
}

void mem_free_all(void **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free(list[i]);
}
