#include "base/vec.h"

#include <string.h>

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
