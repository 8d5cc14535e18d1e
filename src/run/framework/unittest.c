/*
 * Python's unittest: python3 -m unittest [discover] …
 *
 * Runs go through assets/redhand_unittest.py, which is unittest's own main program with the
 * tests chosen and told; the plain command names them to unittest itself, which keeps their order.
 */
#include <errno.h>
#include <string.h>

#include "redhand_unittest_py.h"
#include "run/framework/listing.h"

#define MODULE "redhand_unittest"
#define MODULE_FILE MODULE ".py"

struct unittest {
	size_t module; /* the word of the command that says unittest */
};

static size_t find_module(char *const *program)
{
	for (size_t i = 1; program[i]; i++)
		if (strcmp(program[i], "unittest") == 0 && strcmp(program[i - 1], "-m") == 0)
			return i;
	return 0;
}

static bool recognises(char *const *program, const char *cwd)
{
	return find_module(program) > 0;
}

struct unittest_listing {
	struct framework *f;
	bool ended;
};

static int read_line(void *ctx, char *line, struct err *err)
{
	struct unittest_listing *reading = ctx;
	char *value = strchr(line, '\t');

	if (!value)
		return 0;
	*value++ = '\0';
	if (strcmp(line, "test") == 0)
		strv_add(&reading->f->items, value);
	else if (strcmp(line, "path") == 0)
		framework_python_path(reading->f, value, &reading->f->extra);
	else if (strcmp(line, "end") == 0)
		reading->ended = true;
	return 0;
}

static int list(struct framework *f, struct err *err)
{
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };
	AUTO(mem_freep) char *text = NULL;
	struct unittest *own = mem_alloc(sizeof(*own));
	struct unittest_listing reading = { .f = f };
	int r;

	f->own = own;
	own->module = find_module(f->setup.program);
	if (own->module == 0) {
		(void)err_set(err, -EINVAL, "there is no -m unittest in the command");
		return err_set_remedy(err, "as in -- python3 -m unittest discover tests");
	}
	for (size_t i = 0; f->setup.program[i]; i++) {
		strv_add(&f->command, f->setup.program[i]);
		strv_take(&argv, i == own->module
					 ? mem_strdup(MODULE)
					 : trial_substitute(f->setup.program[i], 0,
							    (struct trial_number){ .value = 1 }));
	}
	r = listing_open(&l, err);
	if (r == 0)
		r = listing_write(&l, MODULE_FILE, redhand_unittest_py, err);
	if (r < 0)
		return r;
	framework_python_path(f, l.dir, &env);
	strv_take(&env, mem_printf("REDHAND_LIST=%s/list", l.dir));
	strv_add(&env, "PYTHONDONTWRITEBYTECODE=1");
	r = listing_run(&l, f, &argv, &env, err);
	if (r < 0)
		return r;
	if (listing_read(&l, "list", &text, NULL) == 0)
		(void)listing_lines(text, read_line, &reading, NULL);
	if (!reading.ended)
		return err_set(err, -EINVAL, "unittest could not list its tests (status %d): %s",
			       l.status, l.talk);
	return 0;
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	const struct unittest *own = f->own;

	for (size_t i = 0; i < f->command.count; i++)
		framework_add_word(job, i == own->module ? MODULE : f->command.items[i]);
	framework_python_trial(f, tests, dir, MODULE_FILE, redhand_unittest_py, job);
}

static void plain(const struct framework *f, const struct framework_list *tests, const char *path,
		  struct strv *argv, struct strv *env)
{
	const struct unittest *own = f->own;

	for (size_t i = 0; i <= own->module; i++)
		strv_take(argv, trial_substitute(f->command.items[i], 0,
						 (struct trial_number){ .value = 1 }));
	strv_add(argv, "-v");
	for (size_t i = 0; i < tests->count; i++)
		strv_add(argv, f->items.items[tests->items[i]]);
	for (size_t i = 0; i < f->extra.count; i++)
		strv_add(env, f->extra.items[i]);
}

static void deinit(struct framework *f)
{
	mem_free(f->own);
}

const struct framework_ops framework_unittest = {
	.name = "unittest",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS | FRAMEWORK_ORDERED | FRAMEWORK_MARKS,
	.recognises = recognises,
	.list = list,
	.build = build,
	.plain = plain,
	.deinit = deinit,
};
