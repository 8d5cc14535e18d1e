/*
 * A test program that tells itself how it lists its tests and takes their names:
 *
 *	usage: run_tests [--list] [NAME...]
 *
 * It is asked only if its own file holds the option's name, and then for --help first; the list is
 * asked for only if that answer has both the option and a place for several names. Both runs have a
 * time limit, an empty input, and the environment of a trial: what they could do, each trial could
 * do as well. What is printed counts as a list only if every line is one word and none comes twice.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/which.h"
#include "run/framework/listing.h"

#define TIME_LIMIT_NS (10ull * 1000000000)
#define ARGUMENTS_MAX (1u << 20) /* a command line may have about 2 MiB */

/* Longest first: one begins like the other. */
static const char *const options[] = { "--list-tests", "--list_tests", "--list" };

static bool file_has(const char *path, const char *text)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool found;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 8)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	found = memmem(map, (size_t)st.st_size, text, strlen(text)) != NULL;
	(void)munmap(map, (size_t)st.st_size);
	return found;
}

static bool recognises(char *const *program, const char *cwd)
{
	AUTO(mem_freep) char *path = NULL;

	return which(program[0], cwd, &path, NULL) == 0 && file_has(path, "--list");
}

static bool ends_word(char c)
{
	return !isalnum((unsigned char)c) && c != '-' && c != '_' && c != '=';
}

static const char *list_option(const char *usage)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const char *at = usage;

		while ((at = strstr(at, options[i])) != NULL) {
			at += strlen(options[i]);
			if (ends_word(*at))
				return options[i];
		}
	}
	return NULL;
}

/* "[NAME...]", "[TEST]...", "<tests…>": several of them, as words of their own. */
static bool takes_names(const char *usage)
{
	static const char *const words[] = { "NAME", "TEST", "CASE" };

	for (const char *at = usage; (at = strpbrk(at, "[<")) != NULL; at++) {
		size_t len = strcspn(at, "]>\n");
		const char *end = at + len + (at[len] == ']' || at[len] == '>');
		bool several = memmem(at, len, "...", 3) || memmem(at, len, "…", strlen("…")) ||
			       strncmp(end, "...", 3) == 0;

		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (several && strncasecmp(at + 1, words[i], strlen(words[i])) == 0)
				return true;
	}
	return false;
}

/* What it prints with that word alone. */
static int run_with(struct framework *f, const char *word, struct listing *l, struct err *err)
{
	AUTO(strv_deinit) struct strv argv = { 0 };
	uint64_t limit = f->setup.timeout_ns;
	int r = listing_open(l, err);

	strv_take(&argv,
		  trial_substitute(f->setup.program[0], 0, (struct trial_number){ .value = 1 }));
	strv_add(&argv, word);
	if (limit == 0 || limit > TIME_LIMIT_NS)
		f->setup.timeout_ns = TIME_LIMIT_NS;
	if (r == 0)
		r = listing_run(l, f, &argv, NULL, err);
	f->setup.timeout_ns = limit;
	return r;
}

static int err_set_untold(const struct framework *f, const char *why, struct err *err)
{
	(void)err_set(err, -EINVAL, "cannot tell how '%s' takes a list of tests: %s",
		      f->setup.program[0], why);
	return err_set_remedy(err,
			      "write {tests} or {tests_file} where the tests go and give the list "
			      "with --tests");
}

static int read_usage(struct framework *f, const char **ret_option, struct err *err)
{
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strbuf_deinit) struct strbuf usage = { 0 };
	AUTO(mem_freep) char *talk = NULL;
	int r = run_with(f, "--help", &l, err);

	if (r == 0)
		r = listing_read(&l, "stderr", &talk, err);
	if (r < 0)
		return r;
	/* Who does not know --help tells its usage as an error. */
	strbuf_addf(&usage, "%s\n%s\n", l.out, talk);
	*ret_option = list_option(strbuf_str(&usage));
	if (l.status >= 128 || !*ret_option || !takes_names(strbuf_str(&usage)))
		return err_set_untold(
			f, "its --help names no option that lists them, or takes no names", err);
	return 0;
}

static int add_name(void *ctx, char *line, struct err *err)
{
	struct framework *f = ctx;
	size_t len = strlen(line);

	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	if (len == 0)
		return 0;
	if (line[0] == '-' || strpbrk(line, " \t"))
		return err_set_untold(f, "what it lists is not a name a line", err);
	strv_add(&f->items, line);
	return 0;
}

/* The user's own words: options stay, names of tests are the list, anything else is not known. */
static int take_words(struct framework *f, struct err *err)
{
	struct strv chosen = { 0 };
	int r = 0;

	for (char *const *word = f->setup.program; *word && r == 0; word++) {
		if (word == f->setup.program || (*word)[0] == '-')
			strv_add(&f->command, *word);
		else if (strv_has(&f->items, *word))
			strv_add(&chosen, *word);
		else
			r = err_set_untold(f, "the command has words that are no tests", err);
	}
	if (r == 0 && chosen.count > 0) {
		strv_deinit(&f->items);
		f->items = chosen;
	} else {
		strv_deinit(&chosen);
	}
	return r;
}

static int list(struct framework *f, struct err *err)
{
	AUTO(listing_close) struct listing l = { 0 };
	const char *option = NULL;
	size_t bytes = 0;
	int r = read_usage(f, &option, err);

	if (r == 0)
		r = run_with(f, option, &l, err);
	if (r == 0 && l.status != 0)
		r = err_set_untold(f, "it fails when it is asked for the list", err);
	if (r == 0)
		r = listing_lines(l.out, add_name, f, err);
	if (r == 0)
		r = take_words(f, err);
	for (size_t i = 0; i < f->items.count; i++)
		bytes += strlen(f->items.items[i]) + 1 + sizeof(char *);
	if (r == 0 && bytes > ARGUMENTS_MAX)
		r = err_set_untold(f, "their names are longer than a command line", err);
	if (r == 0)
		f->found_out = option;
	return r;
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	for (char *const *word = f->command.items; *word; word++)
		framework_add_word(job, *word);
	for (size_t i = 0; i < tests->count; i++)
		strv_add(&job->argv, f->items.items[tests->items[i]]);
}

const struct framework_ops framework_usage = {
	.name = "usage",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS | FRAMEWORK_ORDERED,
	.recognises = recognises,
	.list = list,
	.build = build,
};
