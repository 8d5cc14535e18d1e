/*
 * What the target believes about its signals, and what is really so.
 *
 * For the observed signals our handler is installed, always. The target's own disposition is kept
 * beside it, is what its queries are answered with, and is what happens after the record: its
 * handler is called (with the flags and mask it asked for, on the stack it asked for, because ours
 * is installed with the same), or the default action is taken by restoring SIG_DFL and queueing the
 * same siginfo again: so wait status and core are as without us.
 *
 * A fault while its signal is blocked kills the process in the kernel before any handler runs. So
 * that such a crash is recorded too, the synchronous signals are left out of the real mask as long
 * as the target has no handler of its own for them (with the same end: it dies). A *sent* signal
 * that the target believes blocked is put back in the queue with the real mask closed.
 *
 * Provisional crashes: when the target has a handler, the record says FORWARDED. If the handler
 * returns, a CRASH_HANDLED record follows. If it jumps away, nothing follows and the process lives
 * on. If it resets and raises, a FINAL record follows whose `follows` names the first. So a
 * FORWARDED crash is the death only if the process then died of that signal.
 *
 * A handler that asks for an alternate stack (SA_ONSTACK) when its thread has none runs on ours. To
 * leave that out of its flags would be truer, but Go and Breakpad ask the kernel past libc, find
 * ours, and count on it.
 *
 * Masks also change inside libc (siglongjmp, sigsetmask). What the target believes blocked counts
 * only while the signals that it blocked together with it still are.
 *
 * The same is left out of the masks that handlers of other signals run with (sa_mask). Two system
 * calls that go past libc's functions but through its syscall() are treated like these.
 *
 * Known limits: a mask that an observed signal's own handler runs with, and those of ppoll,
 * pselect, epoll_pwait and sigsuspend, are not thinned out: a fault under them ends as ever,
 * without a record. So is one set by a system call instruction of the target's own. posix_spawn
 * children inherit the real mask.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "wire/log_format.h"

/* Where there are watched pages, these are never blocked: the kernel would kill. */
#define SIGNALS_KEPT_OPEN (1ull << (SIGSEGV - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1))

/* glibc's own, which pthread_cancel() sends: nptl/nptl-signals.h. */
#define SIGNALS_CANCEL 32

/* Lies on the stack, where thread->handler_frame says, while a handler of the target runs. */
#define SIGNALS_HANDLER_MARK(address) ((address) ^ 0x7265646e616c6968ull)

/* Who writes down what the target is told, or dies of: fault_record.h. Bound in features.c. */
struct signals_recorder {
	/* `flags` from enum log_crash_flags, without those that can be seen there. Returns the
	 * record's seq (0: dropped). `action` is the target's. */
	uint64_t (*record)(int signo, const siginfo_t *info, const ucontext_t *context,
			   uint32_t flags, const struct sigaction *action);
	/* Was the thread interrupted in a handler of the target's for one of these signals? */
	bool (*in_handler)(uint64_t rsp);
	/* The target went on behind this fault. 0: there is no record of it. */
	void (*handled)(uint64_t record, const struct log_crash_diverted *to);
	/* The handler of the target's came back from a fault of this instruction. */
	void (*survived)(uint64_t rip);
};

extern __attribute__((visibility("hidden"))) const struct signals_recorder signals_recorder;

/* There are hooks that are breakpoints: SIGTRAP must reach us. Set once. */
extern __attribute__((visibility("hidden"))) bool signals_breakpoints;

/* Takes over the observed signals. */
void signals_take_over(void);

/* The target's handlers, masks and stacks become the real ones, and no hook knows better. Masks and
 * stacks of other threads stay as they are. */
void signals_give_back(void);

/* The target's disposition. _sigsafe */
void signals_target_action_sigsafe(int signo, struct sigaction *ret);

/* agent.faults has changed: our handlers get what those pages need. */
void signals_pages_sigsafe(void);

/* The target has set a disposition by a system call of its own. _sigsafe */
void signals_raw_action_sigsafe(int signo, uint64_t handler, uint64_t flags, uint64_t mask);

/* rt_sigaction and rt_sigprocmask by libc's syscall(). */
long signals_syscall(long number, long a, long b, long c, long bytes);

/* Before exec: masks and ignored signals as the target believes them, since they are inherited.
 * _undo when exec failed. */
void signals_before_exec_sigsafe(void);
void signals_exec_failed_sigsafe(void);
