#include "studies/sentinel/sentinel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/words.h"
#include "model/chaos_knobs.h"

#define VERSION 1

/* A sentinel is small; whoever puts more there means something else. */
#define FILE_MAX (4u << 20)

enum field_kind {
	FIELD_TEXT,  /* char *; left out when NULL */
	FIELD_WORDS, /* struct strv, all on one line */
	FIELD_LIST,  /* struct strv, a line each */
	FIELD_COUNT, /* uint64_t */
	FIELD_INT,   /* int */
	FIELD_TRUTH, /* bool; left out when false */
};

/* In the order in which they are written. */
static const struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
} fields[] = {
#define FIELD(member) offsetof(struct sentinel, member)
	{ "made", FIELD_TEXT, FIELD(made) },
	{ "commit", FIELD_TEXT, FIELD(commit) },
	{ "redhand", FIELD_TEXT, FIELD(redhand) },
	{ "root", FIELD_TEXT, FIELD(root) },
	{ "command", FIELD_WORDS, FIELD(trial.program) },
	{ "cwd", FIELD_TEXT, FIELD(trial.cwd) },
	{ "env", FIELD_LIST, FIELD(trial.env) },
	{ "stdin", FIELD_TEXT, FIELD(trial.stdin_path) },
	{ "jobs", FIELD_COUNT, FIELD(trial.jobs) },
	{ "timeout-ns", FIELD_COUNT, FIELD(trial.timeout_ns) },
	{ "linger-ns", FIELD_COUNT, FIELD(trial.linger_ns) },
	{ "chaos-seed", FIELD_TEXT, FIELD(trial.chaos_seed) },
	{ "share-tmp", FIELD_TRUTH, FIELD(trial.share_tmp) },
	{ "pty", FIELD_TRUTH, FIELD(trial.pty) },
	{ "ignore", FIELD_LIST, FIELD(trial.ignore) },
	{ "fail-on", FIELD_LIST, FIELD(trial.fail_on) },
	{ "breadcrumb", FIELD_TEXT, FIELD(trial.breadcrumb) },
	{ "failed", FIELD_COUNT, FIELD(failed) },
	{ "trials", FIELD_COUNT, FIELD(trials) },
	{ "signal", FIELD_INT, FIELD(signature.signal) },
	{ "exit", FIELD_INT, FIELD(signature.exit_status) },
	{ "child", FIELD_TRUTH, FIELD(signature.stray) },
	{ "test", FIELD_TEXT, FIELD(signature.test) },
	{ "crumb", FIELD_TEXT, FIELD(signature.crumb) },
	{ "fault", FIELD_TEXT, FIELD(signature.fault) },
	{ "site", FIELD_TEXT, FIELD(signature.site) },
	{ "known", FIELD_LIST, FIELD(known) },
	{ "file", FIELD_LIST, FIELD(files) },
	{ "own-file", FIELD_LIST, FIELD(own) },
	{ "minimal-test", FIELD_LIST, FIELD(tests) },
};

void sentinel_deinit(struct sentinel *s)
{
	series_settings_deinit(&s->trial);
	mem_free(s->root);
	strv_deinit(&s->files);
	strv_deinit(&s->own);
	strv_deinit(&s->tests);
	signature_deinit(&s->signature);
	strv_deinit(&s->known);
	MEM_FREE(s->made, s->commit, s->redhand);
}

static void write_line(const char *name, char *const *words, size_t count, struct strbuf *ret)
{
	strbuf_adds(ret, name);
	for (size_t i = 0; i < count; i++) {
		strbuf_addc(ret, ' ');
		words_quote(ret, words[i]);
	}
	strbuf_addc(ret, '\n');
}

