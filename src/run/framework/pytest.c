/*
 * pytest, any version from 7 on, without anything installed beside it.
 *
 * A small plugin (assets/redhand_pytest.py, given with -p and PYTHONPATH) lists the tests, puts
 * exactly the wanted ones into the wanted order after pytest has had its own ideas, and tells
 * when each starts and ends. The files that hold the wanted tests take the place of the
 * paths that the user named, so that a short list is collected quickly and imports no more than
 * the plain command at the end will.
 */
#include <errno.h>
#include <string.h>

#include "base/cstr.h"
#include "redhand_pytest_py.h"
#include "run/framework/listing.h"

#define PLUGIN "redhand_pytest"
#define PLUGIN_FILE PLUGIN ".py"

struct pytest {
	size_t head;	    /* words of f->command up to and with pytest itself */
	struct strv files;  /* per test: the file that it is in */
	struct strv layout; /* --rootdir and -c, so that fewer paths change neither */
};

/* The word behind which pytest's own arguments begin; 0 when there is none. */
static size_t find_pytest(char *const *program)
{
	for (size_t i = 0; program[i]; i++) {
		const char *name = cstr_base(program[i]);

		if (strcmp(name, "pytest") == 0 || strcmp(name, "py.test") == 0 ||
		    strcmp(name, "pytest-3") == 0)
			return i + 1;
		if (strcmp(program[i], "--") == 0)
			break;
	}
	return 0;
}

static bool recognises(char *const *program, const char *cwd)
{
	return find_pytest(program) > 0;
}

/* pytest-xdist: -n 2, -n2, --numprocesses=2. */
static bool shares_out(char *const *program)
{
	const char *count = NULL;

	for (size_t i = find_pytest(program); i > 0 && program[i]; i++) {
		if (strcmp(program[i], "-n") == 0 || strcmp(program[i], "--numprocesses") == 0)
			count = program[i + 1];
		else if (strncmp(program[i], "--numprocesses=", 15) == 0)
			count = program[i] + 15;
		else if (strncmp(program[i], "-n", 2) == 0)
			count = program[i] + 2;
	}
	return count && strcmp(count, "0") != 0 && strcmp(count, "no") != 0;
}

static void add_plugins(struct strv *argv)
{
	/* Plugins that choose an order of their own, or remember runs that were only trials. */
	static const char *const words[] = {
		"-p", PLUGIN, "-p", "no:randomly", "-p", "no:random_order", "-p", "no:cacheprovider"
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		strv_add(argv, words[i]);
}

struct pytest_listing {
	struct framework *f;
	struct strv positional;
	bool ended;
};

static int read_line(void *ctx, char *line, struct err *err)
{
	struct pytest_listing *reading = ctx;
	struct framework *f = reading->f;
	struct pytest *own = f->own;
	char *value = strchr(line, '\t'), *argument, *id;

	if (!value)
		return 0;
	*value++ = '\0';
	if (strcmp(line, "rootdir") == 0) {
		strv_take(&own->layout, mem_printf("--rootdir=%s", value));
	} else if (strcmp(line, "inifile") == 0) {
		strv_add(&own->layout, "-c");
		strv_add(&own->layout, value);
	} else if (strcmp(line, "positional") == 0) {
		strv_add(&reading->positional, value);
	} else if (strcmp(line, "end") == 0) {
		reading->ended = true;
	} else if (strcmp(line, "test") == 0 && (argument = strchr(value, '\t')) != NULL &&
		   (id = strchr(argument + 1, '\t')) != NULL) {
		*argument++ = *id++ = '\0';
		strv_add(&own->files, value);
		strv_add(&f->plain, argument);
		strv_add(&f->items, id);
	}
	return 0;
}

/* Takes the paths that the user named out of the command. From its end: `-k tests tests`. */
static void drop_positional(struct framework *f, const struct strv *positional)
{
	const struct pytest *own = f->own;

	for (size_t i = positional->count; i-- > 0;) {
		for (size_t k = f->command.count; k-- > own->head;) {
			if (strcmp(f->command.items[k], positional->items[i]) != 0)
				continue;
			mem_free(f->command.items[k]);
			memmove(&f->command.items[k], &f->command.items[k + 1],
				(f->command.count - k) * sizeof(f->command.items[0]));
			f->command.count--;
			break;
		}
	}
}

static int read_list(struct framework *f, struct listing *l, struct err *err)
{
	struct pytest_listing reading = { .f = f };
	AUTO(mem_freep) char *text = NULL;
	int r;

	/* 5: there are no tests. */
	if (l->status != 0 && l->status != 5) {
		(void)err_set(err, -EINVAL, "pytest could not list its tests (status %d): %s",
			      l->status, l->talk);
		return err_set_remedy(err, "try the command with --collect-only");
	}
	r = listing_read(l, "list", &text, NULL);
	if (r == 0)
		r = listing_lines(text, read_line, &reading, err);
	if (r < 0 || !reading.ended)
		r = err_set(err, -EINVAL, "pytest ended without a list of its tests: %s", l->talk);
	if (r == 0)
		drop_positional(f, &reading.positional);
	strv_deinit(&reading.positional);
	return r;
}

/* What makes a command list its tests instead of running them. */
static void set_listing(const struct framework *f, const struct listing *l, struct strv *argv,
			struct strv *env)
{
	strv_add(argv, "--collect-only");
	strv_add(argv, "-q");
	framework_python_path(f, l->dir, env);
	strv_take(env, mem_printf("REDHAND_LIST=%s/list", l->dir));
	strv_add(env, "PYTHONDONTWRITEBYTECODE=1");
}

static int list(struct framework *f, struct err *err)
{
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };
	struct pytest *own = mem_alloc(sizeof(*own));
	int r;

	f->own = own;
	own->head = find_pytest(f->setup.program);
	if (own->head == 0) {
		(void)err_set(err, -EINVAL, "there is no pytest in the command");
		return err_set_remedy(err, "as in -- pytest tests, or -- python3 -m pytest tests");
	}
	r = listing_open(&l, err);
	if (r == 0)
		r = listing_write(&l, PLUGIN_FILE, redhand_pytest_py, err);
	if (r < 0)
		return r;
	for (size_t i = 0; f->setup.program[i]; i++) {
		strv_add(&f->command, f->setup.program[i]);
		strv_take(&argv, trial_substitute(f->setup.program[i], 0,
						  (struct trial_number){ .value = 1 }));
		if (i + 1 == own->head)
			add_plugins(&argv);
	}
	set_listing(f, &l, &argv, &env);
	r = listing_run(&l, f, &argv, &env, err);
	return r < 0 ? r : read_list(f, &l, err);
}

