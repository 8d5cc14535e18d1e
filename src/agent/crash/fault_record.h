/*
 * Writing down a crash. Runs in the signal handler; everything here is _sigsafe.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "wire/log_format.h"

/* Was the thread interrupted in a handler of the target's for one of these signals? */
bool crash_in_handler_sigsafe(uint64_t rsp);

/* `flags` from enum log_crash_flags, without those that can be seen here. Returns the record's seq
 * (0: dropped). `action` is the target's. */
uint64_t crash_record_sigsafe(int signo, const siginfo_t *info, const ucontext_t *context,
			      uint32_t flags, const struct sigaction *action);

/* The handler of the target's came back from a fault of this instruction. */
void crash_survived_sigsafe(uint64_t rip);

/* The target went on behind this fault. 0: there is no record of it. */
void crash_handled_sigsafe(uint64_t record, const struct log_crash_diverted *to);

/* The image ends by itself: the last fault of this thread was survived, unless the end comes out of
 * the handler that it led to. */
void crash_exiting_sigsafe(void);
