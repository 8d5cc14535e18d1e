/*
 * Hardware watchpoints and counters through perf_event_open(2).
 *
 * The watchpoint probes arm the same kind of event as the agent does and check
 * what the agent relies on: the signal is synchronous, it carries our own
 * cookie, the new value is already there, and the instruction pointer stands
 * just behind the store. x86-64: the store and the register are spelled out.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PARANOID_PATH "/proc/sys/kernel/perf_event_paranoid"

/* From the kernel's asm-generic/siginfo.h; C libraries are late with both. */
#define CODE_TRAP_PERF 6
#define SIGINFO_PERF_AT 24
#define SIGINFO_PERF_FLAGS 36

#define COOKIE 0x7265646861u
#define MAX_OPEN 64

enum watch_flags {
	WATCH_KERNEL = 1 << 0,
	WATCH_THREADS = 1 << 1,
	WATCH_COUNT_ONLY = 1 << 2, /* no signal: tells an old kernel from a forbidden one */
};

static volatile uint64_t watched[MAX_OPEN] __attribute__((aligned(64)));

/* What the signal handler saw last. */
static struct {
	volatile sig_atomic_t count;
	int code;
	uint64_t cookie, value, ip;
	uint32_t flags;
} hit;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;

	hit.code = info->si_code;
	memcpy(&hit.cookie, (const char *)info + SIGINFO_PERF_AT, sizeof(hit.cookie));
	memcpy(&hit.flags, (const char *)info + SIGINFO_PERF_FLAGS, sizeof(hit.flags));
	hit.value = watched[0];
	hit.ip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	hit.count++;
}

static void catch_traps(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	(void)sigaction(SIGTRAP, &action, NULL);
}

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int watch_open(volatile uint64_t *word, enum watch_flags flags)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (uintptr_t)word,
		.bp_len = HW_BREAKPOINT_LEN_8,
		.sample_period = 1,
		.exclude_kernel = !(flags & WATCH_KERNEL),
		.exclude_hv = 1,
	};

	if (!(flags & WATCH_COUNT_ONLY)) {
		attr.sigtrap = 1;
		attr.remove_on_exec = 1;
		attr.sig_data = COOKIE;
	}
	if (flags & WATCH_THREADS) {
		attr.inherit = 1;
		attr.inherit_thread = 1;
	}
	return event_open(&attr, 0, -1);
}

/* Stores and returns the address of the instruction after the store. */
static uint64_t store(volatile uint64_t *word, uint64_t value)
{
	uint64_t after;

	__asm__ volatile("leaq 1f(%%rip), %0\n\tmovq %2, %1\n1:"
			 : "=&r"(after), "=m"(*word)
			 : "r"(value)
			 : "memory");
	return after;
}

/* Why watch_open() failed, and what the user can do. */
static void say_refused(struct finding *finding, int error)
{
	long paranoid = probe_read_sysctl(PARANOID_PATH);
	int fd;

	switch (error) {
	case EACCES:
	case EPERM:
		probe_say(finding, FINDING_NO, "perf_event_open is forbidden (%s)",
			  strerror(error));
		if (paranoid > 2)
			probe_enable(finding,
				     "as root: sysctl kernel.perf_event_paranoid=2 (now %ld)",
				     paranoid);
		else
			probe_enable(finding,
				     "the sandbox or container forbids the call: allow "
				     "perf_event_open in its seccomp profile (Docker: "
				     "--security-opt seccomp=unconfined or --cap-add PERFMON)");
		return;
	case EINVAL:
	case E2BIG:
		fd = watch_open(&watched[0], WATCH_COUNT_ONLY);
		if (fd >= 0) {
			probe_say(finding, FINDING_NO,
				  "the kernel can count hits but not signal them");
			probe_enable(finding, "use Linux 5.13 or later");
			(void)close(fd);
			return;
		}
		break;
	case ENOSPC:
		probe_say(finding, FINDING_NO, "all debug registers are taken");
		probe_enable(finding, "end the debugger or tracer that watches this process");
		return;
	case ENOSYS:
		probe_say(finding, FINDING_NO, "this kernel has no perf_event_open");
		probe_enable(finding, "use a kernel built with CONFIG_PERF_EVENTS, outside of a "
				      "sandbox that hides it");
		return;
	default:
		break;
	}
	probe_say(finding, FINDING_NO, "perf_event_open refuses a watchpoint (%s)",
		  strerror(error));
	probe_enable(finding, "use a machine or virtual machine that exposes the debug registers");
}

