#include "run/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum field_kind {
	FIELD_TEXT,  /* char *; empty is NULL */
	FIELD_LIST,  /* struct strv */
	FIELD_COUNT, /* uint64_t */
	FIELD_TRUTH, /* bool */
	FIELD_OTHER, /* told apart below, or nothing that shapes a trial */
};

/* Texts are written with their length, "arg 3:foo", numbers as they are, "jobs 4". */
static const struct field {
	const char *name;
	bool measured; /* with its length */
	enum field_kind kind;
	size_t offset;
} fields[] = {
#define FIELD(member) offsetof(struct series_settings, member)
	{ "command", true, FIELD_OTHER, 0 },
	{ "arg", true, FIELD_LIST, FIELD(program) },
	{ "cwd", true, FIELD_TEXT, FIELD(cwd) },
	{ "slot-env", true, FIELD_LIST, FIELD(env) },
	{ "stdin", true, FIELD_TEXT, FIELD(stdin_path) },
	{ "ignore", true, FIELD_LIST, FIELD(ignore) },
	{ "fail-on", true, FIELD_LIST, FIELD(fail_on) },
	{ "breadcrumb", true, FIELD_TEXT, FIELD(breadcrumb) },
	{ "observe", true, FIELD_OTHER, 0 },
	{ "arm", true, FIELD_LIST, FIELD(arms) },
	{ "victim", true, FIELD_OTHER, 0 },
	{ "jobs", false, FIELD_COUNT, FIELD(jobs) },
	{ "without-ids", false, FIELD_TRUTH, FIELD(without_ids) },
	{ "jobs-matter", false, FIELD_TRUTH, FIELD(jobs_matter) },
	{ "chaos", false, FIELD_COUNT, FIELD(chaos) },
	{ "chaos-seed", false, FIELD_TEXT, FIELD(chaos_seed) },
	{ "timeout", false, FIELD_COUNT, FIELD(timeout_ns) },
	{ "linger", false, FIELD_COUNT, FIELD(linger_ns) },
	{ "share-tmp", false, FIELD_TRUTH, FIELD(share_tmp) },
	{ "pty", false, FIELD_TRUTH, FIELD(pty) },
};

void series_settings_deinit(struct series_settings *s)
{
	strv_deinit(&s->program);
	mem_free(s->cwd);
	strv_deinit(&s->env);
	mem_free(s->stdin_path);
	strv_deinit(&s->ignore);
	strv_deinit(&s->fail_on);
	mem_free(s->breadcrumb);
	mem_free(s->chaos_seed);
	strv_deinit(&s->arms);
}

int observer_from_name(const char *name, enum observer *ret, struct err *err)
{
	for (unsigned int i = 0; observer_names[i]; i++) {
		if (strcmp(observer_names[i], name) == 0) {
			*ret = i;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "this redhand has no observer '%s'", name);
}

/* The value at `at`, and where the next line begins; NULL when it is cut off. */
static const char *take_value(const char *at, bool measured, char **ret)
{
	size_t len = strcspn(at, "\n");

	if (measured) {
		char *colon;
		unsigned long long said;

		if (!isdigit((unsigned char)*at))
			return NULL;
		said = strtoull(at, &colon, 10);
		if (*colon != ':' || said > strlen(colon + 1))
			return NULL;
		at = colon + 1;
		len = said;
	}
	if (at[len] != '\n')
		return NULL;
	*ret = mem_strndup(at, len);
	return at + len + 1;
}

static int store(struct series_settings *s, const struct field *field, const char *value,
		 struct err *err)
{
	void *slot = (char *)s + field->offset;

	switch (field->kind) {
	case FIELD_TEXT:
		if (value[0] != '\0' && !*(char **)slot)
			*(char **)slot = mem_strdup(value);
		break;
	case FIELD_LIST:
		strv_add(slot, value);
		break;
	case FIELD_COUNT:
		*(uint64_t *)slot = strtoull(value, NULL, 10);
		break;
	case FIELD_TRUTH:
		*(bool *)slot = value[0] == '1';
		break;
	case FIELD_OTHER:
		if (strcmp(field->name, "observe") == 0)
			return observer_from_name(value, &s->observer, err);
		break;
	}
	return 0;
}

static const struct field *find_field(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strlen(fields[i].name) == len && strncmp(fields[i].name, name, len) == 0)
			return &fields[i];
	return NULL;
}

char *series_settings_with(const char *text, const char *name, const char *line)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	bool placed = false;

	while (*text != '\0') {
		AUTO(mem_freep) char *value = NULL;
		size_t len = strcspn(text, " \n");
		const struct field *field = find_field(text, len);
		const char *next = text[len] == ' ' ? take_value(text + len + 1,
								 field && field->measured, &value)
						    : NULL;

		if (!next)
			break;
		if (strlen(name) == len && strncmp(name, text, len) == 0) {
			strbuf_adds(&sb, line);
			placed = true;
		} else {
			strbuf_add(&sb, text, (size_t)(next - text));
		}
		text = next;
	}
	if (!placed)
		strbuf_adds(&sb, line);
	return strbuf_take(&sb);
}

static int read_all(const char *text, struct series_settings *s, struct err *err)
{
	int r = 0;

	while (r == 0 && *text != '\0') {
		AUTO(mem_freep) char *value = NULL;
		size_t len = strcspn(text, " \n");
		const struct field *field = find_field(text, len);

		/* What other commands add of their own stands on one line. */
		text = text[len] == ' '
			       ? take_value(text + len + 1, field && field->measured, &value)
			       : NULL;
		if (!text)
			return err_set(err, -EUCLEAN, "the settings of a series cannot be read");
		if (field)
			r = store(s, field, value, err);
	}
	return r;
}

int series_settings_read(const char *text, struct series_settings *ret, struct err *err)
{
	struct series_settings s = { 0 };
	int r = read_all(text, &s, err);

	if (r == 0 && (s.program.count == 0 || s.jobs == 0 || s.jobs > 1024))
		r = err_set(err, -EUCLEAN, "the settings of a series are not whole");
	if (r < 0) {
		series_settings_deinit(&s);
		return r;
	}
	*ret = s;
	return 0;
}
