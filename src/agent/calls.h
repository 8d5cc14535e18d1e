/*
 * System calls of the target, where there are watched pages (pages.h).
 *
 * The kernel would refuse to write there: EFAULT, which the program never had. So every call is
 * told to us before it is made (Syscall User Dispatch, prctl(2), Linux 5.11): by SIGSYS, in every
 * thread, calls that bypass libc included. One that is to write to watched pages is made from the
 * handler with the address of the writable view, and what has changed is told as a write of the
 * kernel. All others go on through a gate: an instruction of our own, from which calls are allowed,
 * that jumps back behind the one in the target (arch/x86_64_gates.S).
 *
 * Besides, what would shut our handlers out is kept from happening: SIGSEGV, SIGTRAP and SIGSYS are
 * left out of masks, whoever sets them.
 *
 * Off until the first block is placed: then a call costs nothing more than a look at
 * `calls_selector`.
 *
 * What the kernel writes later, of its own accord, is not seen: io_uring and aio, for which the
 * pages are opened (pages_yield.c), the words of robust mutexes of threads that died.
 */
#ifndef REDHAND_AGENT_CALLS_H
#define REDHAND_AGENT_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

/* Main thread. 0, or the errno of what failed. */
int calls_init(void);

/* From now on. */
void calls_on(void);

extern __attribute__((visibility("hidden"))) volatile uint8_t calls_selector;

/* Are they? _sigsafe */
static inline bool calls_told_sigsafe(void)
{
	return calls_selector != 0;
}

/* For the calling thread, which the kernel does not do by itself. _sigsafe */
void calls_thread_sigsafe(void);

/* A call that was told. False: SIGSYS of another kind. _sigsafe */
bool calls_dispatch_sigsafe(const siginfo_t *info, ucontext_t *context);

/* The target itself has made this page read-only. _sigsafe */
bool calls_denied_sigsafe(uint64_t address);

/* Where our handlers return to: outside of it, the return would be told to us as well. */
void arch_sigreturn(void) __attribute__((visibility("hidden")));

#endif
