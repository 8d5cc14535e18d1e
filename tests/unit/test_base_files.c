/*
 * base/: files and trees that a hostile program may have left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <sys/resource.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"
#include "scratch.h"

#define NOBODY 65534

static int setup(void **state)
{
	static struct scratch s;

	scratch_make(&s);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(*state);
	return 0;
}

static bool there(const struct scratch *s, const char *name)
{
	struct stat st;

	return fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put(const struct scratch *s, const char *name, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(file_write_at(s->fd, name, text, strlen(text), &err), 0);
}

static void holds(const struct scratch *s, const char *name, const char *want)
{
	AUTO(mem_freep) char *text = NULL;
	struct err err = { 0 };
	size_t len;

	assert_int_equal(file_read(scratch_path(s, name), 1 << 20, &text, &len, &err), 0);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
}

/* ---- files ---- */

static void file_read_has_a_limit(void **state)
{
	struct scratch *s = *state;
	AUTO(mem_freep) char *big = mem_alloc(10001);
	AUTO(mem_freep) char *text = NULL;
	struct err err = { 0 };
	size_t len = 0;

	memset(big, 'x', 10000);
	put(s, "big", big);
	assert_int_equal(file_read(scratch_path(s, "big"), 10000, &text, &len, &err), 0);
	assert_int_equal(len, 10000);
	assert_int_equal(text[10000], '\0');
	mem_free(TAKE(text));
	assert_int_equal(file_read(scratch_path(s, "big"), 9999, &text, &len, &err), -EFBIG);
	assert_null(text);
	assert_non_null(strstr(err.message, "9999"));
	/* One without end, and one without a size. */
	assert_int_equal(file_read("/dev/zero", 100000, &text, &len, &err), -EFBIG);
	assert_int_equal(file_read("/proc/self/stat", 4096, &text, NULL, &err), 0);
	assert_true(strlen(text) > 20);
}

static void file_read_says_why_not(void **state)
{
	struct scratch *s = *state;
	char *text = NULL;
	struct err err = { 0 };

	assert_int_equal(file_read(scratch_path(s, "none"), 10, &text, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.message, "none"));
	assert_int_equal(file_read(s->path, 10, &text, NULL, &err), -EISDIR);
	assert_null(text);
}

static void file_write_replaces(void **state)
{
	struct scratch *s = *state;

	put(s, "file", "long text that was there");
	put(s, "file", "new");
	holds(s, "file", "new");
	put(s, "file", "");
	holds(s, "file", "");
}

static void file_write_follows_no_symlink(void **state)
{
	struct scratch *s = *state;
	struct stat st;

	put(s, "precious", "precious");
	assert_int_equal(symlinkat("precious", s->fd, "link"), 0);
	put(s, "link", "hostile");
	holds(s, "precious", "precious");
	holds(s, "link", "hostile");
	assert_int_equal(fstatat(s->fd, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	/* Nor one that leads to nowhere. */
	assert_int_equal(symlinkat("made", s->fd, "dangling"), 0);
	put(s, "dangling", "x");
	assert_false(there(s, "made"));
	/* Nor is a hard link written through. */
	assert_int_equal(linkat(s->fd, "precious", s->fd, "hard", 0), 0);
	put(s, "hard", "hostile");
	holds(s, "precious", "precious");
}

static void file_write_does_not_block_on_a_fifo(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(mkfifoat(s->fd, "fifo", 0600), 0);
	put(s, "fifo", "text");
	holds(s, "fifo", "text");
}

static void file_write_says_why_not(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(file_write_at(s->fd, "no/such", "x", 1, &err), -ENOENT);
	assert_true(err.message[0] != '\0');
}

/* The target may have put anything where we want to write. */
static void file_write_replaces_a_directory(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };
	struct stat st;

	assert_int_equal(mkdirat(s->fd, "dir", 0755), 0);
	assert_int_equal(mkdirat(s->fd, "dir/below", 0755), 0);
	assert_int_equal(file_write_at(s->fd, "dir", "x", 1, &err), 0);
	assert_int_equal(fstatat(s->fd, "dir", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 1);
}

static void fd_write_to_a_full_device_is_told(void **state)
{
	struct err err = { 0 };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, "x", 1, "full", &err), -ENOSPC);
	assert_non_null(strstr(err.message, "full"));
	assert_true(err.remedy[0] != '\0');
	assert_int_equal(fd_write_all(fd, "x", 1, "full", NULL), -ENOSPC);
	(void)close(fd);
}

