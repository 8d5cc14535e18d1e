#include "engine/investigation/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static char *printable(const char *text, size_t len)
{
	struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, len);
	return strbuf_take(&sb);
}

static void take(struct series_settings *s, const char *name, size_t name_len, const char *value,
		 size_t len)
{
	char **slot = NULL;

	if (name_len == 3 && memcmp(name, "arg", 3) == 0) {
		strv_take(&s->program, printable(value, len));
		return;
	}
	if (name_len == 3 && memcmp(name, "cwd", 3) == 0)
		slot = &s->cwd;
	else if (name_len == 7 && memcmp(name, "observe", 7) == 0)
		slot = &s->observer;
	if (slot && !*slot)
		*slot = printable(value, len);
}

void series_settings_read(const char *text, struct series_settings *ret)
{
	const char *end = text + strlen(text);

	while (text < end) {
		const char *space = memchr(text, ' ', (size_t)(end - text));
		const char *line_end = memchr(text, '\n', (size_t)(end - text));
		unsigned long long len;
		char *colon;

		if (!line_end)
			line_end = end;
		if (!space || space > line_end) {
			text = line_end + 1;
			continue;
		}
		len = strtoull(space + 1, &colon, 10);
		/* A value may hold newlines: its length says where it ends. */
		if (colon > space + 1 && *colon == ':' && len <= (size_t)(end - (colon + 1))) {
			take(ret, text, (size_t)(space - text), colon + 1, (size_t)len);
			text = colon + 1 + len + 1;
		} else {
			text = line_end + 1;
		}
	}
}

void series_settings_deinit(struct series_settings *settings)
{
	strv_deinit(&settings->program);
	mem_free(settings->cwd);
	mem_free(settings->observer);
}
