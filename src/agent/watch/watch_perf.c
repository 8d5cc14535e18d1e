#include "agent/watch/watch_perf.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/thread.h"
#include "wire/tracer_talk.h"

#define FDS_FROM 900u	      /* below the usual limit of 1024, above what select(2) users expect */
#define HYPERVISOR (1u << 31) /* CPUID 1, ecx */
#define FLAG_ASYNC 1u	      /* TRAP_PERF_FLAG_ASYNC of <asm-generic/siginfo.h> */

static struct {
	struct perf_event_attr attr[WATCH_REGISTERS];
	int first_fd; /* 0: not open */
	bool kernel, reads;
	bool virtual; /* a hypervisor stands between us and the registers */
} state;

/* Never written to. */
static _Alignas(8) uint64_t parking;

static void attr_fill(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->size = sizeof(*attr);
	attr->bp_type = state.reads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W;
	attr->bp_addr = (uint64_t)&parking;
	attr->bp_len = HW_BREAKPOINT_LEN_8;
	attr->sample_period = 1;
	attr->sigtrap = 1;
	attr->remove_on_exec = 1;
	attr->inherit = 1;
	attr->inherit_thread = 1;
	attr->exclude_hv = 1;
	attr->exclude_kernel = !state.kernel;
}

static long event_open(struct perf_event_attr *attr)
{
	return raw_syscall6(SYS_perf_event_open, (long)attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
}

/* With the kernel's writes where that is permitted. */
static long first_open(struct perf_event_attr *attr)
{
	long fd;

	state.kernel = true;
	attr_fill(attr);
	fd = event_open(attr);
	if (fd != -EACCES && fd != -EPERM)
		return fd;
	state.kernel = false;
	attr_fill(attr);
	return event_open(attr);
}

static bool on_hypervisor(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && ecx & HYPERVISOR;
}

static uint32_t fds_from(void)
{
	struct rlimit limit = { 0 };

	if (raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit) ||
	    limit.rlim_cur > FDS_FROM + 64)
		return FDS_FROM;
	return limit.rlim_cur > 64   ? (uint32_t)limit.rlim_cur - 32
	       : limit.rlim_cur > 12 ? (uint32_t)limit.rlim_cur - WATCH_REGISTERS
				     : 3;
}

void watch_perf_want_reads(void)
{
	state.reads = true;
}

int watch_perf_open(void)
{
	uint32_t from = fds_from(), i;
	long fd, moved;

	state.virtual = on_hypervisor();

	for (i = 0; i < WATCH_REGISTERS; i++) {
		if (i)
			attr_fill(&state.attr[i]);
		fd = i ? event_open(&state.attr[i]) : first_open(&state.attr[i]);
		if (fd < 0)
			break;
		moved = raw_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from + i);
		(void)raw_syscall1(SYS_close, fd);
		fd = moved;
		if (fd >= 0 && i && fd != state.first_fd + (int)i) {
			(void)raw_syscall1(SYS_close, fd); /* something lies in between */
			fd = -EMFILE;
		}
		if (fd < 0)
			break;
		if (!i)
			state.first_fd = (int)fd;
	}
	if (i == WATCH_REGISTERS)
		return 0;
	while (i--)
		(void)raw_syscall1(SYS_close, state.first_fd + (int)i);
	state.first_fd = 0;
	return (int)-fd;
}

void watch_perf_after_fork(void)
{
	unsigned i;

	for (i = 0; state.first_fd && i < WATCH_REGISTERS; i++)
		(void)raw_syscall1(SYS_close, state.first_fd + (int)i);
	state.first_fd = 0;
}

bool watch_perf_sees_kernel(void)
{
	return state.kernel;
}

static int modify(unsigned n)
{
	return (int)-raw_syscall3(SYS_ioctl, state.first_fd + (int)n,
				  PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &state.attr[n]);
}

int watch_perf_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes, uint64_t tag)
{
	struct perf_event_attr *attr = &state.attr[n];

	if (!state.first_fd)
		return EBADF;
	attr->bp_addr = address;
	attr->bp_len = bytes;
	attr->sig_data = tag;
	return modify(n);
}

/* It keeps its tag: the kernel reads that when it tells of a hit, which another thread may have had
 * before this. Without one the trap would be taken for the target's, and be its end. */
void watch_perf_park_sigsafe(unsigned n)
{
	(void)watch_perf_aim_sigsafe(n, (uint64_t)&parking, HW_BREAKPOINT_LEN_8,
				     state.attr[n].sig_data);
}

bool watch_perf_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late)
{
	const struct perf_siginfo *perf = (const void *)info;

	if (!state.first_fd || perf->code != CODE_TRAP_PERF || perf->type != PERF_TYPE_BREAKPOINT ||
	    !perf->data)
		return false;
	*ret_tag = perf->data;
	*ret_late = perf->flags & FLAG_ASYNC;
	return true;
}

/* The kernel writes the registers when it switches a thread in; the shortest sleep makes it do
 * that. Aiming again would do, too, but it stops the watch in all other threads for a moment. */
void watch_perf_settle_sigsafe(void)
{
	struct timespec shortest = { .tv_nsec = 1 };

	if (!state.virtual || thread_here->settled)
		return;
	thread_here->settled = 1;
	(void)raw_syscall2(SYS_nanosleep, &shortest, 0);
}

int watch_perf_first_fd_sigsafe(void)
{
	return state.first_fd ? state.first_fd : -1;
}
