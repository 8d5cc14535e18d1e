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
 * The kernel kills for a call that it cannot tell, because SIGSYS is blocked; libc blocks all
 * signals where threads and programs are started, and nobody sees from outside that a thread is
 * there. So each thread asks for its own calls to be told, with the signals open: threads at their
 * start, the first one before it starts another or has a block placed. Until then its calls cost
 * nothing.
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

/* Before a block is placed: are this thread's calls told, and those of the first one, which may be
 * given it? A thread that libc or the target made without pthread_create has to do without as long
 * as the first one has not had to be told. */
bool calls_ready(void);

/* Before the calling thread makes another one. */
void calls_before_thread(void);

/* Nobody's any more, at whatever moment. _sigsafe */
void calls_stop_sigsafe(void);

/* In the child, of the one thread that is left. */
void calls_after_fork(void);

/* Whether any thread's are. Atomic, set once. */
extern __attribute__((visibility("hidden"))) uint32_t calls_told;

static inline bool calls_told_sigsafe(void)
{
	return calls_told != 0;
}

/* For the calling thread, which the kernel does not do by itself. _sigsafe */
void calls_thread_sigsafe(void);
/* The same in a handler, whose return brings the interrupted mask back. _sigsafe */
void calls_interrupted_sigsafe(ucontext_t *context);

/* A call that was told. False: SIGSYS of another kind. _sigsafe */
bool calls_dispatch_sigsafe(const siginfo_t *info, ucontext_t *context);

/* The target itself has made this page read-only. _sigsafe */
bool calls_denied_sigsafe(uint64_t address);

/* Where our handlers return to: outside of it, the return would be told to us as well. */
void arch_sigreturn(void) __attribute__((visibility("hidden")));

#endif
