#include "agent/core/signals.h"

#include <errno.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/own_stack.h"
#include "agent/core/real.h"
#include "agent/core/retire.h"

#define SIGNALS 65

static const int observed[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS };
#define OBSERVED_COUNT (sizeof(observed) / sizeof(observed[0]))
#define BIT(signo) (1ull << ((signo)-1))
#define SYNCHRONOUS \
	(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))

/* Two copies per signal and which of them counts: a handler on any thread reads a whole one. Two
 * threads that set the same signal at once are a race of the target's own. */
static struct {
	struct sigaction copy[2];
	uint32_t current; /* atomic */
} target[SIGNALS];

/* Set once, and not undone by retiring: the target must never be shown our handlers. */
static bool taken_over;
bool signals_breakpoints;

/* Are there pages that the target faults on because we want it to? */
static bool faults_ours(void)
{
	return agent.faults != 0;
}

static bool is_observed(int signo)
{
	unsigned i;

	for (i = 0; i < OBSERVED_COUNT; i++)
		if (observed[i] == signo)
			return true;
	return false;
}

void signals_target_action_sigsafe(int signo, struct sigaction *ret)
{
	*ret = target[signo].copy[__atomic_load_n(&target[signo].current, __ATOMIC_ACQUIRE) & 1];
}

static void target_set(int signo, const struct sigaction *action)
{
	uint32_t next = target[signo].current + 1;

	target[signo].copy[next & 1] = *action;
	__atomic_store_n(&target[signo].current, next, __ATOMIC_RELEASE);
}

static bool has_handler(int signo)
{
	struct sigaction action;

	signals_target_action_sigsafe(signo, &action);
	return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

static uint64_t set_bits(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits)); /* the kernel's 64 signals come first */
	return bits;
}

static void set_from_bits(sigset_t *set, uint64_t bits)
{
	memcpy(set, &bits, sizeof(bits));
}

/* What the target believes blocked, given the real mask. A mask can change behind our back:
 * siglongjmp and sigsetmask do it inside libc. Then not everything is blocked that was blocked
 * together. */
static uint64_t believed(const struct thread *self, const sigset_t *now)
{
	return (set_bits(now) & self->signals.masked) == self->signals.masked
		       ? self->signals.blocked
		       : 0;
}

/* The same for the calling thread, outside of handlers; what no longer holds is forgotten. */
static uint64_t believed_now(struct thread *self)
{
	sigset_t now;

	if (!self->signals.blocked || real.pthread_sigmask(SIG_BLOCK, NULL, &now))
		return self->signals.blocked;
	self->signals.blocked = believed(self, &now);
	return self->signals.blocked;
}

/* What is never blocked, because the kernel would kill: SIGTRAP where hooks are breakpoints. */
static uint64_t kept_open(void)
{
	return (signals_breakpoints ? BIT(SIGTRAP) : 0) | (faults_ours() ? SIGNALS_KEPT_OPEN : 0);
}

static void keep_open_for_traps(sigset_t *mask)
{
	set_from_bits(mask, set_bits(mask) & ~kept_open());
}

/* With watched pages a handler of the target's runs though its own signal is not blocked. Where it
 * should be, this one is instead: as long as it is, the handler has not been left by a jump. */
#define WITNESS BIT(SIGRTMAX_KERNEL)
#define SIGRTMAX_KERNEL 64

/* As the kernel has it. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};

#define KERNEL_SA_RESTORER 0x04000000u

/* Where system calls are told to us, ours are not to be, nor the returns from our handlers. */
static bool action_set(int signo, const struct sigaction *action)
{
	struct kernel_action kernel = { (uint64_t)action->sa_sigaction,
					(uint32_t)action->sa_flags | KERNEL_SA_RESTORER,
					(uint64_t)arch_sigreturn, set_bits(&action->sa_mask) };

	if (faults_ours())
		return !raw_syscall4(SYS_rt_sigaction, signo, &kernel, 0, 8);
	return !real.sigaction(signo, action, NULL);
}

static void handler(int signo, siginfo_t *info, void *context);

