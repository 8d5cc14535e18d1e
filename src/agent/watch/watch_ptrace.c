#include "agent/watch/watch_ptrace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/maps.h"
#include "agent/core/text.h"
#include "wire/tracer_talk.h"

#define PATIENCE_NS 3000000000ull
#define PAUSE_NS 100000
#define ALL_BUT_TRAP (~(1ull << (SIGTRAP - 1)))

/* x86_64_tracer.S */
long tracer_ask_raw(long request, uint64_t a, uint64_t b, uint64_t c);
extern const char tracer_ask_behind[], tracer_trap_repair[];

/* As rt_sigaction(2) takes it, for tracer_trap_repair. */
HIDDEN struct {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
} tracer_trap_action;

static struct {
	bool open;
	uint64_t *yielded; /* in the log, set by the tracer, too: it has let go of this process */
} state;

/* With no other signal in between: a handler that comes in after the request has been made would
 * find registers aimed that nobody has noted yet. And with SIGTRAP open, or the kernel would drop
 * our handler before it stops. */
static long ask_sigsafe(long request, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t mask = ALL_BUT_TRAP, old = 0;
	long answer;

	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof(mask));
	answer = tracer_ask_raw(request, a, b, c);
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, sizeof(old));
	/* Killed after it had heard of the trap, before it answered: the signal is gone, too. */
	return answer == (long)TRACER_MAGIC_A ? -ENOTCONN : answer;
}

bool watch_ptrace_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;

	if (signo != SIGTRAP || info->si_code != SI_KERNEL ||
	    (uint64_t)gregs[REG_RIP] != (uint64_t)tracer_ask_behind)
		return false;
	gregs[REG_RAX] = -ENOTCONN;
	return true;
}

/* Who traces us: a pid, 0: nobody, -1: cannot be told. */
static long tracer_now(void)
{
	char status[1024], *at;
	long pid = 0;

	(void)maps_text_sigsafe("/proc/self/status", status, sizeof(status));
	at = strstr(status, "TracerPid:");
	if (!at)
		return -1;
	for (at += strlen("TracerPid:"); *at == '\t' || *at == ' '; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		pid = pid * 10 + (*at - '0');
	return pid;
}

static int fifo_write(void)
{
	char path[sizeof(agent.trial) + sizeof(WIRE_TRACER_NAME) + 1];
	int32_t pid = (int32_t)raw_syscall0(SYS_getpid);
	struct text text;
	long fd, got;

	text_begin(&text, path, sizeof(path));
	text_add(&text, agent.trial);
	text_add(&text, "/" WIRE_TRACER_NAME);
	fd = raw_syscall4(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return (int)-fd;
	got = raw_syscall3(SYS_write, fd, &pid, sizeof(pid));
	(void)raw_syscall1(SYS_close, fd);
	return got < 0 ? (int)-got : 0;
}

static int tracer_await(void)
{
	uint64_t end = clock_ns_sigsafe(CLOCK_MONOTONIC) + PATIENCE_NS;
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	long now = 0;

	while (!now) {
		if (clock_ns_sigsafe(CLOCK_MONOTONIC) > end)
			return ETIMEDOUT;
		if (raw_syscall2(SYS_kill, agent.plan.tracer, 0) == -ESRCH)
			return ENXIO;
		(void)raw_syscall2(SYS_nanosleep, &pause, 0);
		now = tracer_now();
	}
	return now == agent.plan.tracer ? 0 : EBUSY;
}

/* It is no ancestor of ours, so where Yama restricts ptrace it needs our leave. */
static int tracer_call(void)
{
	int r;

	(void)raw_syscall2(SYS_prctl, PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	r = fifo_write();
	if (!r)
		r = tracer_await();
	(void)raw_syscall2(SYS_prctl, PR_SET_PTRACER, 0);
	return r;
}

int watch_ptrace_open(uint64_t *yielded)
{
	struct tracer_hello hello = { .repair = (uint64_t)tracer_trap_repair,
				      .yielded = (uint64_t)yielded };
	long now = tracer_now();
	int r = 0;

	state.open = false;
	state.yielded = yielded;
	if (!agent.plan.tracer || now < 0)
		return ENXIO;
	if (now && now != agent.plan.tracer)
		return EBUSY;
	if (!now)
		r = tracer_call();
	if (r)
		return r;
	(void)raw_syscall4(SYS_rt_sigaction, SIGTRAP, 0, &tracer_trap_action, 8);
	r = (int)-ask_sigsafe(TRACER_HELLO, (uint64_t)&hello, 0, 0);
	state.open = !r;
	return r;
}

static bool has_yielded_sigsafe(void)
{
	return __atomic_load_n(state.yielded, __ATOMIC_RELAXED) != LOG_YIELDED_NOT;
}

int watch_ptrace_aim_sigsafe(unsigned n, uint64_t address, uint32_t bytes)
{
	long answer;

	if (!state.open)
		return EBADF;
	if (has_yielded_sigsafe())
		return EBUSY;
	answer = ask_sigsafe(TRACER_AIM, n, address, bytes);
	/* Killed. Not asked again: whoever traces us next is not to be bothered with our traps. */
	if (answer == -ENOTCONN)
		__atomic_store_n(state.yielded, LOG_YIELDED_KILLED, __ATOMIC_RELAXED);
	return (int)-answer;
}

bool watch_ptrace_trap_sigsafe(const siginfo_t *info, uint64_t *ret_tag, bool *ret_late)
{
	const struct perf_siginfo *perf = (const void *)info;

	if (!state.open || perf->code != CODE_TRAP_PERF || perf->type != PERF_TYPE_BREAKPOINT ||
	    !perf->data)
		return false;
	*ret_tag = perf->data;
	*ret_late = false;
	return true;
}

bool watch_ptrace_nameless_sigsafe(const siginfo_t *info)
{
	if (!state.open || info->si_code != CODE_TRAP_HWBKPT)
		return false;
	if (!has_yielded_sigsafe())
		__atomic_store_n(state.yielded, LOG_YIELDED_KILLED, __ATOMIC_RELAXED);
	return true;
}

/* In a vfork child `state` is the parent's, which goes on as before. */
void watch_ptrace_yield_sigsafe(int pid)
{
	if (!state.open || has_yielded_sigsafe() || tracer_now() != agent.plan.tracer)
		return;
	(void)ask_sigsafe(TRACER_YIELD, (uint64_t)(int64_t)pid, 0, 0);
}
