/*
 * Calls about signals: SIGSEGV, SIGTRAP and SIGSYS are left out of every mask, and the actions that
 * the target sets for them are kept beside ours.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/calls/call.h"
#include "agent/core/memory.h"
#include "agent/core/signals.h"
#include "agent/core/told.h"

/* setcontext() and swapcontext() set the mask of a context before they go over to its stack. */
static void context_coming(long mask)
{
	uint64_t at = (uint64_t)mask - offsetof(ucontext_t, uc_sigmask), rsp;
	stack_t stack;

	if (watch_read_sigsafe(&stack, at + offsetof(ucontext_t, uc_stack), sizeof(stack)) &&
	    watch_read_sigsafe(&rsp, at + offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]), 8) &&
	    rsp - (uint64_t)stack.ss_sp < stack.ss_size)
		call_let_go((long)stack.ss_sp);
}

/* The mask is that of the interrupted code, which comes back when we return. */
void call_sigprocmask(struct call *call)
{
	uint64_t set = 0, now, old;

	if (call->given[3] != 8) {
		call_pass(call);
		return;
	}
	memcpy(&old, &call->context->uc_sigmask, sizeof(old));
	now = old;
	if (call->given[1] && !watch_read_sigsafe(&set, (uint64_t)call->given[1], 8)) {
		call_answer(call, -EFAULT);
		return;
	}
	if (call->given[1] && call->given[0] == SIG_BLOCK)
		now |= set;
	else if (call->given[1] && call->given[0] == SIG_UNBLOCK)
		now &= ~set;
	else if (call->given[1] && call->given[0] == SIG_SETMASK) {
		context_coming(call->given[1]);
		now = set;
	} else if (call->given[1]) {
		call_answer(call, -EINVAL);
		return;
	}
	now &= ~(SIGNALS_KEPT_OPEN | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1));
	memcpy(&call->context->uc_sigmask, &now, sizeof(now));
	call_answer(call, 0);
	/* The kernel itself writes, and says so if it cannot. */
	if (call->given[2] &&
	    raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, 0, call_writable(call->given[2]), 8) == 0) {
		struct outputs outputs = { .count = 0 };

		memcpy((void *)call_writable(call->given[2]), &old, sizeof(old));
		outputs_add(&outputs, call->given[2], 8, true);
		outputs_tell(&outputs, call);
	} else if (call->given[2]) {
		call_answer(call, -EFAULT);
	}
}

/* Set around libc, one that we need is kept beside ours, as when it is set through libc. */
static void call_own_action(struct call *call, int signo, const struct told_action *action)
{
	struct outputs outputs = { .count = 0 };
	struct told_action was = { 0 };
	struct sigaction before;

	signals_target_action_sigsafe(signo, &before);
	was.handler = (uint64_t)before.sa_handler;
	was.flags = (uint64_t)before.sa_flags;
	memcpy(&was.mask, &before.sa_mask, sizeof(was.mask));
	if (action)
		signals_raw_action_sigsafe(signo, action->handler, action->flags, action->mask);
	call_answer(call, 0);
	if (!call->given[2])
		return;
	memcpy((void *)call_writable(call->given[2]), &was, sizeof(was));
	outputs_add(&outputs, call->given[2], sizeof(was), true);
	outputs_tell(&outputs, call);
}

void call_sigaction(struct call *call)
{
	int signo = (int)call->given[0];
	struct told_action action;
	bool ours = signo > 0 && signo < 64 && (SIGNALS_KEPT_OPEN & 1ull << (signo - 1));

	if (signo == SIGNALS_CANCEL && call->given[3] == 8) {
		call_cancel_action(call);
		return;
	}
	if (call->given[3] != 8 ||
	    (ours && call->given[2] &&
	     memory_readable_sigsafe((uint64_t)call->given[2], sizeof(action)) < sizeof(action))) {
		call_plain(call);
		return;
	}
	if (!call->given[1]) {
		if (ours)
			call_own_action(call, signo, NULL);
		else
			call_plain(call);
		return;
	}
	if (!watch_read_sigsafe(&action, (uint64_t)call->given[1], sizeof(action))) {
		call_plain(call);
		return;
	}
	if (ours) {
		call_own_action(call, signo, &action);
		return;
	}
	if (!(action.mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	action.mask &= ~SIGNALS_KEPT_OPEN;
	call->made[1] = (long)&action;
	call->made[2] = call_writable(call->given[2]);
	call_redirect(call, call_plain_outputs);
}

void call_masked(struct call *call, unsigned at)
{
	uint64_t mask;

	if (!call->given[at] || !watch_read_sigsafe(&mask, (uint64_t)call->given[at], 8) ||
	    !(mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	for (unsigned i = 0; i < 6; i++)
		call->made[i] = call_writable(call->given[i]);
	mask &= ~SIGNALS_KEPT_OPEN;
	call->made[at] = (long)&mask;
	call_redirect(call, call_plain_outputs);
}

void call_pselect(struct call *call)
{
	uint64_t pair[2], mask;

	if (!call->given[5] || !watch_read_sigsafe(pair, (uint64_t)call->given[5], sizeof(pair)) ||
	    !pair[0] || !watch_read_sigsafe(&mask, pair[0], 8) || !(mask & SIGNALS_KEPT_OPEN)) {
		call_plain(call);
		return;
	}
	for (unsigned i = 0; i < 5; i++)
		call->made[i] = call_writable(call->given[i]);
	mask &= ~SIGNALS_KEPT_OPEN;
	pair[0] = (uint64_t)&mask;
	call->made[5] = (long)pair;
	call_redirect(call, call_plain_outputs);
}