/* Ours, shaped after the target's: its handler must find the mask and the stack it asked for. */
static void install(int signo, const struct sigaction *action)
{
	struct sigaction ours;

	memset(&ours, 0, sizeof(ours));
	if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) {
		ours.sa_flags = SA_ONSTACK | SA_RESTART;
		/* It is the end, or nothing: no handler of the target's is to come in between.
		 * Faults of our own are. But where its system calls are told to us it waits in
		 * there, and what ends a wait must reach it. */
		if (!faults_ours() || signo != SIGSYS)
			set_from_bits(&ours.sa_mask, ~SYNCHRONOUS);
	} else {
		ours = *action;
		ours.sa_flags &= ~SA_RESETHAND;
	}
	keep_open_for_traps(&ours.sa_mask);
	if (kept_open() & BIT(signo))
		ours.sa_flags |= SA_NODEFER; /* the target's handler may come upon one */
	/* Locks are taken there. What the target asked for is put in force before its handler. */
	if (faults_ours() && (signo == SIGSEGV || signo == SIGTRAP))
		set_from_bits(&ours.sa_mask, ~SYNCHRONOUS);
	/* It must not come when a call was told to us and is not made yet: call_cancel.c. */
	if (faults_ours() && signo == SIGSYS)
		set_from_bits(&ours.sa_mask, set_bits(&ours.sa_mask) | BIT(SIGNALS_CANCEL));
	ours.sa_flags |= SA_SIGINFO;
	/* A tracer's traps are forced: one inside the handler must not find the signal blocked. */
	if (signo == SIGTRAP && agent.plan.tracer)
		ours.sa_flags |= SA_NODEFER;
	ours.sa_sigaction = handler;
	(void)action_set(signo, &ours);
}

void signals_pages_sigsafe(void)
{
	struct sigaction action;
	unsigned i;

	for (i = 0; i < OBSERVED_COUNT; i++) {
		signals_target_action_sigsafe(observed[i], &action);
		install(observed[i], &action);
	}
}

void signals_raw_action_sigsafe(int signo, uint64_t called, uint64_t flags, uint64_t mask)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = (sighandler_t)called;
	action.sa_flags = (int)(flags & ~(uint64_t)KERNEL_SA_RESTORER);
	set_from_bits(&action.sa_mask, mask);
	target_set(signo, &action);
	install(signo, &action);
}

void signals_take_over(void)
{
	struct sigaction before;
	unsigned i;

	for (i = 0; i < OBSERVED_COUNT; i++) {
		if (real.sigaction(observed[i], NULL, &before))
			continue;
		target_set(observed[i], &before);
		install(observed[i], &before);
	}
	taken_over = true;
	if (thread_self && (thread_self->signals.target_stack.ss_flags & SS_DISABLE))
		thread_altstack_sigsafe(thread_self);
}

/* The end as it would have been: default action, same siginfo, registers of the interrupted code.
 * The kernel lets a process queue any siginfo to itself (kernel/signal.c, do_rt_tgsigqueueinfo).
 * The signal is blocked while its handler runs, so it is delivered when we return; if the target
 * asked for SA_NODEFER it is delivered at once, from here.
 *
 * Where a sandbox does not let us, the instruction faults once more, with its signal blocked: that
 * ends the process in the same way, too, and takes nothing but the return. */
static void die_as_before(int signo, siginfo_t *info, ucontext_t *context)
{
	struct sigaction off;
	uint64_t bit = BIT(signo);
	bool asked;

	if (agent.sandboxed && info->si_code > 0) {
		sigaddset(&context->uc_sigmask, signo);
		return;
	}
	memset(&off, 0, sizeof(off));
	off.sa_handler = SIG_DFL;
	asked = action_set(signo, &off);
	if (kept_open() & bit)
		(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &bit, 0, 8);
	asked = asked && !raw_syscall4(SYS_rt_tgsigqueueinfo, raw_syscall0(SYS_getpid),
				       raw_syscall0(SYS_gettid), signo, info);
	if (!asked)
		sigaddset(&context->uc_sigmask, signo);
}

