/*
 * Older ways to say sigaction. libc's own would go past our hook: the handler would be gone that
 * records, and the target be shown ours.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/core/agent.h"

#define SIGNALS 65
#define HOLD ((sighandler_t)2) /* SIG_HOLD, which needs another standard's macros */

/* Which signals interrupt system calls though signal() sets their handler: siginterrupt(3). */
static uint64_t interrupting;

static bool is_signal(int signo)
{
	return signo > 0 && signo < SIGNALS;
}

static sighandler_t signal_with(int signo, sighandler_t wanted, int flags)
{
	struct sigaction action, old;

	memset(&action, 0, sizeof(action));
	action.sa_handler = wanted;
	action.sa_flags = flags;
	if (wanted == SIG_ERR || !is_signal(signo)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (sigaction(signo, &action, &old))
		return SIG_ERR;
	return old.sa_handler;
}

/* signal(2): BSD semantics, restart and the signal blocked meanwhile. */
EXPORT sighandler_t signal(int signo, sighandler_t wanted)
{
	bool interrupts = is_signal(signo) && (interrupting & 1ull << (signo - 1));

	return signal_with(signo, wanted, interrupts ? 0 : SA_RESTART);
}

EXPORT sighandler_t bsd_signal(int signo, sighandler_t wanted);
EXPORT sighandler_t bsd_signal(int signo, sighandler_t wanted)
{
	return signal(signo, wanted);
}

EXPORT sighandler_t ssignal(int signo, sighandler_t wanted)
{
	return signal(signo, wanted);
}

EXPORT sighandler_t sysv_signal(int signo, sighandler_t wanted)
{
	return signal_with(signo, wanted, (int)(SA_RESETHAND | SA_NODEFER));
}

EXPORT sighandler_t __sysv_signal(int signo, sighandler_t wanted);
EXPORT sighandler_t __sysv_signal(int signo, sighandler_t wanted)
{
	return sysv_signal(signo, wanted);
}

EXPORT sighandler_t sigset(int signo, sighandler_t wanted);
EXPORT sighandler_t sigset(int signo, sighandler_t wanted)
{
	struct sigaction old;
	sighandler_t before;
	sigset_t one, mask;
	bool held;

	if (wanted == SIG_ERR || !is_signal(signo)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	sigemptyset(&one);
	sigaddset(&one, signo);
	if (wanted == HOLD) {
		if (sigprocmask(SIG_BLOCK, &one, &mask) || sigaction(signo, NULL, &old))
			return SIG_ERR;
		before = old.sa_handler;
	} else {
		before = signal_with(signo, wanted, 0);
		if (before == SIG_ERR || sigprocmask(SIG_UNBLOCK, &one, &mask))
			return SIG_ERR;
	}
	held = sigismember(&mask, signo) > 0;
	return held ? HOLD : before;
}

EXPORT int sigignore(int signo);
EXPORT int sigignore(int signo)
{
	return signal_with(signo, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

EXPORT int siginterrupt(int signo, int interrupt)
{
	struct sigaction action;

	if (sigaction(signo, NULL, &action))
		return -1;
	if (interrupt) {
		interrupting |= 1ull << (signo - 1);
		action.sa_flags &= ~SA_RESTART;
	} else {
		interrupting &= ~(1ull << (signo - 1));
		action.sa_flags |= SA_RESTART;
	}
	return sigaction(signo, &action, NULL);
}
