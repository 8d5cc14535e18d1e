#include "base/path.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"

const char *path_below(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	if (len == 1) /* the root of all */
		return path[1] != '\0' ? path + 1 : ".";
	if (strncmp(dir, path, len) != 0)
		return NULL;
	if (path[len] == '\0')
		return ".";
	return path[len] == '/' ? path + len + 1 : NULL;
}

/* Length of the longest directory that both are in, without a slash at its end. */
static size_t shared_len(const char *a, const char *b)
{
	size_t shared = 0;

	for (size_t i = 0;; i++) {
		bool end_a = a[i] == '/' || a[i] == '\0', end_b = b[i] == '/' || b[i] == '\0';

		if (end_a && end_b)
			shared = i;
		if (a[i] != b[i] || a[i] == '\0')
			return shared;
	}
}

char *path_relative(const char *from, const char *to)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	size_t shared;

	/* So that "/" has no name of its own, just as every other directory above. */
	from = strcmp(from, "/") == 0 ? "" : from;
	to = strcmp(to, "/") == 0 ? "" : to;
	shared = shared_len(from, to);
	for (const char *at = from + shared; *at != '\0'; at++)
		if (*at == '/')
			strbuf_adds(&sb, sb.len > 0 ? "/.." : "..");
	if (to[shared] == '/')
		strbuf_addf(&sb, "%s%s", sb.len > 0 ? "/" : "", to + shared + 1);
	if (sb.len == 0)
		strbuf_addc(&sb, '.');
	return strbuf_take(&sb);
}

char *path_join(const char *dir, const char *path)
{
	return path[0] == '/' ? mem_strdup(path) : mem_printf("%s/%s", dir, path);
}

char *path_find_up(const char *dir, const char *name)
{
	AUTO(mem_freep) char *at = mem_strdup(dir);

	for (;;) {
		AUTO(mem_freep) char *entry = mem_printf("%s/%s", at, name);
		char *slash = strrchr(at, '/');

		if (access(entry, F_OK) == 0)
			return at[0] != '\0' ? TAKE(at) : mem_strdup("/");
		if (!slash)
			return NULL;
		*slash = '\0';
	}
}

static bool in_name(char c)
{
	/* Bytes of other alphabets count as letters. */
	return isalnum((unsigned char)c) || strchr("_-+.@~%", c) || (unsigned char)c >= 0x80;
}

char *path_rename(const char *text, const char *dir, const char *word)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	size_t len = strlen(dir);
	const char *at = text;

	/* Every slash mentions the root of all. */
	if (len < 2)
		return mem_strdup(text);
	while (*at != '\0') {
		bool starts = at == text || (!in_name(at[-1]) && at[-1] != '/');

		if (starts && strncmp(at, dir, len) == 0 &&
		    (at[len] == '\0' || !in_name(at[len]))) {
			strbuf_adds(&sb, word);
			at += len;
		} else {
			strbuf_addc(&sb, *at++);
		}
	}
	return strbuf_take(&sb);
}