/* Faults of our own making. True: the interrupted code can go on. */
static bool own_fault(int signo, const siginfo_t *info, ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	uint64_t address = (uint64_t)info->si_addr;
	struct thread *self = thread_self;

	if (info->si_code <= 0)
		return false;
	if (signo == SIGBUS && log_holds_sigsafe(address) && log_patch_hole_sigsafe(address)) {
		agent_retire_sigsafe(LOG_RETIRED_DISK);
		return true;
	}
	if (signo == SIGSEGV || signo == SIGBUS) {
		uint64_t resume = arch_fault_resume((uint64_t)gregs[REG_RIP]);

		if (resume) {
			gregs[REG_RIP] = (greg_t)resume;
			return true;
		}
	}
	/* Reading a broken stack or a library that goes away: what __builtin_longjmp would do. */
	if ((signo == SIGSEGV || signo == SIGBUS) && self && self->signals.recovery_armed &&
	    (uint64_t)gregs[REG_RIP] - agent.text_low < agent.text_high - agent.text_low) {
		self->signals.recovery_armed = 0;
		gregs[REG_RBP] = (greg_t)self->signals.recovery[0];
		gregs[REG_RIP] = (greg_t)self->signals.recovery[1];
		gregs[REG_RSP] = (greg_t)self->signals.recovery[2];
		return true;
	}
	return false;
}

/* Sent while the target believes it blocked: close the real mask for this thread and queue it
 * again, to wait there. */
static bool hold_back(int signo, siginfo_t *info, ucontext_t *context)
{
	struct thread *self = thread_self;

	if (!self || info->si_code > 0 || !(believed(self, &context->uc_sigmask) & BIT(signo)))
		return false;
	self->signals.blocked &= ~BIT(signo);
	sigaddset(&context->uc_sigmask, signo);
	(void)raw_syscall4(SYS_rt_tgsigqueueinfo, raw_syscall0(SYS_getpid),
			   raw_syscall0(SYS_gettid), signo, info);
	return true;
}

/* Where our handler runs with another mask than the target's should. */
static void mask_as_asked(int signo, const ucontext_t *context, const struct sigaction *action)
{
	bool defers = !(action->sa_flags & SA_NODEFER);
	uint64_t mask;

	if (!faults_ours() || !(SIGNALS_KEPT_OPEN & BIT(signo)))
		return;
	mask = set_bits(&context->uc_sigmask) | set_bits(&action->sa_mask);
	mask = (mask & ~kept_open()) | (defers ? WITNESS : 0);
	if (thread_self && defers)
		thread_self->signals.handling |= BIT(signo);
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
}

static bool in_handler(int signo, const ucontext_t *context)
{
	return thread_self && (thread_self->signals.handling & BIT(signo)) &&
	       (set_bits(&context->uc_sigmask) & WITNESS);
}

static void forward(int signo, siginfo_t *info, void *context, const struct sigaction *action)
{
	struct thread *self = thread_self;
	uint64_t outer = self ? self->signals.handler_frame : 0;
	volatile uint64_t mark = SIGNALS_HANDLER_MARK((uint64_t)&mark);
	struct sigaction reset;

	if (self)
		self->signals.handler_frame = (uint64_t)&mark;
	if (action->sa_flags & (int)SA_RESETHAND) {
		memset(&reset, 0, sizeof(reset));
		reset.sa_handler = SIG_DFL;
		target_set(signo, &reset);
		install(signo, &reset);
	}
	mask_as_asked(signo, context, action);
	if (action->sa_flags & SA_SIGINFO)
		action->sa_sigaction(signo, info, context);
	else
		action->sa_handler(signo);
	mark = 0;
	if (self) {
		self->signals.handler_frame = outer;
		self->signals.handling &= ~BIT(signo);
	}
}

/* A signal, from its arrival to where it is done with. */
struct delivery {
	int signo;
	siginfo_t *info;
	ucontext_t *context;
	struct sigaction action; /* the target's */
	bool forwarded;		 /* its handler is to be asked */
	bool nested;		 /* in a handler that was asked before */
	uint64_t seq, outer, from;
};

static void settle(void *ctx)
{
	struct delivery *d = ctx;
	int signo = d->signo;
	siginfo_t *info = d->info;
	ucontext_t *context = d->context;
	bool sent = info->si_code <= 0, blocked;

	if (FEATURES_ASK(process.signal, signo, info, context))
		return;
	if (own_fault(signo, info, context) || hold_back(signo, info, context))
		return;
	signals_target_action_sigsafe(signo, &d->action);
	if (sent && d->action.sa_handler == SIG_IGN) {
		/* abort() asks once, and then sees to it that nobody is asked. */
		if (signo == SIGABRT)
			signals_recorder.handled(signals_recorder.record(signo, info, context,
									 LOG_CRASH_FORWARDED,
									 &d->action),
						 NULL);
		return;
	}
	/* The kernel does not ask handlers about a fault whose signal is blocked or ignored. */
	blocked = !sent && thread_self &&
		  ((believed(thread_self, &context->uc_sigmask) & BIT(signo)) ||
		   in_handler(signo, context));
	if (blocked || d->action.sa_handler == SIG_DFL || d->action.sa_handler == SIG_IGN) {
		(void)signals_recorder.record(signo, info, context, LOG_CRASH_FINAL, &d->action);
		die_as_before(signo, info, context);
		return;
	}
	d->nested = signals_recorder.in_handler((uint64_t)context->uc_mcontext.gregs[REG_RSP]);
	d->outer = d->nested ? thread_self->signals.last_crash : 0;
	d->from = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	d->seq = signals_recorder.record(signo, info, context, LOG_CRASH_FORWARDED, &d->action);
	d->forwarded = true;
}

