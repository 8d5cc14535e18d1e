/*
 * The directory of a trial: what one trial did to it never reaches the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include "base/fd.h"
#include "run/trial_dir.h"
#include "scratch.h"

struct fixture {
	struct scratch scratch;
	int tmp;
	struct room room;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	scratch_make(&f->scratch);
	assert_int_equal(mkdirat(f->scratch.fd, "tmps", 0700), 0);
	f->tmp = openat(f->scratch.fd, "tmps", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	room_init(&f->room, f->scratch.fd, 3, f->tmp);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fd_close(f->tmp);
	scratch_remove(&f->scratch);
	free(f);
	return 0;
}

static ino_t inode(const struct fixture *f, const char *name)
{
	struct stat st;

	return fstatat(f->scratch.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

static mode_t mode(const struct fixture *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->scratch.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static void opens(const struct fixture *f, const char *name)
{
	struct err err;

	assert_int_equal(room_open(&f->room, name, &err), 0);
	assert_int_equal(mode(f, name), 0700);
}

static void drops(const struct fixture *f, const char *name)
{
	struct err err;

	assert_int_equal(room_drop(&f->room, name, &err), 0);
	assert_int_equal(inode(f, name), 0);
}

static void writes(const struct fixture *f, const char *name)
{
	struct err err;

	assert_int_equal(file_write_at(f->scratch.fd, name, "text", 4, &err), 0);
}

/* An empty room with an empty temporary directory, as it is when it is new. */
static void is_clean(const struct fixture *f, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "tmps/%s", name);
	assert_int_equal(mode(f, path), 0700);
	assert_int_equal(unlinkat(f->scratch.fd, path, AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(f->scratch.fd, name, AT_REMOVEDIR), 0);
}

static void test_handed_on(void **state)
{
	struct fixture *f = *state;
	ino_t room, tmp;

	opens(f, "1");
	room = inode(f, "1");
	tmp = inode(f, "tmps/1");
	drops(f, "1");
	opens(f, "2");
	assert_int_equal(inode(f, "2"), room);
	assert_int_equal(inode(f, "tmps/2"), tmp);
	/* While it is in use there is none to spare. */
	opens(f, "3");
	assert_int_not_equal(inode(f, "3"), room);
	is_clean(f, "3");
	is_clean(f, "2");
}

static void test_cleared(void **state)
{
	struct fixture *f = *state;

	opens(f, "1");
	writes(f, "precious");
	writes(f, "1/events.1.0.rhl");
	assert_int_equal(mkdirat(f->scratch.fd, "1/deep", 0700), 0);
	writes(f, "1/deep/file");
	assert_int_equal(symlinkat("../precious", f->scratch.fd, "1/link"), 0);
	assert_int_equal(mkfifoat(f->scratch.fd, "1/fifo", 0600), 0);
	drops(f, "1");
	opens(f, "2");
	is_clean(f, "2");
	assert_true(file_holds_at(f->scratch.fd, "precious", "text", 4));
}

static void add_file(struct fixture *f)
{
	writes(f, "tmps/1/file");
}

static void add_hidden(struct fixture *f)
{
	assert_int_equal(mkdirat(f->scratch.fd, "tmps/1/.hidden", 0), 0);
}

static void change_mode(struct fixture *f)
{
	assert_int_equal(fchmodat(f->scratch.fd, "tmps/1", 0500, 0), 0);
}

static void change_room(struct fixture *f)
{
	assert_int_equal(fchmodat(f->scratch.fd, "1", 0755, 0), 0);
}

static void remove_tmp(struct fixture *f)
{
	assert_int_equal(unlinkat(f->scratch.fd, "tmps/1", AT_REMOVEDIR), 0);
}

static void link_tmp(struct fixture *f)
{
	remove_tmp(f);
	assert_int_equal(symlinkat("../elsewhere", f->scratch.fd, "tmps/1"), 0);
}

/* What a trial did to its directories is not handed on: the next room is a new one. */
static void test_touched(void **state)
{
	static void (*const ways[])(struct fixture *) = { add_file,    add_hidden, change_mode,
							  change_room, remove_tmp, link_tmp };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		opens(f, "1");
		ways[i](f);
		drops(f, "1");
		assert_int_equal(inode(f, ways[i] == change_room ? "spare-3" : "tmps/spare-3"), 0);
		opens(f, "2");
		is_clean(f, "2");
	}
}

