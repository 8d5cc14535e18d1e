/*
 * Debug registers through a tracer, where perf is forbidden: wire/tracer_talk.h says how.
 *
 * The tracer sees to all threads, those made later included, and sends traps of the same form as
 * perf. Writes by the kernel are never seen. The tracer may go (it was killed, or the target wants
 * to be traced by somebody else): then nothing more is watched, and the target runs on.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

/* Finds the tracer, or has it come; a child of a traced process has it already. 0, or an errno:
 * EBUSY, somebody else traces us; ENXIO, there is no tracer; ETIMEDOUT, it did not come. */
int watch_ptrace_open(uint64_t *yielded);

/* As in watch_registers.h; bytes 0: off. _sigsafe */
int watch_ptrace_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes);
bool watch_ptrace_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late);

/* A trap of a register that nobody names, for the tracer has gone. _sigsafe */
bool watch_ptrace_nameless_sigsafe(const siginfo_t *info);

/* Process pid (0: this one) is about to be traced by somebody else. _sigsafe; also in a vfork
 * child. */
void watch_ptrace_yield_sigsafe(int pid);

/* Was it a question that nobody answered? Then the thread goes on, and is told so. _sigsafe */
bool watch_ptrace_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);
