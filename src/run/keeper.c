#include "run/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tmpdir.h"
#include "run/process_family.h"
#include "run/slot.h"

/* In pauses of a millisecond. What takes longer to die is stuck in the kernel. */
#define KILL_TRIES 10000
/* A process that was killed is its children's parent until its memory is given back. */
#define DYING_MS 10000

static void end_all(void)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	for (int tries = 0; tries < KILL_TRIES; tries++) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		(void)family_signal(SIGKILL);
		(void)nanosleep(&pause, NULL);
	}
}

/* A slot that was killed: by whoever kills redhand, too, perhaps. redhand waits for the keeper, so
 * a child of the keeper watches whether redhand ends. */
static void watch_redhand_end(pid_t redhand)
{
	struct pollfd end = { .events = POLLIN };

	if (fork() != 0)
		return;
	end.fd = (int)syscall(SYS_pidfd_open, redhand, 0);
	if (end.fd < 0 ? errno == ESRCH : poll(&end, 1, DYING_MS) > 0)
		tmpdir_remove_all();
	_exit(0);
}

_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings,
			   pid_t redhand)
{
	sigset_t all;
	char name[16];
	int status = 0;
	pid_t pid;

	(void)snprintf(name, sizeof(name), "redhand-keep%u", slot);
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)setsid();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid = fork();
	if (pid == 0)
		slot_main(socket, slot, settings);
	fd_close(socket);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	end_all();
	if (getppid() != redhand)
		tmpdir_remove_all();
	else if (WIFSIGNALED(status))
		watch_redhand_end(redhand);
	_exit(0);
}
