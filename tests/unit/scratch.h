#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What several unit tests need: a directory of their own, and a process of
 * their own for what would spoil this one (limits, user ids, fault counters).
 */

/* For a test that cannot run here; run-tap makes the reason part of the result. */
#define skip_because(why)                                \
	do {                                             \
		print_message("# skipped: %s\n", (why)); \
		skip();                                  \
	} while (0)

/* A directory that scratch_remove() takes away again. Its path is in `path`. */
struct scratch {
	char path[64];
	int fd;
};

static inline void scratch_make(struct scratch *s)
{
	(void)strcpy(s->path, "/tmp/redhand-unit.XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void scratch_remove(struct scratch *s)
{
	pid_t pid = fork();

	(void)close(s->fd);
	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", s->path, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

/* "PATH/NAME" in static storage; four of them are valid at a time. */
static inline const char *scratch_path(const struct scratch *s, const char *name)
{
	static char paths[4][512];
	static unsigned int next;
	char *path = paths[next++ % 4];

	(void)snprintf(path, sizeof(paths[0]), "%s/%s", s->path, name);
	return path;
}

/* Runs fn in a process of its own. Its result (0: fine), or 1000 + the signal that ended it. */
static inline int in_child(int (*fn)(void *arg), void *arg)
{
	int status = 0;
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS };

		/* cmocka's handlers would go on with the parent's tests in here. */
		for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
			(void)signal(crashes[i], SIG_DFL);
		(void)alarm(120);
		_exit(fn(arg));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* In such a process cmocka's asserts would jump into the parent's test: say it and give up. */
#define CHILD_WANTS(condition)                                                           \
	do {                                                                             \
		if (!(condition)) {                                                      \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, \
				      #condition);                                       \
			return 1;                                                        \
		}                                                                        \
	} while (0)