static void fd_close_keeps_errno(void **state)
{
	errno = EDOM;
	fd_close(-1);
	fd_close(100000); /* not open: EBADF */
	assert_int_equal(errno, EDOM);
}

/* ---- trees ---- */

static void tree_removes_what_is_there(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(mkdirat(s->fd, "tree", 0755), 0);
	assert_int_equal(mkdirat(s->fd, "tree/a", 0755), 0);
	assert_int_equal(mkdirat(s->fd, "tree/a/b", 0755), 0);
	put(s, "tree/file", "1");
	put(s, "tree/a/b/.hidden", "2");
	put(s, "tree/a/ odd\nname\033", "3");
	assert_int_equal(mkfifoat(s->fd, "tree/a/fifo", 0), 0);
	put(s, "beside", "stays");
	assert_int_equal(tree_remove_at(s->fd, "tree", &err), 0);
	assert_false(there(s, "tree"));
	holds(s, "beside", "stays");
}

/* The copy that is made where a move is not possible; here to where a tmpfs is. */
static void tree_moves_to_another_file_system(void **state)
{
	struct scratch *s = *state;
	char dir[] = "/dev/shm/redhand-tree-XXXXXX";
	struct err err = { 0 };
	char target[16] = "";
	int there_fd;

	assert_non_null(mkdtemp(dir));
	there_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(there_fd, "tree", 0755), 0);
	assert_int_equal(mkdirat(there_fd, "tree/a", 0755), 0);
	assert_int_equal(file_write_at(there_fd, "tree/a/file", "text", 4, &err), 0);
	assert_int_equal(symlinkat("/etc/passwd", there_fd, "tree/link"), 0);
	assert_int_equal(mkfifoat(there_fd, "tree/fifo", 0600), 0);
	assert_int_equal(tree_move_at(there_fd, "tree", s->fd, "moved", &err), 0);
	assert_true(file_holds_at(s->fd, "moved/a/file", "text", 4));
	assert_int_equal(readlinkat(s->fd, "moved/link", target, sizeof(target) - 1), 11);
	assert_string_equal(target, "/etc/passwd");
	assert_true(faccessat(there_fd, "tree", F_OK, 0) < 0);
	/* Nothing that is there is overwritten. */
	assert_int_equal(mkdirat(there_fd, "tree", 0755), 0);
	assert_int_equal(file_write_at(there_fd, "tree/file", "new", 3, &err), 0);
	assert_true(tree_move_at(there_fd, "tree", s->fd, "moved", &err) < 0);
	assert_true(file_holds_at(there_fd, "tree/file", "new", 3));
	fd_close(there_fd);
	assert_int_equal(tree_remove_at(AT_FDCWD, dir, &err), 0);
}

static void tree_missing_and_plain(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(tree_remove_at(s->fd, "nothing", &err), 0);
	put(s, "file", "x");
	assert_int_equal(tree_remove_at(s->fd, "file", &err), 0);
	assert_false(there(s, "file"));
	assert_int_equal(tree_remove_at(-1, "x", &err), -EBADF);
	assert_true(err.message[0] != '\0');
}

