/*
 * Whose system calls are told to us, where there are watched pages or fences.
 *
 * The kernel would refuse to write there: EFAULT, which the program never had. So every call is
 * told to us before it is made (Syscall User Dispatch, prctl(2), Linux 5.11): by SIGSYS, in every
 * thread, calls that bypass libc included. What becomes of it there: calls.h.
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
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

/* As the kernel has it: <asm/signal.h>. */
struct told_action {
	uint64_t handler, flags, restorer, mask;
};

/* Main thread. 0, or the errno of what failed. */
int told_init(void);

/* Before a block is placed: are this thread's calls told, and those of the first one, which may be
 * given it? A thread that libc or the target made without pthread_create has to do without as long
 * as the first one has not had to be told. */
bool told_ready(void);

/* Before the calling thread makes another one. */
void told_before_thread(void);

/* Nobody's any more, at whatever moment. _sigsafe */
void told_stop_sigsafe(void);

/* In the child, of the one thread that is left. */
void told_after_fork(void);

/* For the calling thread, which the kernel does not do by itself. _sigsafe */
void told_thread_sigsafe(void);
/* The same in a handler, whose return brings the interrupted mask back. _sigsafe */
void told_interrupted_sigsafe(ucontext_t *context);
/* In a child whose thread asked before the fork. _sigsafe */
bool told_again_sigsafe(void);

/* Leaves out of a mask what must reach us. _sigsafe */
void told_mask_open(sigset_t *mask);
