#include "run/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "run/process_family.h"
#include "run/slot.h"

/* In pauses of a millisecond. What takes longer to die is stuck in the kernel. */
#define KILL_TRIES 10000
#define HOLD_TICK_MS 10

static void end_all(void)
{
	for (int tries = 0; tries < KILL_TRIES; tries++) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		(void)family_signal(SIGKILL);
		pause_ms(1);
	}
}

/* Not redhand-…: pkill -9 redhand is to leave somebody who ends what was started. */
static void keeper_begin(unsigned int slot)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "rh-keep%u", slot);
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

_Noreturn static void hold(int socket, pid_t program)
{
	struct pollfd end = { .fd = socket, .events = POLLIN };
	int status = SIGKILL;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	while (waitpid(program, &status, WNOHANG) == 0 && poll(&end, 1, HOLD_TICK_MS) <= 0)
		;
	end_all();
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int keeper_start(keeper_start_fn start, void *ctx, pid_t *ret, int *ret_hold)
{
	int ends[2], code = -ECHILD;
	pid_t pid, program = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		fd_close(ends[0]);
		keeper_begin(0);
		code = start(ctx, &program);
		/* Who waits for this may be gone: hold() sees it. */
		(void)send(ends[1], &code, sizeof(code), MSG_NOSIGNAL);
		if (code < 0)
			_exit(0);
		hold(ends[1], program);
	}
	if (pid < 0)
		code = -errno;
	fd_close(ends[1]);
	if (pid > 0 && read(ends[0], &code, sizeof(code)) == sizeof(code) && code == 0) {
		*ret = pid;
		*ret_hold = ends[0];
		return 0;
	}
	fd_close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return code;
}

_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings)
{
	sigset_t all;
	pid_t pid;

	keeper_begin(slot);
	(void)setsid();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid = fork();
	if (pid == 0)
		slot_main(socket, slot, settings);
	fd_close(socket);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	end_all();
	_exit(0);
}
