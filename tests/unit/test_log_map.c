/*
 * A log in memory is what its file is, holes or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "read/log_map.h"
#include "scratch.h"

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

static int sparse(const struct scratch *s, off_t len)
{
	int fd = openat(s->fd, "log", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, len), 0);
	return fd;
}

static void put(int fd, off_t at, const char *text)
{
	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
}

/* The whole of it, byte by byte. */
static void check_same(int fd)
{
	AUTO(mem_freep) char *want = NULL;
	const void *have;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	want = mem_alloc((size_t)st.st_size);
	assert_int_equal(pread(fd, want, (size_t)st.st_size, 0), st.st_size);
	have = log_map(fd, (size_t)st.st_size);
	assert_non_null(have);
	assert_memory_equal(have, want, (size_t)st.st_size);
	assert_int_equal(munmap((void *)have, (size_t)st.st_size), 0);
}

static void pieces_lie_where_they_lie_in_the_file(void **state)
{
	AUTO(fd_closep) int fd = sparse(*state, (9 << 20) + 123);

	check_same(fd);
	put(fd, 0, "the header");
	put(fd, 4095, "over the end of a page");
	put(fd, (5 << 20) + 77, "in the middle");
	check_same(fd);
	put(fd, 9 << 20, "to the very end");
	check_same(fd);
}

static void what_was_written_through_a_mapping_is_there(void **state)
{
	AUTO(fd_closep) int fd = sparse(*state, 4 << 20);
	char *view = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(view != MAP_FAILED);
	view[3 << 20] = 'x';
	view[(4 << 20) - 1] = 'y';
	check_same(fd);
	assert_int_equal(munmap(view, 4 << 20), 0);
}

static void more_pieces_than_are_kept_apart(void **state)
{
	AUTO(fd_closep) int fd = sparse(*state, 700 * 8192);

	for (off_t i = 0; i < 700; i += 2)
		put(fd, i * 8192, "here");
	check_same(fd);
}

static void a_file_without_holes(void **state)
{
	AUTO(fd_closep) int fd = sparse(*state, 0);

	for (off_t i = 0; i < 3000; i++)
		put(fd, i * 7, "seven..");
	check_same(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pieces_lie_where_they_lie_in_the_file, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_was_written_through_a_mapping_is_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(more_pieces_than_are_kept_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_without_holes, setup, teardown),
	};

	return cmocka_run_group_tests_name("log_map", tests, NULL, NULL);
}
