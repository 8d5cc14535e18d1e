#include "run/framework/framework.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which `auto` asks: a command with a place for the tests in it says so itself. */
static const struct framework_ops *const frameworks[] = {
	&framework_list_file, &framework_pytest, &framework_unittest,
	&framework_ctest,     &framework_gtest,	 &framework_usage,
};

static int choose_shrink(const struct framework_setup *setup, const struct framework_ops **ret)
{
	*ret = strcmp(setup->shrink, "env") == 0    ? &framework_env
	       : strcmp(setup->shrink, "args") == 0 ? &framework_args
						    : &framework_lines;
	return 0;
}

static int choose(const struct framework_setup *setup, const struct framework_ops **ret,
		  struct err *err)
{
	bool automatic = strcmp(setup->name, "auto") == 0;

	if (setup->shrink)
		return choose_shrink(setup, ret);
	for (size_t i = 0; i < ARRAY_SIZE(frameworks); i++) {
		if (automatic ? frameworks[i]->recognises(setup->program, setup->cwd)
			      : strcmp(frameworks[i]->name, setup->name) == 0) {
			*ret = frameworks[i];
			return 0;
		}
	}
	(void)err_set(err, -EINVAL, "cannot tell how '%s' takes a list of tests",
		      setup->program[0]);
	return err_set_remedy(err,
			      "name the framework with --framework, or write {tests} or "
			      "{tests_file} where the tests go and give the list with --tests");
}

static int refuse_twins(const struct framework *f, struct err *err)
{
	struct test_names names;
	int r = 0;

	if (!(f->ops->flags & FRAMEWORK_TESTS))
		return 0;
	test_names_init(&names, &f->items);
	for (size_t i = 0; i < f->items.count && r == 0; i++)
		if (test_names_find(&names, names.names.items[i]) != i)
			r = err_set(err, -EINVAL, "the list has the test '%s' twice",
				    names.names.items[i]);
	test_names_deinit(&names);
	return r;
}

int framework_init(struct framework *f, const struct framework_setup *setup, struct err *err)
{
	int r;

	*f = (struct framework){ .setup = *setup };
	r = choose(setup, &f->ops, err);
	if (r == 0)
		r = f->ops->list(f, err);
	if (r < 0)
		return r;
	if (f->items.count == 0)
		return err_set(err, -EINVAL,
			       "the list of %s is empty: there is nothing to minimise",
			       f->ops->nouns);
	return refuse_twins(f, err);
}

void framework_deinit(struct framework *f)
{
	if (f->ops && f->ops->deinit)
		f->ops->deinit(f);
	strv_deinit(&f->items);
	strv_deinit(&f->command);
	strv_deinit(&f->plain);
	strv_deinit(&f->extra);
}

/* How a plain command line names an item. */
static const char *framework_plain_name(const struct framework *f, uint32_t item)
{
	return f->plain.count > 0 ? f->plain.items[item] : f->items.items[item];
}

void framework_add_word(struct trial_job *job, const char *word)
{
	strv_take(&job->argv, trial_substitute(word, job->slot, job->number));
}

void framework_add_file(struct trial_job *job, const char *name, const char *content)
{
	VEC_PUSH(&job->files,
		 ((struct trial_file){ .name = mem_strdup(name), .content = mem_strdup(content) }));
}

void framework_plain(const struct framework *f, const struct framework_list *list, const char *path,
		     struct strv *argv, struct strv *env)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };

	for (size_t i = 0; i < f->setup.env->count; i++)
		strv_take(env, trial_substitute(f->setup.env->items[i], 0, job.number));
	if (f->ops->plain) {
		f->ops->plain(f, list, path, argv, env);
		return;
	}
	f->ops->build(f, list, "", &job);
	strv_copy(argv, job.argv.items);
	for (size_t i = 0; i < job.env.count; i++)
		strv_add(env, job.env.items[i]);
}

void framework_file(const struct framework *f, const struct framework_list *list,
		    struct strbuf *ret)
{
	if (f->ops->file) {
		f->ops->file(f, list, ret);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		strbuf_addf(ret, "%s\n", framework_plain_name(f, list->items[i]));
}

void framework_python_path(const struct framework *f, const char *dir, struct strv *env)
{
	const char *before = getenv("PYTHONPATH");

	for (size_t i = 0; i < f->setup.env->count; i++)
		if (strncmp(f->setup.env->items[i], "PYTHONPATH=", 11) == 0)
			before = f->setup.env->items[i] + 11;
	strv_take(env, mem_printf("PYTHONPATH=%s%s%s", dir, before && before[0] ? ":" : "",
				  before ? before : ""));
}

#define TESTS_FILE "tests.txt"

void framework_python_trial(const struct framework *f, const struct framework_list *tests,
			    const char *dir, const char *name, const char *content,
			    struct trial_job *job)
{
	AUTO(strbuf_deinit) struct strbuf numbered = { 0 };

	for (size_t i = 0; i < tests->count; i++)
		strbuf_addf(&numbered, "%u\t%s\n", tests->items[i],
			    f->items.items[tests->items[i]]);
	framework_add_file(job, TESTS_FILE, strbuf_str(&numbered));
	framework_add_file(job, name, content);
	framework_python_path(f, dir, &job->env);
	strv_take(&job->env, mem_printf("REDHAND_TESTS=%s/" TESTS_FILE, dir));
	strv_take(&job->env, mem_printf("REDHAND_MARKS=%s/" TRIAL_MARKS, dir));
}
