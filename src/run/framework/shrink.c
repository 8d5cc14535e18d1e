/*
 * What can be made smaller besides a list of tests: the environment, the program's arguments,
 * the lines of a file that it reads. Each is a list of items of which some are left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/fd.h"
#include "base/which.h"
#include "model/known_secrets.h"
#include "run/framework/listing.h"

#define FILE_MAX (64u << 20)

static void add_program(const struct framework *f, struct trial_job *job)
{
	for (char *const *word = f->setup.program; *word; word++)
		framework_add_word(job, *word);
}

static bool *chosen(const struct framework *f, const struct framework_list *list)
{
	bool *in = mem_alloc((f->items.count + 1) * sizeof(*in));

	for (size_t i = 0; i < list->count; i++)
		in[list->items[i]] = true;
	return in;
}

static int env_list(struct framework *f, struct err *err)
{
	for (char **entry = environ; *entry; entry++)
		if (strchr(*entry, '='))
			strv_take(&f->items, secret_word(*entry));
	return 0;
}

static void env_build(const struct framework *f, const struct framework_list *list, const char *dir,
		      struct trial_job *job)
{
	AUTO(mem_freep) bool *in = chosen(f, list);

	add_program(f, job);
	for (size_t i = 0; i < f->items.count; i++)
		if (!in[i])
			strv_take(&job->env,
				  mem_strndup(f->items.items[i], strcspn(f->items.items[i], "=")));
}

static void env_plain(const struct framework *f, const struct framework_list *list,
		      const char *path, struct strv *argv, struct strv *env)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };
	char *found = NULL;

	strv_add(argv, "env");
	strv_add(argv, "-i");
	for (size_t i = 0; i < list->count; i++)
		strv_add(argv, f->items.items[list->items[i]]);
	add_program(f, &job);
	/* There is no PATH to look it up by, and the default one may find another. */
	if (!strchr(job.argv.items[0], '/') && which(job.argv.items[0], NULL, &found, NULL) == 0) {
		mem_free(job.argv.items[0]);
		job.argv.items[0] = found;
	}
	strv_copy(argv, job.argv.items);
}

const struct framework_ops framework_env = {
	.name = "env",
	FRAMEWORK_ITEM("environment variable"),
	.list = env_list,
	.build = env_build,
	.plain = env_plain,
};

static int args_list(struct framework *f, struct err *err)
{
	for (char *const *word = f->setup.program + 1; *word; word++)
		strv_add(&f->items, *word);
	return 0;
}

static void args_build(const struct framework *f, const struct framework_list *list,
		       const char *dir, struct trial_job *job)
{
	framework_add_word(job, f->setup.program[0]);
	for (size_t i = 0; i < list->count; i++)
		framework_add_word(job, f->items.items[list->items[i]]);
}

const struct framework_ops framework_args = {
	.name = "args",
	FRAMEWORK_ITEM("argument"),
	.list = args_list,
	.build = args_build,
};

#define LINES_FILE "input"

static bool names_file(const struct framework *f, const char *word)
{
	return strcmp(word, f->setup.shrink) == 0;
}

static int add_line(void *ctx, char *line, struct err *err)
{
	struct framework *f = ctx;

	strv_add(&f->items, line);
	return 0;
}

static int lines_list(struct framework *f, struct err *err)
{
	AUTO(mem_freep) char *text = NULL;
	bool named = false;
	size_t len;
	int r;

	for (char *const *word = f->setup.program + 1; *word; word++)
		named |= names_file(f, *word);
	if (!named) {
		(void)err_set(err, -EINVAL,
			      "--shrink '%s': the command has no such argument to put a shorter "
			      "file in",
			      f->setup.shrink);
		return err_set_remedy(err,
				      "env, args, or a file that the command names, as in --shrink "
				      "input.txt -- ./program input.txt");
	}
	r = file_read(f->setup.shrink, FILE_MAX, &text, &len, err);
	if (r < 0)
		return err_set_prefix(err, "--shrink");
	if (strlen(text) != len)
		return err_set(err, -EINVAL, "--shrink '%s' is not a text file", f->setup.shrink);
	return listing_lines(text, add_line, f, err);
}

static void lines_command(const struct framework *f, const char *path, struct trial_job *job)
{
	for (char *const *word = f->setup.program; *word; word++) {
		if (word != f->setup.program && names_file(f, *word))
			strv_add(&job->argv, path);
		else
			framework_add_word(job, *word);
	}
}

static void lines_build(const struct framework *f, const struct framework_list *list,
			const char *dir, struct trial_job *job)
{
	/* The same ending: programs choose what to do by it. */
	const char *dot = strrchr(cstr_base(f->setup.shrink), '.');
	AUTO(mem_freep) char *name = mem_printf(LINES_FILE "%s", dot ? dot : "");
	AUTO(mem_freep) char *path = mem_printf("%s/%s", dir, name);
	AUTO(strbuf_deinit) struct strbuf content = { 0 };

	framework_file(f, list, &content);
	framework_add_file(job, name, strbuf_str(&content));
	lines_command(f, path, job);
}

static void lines_plain(const struct framework *f, const struct framework_list *list,
			const char *path, struct strv *argv, struct strv *env)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };

	lines_command(f, path, &job);
	strv_copy(argv, job.argv.items);
}

const struct framework_ops framework_lines = {
	.name = "lines",
	FRAMEWORK_ITEM("line"),
	.list = lines_list,
	.build = lines_build,
	.plain = lines_plain,
};