static void tree_follows_no_symlink(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(mkdirat(s->fd, "outside", 0755), 0);
	put(s, "outside/precious", "precious");
	assert_int_equal(mkdirat(s->fd, "tree", 0755), 0);
	assert_int_equal(symlinkat("../outside", s->fd, "tree/dir-link"), 0);
	assert_int_equal(symlinkat("../outside/precious", s->fd, "tree/file-link"), 0);
	assert_int_equal(symlinkat("..", s->fd, "tree/up"), 0);
	assert_int_equal(symlinkat("nowhere", s->fd, "tree/dangling"), 0);
	assert_int_equal(symlinkat("outside", s->fd, "top-link"), 0);
	assert_int_equal(tree_remove_at(s->fd, "tree", &err), 0);
	assert_false(there(s, "tree"));
	assert_int_equal(tree_remove_at(s->fd, "top-link", &err), 0);
	assert_false(there(s, "top-link"));
	holds(s, "outside/precious", "precious");
}

static void many_entries_are_removed(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };
	char name[64];

	assert_int_equal(mkdirat(s->fd, "tree", 0755), 0);
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "tree/%d", i);
		assert_int_equal(i % 2 ? mkdirat(s->fd, name, 0755)
				       : mknodat(s->fd, name, S_IFREG | 0600, 0),
				 0);
	}
	assert_int_equal(tree_remove_at(s->fd, "tree", &err), 0);
	assert_false(there(s, "tree"));
}

/* Makes a chain of directories below the working directory, deeper than any path may be long. */
static int make_chain(const char *name, unsigned int depth, mode_t mode)
{
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

	for (unsigned int i = 0; r == 0 && i < depth; i++) {
		int next;

		r = mkdirat(dir, i == 0 ? name : "d", 0700);
		next = openat(dir, i == 0 ? name : "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (i > 0 && mode != 0700)
			(void)fchmod(dir, mode);
		(void)close(dir);
		dir = next;
	}
	if (mode != 0700)
		(void)fchmod(dir, mode);
	(void)close(dir);
	return r;
}

static int remove_deep(void *arg)
{
	struct scratch *s = arg;
	struct err err = { 0 };

	CHILD_WANTS(fchdir(s->fd) == 0);
	CHILD_WANTS(make_chain("deep", 3000, 0700) == 0);
	CHILD_WANTS(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 200, 200 }) == 0);
	if (tree_remove_at(s->fd, "deep", &err) < 0)
		(void)fprintf(stderr, "%s\n", err.message);
	CHILD_WANTS(!there(s, "deep"));
	return 0;
}

static void deep_trees_need_few_descriptors(void **state)
{
	assert_int_equal(in_child(remove_deep, *state), 0);
}

/* The place that deep directories are moved to is the target's as well: its names may be taken. */
static int remove_deep_with_taken_names(void *arg)
{
	struct scratch *s = arg;
	struct err err = { 0 };
	char name[64];

	CHILD_WANTS(fchdir(s->fd) == 0);
	CHILD_WANTS(mkdir("deep", 0755) == 0);
	CHILD_WANTS(chdir("deep") == 0);
	/* Enough chains and taken names that some chain is met before some name, in any order. */
	for (int i = 0; i < 8; i++) {
		(void)snprintf(name, sizeof(name), "chain%d", i);
		CHILD_WANTS(make_chain(name, 150, 0700) == 0);
	}
	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), ".deep.%d", i);
		CHILD_WANTS(mkdir(name, 0755) == 0);
		(void)snprintf(name, sizeof(name), ".deep.%d/full", i);
		CHILD_WANTS(mkdir(name, 0755) == 0);
	}
	for (int i = 40; i < 80; i++) {
		(void)snprintf(name, sizeof(name), ".deep.%d", i);
		CHILD_WANTS(mknod(name, S_IFREG | 0600, 0) == 0);
	}
	if (tree_remove_at(s->fd, "deep", &err) < 0)
		(void)fprintf(stderr, "%s\n", err.message);
	CHILD_WANTS(!there(s, "deep"));
	return 0;
}

static void deep_trees_with_taken_names(void **state)
{
	assert_int_equal(in_child(remove_deep_with_taken_names, *state), 0);
}

/* Permissions mean nothing to root, so this needs somebody else. */
static int become_nobody(struct scratch *s)
{
	if (geteuid() != 0)
		return 0;
	return fchown(s->fd, NOBODY, NOBODY) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0 ? -1
											     : 0;
}

