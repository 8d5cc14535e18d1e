#include "run/restart.h"
#include "base/now.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>

#define NS_PER_MS 1000000u
/* include/linux/errno.h of the kernel: taken up again unless a handler is run, then EINTR. */
#define ERESTARTNOHAND 514

static void set(pid_t tid, size_t offset, long value)
{
	(void)ptrace(PTRACE_POKEUSER, tid, offset, value);
}

/* What is left of the limit goes into the register that holds it. By that a call that goes on is
 * told from the next one of a loop. Time before the first stop is not known: a limit is at most
 * doubled. */
static void limit(pid_t tid, const struct user_regs_struct *regs, struct restart *restart)
{
	int limit_ms = (int)regs->r10;
	uint64_t now = clock_ns(), left;

	if (restart->instruction != regs->rip || restart->left_ms != limit_ms)
		*restart = (struct restart){ .instruction = regs->rip,
					     .deadline_ns = now + (uint64_t)limit_ms * NS_PER_MS };
	left = restart->deadline_ns > now ? restart->deadline_ns - now : 0;
	restart->left_ms = (int)((left + NS_PER_MS - 1) / NS_PER_MS);
	set(tid, offsetof(struct user, regs.r10), restart->left_ms);
}

void restart_call(pid_t tid, struct restart *restart)
{
	struct user_regs_struct regs;
	bool again = false;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) < 0 || (long)regs.orig_rax < 0 ||
	    (long)regs.rax != -EINTR)
		return;
	switch (regs.orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		again = true;
		if ((int)regs.r10 > 0)
			limit(tid, &regs, restart);
		break;
	case SYS_semop:
		again = true;
		break;
	case SYS_semtimedop:
	case SYS_epoll_pwait2:
		again = regs.r10 == 0;
		break;
	case SYS_rt_sigtimedwait:
		again = regs.rdx == 0;
		break;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		again = regs.r8 == 0;
		break;
	default:
		break;
	}
	if (again)
		set(tid, offsetof(struct user, regs.rax), -ERESTARTNOHAND);
}