/* The target's handler has been asked, and returned. */
static void settle_handled(void *ctx)
{
	const struct delivery *d = ctx;
	struct log_crash_diverted to = {
		.rip = (uint64_t)d->context->uc_mcontext.gregs[REG_RIP],
		.rsp = (uint64_t)d->context->uc_mcontext.gregs[REG_RSP],
	};

	signals_recorder.handled(d->seq, to.rip != d->from ? &to : NULL);
	if (d->info->si_code > 0)
		signals_recorder.survived(d->from);
	/* A handler that this one interrupted goes on with the fault that it was called for. */
	if (d->nested)
		thread_self->signals.last_crash = d->outer;
}

static void handler(int signo, siginfo_t *info, void *context)
{
	bool strict = arch_alignment_relax_sigsafe(context);
	struct delivery d = { .signo = signo, .info = info, .context = context };
	int saved = errno;

	own_stack_run_sigsafe(settle, &d);
	errno = saved;
	if (!d.forwarded)
		return;
	if (strict)
		arch_alignment_insist_sigsafe();
	forward(signo, info, context, &d.action);
	if (strict)
		(void)arch_alignment_relax_sigsafe(context);
	own_stack_run_sigsafe(settle_handled, &d);
}

/* Which of the synchronous signals may be left out of the real mask. */
static uint64_t thinnable(uint64_t bits)
{
	unsigned i;

	bits &= SYNCHRONOUS;
	for (i = 0; i < OBSERVED_COUNT; i++)
		if ((bits & BIT(observed[i])) && has_handler(observed[i]) &&
		    !(kept_open() & BIT(observed[i])))
			bits &= ~BIT(observed[i]);
	return bits;
}

/* Of the signals that are not observed: what was left out of the mask that their handler runs with,
 * for a fault in there to be seen. */
static uint64_t left_out[SIGNALS];

static int action_thinned(int signo, const struct sigaction *action, struct sigaction *old)
{
	uint64_t before = signo > 0 && signo < SIGNALS ? left_out[signo] : 0, thin = 0;
	struct sigaction wanted;
	int r;

	if (action) {
		wanted = *action;
		if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN)
			thin = thinnable(set_bits(&action->sa_mask));
		set_from_bits(&wanted.sa_mask, set_bits(&action->sa_mask) & ~thin);
		keep_open_for_traps(&wanted.sa_mask);
	}
	r = real.sigaction(signo, action ? &wanted : NULL, old);
	if (r)
		return r;
	if (old)
		set_from_bits(&old->sa_mask, set_bits(&old->sa_mask) | before);
	if (action)
		left_out[signo] = thin;
	return 0;
}

/* A signal has a handler from now on: where it was to be blocked, it is. */
static void leave_in(int signo)
{
	struct sigaction action;
	int other;

	for (other = 1; other < SIGNALS; other++) {
		if (!(left_out[other] & BIT(signo)) || real.sigaction(other, NULL, &action))
			continue;
		left_out[other] &= ~BIT(signo);
		sigaddset(&action.sa_mask, signo);
		(void)real.sigaction(other, &action, NULL);
	}
}

/* From now on the handler is asked, and a blocked signal is really blocked. */
static void block_really(int signo)
{
	sigset_t mask;

	if (!has_handler(signo) || (kept_open() & BIT(signo)))
		return;
	leave_in(signo);
	if (!thread_self || !(believed_now(thread_self) & BIT(signo)))
		return;
	sigemptyset(&mask);
	sigaddset(&mask, signo);
	thread_self->signals.blocked &= ~BIT(signo);
	(void)real.pthread_sigmask(SIG_BLOCK, &mask, NULL);
}

