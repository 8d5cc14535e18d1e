#include "agent/calls/calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/calls/call.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/memory.h"
#include "agent/core/told.h"
#include "agent/pages/pages.h"

#define CODE_USER_DISPATCH 2 /* SYS_USER_DISPATCH, <asm-generic/siginfo.h> */

/* It cannot be made here, where another stack is in force. */
static void call_altstack(struct call *call)
{
	stack_t stack;

	if (watch_read_sigsafe(&stack, (uint64_t)call->given[0], sizeof(stack)))
		call_let_go((long)stack.ss_sp);
	call_let_go(call->given[1]);
	call_pass(call);
}

/* A place in /proc/self/mem, for all that we know: who writes through it goes by the rights of the
 * target's own view. */
static void call_offset(struct call *call)
{
	call_let_go(call->given[call->number == SYS_lseek ? 1 : 3]);
	call_pass(call);
}

/* A child that does not share its memory must not share the watched pages: it gets a copy of them.
 * Such a call is made here, on whatever stack the child is to have: its registers come back with
 * the return from this handler, in both. */
static void call_fork(struct call *call, unsigned stack_at, long stack)
{
	long copy, child;

	if (!pages.bytes) { /* fenced memory is the child's own by itself */
		call_pass(call);
		return;
	}
	copy = pages_copy_sigsafe();
	if (copy < 0) {
		call_answer(call, -ENOMEM);
		return;
	}
	if (stack_at < 6)
		call->made[stack_at] = 0;
	child = call_make(call);
	if (child == 0) {
		bool own = pages_adopt_sigsafe(copy);

		if (own)
			(void)told_again_sigsafe();
		if (stack)
			call->context->uc_mcontext.gregs[REG_RSP] = stack;
	} else {
		pages_copied_sigsafe(copy);
	}
	call_answer(call, child);
}

static void call_clone(struct call *call)
{
	if (call->given[1])
		call_let_go(call->given[1] - 1);
	if (call->given[0] & CLONE_VM)
		call_pass(call);
	else
		call_fork(call, 1, call->given[1]);
}

static void call_clone3(struct call *call)
{
	uint64_t arguments[11] = { 0 }, bytes = (uint64_t)call->given[1];
	long stack = 0;

	if (bytes < 64 || bytes > sizeof(arguments) ||
	    !watch_read_sigsafe(arguments, (uint64_t)call->given[0], (uint32_t)bytes)) {
		call_pass(call);
		return;
	}
	call_let_go((long)arguments[5]);
	if (arguments[0] & CLONE_VM) {
		call_pass(call);
		return;
	}
	if (arguments[5])
		stack = (long)(arguments[5] + arguments[6]);
	arguments[5] = arguments[6] = 0;
	call->made[0] = (long)arguments;
	call_fork(call, 6, stack);
}

/* The target protects memory that it was given: so it is, but it never becomes really writable. A
 * protection key counts for the kernel, too, and is the target's own affair. */
static void call_mprotect(struct call *call)
{
	uint64_t at = (uint64_t)call->given[0], bytes = (uint64_t)call->given[1], page;
	long result;

	if (!call_held(call->given[0]) || bytes > pages.top - at || pages.yielded) {
		call_pass(call);
		return;
	}
	if (call->number == SYS_pkey_mprotect)
		call_let_go(call->given[0]);
	if ((call->given[2] & PROT_WRITE) && !pages_left_sigsafe(at))
		call->made[2] = (call->given[2] & ~(long)PROT_WRITE) | PROT_READ;
	result = call_make(call);
	for (page = at; !result && page < at + bytes; page += PAGE)
		pages.rights[(page - pages.base) / PAGE] = (uint8_t)((call->given[2] & 7) + 1);
	pages.uneven = true;
	if (!result)
		(void)pages_rights_sigsafe(at, page, false);
	call_answer(call, result);
}

/* Memory of malloc reads as zeros afterwards; ours is a file's. */
static void call_madvise(struct call *call)
{
	if (!call_held(call->given[0])) {
		call_pass(call);
	} else if (call->given[2] == MADV_DONTNEED) {
		call->made[0] = call_writable(call->given[0]);
		call->made[2] = MADV_REMOVE;
		call_redirect(call, call_plain_outputs);
	} else {
		call_answer(call, 0);
	}
}

/* Waiters are found by their address: only what the kernel writes to is moved, and of those that
 * inherit priorities that is always both, those who wait and those who wake. */