static void add_files(const struct pytest *own, const struct framework_list *tests,
		      struct strv *argv)
{
	size_t before = argv->count;

	for (size_t i = 0; i < tests->count; i++) {
		const char *path = own->files.items[tests->items[i]];
		bool known = false;

		for (size_t k = before; k < argv->count && !known; k++)
			known = strcmp(argv->items[k], path) == 0;
		if (!known)
			strv_add(argv, path);
	}
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	const struct pytest *own = f->own;

	for (size_t i = 0; i < f->command.count; i++) {
		framework_add_word(job, f->command.items[i]);
		if (i + 1 == own->head) {
			add_plugins(&job->argv);
			strv_copy(&job->argv, own->layout.items);
		}
	}
	add_files(own, tests, &job->argv);
	framework_python_trial(f, tests, dir, PLUGIN_FILE, redhand_pytest_py, job);
}

static void plain(const struct framework *f, const struct framework_list *tests, const char *path,
		  struct strv *argv, struct strv *env)
{
	for (size_t i = 0; i < f->command.count; i++)
		strv_take(argv, trial_substitute(f->command.items[i], 0,
						 (struct trial_number){ .value = 1 }));
	for (size_t i = 0; i < tests->count; i++)
		strv_add(argv, f->plain.items[tests->items[i]]);
}

static int take_test(void *ctx, char *line, struct err *err)
{
	const char *id = strrchr(line, '\t');

	if (strncmp(line, "test\t", 5) == 0 && id)
		strv_add(ctx, id + 1);
	return 0;
}

/* pytest brings tests together that share a fixture of a wider scope, whatever order they are named
 * in: let it collect the plain command's tests, and compare. */
static bool plain_differs(const struct framework *f, const struct framework_list *tests)
{
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };
	AUTO(strv_deinit) struct strv got = { 0 };
	AUTO(mem_freep) char *text = NULL;
	bool differs;

	if (listing_open(&l, NULL) < 0 ||
	    listing_write(&l, PLUGIN_FILE, redhand_pytest_py, NULL) < 0)
		return false;
	plain(f, tests, NULL, &argv, &env);
	strv_add(&argv, "-p");
	strv_add(&argv, PLUGIN);
	set_listing(f, &l, &argv, &env);
	if (listing_run(&l, f, &argv, &env, NULL) < 0 || listing_read(&l, "list", &text, NULL) < 0)
		return false;
	(void)listing_lines(text, take_test, &got, NULL);
	differs = got.count != tests->count;
	for (size_t i = 0; i < tests->count && !differs; i++)
		differs = strcmp(got.items[i], f->items.items[tests->items[i]]) != 0;
	return differs;
}

/* Interrupted, internal error, wrong usage, no tests: pytest's exit codes 2 to 5. */
static bool no_information(const struct trial_end *end)
{
	return end->exit_status >= 2 && end->exit_status <= 5;
}

static void deinit(struct framework *f)
{
	struct pytest *own = f->own;

	if (!own)
		return;
	strv_deinit(&own->files);
	strv_deinit(&own->layout);
	mem_free(own);
}

const struct framework_ops framework_pytest = {
	.name = "pytest",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS | FRAMEWORK_ORDERED | FRAMEWORK_MARKS,
	.recognises = recognises,
	.shares_out = shares_out,
	.list = list,
	.build = build,
	.plain = plain,
	.no_information = no_information,
	.plain_differs = plain_differs,
	.deinit = deinit,
};
