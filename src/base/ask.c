#include "base/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"

static int start(const char *const *argv, int out, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int code;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, out, 1);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	code = posix_spawnp(ret, argv[0], &actions, NULL, (char *const *)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -code;
}

/* To its end, or the program would wait for a reader; what is too much is dropped. */
static void drain(int fd, struct strbuf *ret)
{
	char block[4096];

	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (ret->len + (size_t)n <= ASK_MAX)
			strbuf_add(ret, block, (size_t)n);
	}
}

int ask(const char *const *argv, struct strbuf *ret_out, int *ret_status, struct err *err)
{
	AUTO(fd_closep) int reader = -1;
	AUTO(fd_closep) int writer = -1;
	int ends[2], status = 0, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set_errno(err, -errno, "cannot make a pipe");
	reader = ends[0];
	writer = ends[1];
	r = start(argv, writer, &pid);
	if (r < 0)
		return err_set_errno(err, r, "cannot run '%s'", argv[0]);
	fd_close(writer);
	fd_init(&writer);
	drain(reader, ret_out);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set_errno(err, -errno, "cannot wait for '%s'", argv[0]);
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}
