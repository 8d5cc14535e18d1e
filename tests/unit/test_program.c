/*
 * Facts about program files: built in known ways, scripts, and files that were
 * damaged on purpose. PROGRAMS_DIR is where tests/unit/programs were built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"
#include "base/which.h"
#include "debuginfo/program.h"
#include "in_range.h"

#define MUTATIONS 2000u
#define SEED 20240607u

/* Where a test puts its files; made and removed around each test. */
static char work[64];

static int setup(void **state)
{
	(void)snprintf(work, sizeof(work), "/tmp/test-program-XXXXXX");
	return mkdtemp(work) ? 0 : -1;
}

static int teardown(void **state)
{
	return tree_remove_at(AT_FDCWD, work, NULL);
}

static void read_built(const char *name, struct program_facts *ret)
{
	char path[PATH_MAX];
	struct err err = { 0 };

	(void)snprintf(path, sizeof(path), "%s/program-%s", PROGRAMS_DIR, name);
	if (program_read(path, ret, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(ret->path, path);
	assert_int_equal(ret->kind, PROGRAM_ELF);
	assert_true(ret->executable);
	assert_true(ret->native);
	assert_string_equal(ret->machine, "x86-64");
	assert_string_equal(ret->trouble, "");
	assert_string_equal(ret->script, "");
	assert_false(ret->privileged);
}

static const char *make_file(const char *name, const void *bytes, size_t len, mode_t mode)
{
	static char path[PATH_MAX];
	AUTO(fd_closep) int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", work, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	return path;
}

static void run(const char *fmt, const char *a, const char *b)
{
	char command[3 * PATH_MAX];

	(void)snprintf(command, sizeof(command), fmt, a, b);
	if (system(command) != 0)
		fail_msg("'%s' failed", command);
}

static void test_debug(void **state)
{
	struct program_facts facts;

	read_built("debug", &facts);
	assert_true(facts.dynamic);
	assert_true(facts.pie);
	assert_true(facts.symbols);
	assert_true(facts.units);
	assert_true(facts.lines);
	assert_int_equal(facts.libc, PROGRAM_LIBC_GLIBC);
	assert_int_equal(strlen(facts.build_id), 40);
	assert_int_equal(strspn(facts.build_id, "0123456789abcdef"), 40);
	assert_string_equal(facts.allocator, "");
	assert_string_equal(facts.debug_file, "");
	assert_false(facts.sanitized);
}

static void test_compressed(void **state)
{
	struct program_facts facts;

	read_built("compressed", &facts);
	assert_true(facts.lines);
}

static void test_without_debug(void **state)
{
	struct program_facts facts;

	read_built("plain", &facts);
	assert_true(facts.symbols);
	assert_false(facts.lines);
	read_built("stripped", &facts);
	assert_false(facts.symbols);
	assert_false(facts.lines);
	assert_false(facts.units);
	assert_int_equal(strlen(facts.build_id), 40);
}

/* Each sanitizer that has a malloc of its own, also where it is linked in. */
static void test_sanitized(void **state)
{
	struct program_facts facts;

	read_built("sanitized", &facts);
	assert_true(facts.sanitized);
}

static void test_linkage(void **state)
{
	struct program_facts facts;

	read_built("fixed", &facts);
	assert_true(facts.dynamic);
	assert_false(facts.pie);
	read_built("static", &facts);
	assert_false(facts.dynamic);
	assert_false(facts.pie);
	assert_int_equal(facts.libc, PROGRAM_LIBC_STATIC);
	assert_string_equal(facts.loader, "");
	/* libc's own malloc is in there, which is not the program's. */
	assert_string_equal(facts.allocator, "");
	assert_false(facts.malloc_inside);
	read_built("nameless", &facts);
	assert_string_equal(facts.build_id, "");
	assert_true(facts.lines);
}

static void test_own_malloc(void **state)
{
	struct program_facts facts;

	read_built("own-malloc", &facts);
	assert_string_equal(facts.allocator, "malloc");
	assert_true(facts.allocator_inside);
	assert_true(facts.malloc_inside);
	assert_false(facts.malloc_hidden);
	read_built("hidden-malloc", &facts);
	assert_true(facts.malloc_inside);
	assert_true(facts.malloc_hidden);
}

/* Splits program-NAME into work/split and a debug file in `folder`, and reads the former. */
static void read_split(const char *name, const char *folder, struct program_facts *ret)
{
	char built[PATH_MAX], split[PATH_MAX], debug[PATH_MAX];
	struct err err = { 0 };

	(void)snprintf(built, sizeof(built), "%s/program-%s", PROGRAMS_DIR, name);
	(void)snprintf(split, sizeof(split), "%s/split", work);
	(void)snprintf(debug, sizeof(debug), "%s/%s/split.debug", work, folder);
	run("mkdir -p '%s/%s'", work, folder);
	run("objcopy --only-keep-debug '%s' '%s'", built, debug);
	run("objcopy --strip-all '%s' '%s'", built, split);
	run("objcopy --add-gnu-debuglink='%s' '%s'", debug, split);
	assert_int_equal(program_read(split, ret, &err), 0);
	assert_string_equal(ret->debug_link, "split.debug");
	assert_false(ret->lines);
}

static void test_debug_file(void **state)
{
	struct program_facts facts;
	char expected[PATH_MAX], real[PATH_MAX];

	read_split("debug", ".debug", &facts);
	(void)snprintf(expected, sizeof(expected), "%s/.debug/split.debug", realpath(work, real));
	assert_string_equal(facts.debug_file, expected);
	assert_true(facts.debug_file_lines);
	/* Without a build-id the checksum decides. */
	read_split("nameless", ".debug", &facts);
	assert_string_equal(facts.debug_file, expected);
	assert_true(facts.debug_file_lines);
}

static void test_debug_file_of_another_build(void **state)
{
	struct program_facts facts;
	char split[PATH_MAX];
	struct err err = { 0 };

	(void)snprintf(split, sizeof(split), "%s/split", work);
	read_split("debug", ".", &facts);
	assert_string_not_equal(facts.debug_file, "");
	run("cp '%s/program-nameless' '%s/split.debug'", PROGRAMS_DIR, work);
	assert_int_equal(program_read(split, &facts, &err), 0);
	assert_string_equal(facts.debug_file, "");

	read_split("nameless", ".", &facts);
	assert_string_not_equal(facts.debug_file, "");
	run("printf x >> '%s/split.debug'%s", work, "");
	assert_int_equal(program_read(split, &facts, &err), 0);
	assert_string_equal(facts.debug_file, "");
}

static void test_privileged(void **state)
{
	AUTO(mem_freep) char *bytes = NULL;
	struct program_facts facts;
	struct err err = { 0 };
	const char *path;
	size_t len;

	assert_int_equal(file_read(PROGRAMS_DIR "/program-plain", 1 << 24, &bytes, &len, &err), 0);
	path = make_file("setuid", bytes, len, 04755);
	assert_int_equal(program_read(path, &facts, &err), 0);
	assert_true(facts.privileged);
	path = make_file("plain", bytes, len, 0755);
	assert_int_equal(program_read(path, &facts, &err), 0);
	assert_false(facts.privileged);
}

static void read_script(const char *line, struct program_facts *ret)
{
	struct err err = { 0 };
	const char *path = make_file("script", line, strlen(line), 0755);

	assert_int_equal(program_read(path, ret, &err), 0);
}

static void test_scripts(void **state)
{
	struct program_facts facts;

	read_script("#!/bin/sh\necho\n", &facts);
	assert_int_equal(facts.kind, PROGRAM_ELF);
	assert_string_equal(facts.path, "/bin/sh");
	assert_non_null(strstr(facts.script, "/script"));

	read_script("#! /usr/bin/env -S A=b sh -e\n", &facts);
	assert_int_equal(facts.kind, PROGRAM_ELF);
	assert_non_null(strstr(facts.path, "/sh"));

	read_script("#!/no/such/interpreter\n", &facts);
	assert_int_equal(facts.kind, PROGRAM_SCRIPT);
	assert_non_null(strstr(facts.trouble, "does not exist"));
	assert_false(facts.executable);

	read_script("#!/bin/sh\r\n", &facts);
	assert_non_null(strstr(facts.trouble, "carriage return"));
	read_script("#!", &facts);
	assert_string_not_equal(facts.trouble, "");
	read_script("#!/usr/bin/env", &facts);
	assert_string_not_equal(facts.trouble, "");
}

static void test_script_that_runs_itself(void **state)
{
	char line[128];
	struct program_facts facts;

	(void)snprintf(line, sizeof(line), "#!%s/script\n", work);
	/* Must exist before its own line is followed. */
	read_script("#!/bin/sh\n", &facts);
	read_script(line, &facts);
	assert_int_equal(facts.kind, PROGRAM_SCRIPT);
	assert_non_null(strstr(facts.trouble, "too many"));
}

static void test_not_programs(void **state)
{
	struct program_facts facts;
	struct err err = { 0 };

	assert_int_equal(program_read(make_file("empty", "", 0, 0755), &facts, &err), 0);
	assert_int_equal(facts.kind, PROGRAM_OTHER);
	assert_string_equal(facts.trouble, "it is empty");
	assert_int_equal(program_read(make_file("text", "hello\n", 6, 0755), &facts, &err), 0);
	assert_int_equal(facts.kind, PROGRAM_OTHER);
	assert_int_equal(program_read(make_file("magic", "\177ELF", 4, 0755), &facts, &err), 0);
	assert_false(facts.executable);
	assert_string_not_equal(facts.trouble, "");
	assert_int_equal(program_read("/no/such/file", &facts, &err), -ENOENT);
	assert_true(program_read("/dev/null", &facts, &err) < 0);
}

static void test_find(void **state)
{
	AUTO(mem_freep) char *path = NULL;
	AUTO(mem_freep) char *other = NULL;
	AUTO(mem_freep) char *old = mem_strdup(getenv("PATH") ? getenv("PATH") : "");
	char list[128];
	struct err err = { 0 };

	assert_int_equal(which("/bin/sh", NULL, &path, &err), 0);
	assert_string_equal(path, "/bin/sh");
	assert_int_equal(which("/no/such", NULL, &other, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/no/such"));
	assert_int_equal(which("/", NULL, &other, &err), -EISDIR);
	assert_int_equal(which("", NULL, &other, &err), -ENOENT);
	assert_int_equal(which(make_file("data", "x", 1, 0644), NULL, &other, &err), -EACCES);

	(void)snprintf(list, sizeof(list), "/no/such:%s", work);
	(void)setenv("PATH", list, 1);
	(void)make_file("tool", "#!/bin/sh\n", 10, 0755);
	assert_int_equal(which("data", NULL, &other, &err), -EACCES);
	assert_int_equal(which("nothing", NULL, &other, &err), -ENOENT);
	assert_int_equal(which("tool", NULL, &other, &err), 0);
	assert_non_null(strstr(other, "/tool"));
	(void)setenv("PATH", old, 1);
}

/* xorshift64*: the damage must be the same on every machine. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dull;
}

/* Damages a copy of a program; returns its new length. Half of the damage goes to the headers and
 * the section table at the end, where it hurts. */
static size_t damage(unsigned char *bytes, size_t len, uint64_t seed)
{
	static const uint64_t values[] = {
		0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, UINT64_MAX, 0x8000000000000000ull
	};
	size_t count = 1 + next_random(&seed) % 40;

	for (size_t i = 0; i < count; i++) {
		uint64_t where = next_random(&seed) % 4, what = next_random(&seed),
			 value = next_random(&seed);
		size_t at = where == 0	 ? what % 1024
			    : where == 1 ? len - 1 - what % 2600
					 : what % len;

		if (value % 3 == 0 && at + 8 <= len)
			memcpy(bytes + at, &values[(value >> 8) % ARRAY_SIZE(values)],
			       (value >> 16) % 8 + 1);
		else
			bytes[at] = (unsigned char)(value >> 24);
	}
	/* Most keep their magic, or nothing behind it would be read. */
	if (next_random(&seed) % 16 != 0)
		memcpy(bytes, "\177ELF\2\1\1", 7);
	return next_random(&seed) % 4 == 0 ? next_random(&seed) % len : len;
}

#define ASSERT_TERMINATED(field)                             \
	if (!memchr(facts.field, '\0', sizeof(facts.field))) \
	_exit(3)

/* In a child, so that a crash or a hang names its mutation. */
static void read_damaged(const unsigned char *bytes, size_t len)
{
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	struct program_facts facts;
	struct err err = { 0 };
	char path[64];

	(void)signal(SIGSEGV, SIG_DFL);
	(void)alarm(20);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		_exit(2);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(&facts, 0xff, sizeof(facts));
	if (program_read(path, &facts, &err) != 0)
		_exit(4);
	ASSERT_TERMINATED(trouble);
	ASSERT_TERMINATED(machine);
	ASSERT_TERMINATED(loader);
	ASSERT_TERMINATED(build_id);
	ASSERT_TERMINATED(debug_link);
	ASSERT_TERMINATED(debug_file);
	ASSERT_TERMINATED(allocator);
	/* Tells that the damage left something to read. */
	_exit(facts.kind == PROGRAM_ELF && facts.executable ? 0 : 1);
}

static void damage_and_read(const char *source)
{
	AUTO(mem_freep) unsigned char *original = NULL;
	AUTO(mem_freep) unsigned char *copy = NULL;
	unsigned int survived = 0;
	struct err err = { 0 };
	size_t len;

	if (file_read(source, 1 << 24, (char **)&original, &len, &err) < 0)
		fail_msg("%s", err.message);
	copy = mem_alloc(len);
	for (unsigned int i = 0; i < MUTATIONS / 2; i++) {
		size_t damaged;
		int status;
		pid_t pid;

		memcpy(copy, original, len);
		damaged = damage(copy, len, ((uint64_t)SEED << 32) + i + 1);
		pid = fork();
		if (pid == 0)
			read_damaged(copy, damaged);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
			fail_msg("%s, mutation %u of seed %u: %s %d", source, i, SEED,
				 WIFEXITED(status) ? "exit status" : "signal",
				 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		survived += WEXITSTATUS(status) == 0;
	}
	print_message("# %s: seed %u, %u damaged copies, %u still looked like programs\n", source,
		      SEED, MUTATIONS / 2, survived);
	/* Otherwise nothing behind the header was tested. */
	assert_uint_in_range(survived, MUTATIONS / 20, MUTATIONS / 2 - 1);
}

static void test_damaged(void **state)
{
	damage_and_read("/bin/true");
	damage_and_read(PROGRAMS_DIR "/program-debug");
}

/* libdw would read behind the section: found by tests/fuzz/fuzz_elf.c. */
static void test_strings_without_end(void **state)
{
	static const char *const sections[] = { ".debug_str", ".debug_line_str" };
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/endless", work);
	for (size_t i = 0; i < 2; i++) {
		struct program_facts facts;

		run("objcopy --dump-section %s='%s/strings' '" PROGRAMS_DIR
		    "/program-debug' /dev/null",
		    sections[i], work);
		run("truncate -s -1 '%s/strings' && printf x >>'%s/strings'", work, work);
		run("cd '%s' && objcopy --update-section %s=strings '" PROGRAMS_DIR
		    "/program-debug' endless",
		    work, sections[i]);
		assert_int_equal(program_read(path, &facts, NULL), 0);
		assert_int_equal(facts.kind, PROGRAM_ELF);
		assert_false(facts.lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_without_debug),
		cmocka_unit_test(test_sanitized),
		cmocka_unit_test(test_linkage),
		cmocka_unit_test(test_own_malloc),
		cmocka_unit_test_setup_teardown(test_debug_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_debug_file_of_another_build, setup, teardown),
		cmocka_unit_test_setup_teardown(test_privileged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scripts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_script_that_runs_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test_setup_teardown(test_strings_without_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
