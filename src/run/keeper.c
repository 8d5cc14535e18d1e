#include "run/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "run/process_family.h"
#include "run/slot.h"

/* In pauses of a millisecond. What takes longer to die is stuck in the kernel. */
#define KILL_TRIES 10000

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

_Noreturn void keeper_main(int socket, unsigned int slot, const struct trial_settings *settings)
{
	sigset_t all;
	char name[16];
	pid_t pid;

	/* Not redhand-…: pkill -9 redhand is to leave somebody who ends the trials. */
	(void)snprintf(name, sizeof(name), "rh-keep%u", slot);
	(void)prctl(PR_SET_NAME, name);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
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