void probe_perf_store(struct finding *finding)
{
	const uint64_t value = 0x5eed;
	uint64_t after;

	catch_traps();
	if (watch_open(&watched[0], 0) < 0) {
		say_refused(finding, errno);
		return;
	}
	after = store(&watched[0], value);
	if (hit.count == 0) {
		probe_say(finding, FINDING_NO,
			  "a watchpoint could be set, but a store went through without a trap");
		probe_enable(finding, "the virtual machine or emulator does not implement debug "
				      "registers: use another one");
	} else if (hit.code != CODE_TRAP_PERF || hit.cookie != COOKIE) {
		probe_say(finding, FINDING_NO,
			  "a store trapped, but the signal did not name its watchpoint "
			  "(code %d)",
			  hit.code);
		probe_enable(finding, "use Linux 5.13 or later, without a debugger around redhand");
	} else if (hit.ip != after || hit.flags != 0 || hit.value != value || hit.count != 1) {
		probe_say(finding, FINDING_LIMITED,
			  "a store trapped %d times, %s the new value, at distance %lld from it",
			  (int)hit.count, hit.value == value ? "with" : "without",
			  (long long)(hit.ip - after));
		probe_lost(finding, "the instruction that wrote cannot always be named exactly");
		probe_enable(finding, "use a machine or virtual machine with exact debug traps");
	} else {
		probe_say(finding, FINDING_OK,
			  "a store trapped at once, just behind its instruction, with the new "
			  "value in place");
	}
}

void probe_perf_slots(struct finding *finding)
{
	size_t count = 0;
	int error = 0;

	while (count < MAX_OPEN) {
		if (watch_open(&watched[count], 0) < 0) {
			error = errno;
			break;
		}
		count++;
	}
	if (count == 0) {
		say_refused(finding, error);
	} else if (count < 4) {
		probe_say(finding, FINDING_LIMITED, "%zu watchpoints per thread, the next one: %s",
			  count, strerror(error));
		probe_enable(finding, "end the debugger or tracer that holds the others");
	} else {
		probe_say(finding, FINDING_OK, "%zu words of 8 bytes per thread at a time", count);
	}
}

static void *store_once(void *word)
{
	(void)store(word, 1);
	return NULL;
}

void probe_perf_threads(struct finding *finding)
{
	pthread_t thread;
	int r;

	catch_traps();
	if (watch_open(&watched[0], WATCH_THREADS) < 0) {
		say_refused(finding, errno);
		return;
	}
	r = pthread_create(&thread, NULL, store_once, (void *)(uintptr_t)&watched[0]);
	if (r != 0) {
		probe_say(finding, FINDING_NO, "no thread could be started (%s)", strerror(r));
		probe_enable(finding, "raise the limit on processes: ulimit -u");
		return;
	}
	(void)pthread_join(thread, NULL);
	if (hit.count > 0) {
		probe_say(finding, FINDING_OK,
			  "a store by a thread that was started later trapped in that thread");
	} else {
		probe_say(finding, FINDING_NO, "a store by a later thread was missed");
		probe_enable(finding, "use Linux 5.13 or later");
	}
}