static int remove_unreadable(void *arg)
{
	static const mode_t modes[] = { 0000, 0100, 0200, 0300, 0400, 0500, 0600 };
	struct scratch *s = arg;
	char name[64];

	CHILD_WANTS(become_nobody(s) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct err err = { 0 };

		CHILD_WANTS(mkdirat(s->fd, "tree", 0700) == 0);
		CHILD_WANTS(mkdirat(s->fd, "tree/shut", 0700) == 0);
		CHILD_WANTS(mkdirat(s->fd, "tree/shut/inner", 0700) == 0);
		CHILD_WANTS(mknodat(s->fd, "tree/shut/file", S_IFREG | 0600, 0) == 0);
		CHILD_WANTS(mknodat(s->fd, "tree/shut/inner/file", S_IFREG, 0) == 0);
		(void)snprintf(name, sizeof(name), "tree/shut/inner");
		CHILD_WANTS(fchmodat(s->fd, name, modes[i], 0) == 0);
		CHILD_WANTS(fchmodat(s->fd, "tree/shut", modes[i], 0) == 0);
		CHILD_WANTS(fchmodat(s->fd, "tree", modes[i], 0) == 0);
		if (tree_remove_at(s->fd, "tree", &err) < 0)
			(void)fprintf(stderr, "mode %03o: %s\n", (unsigned int)modes[i],
				      err.message);
		CHILD_WANTS(!there(s, "tree"));
	}
	return 0;
}

static void unreadable_directories_are_removed(void **state)
{
	assert_int_equal(in_child(remove_unreadable, *state), 0);
}

static int remove_deep_and_unreadable(void *arg)
{
	static const mode_t modes[] = { 0000, 0400, 0500 };
	struct scratch *s = arg;

	CHILD_WANTS(become_nobody(s) == 0);
	CHILD_WANTS(fchdir(s->fd) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct err err = { 0 };

		CHILD_WANTS(make_chain("deep", 200, modes[i]) == 0);
		if (tree_remove_at(s->fd, "deep", &err) < 0)
			(void)fprintf(stderr, "mode %03o: %s\n", (unsigned int)modes[i],
				      err.message);
		CHILD_WANTS(!there(s, "deep"));
	}
	return 0;
}

static void deep_and_unreadable_is_removed(void **state)
{
	assert_int_equal(in_child(remove_deep_and_unreadable, *state), 0);
}

/* What cannot be removed is told, with its name. */
static int remove_of_others(void *arg)
{
	struct scratch *s = arg;
	struct err err = { 0 };

	CHILD_WANTS(mkdirat(s->fd, "tree", 0777) == 0);
	CHILD_WANTS(mkdirat(s->fd, "tree/roots", 0755) == 0);
	CHILD_WANTS(mknodat(s->fd, "tree/roots/file", S_IFREG | 0600, 0) == 0);
	CHILD_WANTS(become_nobody(s) == 0);
	CHILD_WANTS(tree_remove_at(s->fd, "tree", &err) < 0);
	CHILD_WANTS(strstr(err.message, "file") != NULL);
	CHILD_WANTS(there(s, "tree/roots/file"));
	return 0;
}

static void what_cannot_be_removed_is_told(void **state)
{
	if (geteuid() != 0)
		skip_because("only root can make a directory that is somebody else's");
	assert_int_equal(in_child(remove_of_others, *state), 0);
}

static void tree_make_makes_parents(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(tree_make(scratch_path(s, "a/b/c"), &err), 0);
	assert_true(there(s, "a/b/c"));
	assert_int_equal(tree_make(scratch_path(s, "a/b/c"), &err), 0);
	assert_int_equal(tree_make(scratch_path(s, "x//y/"), &err), 0);
	assert_true(there(s, "x/y"));
	put(s, "file", "x");
	assert_int_equal(tree_make(scratch_path(s, "file/below"), &err), -ENOTDIR);
	assert_non_null(strstr(err.message, "file/below"));
	assert_int_equal(tree_make("/", &err), 0);
	assert_int_equal(tree_make("/proc/nothing/here", &err), -ENOENT);
}

