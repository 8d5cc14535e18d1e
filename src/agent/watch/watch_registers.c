#include "agent/watch/watch_registers.h"

#include <errno.h>

#include "agent/watch/watch_perf.h"
#include "agent/watch/watch_ptrace.h"

/* Tags of traps from a tracer are what watch.c gives: the register's number, from 1. */
static enum log_watch_mode mode;
static int trouble; /* errno, why it is off */

void watch_registers_want_reads(void)
{
	watch_perf_want_reads();
}

int watch_registers_open(bool traced, uint64_t *yielded)
{
	trouble = traced ? watch_ptrace_open(yielded) : watch_perf_open();

	if (trouble)
		mode = LOG_WATCH_OFF;
	else
		mode = traced ? LOG_WATCH_BY_PTRACE : LOG_WATCH_PERF;
	return trouble;
}

void watch_registers_after_fork(void)
{
	watch_perf_after_fork();
	mode = LOG_WATCH_OFF;
}

enum log_watch_mode watch_registers_mode(void)
{
	return mode;
}

bool watch_registers_see_kernel(void)
{
	return mode == LOG_WATCH_PERF && watch_perf_sees_kernel();
}

int watch_registers_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes, uint64_t tag)
{
	if (mode == LOG_WATCH_OFF)
		return trouble;
	return mode == LOG_WATCH_BY_PTRACE ? watch_ptrace_aim_sigsafe(n, address, bytes)
					   : watch_perf_aim_sigsafe(n, address, bytes, tag);
}

int watch_registers_park_sigsafe(unsigned n)
{
	if (mode == LOG_WATCH_BY_PTRACE)
		return watch_ptrace_aim_sigsafe(n, 0, 0);
	if (mode == LOG_WATCH_PERF)
		watch_perf_park_sigsafe(n);
	return 0;
}

bool watch_registers_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late)
{
	return mode == LOG_WATCH_BY_PTRACE ? watch_ptrace_trap_sigsafe(info, ret_tag, ret_late)
					   : watch_perf_trap_sigsafe(info, ret_tag, ret_late);
}

bool watch_registers_nameless_sigsafe(const siginfo_t *info)
{
	return mode == LOG_WATCH_BY_PTRACE && watch_ptrace_nameless_sigsafe(info);
}

void watch_registers_settle_sigsafe(void)
{
	if (mode == LOG_WATCH_PERF)
		watch_perf_settle_sigsafe();
}

void watch_registers_close_sigsafe(void)
{
	watch_registers_yield_sigsafe();
	watch_perf_after_fork(); /* closes what is open */
	trouble = EPERM;
	mode = LOG_WATCH_OFF;
}

void watch_registers_yield_sigsafe(void)
{
	if (mode == LOG_WATCH_BY_PTRACE)
		watch_ptrace_yield_sigsafe(0);
}