EXPORT int sigaction(int signo, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before, wanted;

	if (!taken_over)
		return real.sigaction(signo, action, old);
	if (!is_observed(signo))
		return action_thinned(signo, action, old);
	signals_target_action_sigsafe(signo, &before);
	if (action && !agent_owns_process_sigsafe()) {
		/* A vfork child: the disposition is its own, what we know of it is its parent's. */
		(void)real.sigaction(signo, action, NULL);
	} else if (action) {
		wanted = *action;
		target_set(signo, &wanted);
		install(signo, &wanted);
		block_really(signo);
	}
	if (old)
		*old = before;
	return 0;
}

/* `raw`: past libc, which keeps two signals for itself. */
static int mask_set(bool raw, int how, const sigset_t *set, sigset_t *ret_before)
{
	if (!raw)
		return real.pthread_sigmask(how, set, ret_before);
	return (int)-raw_syscall4(SYS_rt_sigprocmask, how, set, ret_before, 8);
}

static int mask_change(bool raw, int how, const sigset_t *set, sigset_t *old)
{
	struct thread *self = thread_self;
	uint64_t was, bits, thin;
	sigset_t before, wanted;
	int r;

	if (!taken_over || !self)
		return mask_set(raw, how, set, old);
	if (set) {
		bits = set_bits(set);
		thin = how == SIG_UNBLOCK ? 0 : thinnable(bits);
		wanted = *set;
		set_from_bits(&wanted, bits & ~thin);
	}
	r = mask_set(raw, how, set ? &wanted : NULL, &before);
	if (r)
		return r;
	was = believed(self, &before);
	if (old) {
		*old = before;
		set_from_bits(old, set_bits(&before) | was);
	}
	if (!set)
		return 0;
	self->signals.masked = set_bits(&before);
	self->signals.blocked = was;
	if (how == SIG_BLOCK) {
		self->signals.masked |= bits & ~thin;
		self->signals.blocked |= thin;
	} else if (how == SIG_UNBLOCK) {
		self->signals.masked &= ~bits;
		self->signals.blocked &= ~bits;
	} else {
		self->signals.masked = bits & ~thin;
		self->signals.blocked = thin;
	}
	/* SIGKILL and SIGSTOP are never blocked, whatever is asked for. */
	self->signals.masked &= ~(BIT(SIGKILL) | BIT(SIGSTOP));
	return 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_change(false, how, set, old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int r = mask_change(false, how, set, old);

	if (r) {
		errno = r;
		return -1;
	}
	return 0;
}

/* What a pointer of the target's leads to; false when it is a bad one. */
static bool word_take(uint64_t from, void *to, size_t bytes)
{
	return memory_read_sigsafe(to, from, bytes) == bytes;
}

static int raw_mask(int how, uint64_t set, uint64_t old)
{
	sigset_t wanted, before;
	int r;

	memset(&wanted, 0, sizeof(wanted));
	memset(&before, 0, sizeof(before));
	/* The kernel writes there first: a page that may only be read is its affair, not our fault.
	 */
	if ((set && !word_take(set, &wanted, 8)) ||
	    (old && raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, old, 8)))
		return EFAULT;
	r = mask_change(true, how, set ? &wanted : NULL, &before);
	if (!r && old)
		memcpy((void *)old, &before, 8);
	return r;
}

static int raw_action(int signo, uint64_t action, uint64_t old)
{
	struct kernel_action wanted, before = { 0 };
	struct sigaction target_action;

	if ((action && !word_take(action, &wanted, sizeof(wanted))) ||
	    (old && raw_syscall4(SYS_rt_sigaction, signo, NULL, old, 8)))
		return EFAULT;
	signals_target_action_sigsafe(signo, &target_action);
	before.handler = (uint64_t)target_action.sa_handler;
	before.flags = (uint32_t)target_action.sa_flags;
	before.mask = set_bits(&target_action.sa_mask);
	if (action) {
		signals_raw_action_sigsafe(signo, wanted.handler, wanted.flags, wanted.mask);
		block_really(signo);
	}
	if (old)
		memcpy((void *)old, &before, sizeof(before));
	return 0;
}

/* rt_sigaction and rt_sigprocmask, from arch/x86_64_syscall.S. Told anything else than what the
 * kernel would take, it is the kernel that answers. */
