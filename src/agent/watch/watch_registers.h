/*
 * The CPU's debug registers, by whichever way the plan says: perf events (watch_perf.h), or a
 * tracer (watch_ptrace.h).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/watch/debug_registers.h"
#include "wire/log_format.h"

/* Before they are opened: reads trap, too. A tracer's do not. */
void watch_registers_want_reads(void);

/* Before the target has threads, or in a forked child. yielded: told when a tracer goes (enum
 * log_yielded). 0, or the errno of what failed. */
int watch_registers_open(bool traced, uint64_t *yielded);

/* In a forked child, before it opens its own. */
void watch_registers_after_fork(void);

/* Which way, once open. */
enum log_watch_mode watch_registers_mode(void);

/* Writes by the kernel (a read(2) into the memory) are seen, too. */
bool watch_registers_see_kernel(void);

/* Aims register n at `bytes` (1, 2, 4, 8; aligned so) and has its traps carry `tag`. When it
 * returns, all threads have it. 0, or an errno. _sigsafe */
int watch_registers_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes, uint64_t tag);

/* At nothing. _sigsafe */
int watch_registers_park_sigsafe(unsigned n);

/* Is it a trap of ours? Then the tag it carries, and whether it came late. _sigsafe */
bool watch_registers_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late);

/* At the end of a trap: in virtual machines the registers are lost now and then after the first of
 * a thread (docs/design/watchpoints.md). */
void watch_registers_settle_sigsafe(void);

/* It is one of ours, but which, nobody can tell. _sigsafe */
bool watch_registers_nameless_sigsafe(const siginfo_t *info);

/* For good. _sigsafe */
void watch_registers_close_sigsafe(void);

/* The process is about to be debugged: no tracer of ours may be in the way. _sigsafe */
void watch_registers_yield_sigsafe(void);
