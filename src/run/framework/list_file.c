/*
 * Any program that takes names of tests: the list comes from a file, and the command says where
 * the names go.
 *
 *	{tests}       one argument per test (as an argument of its own, or within one: per word)
 *	{tests:SEP}   all tests in one argument, SEP between them
 *	{tests_file}  path of a file with one test a line
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "run/framework/listing.h"

#define LIST_MAX (64u << 20)
#define FILE_NAME "tests.txt"

static bool has_place(const char *word)
{
	return strstr(word, "{tests}") || strstr(word, "{tests_file}") || strstr(word, "{tests:");
}

static bool recognises(char *const *program, const char *cwd)
{
	for (; *program; program++)
		if (has_place(*program))
			return true;
	return false;
}

static int add_line(void *ctx, char *line, struct err *err)
{
	struct framework *f = ctx;
	size_t len = strlen(line);

	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		line[--len] = '\0';
	if (len > 0 && line[0] != '#')
		strv_add(&f->items, line);
	return 0;
}

static int list(struct framework *f, struct err *err)
{
	AUTO(mem_freep) char *text = NULL;
	size_t len;
	int r;

	if (!recognises(f->setup.program, NULL)) {
		(void)err_set(err, -EINVAL, "the command has no place for the tests");
		return err_set_remedy(err, "write {tests} or {tests_file} where they go, as in -- "
					   "./run_tests {tests}");
	}
	if (!f->setup.tests_path) {
		(void)err_set(err, -EINVAL, "there is no list of tests");
		return err_set_remedy(err,
				      "--tests FILE, one name a line, in the order in which they "
				      "run");
	}
	r = file_read(f->setup.tests_path, LIST_MAX, &text, &len, err);
	if (r < 0)
		return err_set_prefix(err, "--tests");
	if (strlen(text) != len)
		return err_set(err, -EINVAL, "--tests '%s' is not a text file",
			       f->setup.tests_path);
	return listing_lines(text, add_line, f, err);
}

struct filling {
	const struct framework *f;
	const struct framework_list *list;
	const char *path; /* of the file with the tests */
	bool raw;	  /* {slot} and {trial} stay as they are */
	struct trial_job *job;
};

static void add_filled(const struct filling *fill, const char *before, const char *after,
		       const char *text)
{
	AUTO(mem_freep) char *head = NULL;
	AUTO(mem_freep) char *tail = NULL;

	if (fill->raw) {
		strv_take(&fill->job->argv, mem_printf("%s%s%s", before, text, after));
		return;
	}
	head = trial_substitute(before, fill->job->slot, fill->job->number);
	tail = trial_substitute(after, fill->job->slot, fill->job->number);
	strv_take(&fill->job->argv, mem_printf("%s%s%s", head, text, tail));
}

static void fill_word(const struct filling *fill, const char *word)
{
	static const char file[] = "{tests_file}", each[] = "{tests}", joined[] = "{tests:";
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(mem_freep) char *before = NULL;
	AUTO(mem_freep) char *separator = NULL;
	const char *at, *end;

	if ((at = strstr(word, file)) != NULL) {
		before = mem_strndup(word, (size_t)(at - word));
		add_filled(fill, before, at + strlen(file), fill->path);
	} else if ((at = strstr(word, each)) != NULL) {
		before = mem_strndup(word, (size_t)(at - word));
		for (size_t i = 0; i < fill->list->count; i++)
			add_filled(fill, before, at + strlen(each),
				   fill->f->items.items[fill->list->items[i]]);
	} else if ((at = strstr(word, joined)) != NULL && (end = strchr(at, '}')) != NULL) {
		before = mem_strndup(word, (size_t)(at - word));
		at += strlen(joined);
		separator = mem_strndup(at, (size_t)(end - at));
		for (size_t i = 0; i < fill->list->count; i++)
			strbuf_addf(&sb, "%s%s", i > 0 ? separator : "",
				    fill->f->items.items[fill->list->items[i]]);
		add_filled(fill, before, end + 1, strbuf_str(&sb));
	} else if (fill->raw) {
		strv_add(&fill->job->argv, word);
	} else {
		framework_add_word(fill->job, word);
	}
}

static void fill_all(const struct filling *fill)
{
	for (char *const *word = fill->f->setup.program; *word; word++)
		fill_word(fill, *word);
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	AUTO(strbuf_deinit) struct strbuf content = { 0 };
	AUTO(mem_freep) char *path = mem_printf("%s/" FILE_NAME, dir);

	framework_file(f, tests, &content);
	framework_add_file(job, FILE_NAME, strbuf_str(&content));
	fill_all(&(struct filling){ .f = f, .list = tests, .path = path, .job = job });
}

static void plain(const struct framework *f, const struct framework_list *tests, const char *path,
		  struct strv *argv, struct strv *env)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };

	fill_all(&(struct filling){ .f = f, .list = tests, .path = path, .job = &job });
	strv_copy(argv, job.argv.items);
}

bool framework_whole(const struct framework *f, struct strv *argv)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };
	AUTO(mem_freep) char *path = NULL;
	AUTO(mem_freep) uint32_t *all = NULL;

	if (f->ops != &framework_list_file)
		return false;
	path = realpath(f->setup.tests_path, NULL);
	all = mem_alloc(f->items.count * sizeof(all[0]));
	for (size_t i = 0; i < f->items.count; i++)
		all[i] = (uint32_t)i;
	fill_all(&(struct filling){
		.f = f,
		.list = &(struct framework_list){ .items = all, .count = f->items.count },
		.path = path ? path : f->setup.tests_path,
		.raw = true,
		.job = &job });
	strv_copy(argv, job.argv.items);
	return true;
}

const struct framework_ops framework_list_file = {
	.name = "list",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS | FRAMEWORK_ORDERED,
	.recognises = recognises,
	.list = list,
	.build = build,
	.plain = plain,
};