static void tree_make_of_no_name(void **state)
{
	struct err err = { 0 };

	assert_int_equal(tree_make("", &err), -ENOENT);
	assert_true(err.message[0] != '\0');
}

/* ---- faults ---- */

#ifdef REDHAND_FAULTS
static int fault_counts(void *arg)
{
	(void)setenv("REDHAND_FAULT", "here:3:EMFILE", 1);
	CHILD_WANTS(fault_hits("there") == 0);
	CHILD_WANTS(fault_hits("her") == 0);
	CHILD_WANTS(fault_hits("here") == 0);
	CHILD_WANTS(fault_hits("here") == 0);
	CHILD_WANTS(fault_hits("here") == EMFILE);
	CHILD_WANTS(fault_hits("here") == 0);
	return 0;
}

static void the_nth_call_fails(void **state)
{
	assert_int_equal(in_child(fault_counts, NULL), 0);
}

static int write_fault(void *arg)
{
	struct scratch *s = arg;
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", "write:1:ENOSPC", 1);
	CHILD_WANTS(file_write_at(s->fd, "file", "text", 4, &err) == -ENOSPC);
	CHILD_WANTS(strstr(err.message, "cannot write 'file'") != NULL);
	CHILD_WANTS(strstr(err.message, "No space left") != NULL);
	CHILD_WANTS(err.remedy[0] != '\0');
	CHILD_WANTS(file_write_at(s->fd, "file", "text", 4, &err) == 0);
	return 0;
}

static void a_failing_write_is_told(void **state)
{
	assert_int_equal(in_child(write_fault, *state), 0);
}

static int mkdir_fault(void *arg)
{
	struct scratch *s = arg;
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", "mkdir:1:EACCES", 1);
	CHILD_WANTS(tree_make(scratch_path(s, "new"), &err) == -EACCES);
	CHILD_WANTS(strstr(err.message, "/new") != NULL);
	CHILD_WANTS(!there(s, "new"));
	return 0;
}

static void a_failing_mkdir_is_told(void **state)
{
	assert_int_equal(in_child(mkdir_fault, *state), 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_read_has_a_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(file_read_says_why_not, setup, teardown),
		cmocka_unit_test_setup_teardown(file_write_replaces, setup, teardown),
		cmocka_unit_test_setup_teardown(file_write_follows_no_symlink, setup, teardown),
		cmocka_unit_test_setup_teardown(file_write_does_not_block_on_a_fifo, setup,
						teardown),
		cmocka_unit_test_setup_teardown(file_write_says_why_not, setup, teardown),
		cmocka_unit_test_setup_teardown(file_write_replaces_a_directory, setup, teardown),
		cmocka_unit_test(fd_write_to_a_full_device_is_told),
		cmocka_unit_test(fd_close_keeps_errno),
		cmocka_unit_test_setup_teardown(tree_removes_what_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(tree_moves_to_another_file_system, setup, teardown),
		cmocka_unit_test_setup_teardown(tree_missing_and_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(tree_follows_no_symlink, setup, teardown),
		cmocka_unit_test_setup_teardown(many_entries_are_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(deep_trees_need_few_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(deep_trees_with_taken_names, setup, teardown),
		cmocka_unit_test_setup_teardown(unreadable_directories_are_removed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(deep_and_unreadable_is_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_removed_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(tree_make_makes_parents, setup, teardown),
		cmocka_unit_test(tree_make_of_no_name),
#ifdef REDHAND_FAULTS
		cmocka_unit_test(the_nth_call_fails),
		cmocka_unit_test_setup_teardown(a_failing_write_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(a_failing_mkdir_is_told, setup, teardown),
#endif
	};

	return cmocka_run_group_tests_name("base_files", tests, NULL, NULL);
}
