#include "doctor/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"

/* A limit of one byte, not zero: for a pattern that pipes cores into a handler the kernel ignores
 * zero, and takes one as "do not dump" (fs/coredump.c). */
static void leave_no_core(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max > 0 ? 1 : 0;
	(void)setrlimit(RLIMIT_CORE, &limit);
}

static void child_prepare(pid_t parent)
{
	static const int signals[] = { SIGSEGV, SIGBUS,	 SIGTRAP, SIGILL,  SIGFPE,  SIGABRT, SIGSYS,
				       SIGINT,	SIGTERM, SIGHUP,  SIGALRM, SIGCHLD, SIGPIPE };
	sigset_t none;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)signal(signals[i], SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	leave_no_core();
}

/* Waits until the child is gone (its end of the pipe closes) or the time is over. */
static enum isolate_end wait_for_end(int fd, uint64_t timeout_ns)
{
	uint64_t deadline = clock_ns() + timeout_ns;
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_ns();
		int n;

		if (now >= deadline)
			return ISOLATE_TIMEOUT;
		n = poll(&poller, 1, (int)((deadline - now) / 1000000u) + 1);
		if (n > 0)
			return ISOLATE_RETURNED;
		if (n < 0 && errno != EINTR)
			return ISOLATE_TIMEOUT;
	}
}

static void reap(pid_t pid, enum isolate_end waited, struct isolate_outcome *ret)
{
	siginfo_t info = { 0 };
	int status = 0;

	/* Its zombie keeps the group's number from being given to somebody else until the last
	 * of the group is killed. */
	if (waited == ISOLATE_RETURNED)
		while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
	(void)kill(-pid, SIGKILL);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->end = waited;
	ret->signal = 0;
	if (waited == ISOLATE_TIMEOUT)
		return;
	if (WIFSIGNALED(status)) {
		ret->end = ISOLATE_DIED;
		ret->signal = WTERMSIG(status);
	} else if (WEXITSTATUS(status) != 0) {
		ret->end = ISOLATE_DIED;
	}
}

int isolate_run(void (*fn)(void *data), void *data, size_t size, uint64_t timeout_ns,
		struct isolate_outcome *ret, struct err *err)
{
	pid_t parent = getpid(), pid;
	int pipes[2], r;
	void *shared;

	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return err_set_errno(err, -errno, "cannot map memory to share with a child");
	memcpy(shared, data, size);
	if (pipe2(pipes, O_CLOEXEC) < 0) {
		r = err_set_errno(err, -errno, "cannot make a pipe");
		goto out;
	}
	pid = fork();
	if (pid == 0) {
		child_prepare(parent);
		fn(shared);
		_exit(0);
	}
	fd_close(pipes[1]);
	if (pid < 0) {
		r = err_set_errno(err, -errno, "cannot start a child process");
		fd_close(pipes[0]);
		goto out;
	}
	(void)setpgid(pid, pid);
	reap(pid, wait_for_end(pipes[0], timeout_ns), ret);
	fd_close(pipes[0]);
	memcpy(data, shared, size);
	r = 0;
out:
	(void)munmap(shared, size);
	return r;
}
