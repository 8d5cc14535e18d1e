#include "agent/core/told.h"

#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/signals.h"
#include "agent/core/thread.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_OFF 0
#define DISPATCH_ON 1
#define SELECTOR_ALLOW 0
#define SELECTOR_BLOCK 1
#define SIGNALS_MOST 64

/* The kernel looks here before it tells a call. Only ever switched off. */
static volatile uint8_t selector = SELECTOR_BLOCK;

/* The thread that was there first; after a fork, the one that is left. The others' calls are told
 * from their beginning. */
static const struct thread *initial;

/* Somebody needs to be told: watched pages and fences do, freed blocks that are shut do without. */
static bool followed;

/* From now on all of this thread's are told, except for the agent's own. */
static long dispatch_ask(int on)
{
	return raw_syscall6(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, on,
			    on ? (long)agent.text_low : 0,
			    on ? (long)(agent.text_high - agent.text_low) : 0,
			    on ? (long)&selector : 0, 0);
}

int told_init(void)
{
	long r = dispatch_ask(DISPATCH_ON);

	if (r < 0)
		return (int)-r;
	(void)dispatch_ask(DISPATCH_OFF);
	initial = thread_self;
	followed = true;
	return 0;
}

static bool told_wanted(void)
{
	return followed && agent.faults;
}

void told_mask_open(sigset_t *mask)
{
	uint64_t bits;

	memcpy(&bits, mask, sizeof(bits)); /* the kernel's 64 signals come first */
	bits &= ~SIGNALS_KEPT_OPEN;
	memcpy(mask, &bits, sizeof(bits));
}

/* Handlers that were set while nobody told us of it. */
static void handlers_open(void)
{
	struct told_action action;
	int signo;

	for (signo = 1; signo <= SIGNALS_MOST; signo++) {
		if (raw_syscall4(SYS_rt_sigaction, signo, 0, &action, 8) ||
		    !(action.mask & SIGNALS_KEPT_OPEN))
			continue;
		action.mask &= ~SIGNALS_KEPT_OPEN;
		(void)raw_syscall4(SYS_rt_sigaction, signo, &action, 0, 8);
	}
}

/* The kernel kills for a call that it is to tell while the signal is blocked. Nobody but a thread
 * itself can know that it is not: so it asks for itself, with the signals open. */
void told_thread_sigsafe(void)
{
	uint64_t open = SIGNALS_KEPT_OPEN;

	if (!told_wanted())
		return;
	if (!__atomic_exchange_n(&agent.calls_told, 1, __ATOMIC_ACQ_REL)) {
		handlers_open();
		FEATURES_TELL(process.calls_told);
	}
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_UNBLOCK, &open, 0, 8);
	if (dispatch_ask(DISPATCH_ON) == 0 && thread_self)
		thread_self->told.dispatched = 1;
}

void told_interrupted_sigsafe(ucontext_t *context)
{
	told_mask_open(&context->uc_sigmask);
	told_thread_sigsafe();
}

bool told_ready(void)
{
	if (thread_self && !thread_self->told.dispatched)
		told_thread_sigsafe();
	return initial && initial->told.dispatched && thread_self && thread_self->told.dispatched;
}

void told_before_thread(void)
{
	if (told_wanted() && thread_self && !thread_self->told.dispatched)
		told_thread_sigsafe();
}

void told_stop_sigsafe(void)
{
	selector = SELECTOR_ALLOW;
}

void told_after_fork(void)
{
	initial = thread_self;
	if (initial && initial->told.dispatched)
		told_thread_sigsafe();
}

bool told_again_sigsafe(void)
{
	return dispatch_ask(DISPATCH_ON) == 0;
}