void probe_perf_kernel(struct finding *finding)
{
	uint64_t value = 0x5eed;
	int pipes[2], error;
	long paranoid = probe_read_sysctl(PARANOID_PATH);

	catch_traps();
	if (watch_open(&watched[0], WATCH_KERNEL) < 0) {
		error = errno;
		if ((error == EACCES || error == EPERM) && watch_open(&watched[0], 0) >= 0) {
			probe_say(finding, FINDING_NO,
				  "only the program's own stores may be watched "
				  "(perf_event_paranoid is %ld)",
				  paranoid);
			probe_enable(finding,
				     "as root: sysctl kernel.perf_event_paranoid=1, or run "
				     "redhand as root or with CAP_PERFMON");
		} else {
			say_refused(finding, error);
			if (paranoid > 2)
				probe_enable(finding,
					     "as root: sysctl kernel.perf_event_paranoid=1 "
					     "(now %ld)",
					     paranoid);
		}
		return;
	}
	if (pipe(pipes) < 0 || write(pipes[1], &value, sizeof(value)) != sizeof(value) ||
	    read(pipes[0], (void *)(uintptr_t)&watched[0], sizeof(value)) != sizeof(value)) {
		probe_say(finding, FINDING_NO, "no pipe to try it with (%s)", strerror(errno));
		return;
	}
	if (hit.count > 0 && hit.code == CODE_TRAP_PERF && watched[0] == value) {
		probe_say(finding, FINDING_OK, "a read() into the watched word trapped");
	} else {
		probe_say(finding, FINDING_NO, "a read() into the watched word was missed");
		probe_enable(finding, "use a kernel whose copies to user space can be watched: "
				      "outside of gVisor and similar sandboxes");
	}
}

/* May an event be opened at all? A clock needs no hardware, so only permission can fail it. */
static bool clock_allowed(bool kernel, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.exclude_kernel = !kernel,
		.exclude_hv = 1,
		.disabled = 1,
	};
	int fd = event_open(&attr, pid, cpu);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

void probe_perf_paranoid(struct finding *finding)
{
	long level = probe_read_sysctl(PARANOID_PATH);
	bool own = clock_allowed(false, 0, -1), kernel = clock_allowed(true, 0, -1),
	     machine = clock_allowed(true, -1, 0);
	char level_text[32] = "not readable";

	if (level != PROBE_NO_SYSCTL)
		(void)snprintf(level_text, sizeof(level_text), "%ld", level);
	probe_say(finding,
		  kernel ? FINDING_OK
		  : own	 ? FINDING_LIMITED
			 : FINDING_NO,
		  "the setting is %s; tried as this user: own events %s, events in the kernel %s, "
		  "the whole machine %s",
		  level_text, own ? "yes" : "no", kernel ? "yes" : "no", machine ? "yes" : "no");
	if (!own) {
		probe_lost(finding, "no watchpoint can be set through perf at all");
		if (level > 2)
			probe_enable(finding,
				     "as root: sysctl kernel.perf_event_paranoid=2, better 1");
		else
			probe_enable(finding, "allow perf_event_open in the container's seccomp "
					      "profile");
	} else if (!kernel) {
		probe_enable(finding, "as root: sysctl kernel.perf_event_paranoid=1 (to keep it: a "
				      "file in /etc/sysctl.d)");
	}
}

void probe_perf_counters(struct finding *finding)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	int fd = event_open(&attr, 0, -1);
	uint64_t count = 0;

	if (fd < 0) {
		probe_say(finding, FINDING_NO, "no instruction counter (%s)", strerror(errno));
		probe_enable(finding, "%s",
			     errno == EACCES || errno == EPERM
				     ? "as root: sysctl kernel.perf_event_paranoid=2, or allow "
				       "perf_event_open in the container"
				     : "on a virtual machine: have the host pass the performance "
				       "monitoring unit through");
		return;
	}
	for (int i = 0; i < 1000; i++)
		(void)store(&watched[0], (uint64_t)i);
	if (read(fd, &count, sizeof(count)) == sizeof(count) && count >= 1000) {
		probe_say(finding, FINDING_OK,
			  "instructions are counted; rr can probably run here");
		return;
	}
	probe_say(finding, FINDING_NO, "the instruction counter stands still");
	probe_enable(finding, "on a virtual machine: have the host pass the performance monitoring "
			      "unit through");
}
