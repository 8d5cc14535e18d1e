/*
 * System calls of the target that are told to us (told.h), where there are watched pages (pages.h)
 * or fences.
 *
 * One that is to write to watched pages is made from the handler with the address of the writable
 * view, and what has changed is told as a write of the kernel. All others go on through a gate: an
 * instruction of our own, from which calls are allowed, that jumps back behind the one in the
 * target (arch/x86_64_gates.S).
 *
 * Besides, what would shut our handlers out is kept from happening: SIGSEGV, SIGTRAP and SIGSYS are
 * left out of masks, whoever sets them.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/ucontext.h>

/* A call that was told. False: another signal. _sigsafe */
bool calls_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);
