/*
 * googletest programs.
 *
 * The list comes from --gtest_list_tests. A subset goes through --gtest_filter, and where that is
 * longer than one argument may be (128 KiB) through a flag file, which a program that has only
 * googletest's common options does not know. googletest runs what the filter names in the order of
 * registration, whatever the order in the filter: other orders cannot be tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/which.h"
#include "run/framework/listing.h"

#define FILE_NAME "gtest-flags.txt"
#define FILTER_MAX 128000 /* MAX_ARG_STRLEN, see execve(2) */

/* Names that every program with googletest in it, statically or not, contains. */
bool framework_is_gtest(const char *path)
{
	static const char *const signs[] = { "gtest_list_tests", "InitGoogleTest" };
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool found = false;
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < 64)
		return false;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(signs) && memcmp(map, "\177ELF", 4) == 0; i++)
		found |= memmem(map, (size_t)st.st_size, signs[i], strlen(signs[i])) != NULL;
	(void)munmap(map, (size_t)st.st_size);
	return found;
}

static bool recognises(char *const *program, const char *cwd)
{
	AUTO(mem_freep) char *path = NULL;

	/* A wrapper in front of it, or a flag, gives it away as well. */
	for (size_t i = 0; program[i]; i++) {
		if (i > 0 && strncmp(program[i], "--gtest_", 8) == 0)
			return true;
		mem_free(path);
		path = NULL;
		if ((i == 0 || strchr(program[i], '/')) &&
		    which(program[i], cwd, &path, NULL) == 0 && framework_is_gtest(path))
			return true;
	}
	return false;
}

/* Flags that choose or order tests; ours take their place. */
static bool chooses(const char *word)
{
	static const char *const flags[] = { "filter",	"shuffle",	    "random_seed",
					     "repeat",	"break_on_failure", "list_tests",
					     "flagfile" };

	while (*word == '-')
		word++;
	if (strncmp(word, "gtest_", 6) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		size_t len = strlen(flags[i]);

		if (strncmp(word + 6, flags[i], len) == 0 &&
		    (word[6 + len] == '\0' || word[6 + len] == '='))
			return true;
	}
	return false;
}

struct gtest_listing {
	struct framework *f;
	char *suite; /* with its dot; NULL before the first */
	bool disabled_too;
};

/* "Suite." begins a suite, "  Test" is one of its tests; what follows a # is a comment. */
static int read_line(void *ctx, char *line, struct err *err)
{
	struct gtest_listing *reading = ctx;
	char *comment = strstr(line, "  # ");
	const char *name = line + strspn(line, " ");
	size_t len;

	if (comment)
		*comment = '\0';
	len = strlen(name);
	if (name == line) {
		/* "Running main() from …" and a program's own talk have no dot at their end. */
		if (len > 1 && name[len - 1] == '.' && !strchr(name, ' ')) {
			mem_free(reading->suite);
			reading->suite = mem_strdup(name);
		}
		return 0;
	}
	if (name != line + 2 || !reading->suite || len == 0 || strchr(name, ' '))
		return 0;
	if (!reading->disabled_too &&
	    (strncmp(name, "DISABLED_", 9) == 0 || strncmp(reading->suite, "DISABLED_", 9) == 0 ||
	     strstr(reading->suite, "/DISABLED_")))
		return 0;
	strv_take(&reading->f->items, mem_printf("%s%s", reading->suite, name));
	return 0;
}

static int list(struct framework *f, struct err *err)
{
	AUTO(listing_close) struct listing l = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	struct gtest_listing reading = { .f = f };
	int r = listing_open(&l, err);

	for (char *const *word = f->setup.program; *word; word++) {
		strv_take(&argv, trial_substitute(*word, 0, (struct trial_number){ .value = 1 }));
		if (!chooses(*word))
			strv_add(&f->command, *word);
		reading.disabled_too |= strstr(*word, "gtest_also_run_disabled_tests") != NULL;
	}
	strv_add(&argv, "--gtest_list_tests");
	if (r == 0)
		r = listing_run(&l, f, &argv, NULL, err);
	if (r < 0)
		return r;
	if (l.status != 0)
		return err_set(err, -EINVAL, "'%s --gtest_list_tests' ended with status %d: %s",
			       argv.items[0], l.status, l.talk);
	r = listing_lines(l.out, read_line, &reading, err);
	mem_free(reading.suite);
	return r;
}

static void file(const struct framework *f, const struct framework_list *tests, struct strbuf *ret)
{
	strbuf_adds(ret, "--gtest_filter=");
	for (size_t i = 0; i < tests->count; i++)
		strbuf_addf(ret, "%s%s", i > 0 ? ":" : "", f->items.items[tests->items[i]]);
	strbuf_addc(ret, '\n');
}

static void build(const struct framework *f, const struct framework_list *tests, const char *dir,
		  struct trial_job *job)
{
	static const char *const unset[] = { "GTEST_FILTER",	   "GTEST_SHUFFLE",
					     "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX",
					     "GTEST_REPEAT",	   "GTEST_FLAGFILE" };
	AUTO(strbuf_deinit) struct strbuf content = { 0 };

	file(f, tests, &content);
	for (char *const *word = f->command.items; *word; word++)
		framework_add_word(job, *word);
	if (content.len > FILTER_MAX) {
		framework_add_file(job, FILE_NAME, strbuf_str(&content));
		strv_take(&job->argv, mem_printf("--gtest_flagfile=%s/" FILE_NAME, dir));
	} else {
		strv_take(&job->argv, mem_strndup(strbuf_str(&content), content.len - 1));
	}
	for (size_t i = 0; i < ARRAY_SIZE(unset); i++)
		strv_add(&job->env, unset[i]);
}

static void plain(const struct framework *f, const struct framework_list *tests, const char *path,
		  struct strv *argv, struct strv *env)
{
	AUTO(strbuf_deinit) struct strbuf filter = { 0 };

	for (char *const *word = f->command.items; *word; word++)
		strv_take(argv, trial_substitute(*word, 0, (struct trial_number){ .value = 1 }));
	file(f, tests, &filter);
	if (filter.len > FILTER_MAX)
		strv_take(argv, mem_printf("--gtest_flagfile=%s", path));
	else
		strv_take(argv, mem_strndup(strbuf_str(&filter), filter.len - 1));
}

const struct framework_ops framework_gtest = {
	.name = "gtest",
	FRAMEWORK_ITEM("test"),
	.flags = FRAMEWORK_TESTS,
	.recognises = recognises,
	.list = list,
	.build = build,
	.plain = plain,
	.file = file,
};