static void write_field(const struct sentinel *s, const struct field *field, struct strbuf *ret)
{
	const void *slot = (const char *)s + field->offset;
	const struct strv *list = slot;
	char *const *text = slot;

	switch (field->kind) {
	case FIELD_TEXT:
		if (*text)
			write_line(field->name, text, 1, ret);
		break;
	case FIELD_WORDS:
		write_line(field->name, list->items, list->count, ret);
		break;
	case FIELD_LIST:
		for (size_t i = 0; i < list->count; i++)
			write_line(field->name, &list->items[i], 1, ret);
		break;
	case FIELD_COUNT:
		strbuf_addf(ret, "%s %llu\n", field->name,
			    (unsigned long long)*(const uint64_t *)slot);
		break;
	case FIELD_INT:
		strbuf_addf(ret, "%s %d\n", field->name, *(const int *)slot);
		break;
	case FIELD_TRUTH:
		if (*(const bool *)slot)
			strbuf_addf(ret, "%s yes\n", field->name);
		break;
	}
}

void sentinel_write(const struct sentinel *s, struct strbuf *ret)
{
	strbuf_adds(ret, "# A redhand sentinel: see README.md\n");
	strbuf_addf(ret, "sentinel %d\n", VERSION);
	strbuf_addf(ret, "# Expected: %s [%s]\n", s->signature.summary, s->signature.id);
	strbuf_addf(ret, "kind %s\nobserve %s\n", failure_kind_name(s->signature.kind),
		    observer_names[s->trial.observer]);
	if (s->trial.chaos != 0) {
		strbuf_adds(ret, "chaos ");
		chaos_list((unsigned int)s->trial.chaos, ret);
		strbuf_addc(ret, '\n');
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		write_field(s, &fields[i], ret);
}

/* Where the line at `text` ends: a newline inside quotes does not. */
static size_t line_len(const char *text)
{
	char quote = '\0';
	size_t i = 0;

	for (; text[i] != '\0' && (text[i] != '\n' || quote != '\0'); i++) {
		if (text[i] == '\\' && quote != '\'' && text[i + 1] != '\0')
			i++;
		else if (quote != '\0' && text[i] == quote)
			quote = '\0';
		else if (quote != '\0')
			continue;
		else if (text[i] == '\'' || text[i] == '"')
			quote = text[i];
	}
	return i;
}

static int read_number(const char *word, bool negative_too, long long *ret, struct err *err)
{
	char *end;

	errno = 0;
	*ret = strtoll(word, &end, 10);
	if (errno != 0 || end == word || *end != '\0' || (*ret < 0 && !negative_too))
		return err_set(err, -EINVAL, "wants a number, not '%s'", word);
	return 0;
}

static int read_field(struct sentinel *s, const struct field *field, const struct strv *words,
		      struct err *err)
{
	void *slot = (char *)s + field->offset;
	const char *value = words->items[1];
	long long number = 0;
	int r = 0;

	if (field->kind != FIELD_WORDS && words->count != 2)
		return err_set(err, -EINVAL, "wants one word, not %zu", words->count - 1);
	if (field->kind == FIELD_COUNT || field->kind == FIELD_INT)
		r = read_number(value, field->kind == FIELD_INT, &number, err);
	if (r < 0)
		return r;
	switch (field->kind) {
	case FIELD_TEXT:
		mem_free(*(char **)slot);
		*(char **)slot = mem_strdup(value);
		break;
	case FIELD_WORDS:
	case FIELD_LIST:
		for (size_t i = 1; i < words->count; i++)
			strv_add(slot, words->items[i]);
		break;
	case FIELD_COUNT:
		*(uint64_t *)slot = (uint64_t)number;
		break;
	case FIELD_INT:
		*(int *)slot = (int)number;
		break;
	case FIELD_TRUTH:
		*(bool *)slot = strcmp(value, "yes") == 0;
		break;
	}
	return 0;
}

static int read_kind(struct sentinel *s, const char *word, struct err *err)
{
	for (unsigned int kind = 0; kind < FAILURE_KINDS; kind++) {
		if (strcmp(failure_kind_name(kind), word) == 0) {
			s->signature.kind = kind;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "there is no kind of failure '%s'", word);
}

static int read_chaos(struct sentinel *s, const char *word, struct err *err)
{
	unsigned int knobs = 0;
	int r = chaos_parse(word, &knobs, err);

	s->trial.chaos = knobs;
	return r < 0 ? err_set_prefix(err, "chaos") : 0;
}

static int read_line(struct sentinel *s, const struct strv *words, struct err *err)
{
	const char *name = words->items[0];
	long long version;
	int r;

	if (words->count < 2)
		return err_set(err, -EINVAL, "nothing follows '%s'", name);
	if (strcmp(name, "kind") == 0)
		return read_kind(s, words->items[1], err);
	if (strcmp(name, "observe") == 0)
		return observer_from_name(words->items[1], &s->trial.observer, err);
	if (strcmp(name, "chaos") == 0)
		return read_chaos(s, words->items[1], err);
	if (strcmp(name, "sentinel") == 0) {
		r = read_number(words->items[1], false, &version, err);
		if (r == 0 && version > VERSION)
			return err_set(err, -EPROTO, "it has version %lld, this redhand reads %d",
				       version, VERSION);
		return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (strcmp(fields[i].name, name) != 0)
			continue;
		r = read_field(s, &fields[i], words, err);
		return r < 0 ? err_set_prefix(err, "%s", name) : 0;
	}
	return err_set(err, -EINVAL, "there is no keyword '%s'", name);
}

static int read_all(const char *text, struct sentinel *s, struct err *err)
{
	int r = 0;

	while (r == 0 && *text != '\0') {
		AUTO(strv_deinit) struct strv words = { 0 };
		bool comment = text[0] == '#';
		size_t len = comment ? strcspn(text, "\n") : line_len(text);
		AUTO(mem_freep) char *line = mem_strndup(text, len);

		if (!comment)
			r = words_split(line, &words, err);
		if (r == 0 && words.count > 0)
			r = read_line(s, &words, err);
		text += len + (text[len] == '\n');
	}
	return r;
}

/* A relative name without a way up. */
static bool stays_below(const char *name)
{
	if (name[0] == '/' || name[0] == '\0')
		return false;
	for (; *name != '\0'; name += strcspn(name, "/"), name += *name == '/')
		if (strncmp(name, "..", 2) == 0 && (name[2] == '/' || name[2] == '\0'))
			return false;
	return true;
}

static int check(const struct sentinel *s, struct err *err)
{
	if (s->trial.program.count == 0)
		return err_set(err, -EINVAL, "it has no command");
	if (s->trial.jobs < 1 || s->trial.jobs > 1024)
		return err_set(err, -EINVAL, "jobs must be from 1 to 1024");
	if (s->failed == 0 || s->failed > s->trials)
		return err_set(err, -EINVAL, "it has no rate: failed must be from 1 to trials");
	for (size_t i = 0; i < s->files.count; i++)
		if (!stays_below(s->files.items[i]))
			return err_set(err, -EINVAL, "file '%s' leads out of it",
				       s->files.items[i]);
	for (size_t i = 0; i < s->own.count; i++)
		if (!stays_below(s->own.items[i]))
			return err_set(err, -EINVAL, "own-file '%s' leads out of it",
				       s->own.items[i]);
	return 0;
}

int sentinel_read(const char *text, struct sentinel *ret, struct err *err)
{
	struct sentinel s = { .signature = { .exit_status = -1 } };
	int r = read_all(text, &s, err);

	if (r == 0)
		r = check(&s, err);
	if (r < 0) {
		sentinel_deinit(&s);
		return r;
	}
	signature_seal(&s.signature);
	*ret = s;
	return 0;
}

int sentinel_open(const char *dir, struct sentinel *ret, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/" SENTINEL_FILE, dir);
	AUTO(mem_freep) char *text = NULL;
	size_t len = 0;
	int r = file_read_plain(path, FILE_MAX, &text, &len, NULL);

	if (r == -ENOENT || r == -ENOTDIR) {
		(void)err_set(err, -ENOENT, "there is no sentinel in '%s'", dir);
		return err_set_remedy(err,
				      "redhand sentinel create makes one, redhand sentinel run DIR "
				      "names its directory");
	}
	if (r < 0)
		return err_set_errno(err, r, "cannot read '%s'", path);
	r = strlen(text) == len ? sentinel_read(text, ret, err)
				: err_set(err, -EINVAL, "it is no text");
	return r < 0 ? err_set_prefix(err, "'%s'", path) : 0;
}