HIDDEN long signals_syscall(long number, long a, long b, long c, long bytes)
{
	int r;

	if (!taken_over || !thread_self || bytes != 8 || faults_ours() ||
	    (number == SYS_rt_sigaction && !(a > 0 && a < SIGNALS && is_observed((int)a))))
		return real_syscall(number, a, b, c, bytes, 0, 0);
	if (number == SYS_rt_sigaction)
		r = raw_action((int)a, (uint64_t)b, (uint64_t)c);
	else
		r = raw_mask((int)a, (uint64_t)b, (uint64_t)c);
	if (!r)
		return 0;
	errno = r;
	return -1;
}

static void real_mask(int how, uint64_t bits)
{
	sigset_t mask;

	sigemptyset(&mask);
	set_from_bits(&mask, bits);
	(void)real.pthread_sigmask(how, &mask, NULL);
}

/* Waiting takes a signal out of the queue, where it only is when it is really blocked. */
static void close_for_wait(const sigset_t *set)
{
	struct thread *self = thread_self;
	uint64_t bits = self ? believed_now(self) & set_bits(set) : 0;

	if (!bits)
		return;
	self->signals.blocked &= ~bits;
	real_mask(SIG_BLOCK, bits);
}

EXPORT int sigwait(const sigset_t *set, int *ret)
{
	close_for_wait(set);
	return real.sigwait(set, ret);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	close_for_wait(set);
	return real.sigwaitinfo(set, info);
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	close_for_wait(set);
	return real.sigtimedwait(set, info, timeout);
}

/* The target's alternate stack replaces ours; when it takes it away, ours comes back. */
EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
	struct thread *self = thread_self;
	stack_t before;
	int r;

	if (!taken_over || !self)
		return real.sigaltstack(stack, old);
	before = self->signals.target_stack;
	if (!stack) {
		if (!old)
			return 0;
		if (before.ss_flags & SS_DISABLE) {
			*old = before;
			return 0;
		}
		return real.sigaltstack(NULL, old); /* with SS_ONSTACK as it is now */
	}
	r = real.sigaltstack(stack, old);
	if (r)
		return r;
	if (old && (before.ss_flags & SS_DISABLE))
		*old = before;
	self->signals.target_stack = *stack;
	if (stack->ss_flags & SS_DISABLE) {
		memset(&self->signals.target_stack, 0, sizeof(self->signals.target_stack));
		self->signals.target_stack.ss_flags = SS_DISABLE;
		thread_altstack_sigsafe(self);
	}
	return 0;
}

/* Breakpoints stay. Where there were watched pages, another thread may be on its way to us. */
static uint64_t kept_back(void)
{
	return (signals_breakpoints ? BIT(SIGTRAP) : 0) |
	       (agent.faults & AGENT_FAULTS_PAGES && thread_lanes_in_use_sigsafe() > 1
			? SIGNALS_KEPT_OPEN
			: 0);
}

void signals_give_back(void)
{
	stack_t off = { .ss_flags = SS_DISABLE };
	struct thread *self = thread_self;
	struct sigaction action;
	unsigned i;

	if (!taken_over)
		return;
	for (i = 0; i < OBSERVED_COUNT; i++) {
		if (kept_back() & BIT(observed[i]))
			continue;
		leave_in(observed[i]);
		signals_target_action_sigsafe(observed[i], &action);
		(void)action_set(observed[i], &action);
	}
	taken_over = false;
	if (!self)
		return;
	if (believed_now(self)) {
		real_mask(SIG_BLOCK, self->signals.blocked);
		self->signals.blocked = 0;
	}
	if (self->signals.target_stack.ss_flags & SS_DISABLE)
		(void)real.sigaltstack(&off, NULL);
}

/* What the target ignores or blocks, the next image does, too. */
static void next_image(bool coming)
{
	struct thread *self = thread_self;
	struct sigaction action;
	unsigned i;

	if (!taken_over)
		return;
	for (i = 0; i < OBSERVED_COUNT; i++) {
		signals_target_action_sigsafe(observed[i], &action);
		if (action.sa_handler != SIG_IGN)
			continue;
		if (coming)
			(void)real.sigaction(observed[i], &action, NULL);
		else
			install(observed[i], &action);
	}
	if (self && (coming ? believed_now(self) : self->signals.blocked))
		real_mask(coming ? SIG_BLOCK : SIG_UNBLOCK, self->signals.blocked);
}

void signals_before_exec_sigsafe(void)
{
	next_image(true);
}

void signals_exec_failed_sigsafe(void)
{
	next_image(false);
}
