/*
 * Threads that are cancelled while they wait in a system call (pthread_cancel(3)).
 *
 * libc sends SIGCANCEL, and its handler looks where the thread is. Since glibc 2.41 the thread ends
 * only if it is at libc's own system call instruction, before the call is made; else it goes on to
 * its next one. Older ones end it wherever it waits, and unwind from there. But where calls are
 * told to us (calls.h), a thread waits in a gate or in our handler of SIGSYS. So we are called
 * first, and show libc the registers that the thread would have: it is at its own instruction, and
 * the call was not made. If libc does nothing about it, the call is made, and told, again.
 *
 * A call that was made is left alone: what it did has to be told.
 *
 * In the handler of SIGSYS the signal is blocked, except while the call is being made.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/calls/call.h"
#include "agent/core/agent.h"
#include "agent/core/memory.h"
#include "agent/core/signals.h"
#include "agent/core/thread.h"
#include "agent/core/told.h"

#define SYSCALL_BYTES 2
#define NEAR 1024u /* less than a signal's frame */

extern long arch_call(const long *arguments, long number, uint32_t *ret_done)
	__attribute__((visibility("hidden")));
extern const char arch_call_made[] __attribute__((visibility("hidden")));

static const uint64_t bit = 1ull << (SIGNALS_CANCEL - 1);
static uint64_t theirs; /* atomic: libc's handler; 0: none */

static bool is_blocked(const ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	return mask & bit;
}

/* Not inlined: its record lies near the stack pointer while the thread waits. */
__attribute__((noinline)) long call_wait(const struct call *call, const struct busy *busy)
{
	struct thread *self = thread_self;
	struct call_wait wait = { call->context, call->number, busy, NULL, 0 };
	bool open = !is_blocked(call->context);
	long result;

	if (self) {
		wait.outer = self->told.waits;
		__atomic_store_n(&self->told.waits, &wait, __ATOMIC_RELEASE);
	}
	if (open)
		(void)raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, 0, 8);
	result = arch_call(call->made, call->number, &wait.done);
	if (open)
		(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &bit, 0, 8);
	if (self)
		__atomic_store_n(&self->told.waits, wait.outer, __ATOMIC_RELEASE);
	return result;
}

/* The call that this interrupts, if it was not made. A handler of the target's that was left by a
 * jump may have left an older one, and one that runs now interrupts it itself: then it lies
 * elsewhere. */
static struct call_wait *interrupted(const ucontext_t *context)
{
	uint64_t rip = call_register(context, REG_RIP), rsp = call_register(context, REG_RSP);
	struct call_wait *wait = thread_self ? thread_self->told.waits : NULL;

	if (!wait || rip - agent.text_low >= agent.text_high - agent.text_low ||
	    (uint64_t)wait - rsp >= NEAR || wait->done || rip == (uint64_t)arch_call_made)
		return NULL;
	return wait;
}

/* The thread is where it was when it made the call; our handler does not go on. */
static void give_up(struct call_wait *wait, ucontext_t *context)
{
	const ucontext_t *from = wait->context;
	uint64_t mask;

	memcpy(context->uc_mcontext.gregs, from->uc_mcontext.gregs,
	       sizeof(context->uc_mcontext.gregs));
	context->uc_mcontext.gregs[REG_RIP] -= SYSCALL_BYTES;
	context->uc_mcontext.gregs[REG_RAX] = wait->number;
	/* The kernel's mask has 8 bytes, and what the signal tells lies behind it. */
	memcpy(&mask, &from->uc_sigmask, sizeof(mask));
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	thread_self->told.waits = wait->outer;
	if (wait->busy)
		call_busy_end(wait->busy);
	/* libc's handler may not come back. It is to have the mask that it would have had. */
	mask |= bit;
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

static void cancelled(int signo, siginfo_t *info, void *context)
{
	uint64_t handler = __atomic_load_n(&theirs, __ATOMIC_ACQUIRE);
	struct call_wait *wait;
	int saved = errno;

	if (!call_leave_gate(context)) {
		wait = interrupted(context);
		if (wait)
			give_up(wait, context);
	}
	errno = saved;
	if (handler)
		((void (*)(int, siginfo_t *, void *))handler)(signo, info, context);
}

static bool is_handler(uint64_t handler)
{
	return handler != (uint64_t)SIG_DFL && handler != (uint64_t)SIG_IGN;
}

/* Puts ours in its place. */
static void take(struct told_action *action)
{
	if (!is_handler(action->handler) || action->handler == (uint64_t)cancelled)
		return;
	__atomic_store_n(&theirs, action->handler, __ATOMIC_RELEASE);
	action->handler = (uint64_t)cancelled;
	action->flags |= SA_SIGINFO;
}

void call_cancel_take_sigsafe(void)
{
	struct told_action action;

	if (raw_syscall4(SYS_rt_sigaction, SIGNALS_CANCEL, 0, &action, 8) ||
	    !is_handler(action.handler) || action.handler == (uint64_t)cancelled)
		return;
	take(&action);
	(void)raw_syscall4(SYS_rt_sigaction, SIGNALS_CANCEL, &action, 0, 8);
}

void call_cancel_action(struct call *call)
{
	uint64_t before = __atomic_load_n(&theirs, __ATOMIC_ACQUIRE), shown;
	struct told_action action;

	call->made[2] = call_writable(call->given[2]);
	if (call->given[1] &&
	    watch_read_sigsafe(&action, (uint64_t)call->given[1], sizeof(action))) {
		action.mask &= ~SIGNALS_KEPT_OPEN;
		take(&action);
		call->made[1] = (long)&action;
	}
	call_redirect(call, call_plain_outputs);
	/* Nobody is shown ours. */
	if (call->given[2] && (long)call_register(call->context, REG_RAX) == 0) {
		memcpy(&shown, (const void *)call->made[2], sizeof(shown));
		if (shown == (uint64_t)cancelled)
			memcpy((void *)call->made[2], &before, sizeof(before));
	}
}
