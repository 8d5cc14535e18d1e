#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* Texts that may be missing: NULL is as good as any. */
static inline bool cstr_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The same, and there is one. */
static inline bool cstr_known_same(const char *a, const char *b)
{
	return a && cstr_same(a, b);
}

static inline bool cstr_among(const char *text, const char *const *names, size_t count)
{
	for (size_t i = 0; text && i < count; i++)
		if (strcmp(text, names[i]) == 0)
			return true;
	return false;
}

static inline char *cstr_dup(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

/* Behind the last '/'. */
static inline const char *cstr_base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}
