#include "base/vec.h"

#include <string.h>

/* By the number at an offset in each. */
static int by_number(const void *a, const void *b, void *offset)
{
	const uint64_t *x = (const void *)((const char *)a + *(size_t *)offset);
	const uint64_t *y = (const void *)((const char *)b + *(size_t *)offset);

	return *x < *y ? -1 : *x > *y;
}

void vec_sort_by(void *items, size_t count, size_t size, const uint64_t *first)
{
	size_t offset = (size_t)((const char *)first - (const char *)items);

	qsort_r(items, count, size, by_number, &offset);
}

void numbers_sort(uint64_t *numbers, size_t count)
{
	if (count > 1)
		vec_sort_by(numbers, count, sizeof(*numbers), numbers);
}

void strv_take(struct strv *strv, char *text)
{
	strv->items = mem_resize(strv->items, strv->count + 2, sizeof(strv->items[0]));
	strv->items[strv->count++] = text;
	strv->items[strv->count] = NULL;
}

void strv_add(struct strv *strv, const char *text)
{
	strv_take(strv, mem_strdup(text));
}

void strv_copy(struct strv *to, char *const *from)
{
	for (; from && *from; from++)
		strv_add(to, *from);
}

bool strv_has(const struct strv *strv, const char *text)
{
	return VEC_ANY(strv, item, strcmp(*item, text) == 0);
}

void strv_deinit(struct strv *strv)
{
	for (size_t i = 0; i < strv->count; i++)
		mem_free(strv->items[i]);
	mem_free(strv->items);
	*strv = (struct strv){ 0 };
}

void strv_setenv(struct strv *env, const char *name, const char *value)
{
	size_t len = strlen(name), kept = 0;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			mem_free(env->items[i]);
		else
			env->items[kept++] = env->items[i];
	}
	env->count = kept;
	if (env->items)
		env->items[kept] = NULL;
	if (value)
		strv_take(env, mem_printf("%s=%s", name, value));
}
