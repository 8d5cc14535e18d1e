/*
 * ctest. Every test is a process of its own, and ctest has its own order; so the commands are
 * taken from `ctest --show-only=json-v1` and run one after another by a shell script, in the
 * order that is wanted.
 */
#include <errno.h>
#include <string.h>

#include "base/cstr.h"
#include "base/words.h"
#include "redhand_ctest_sh.h"
#include "run/framework/json_reader.h"
#include "run/framework/listing.h"

#define SCRIPT "run-tests.sh"

struct ctest {
	struct strv lines;    /* per test: its call of run(), without the number */
	struct strv commands; /* per test: its command as one would type it */
	struct strv programs; /* per test: the program */
};

static bool recognises(char *const *program, const char *cwd)
{
	for (; *program; program++)
		if (strcmp(cstr_base(*program), "ctest") == 0)
			return true;
	return false;
}

static const struct json_value *property(const struct json_value *test, const char *name)
{
	const struct json_value *properties = json_get(test, "properties");

	if (properties)
		VEC_FOREACH (&properties->items, item) {
			const char *is = json_get_text(item, "name");

			if (is && strcmp(is, name) == 0)
				return json_get(item, "value");
		}
	return NULL;
}

static const char *text_or(const struct json_value *value, const char *otherwise)
{
	return value && value->text ? value->text : otherwise;
}

static void add_words(struct strbuf *sb, const struct json_value *list)
{
	VEC_FOREACH (&list->items, word) {
		strbuf_addc(sb, ' ');
		words_quote(sb, text_or(word, ""));
	}
}

static void add_test(struct framework *f, const struct json_value *test)
{
	const struct json_value *command = json_get(test, "command");
	const struct json_value *environment = property(test, "ENVIRONMENT");
	const struct json_value *will_fail = property(test, "WILL_FAIL");
	const struct json_value *skip = property(test, "SKIP_RETURN_CODE");
	const struct json_value *dir = property(test, "WORKING_DIRECTORY");
	const struct json_value *disabled = property(test, "DISABLED");
	const char *name = json_get_text(test, "name");
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(strbuf_deinit) struct strbuf typed = { 0 };
	struct ctest *own = f->own;

	if (!name || !command || command->items.count == 0 || (disabled && disabled->truth))
		return;
	words_quote(&sb, name);
	strbuf_addc(&sb, ' ');
	words_quote(&sb, text_or(dir, "."));
	strbuf_addf(&sb, " %d ", will_fail && will_fail->truth);
	words_quote(&sb, text_or(skip, ""));
	if (environment && environment->items.count > 0) {
		strbuf_adds(&sb, " env");
		add_words(&sb, environment);
	}
	add_words(&sb, command);
	add_words(&typed, command);
	strv_add(&own->programs, text_or(command->items.items, ""));
	strv_add(&own->commands, strbuf_str(&typed) + 1); /* without the space */
	strv_add(&f->items, name);
	strv_take(&own->lines, strbuf_take(&sb));
}

static int list(struct framework *f, struct err *err)
{
	AUTO(json_value_deinit) struct json_value document = { 0 };
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	const struct json_value *tests;
	int r = listing_open(&l, err);

	f->own = mem_alloc(sizeof(struct ctest));
	for (char *const *word = f->setup.program; *word; word++)
		strv_take(&argv, trial_substitute(*word, 0, (struct trial_number){ .value = 1 }));
	strv_add(&argv, "--show-only=json-v1");
	if (r == 0)
		r = listing_run(&l, f, &argv, NULL, err);
	if (r < 0)
		return r;
	r = json_read(strchr(l.out, '{') ? strchr(l.out, '{') : l.out, &document, err);
	if (r < 0 || l.status != 0)
		return err_set(err, -EINVAL, "ctest could not list its tests (status %d): %s",
			       l.status, l.talk);
	tests = json_get(&document, "tests");
	if (tests)
		VEC_FOREACH (&tests->items, test)
			add_test(f, test);
	return 0;
}

static void file(const struct framework *f, const struct framework_list *tests, struct strbuf *ret)
{
	const struct ctest *own = f->own;

	strbuf_adds(ret, redhand_ctest_sh);
	for (size_t i = 0; i < tests->count; i++)
		strbuf_addf(ret, "run %u %s\n", tests->items[i], own->lines.items[tests->items[i]]);
	strbuf_adds(ret, "finish\n");
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	AUTO(strbuf_deinit) struct strbuf script = { 0 };

	file(f, tests, &script);
	framework_add_file(job, SCRIPT, strbuf_str(&script));
	strv_add(&job->argv, "/bin/sh");
	strv_take(&job->argv, mem_printf("%s/" SCRIPT, dir));
	strv_take(&job->env, mem_printf("REDHAND_MARKS=%s/" TRIAL_MARKS, dir));
}

static void plain(const struct framework *f, const struct framework_list *tests, const char *path,
		  struct strv *argv, struct strv *env)
{
	strv_add(argv, "/bin/sh");
	strv_add(argv, path);
}

static void advise(const struct framework *f, uint32_t victim, struct said *ret)
{
	const struct ctest *own = f->own;

	if (framework_is_gtest(own->programs.items[victim]))
		SAY(ret, "advice:look-inside", said_text(own->commands.items[victim]));
}

static void deinit(struct framework *f)
{
	struct ctest *own = f->own;

	if (!own)
		return;
	strv_deinit(&own->lines);
	strv_deinit(&own->commands);
	strv_deinit(&own->programs);
	mem_free(own);
}

const struct framework_ops framework_ctest = {
	.name = "ctest",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS | FRAMEWORK_ORDERED | FRAMEWORK_MARKS,
	.recognises = recognises,
	.list = list,
	.build = build,
	.plain = plain,
	.file = file,
	.advise = advise,
	.deinit = deinit,
};
