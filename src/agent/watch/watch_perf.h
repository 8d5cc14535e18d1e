/*
 * Debug registers through perf_event_open(2).
 *
 * Four events, opened before the target has threads and inherited by all that it makes; moving one
 * moves it in all of them. While nothing is to be watched they are aimed at a word of our own. The
 * kernel tells of a hit by SIGTRAP, before the next instruction of that thread.
 *
 * They are the only descriptors that the agent keeps. They lie next to each other, high up, and
 * close() and its kin leave them alone (hooks_fd.c).
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/watch/debug_registers.h"

/* Before they are opened: they trap on reads, too. */
void watch_perf_want_reads(void);

/* Opens them. 0, or the errno of what failed. */
int watch_perf_open(void);

/* In a forked child the descriptors are the parent's. */
void watch_perf_after_fork(void);

/* Writes by the kernel (a read(2) into the memory) are seen, too. */
bool watch_perf_sees_kernel(void);

/* Aims register n at `bytes` (1, 2, 4, 8; aligned so) and has its traps carry `tag`. 0, or the
 * errno of the kernel's refusal. _sigsafe */
int watch_perf_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes, uint64_t tag);

/* Back to our own word. _sigsafe */
void watch_perf_park_sigsafe(unsigned n);

/* Is it a trap of ours? Then the tag it carries, and whether it came late. _sigsafe */
bool watch_perf_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late);

/* As in watch_registers.h. */
void watch_perf_settle_sigsafe(void);

/* The first of our descriptors; -1: none. They are WATCH_REGISTERS in a row. _sigsafe */
int watch_perf_first_fd_sigsafe(void);
