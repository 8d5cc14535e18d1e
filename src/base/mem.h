#pragma once

#include <stdarg.h>
#include <stddef.h>

#include "base/auto.h"

/*
 * Memory for the tool. These never return NULL: when memory runs out the
 * process ends with a sentence (docs/design/trials.md says why
 * that is safe here). Never linked into the agent.
 */
void *mem_alloc(size_t size); /* zeroed */
void *mem_resize(void *ptr, size_t count, size_t size);
char *mem_strdup(const char *text);
char *mem_strndup(const char *text, size_t len);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void mem_free(void *ptr);

/* Each of several, of any type. */
#define MEM_FREE(...) \
	mem_free_all((void *[]){ __VA_ARGS__ }, sizeof((void *[]){ __VA_ARGS__ }) / sizeof(void *))
void mem_free_all(void **list, size_t count);

/* For AUTO(mem_freep) on a pointer of any type. */
static inline void mem_freep(void *slot)
{
	mem_free(*(void **)slot);
}