static void test_attributes(void **state)
{
	struct fixture *f = *state;
	char names[64];

	opens(f, "1");
	if (setxattr(scratch_path(&f->scratch, "tmps/1"), "user.left", "x", 1, 0) < 0) {
		assert_int_equal(errno, ENOTSUP); /* then there are none to be handed on */
		return;
	}
	drops(f, "1");
	assert_int_equal(inode(f, "tmps/spare-3"), 0);
	opens(f, "2");
	assert_true(getxattr(scratch_path(&f->scratch, "tmps/2"), "user.left", names,
			     sizeof(names)) < 0);
}

/* Somebody else's thing under the name of the spare room is never taken for it. */
static void test_spare_replaced(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(mkdirat(f->scratch.fd, "elsewhere", 0755), 0);
	assert_int_equal(symlinkat("elsewhere", f->scratch.fd, "spare-3"), 0);
	opens(f, "1");
	is_clean(f, "1");
	room_end(&f->room);
	assert_int_equal(inode(f, "spare-3"), 0);
	assert_int_not_equal(inode(f, "elsewhere"), 0);

	writes(f, "spare-3");
	opens(f, "1");
	drops(f, "1"); /* cannot be put aside over a file, and goes */
	room_end(&f->room);
	assert_int_equal(inode(f, "spare-3"), 0);
}

static void test_left_over(void **state)
{
	struct fixture *f = *state;

	/* From a redhand that was killed in this very trial, while another room is to spare. */
	opens(f, "1");
	drops(f, "1");
	assert_int_equal(mkdirat(f->scratch.fd, "2", 0755), 0);
	writes(f, "2/old");
	opens(f, "2");
	is_clean(f, "2");
	room_end(&f->room);
	assert_int_equal(inode(f, "spare-3"), 0);
}

/* The next trial's plan is mostly the same: it may stay, if nobody else can write to it. */
static void test_plan(void **state)
{
	struct fixture *f = *state;

	opens(f, "1");
	writes(f, "1/plan");
	drops(f, "1");
	opens(f, "2");
	assert_true(file_holds_at(f->scratch.fd, "2/plan", "text", 4));
	assert_false(file_holds_at(f->scratch.fd, "2/plan", "texts", 5));
	assert_false(file_holds_at(f->scratch.fd, "2/plan", "tex", 3));
	assert_false(file_holds_at(f->scratch.fd, "2/plan", "next", 4));
	assert_int_equal(linkat(f->scratch.fd, "2/plan", f->scratch.fd, "elsewhere", 0), 0);
	drops(f, "2");
	opens(f, "3");
	is_clean(f, "3");
	assert_false(file_holds_at(f->scratch.fd, "3/plan", "text", 4));
}

static void leaves(const struct fixture *f, const char *name, bool keep)
{
	struct err err;

	assert_int_equal(room_leave(&f->room, name, keep, &err), 0);
	assert_int_not_equal(inode(f, name), 0);
}

/* What a trial left in its temporary directory goes where tools that walk through a project do not
 * look. */
static void test_left_behind(void **state)
{
	struct fixture *f = *state;

	opens(f, "1");
	writes(f, "tmps/1/file");
	leaves(f, "1", true);
	assert_int_equal(inode(f, "tmps/1"), 0);
	assert_true(file_holds_at(f->scratch.fd, "1/.tmp/file", "text", 4));
	opens(f, "2");
	writes(f, "tmps/2/file");
	leaves(f, "2", false);
	assert_int_equal(inode(f, "tmps/2"), 0);
	assert_int_equal(inode(f, "2/.tmp"), 0);
	/* An empty one says nothing. */
	opens(f, "3");
	leaves(f, "3", true);
	assert_int_equal(inode(f, "3/.tmp"), 0);
	assert_int_not_equal(inode(f, "tmps/spare-3"), 0);
}

static void test_shared_tmp(void **state)
{
	struct fixture *f = *state;
	ino_t room;

	f->room.tmp = -1;
	opens(f, "1");
	room = inode(f, "1");
	assert_int_equal(inode(f, "tmps/1"), 0);
	drops(f, "1");
	opens(f, "2");
	assert_int_equal(inode(f, "2"), room);
	assert_int_equal(unlinkat(f->scratch.fd, "2", AT_REMOVEDIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_handed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cleared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_touched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spare_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plan, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_tmp, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