static void call_futex(struct call *call)
{
	switch (call->given[1] & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_UNLOCK_PI:
	case FUTEX_TRYLOCK_PI:
	case 13: /* FUTEX_LOCK_PI2 */
		if (!call_held(call->given[0]))
			break;
		call->made[0] = call_writable(call->given[0]);
		call_redirect(call, call_plain_outputs);
		return;
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
	case FUTEX_WAKE_OP:
		if (!call_held(call->given[4]))
			break;
		call->made[4] = call_writable(call->given[4]);
		call_redirect(call, call_plain_outputs);
		/* Those who wait there do so under the other address. Being woken for nothing is
		 * part of the contract. */
		if ((call->given[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
			(void)raw_syscall3(SYS_futex, call->given[4],
					   FUTEX_WAKE | (call->given[1] & FUTEX_PRIVATE_FLAG),
					   call->given[3]);
		return;
	default:
		break;
	}
	call_pass(call);
}

/* From a handler of the target's, to a mask that is older than our being told, or that the handler
 * wrote there. The kernel finds it above the stack pointer (arch/x86/kernel/signal_64.c). */
static void call_sigreturn(struct call *call)
{
	uint64_t at = call_register(call->context, REG_RSP) + offsetof(ucontext_t, uc_sigmask);

	if (memory_readable_sigsafe(at, 8) == 8)
		told_mask_open((sigset_t *)at);
	call_pass(call);
}

/* Of another process's memory only the list is ours. */
static void call_vm_writev(struct call *call)
{
	if (call->given[0] == raw_syscall0(SYS_getpid))
		call_list(call, 3);
	else
		call_pass(call);
}

static void call_ring(struct call *call)
{
	pages_yield_sigsafe();
	call_pass(call);
}

static void call_fork_alone(struct call *call)
{
	call_fork(call, 6, 0);
}

/* What is neither here nor passed on is call_plain()'s. */
static const struct {
	uint16_t number, at;
	void (*take)(struct call *call);
	void (*take_list)(struct call *call,
			  unsigned at); /* instead: of what argument `at` leads to */
} takers[] = {
	{ SYS_readv, 1, NULL, call_list },
	{ SYS_preadv, 1, NULL, call_list },
	{ SYS_preadv2, 1, NULL, call_list },
	{ SYS_process_vm_readv, 1, NULL, call_list },
	{ SYS_rt_sigsuspend, 0, NULL, call_masked },
	{ SYS_ppoll, 3, NULL, call_masked },
	{ SYS_epoll_pwait, 4, NULL, call_masked },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, 4, NULL, call_masked },
#endif
	{ SYS_process_vm_writev, 0, call_vm_writev, NULL },
	{ SYS_io_setup, 0, call_ring, NULL },
	{ SYS_io_uring_setup, 0, call_ring, NULL },
	{ SYS_recvmsg, 0, call_recvmsg, NULL },
	{ SYS_recvmmsg, 0, call_recvmmsg, NULL },
	{ SYS_rt_sigprocmask, 0, call_sigprocmask, NULL },
	{ SYS_rt_sigaction, 0, call_sigaction, NULL },
	{ SYS_pselect6, 0, call_pselect, NULL },
	{ SYS_fork, 0, call_fork_alone, NULL },
	{ SYS_clone, 0, call_clone, NULL },
	{ SYS_clone3, 0, call_clone3, NULL },
	{ SYS_mprotect, 0, call_mprotect, NULL },
	{ SYS_pkey_mprotect, 0, call_mprotect, NULL },
	{ SYS_sigaltstack, 0, call_altstack, NULL },
	{ SYS_lseek, 0, call_offset, NULL },
	{ SYS_pwrite64, 0, call_offset, NULL },
	{ SYS_pwritev, 0, call_offset, NULL },
	{ SYS_pwritev2, 0, call_offset, NULL },
	{ SYS_madvise, 0, call_madvise, NULL },
	{ SYS_futex, 0, call_futex, NULL },
	{ SYS_rt_sigreturn, 0, call_sigreturn, NULL },
};

static const uint16_t passed[] = {
	SYS_vfork,   SYS_mmap,	  SYS_munmap,	       SYS_mremap,     SYS_brk,	 SYS_mlock,
	SYS_munlock, SYS_mincore, SYS_set_robust_list, SYS_arch_prctl, SYS_exit, SYS_exit_group,
};

static void call_take(struct call *call)
{
	size_t i;

	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		if (passed[i] == call->number) {
			call_pass(call);
			return;
		}
	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		if (takers[i].number != call->number)
			continue;
		if (takers[i].take)
			takers[i].take(call);
		else
			takers[i].take_list(call, takers[i].at);
		return;
	}
	call_plain(call);
}

bool calls_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	struct call call = { .context = context, .number = (long)call_register(context, REG_RAX) };
	static const int order[6] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };
	unsigned i;

	if (signo != SIGSYS || !agent.faults || info->si_code != CODE_USER_DISPATCH)
		return false;
	for (i = 0; i < 6; i++)
		call.given[i] = call.made[i] = (long)call_register(context, order[i]);
	call_let_go((long)call_register(context, REG_RSP));
	if (!FEATURES_ASK(process.call_taken, &call))
		call_take(&call);
	return true;
}
