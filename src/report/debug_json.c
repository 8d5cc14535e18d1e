/* What `redhand debug` prints, line by line, as JSON. */
#include "report/report_debug.h"

#include <string.h>

#include "report/json.h"

/* One word that ends before any of `ends`; *at moves behind it. */
static json_t *word(const char **at, const char *ends)
{
	size_t len = strcspn(*at, ends);
	json_t *text = json_stringn(*at, len);

	*at += len;
	return text;
}

/* TYPE name=value name="text"…; what is no pair is left out. */
static json_t *line_object(const char *at)
{
	json_t *object = json_object();

	json_object_set_new(object, "type", word(&at, " \n"));
	while (*at == ' ') {
		const char *name = ++at;
		size_t len = strcspn(at, "= \n");
		char key[64];

		at += len;
		if (*at != '=' || len >= sizeof(key))
			continue;
		memcpy(key, name, len);
		key[len] = '\0';
		at++;
		if (*at != '"') {
			json_object_set_new(object, key, word(&at, " \n"));
			continue;
		}
		at++;
		json_object_set_new(object, key, word(&at, "\"\n"));
		at += *at == '"';
	}
	return object;
}

void report_dump_json(const char *lines, FILE *out)
{
	json_t *list = json_array();

	for (const char *at = lines; *at != '\0'; at = strchr(at, '\n') + 1)
		(void)json_array_append_new(list, line_object(at));
	json_print(OBJECT(KEY("schema", "redhand/debug/1"), KEY("lines", list)), out);
}
