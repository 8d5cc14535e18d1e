/*
 * Changing from the target's alternate stack to ours, and back.
 *
 * The kernel knows one alternate stack per thread, and takes whoever runs elsewhere for somebody
 * who does not use it: a fault in our part would be delivered at the top of the target's stack,
 * over the frame that we return through. So ours is the kernel's while we are on it. It can be set
 * only from outside of the one in force (EPERM, man sigaltstack): ours from ours, the target's from
 * its own. No signal comes between.
 */
#include "agent/core/own_stack.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/thread.h"

/* Faults of our own are part of our work: they never wait. */
#define FAULTS                                                                  \
	(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGTRAP - 1) | \
	 1ull << (SIGSYS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1))

struct change {
	struct thread *self;
	void (*work)(void *arg);
	void *arg;
	stack_t before; /* the kernel's: the target's, or none where it disarms by itself */
	uint64_t mask;
};

static void work_on_ours(void *ctx)
{
	struct change *change = ctx;
	stack_t ours = { .ss_sp = change->self->altstack,
			 .ss_size = sizeof(change->self->altstack) };

	(void)raw_syscall2(SYS_sigaltstack, &ours, &change->before);
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &change->mask, 0, 8);
	change->work(change->arg);
}

static bool is_on_targets(const struct thread *self, uint64_t sp)
{
	return !(self->signals.target_stack.ss_flags & SS_DISABLE) &&
	       sp - (uint64_t)self->signals.target_stack.ss_sp < self->signals.target_stack.ss_size;
}

void own_stack_run_sigsafe(void (*work)(void *arg), void *arg)
{
	struct change change = { .self = thread_self, .work = work, .arg = arg };
	uint64_t all = ~FAULTS;

	if (!change.self || !is_on_targets(change.self, (uint64_t)&change) || agent.sandboxed ||
	    raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &all, &change.mask, 8)) {
		work(arg);
		return;
	}
	arch_on_stack(change.self->altstack + sizeof(change.self->altstack), work_on_ours, &change);
	change.before.ss_flags &= ~SS_ONSTACK;
	(void)raw_syscall2(SYS_sigaltstack, &change.before, 0);
}

uint64_t own_stack_targets_sigsafe(uint64_t *ret_low)
{
	const struct thread *self = thread_self;

	if (!self || (self->signals.target_stack.ss_flags & SS_DISABLE))
		return 0;
	*ret_low = (uint64_t)self->signals.target_stack.ss_sp;
	return self->signals.target_stack.ss_size;
}
