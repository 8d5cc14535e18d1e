/*
 * What ptrace(2) may do here: debug registers on a child, and attaching to a
 * process that is not our child. x86-64: the debug registers are spelled out.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define YAMA_PATH "/proc/sys/kernel/yama/ptrace_scope"

/* DR7 for slot 0: enabled for this task (bit 0), on writes (bits 16-17 = 1), 8 bytes (bits 18-19
 * = 2). Intel SDM volume 3, chapter "Debug registers". */
#define DR7_SLOT0_WRITE8 ((1ul << 0) | (1ul << 16) | (2ul << 18))
#define DR6_SLOT0 (1ul << 0)
#define DR_OFFSET(n) (offsetof(struct user, u_debugreg) + (n) * sizeof(long))

static volatile uint64_t watched;

static void say_forbidden(struct finding *finding, const char *what, int error)
{
	long scope = probe_read_sysctl(YAMA_PATH);

	probe_say(finding, FINDING_NO, "%s is refused (%s)", what, strerror(error));
	if (scope > 1)
		probe_enable(finding, "as root: sysctl kernel.yama.ptrace_scope=1 (now %ld%s)",
			     scope, scope >= 3 ? "; at 3 it takes a reboot" : "");
	else
		probe_enable(finding, "allow ptrace in the container's seccomp profile, or end the "
				      "tracer that redhand itself runs under");
}

static void tracee(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(errno);
	(void)raise(SIGSTOP);
	watched = 0x5eed;
	_exit(0);
}

/* Waits for the next stop; false when the process is gone, with its exit status in *ret_exit. */
static bool wait_stop(pid_t pid, int *ret_signal, int *ret_exit)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFSTOPPED(status)) {
		*ret_signal = WSTOPSIG(status);
		return true;
	}
	*ret_exit = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return false;
}

void probe_ptrace_watch(struct finding *finding)
{
	int signal = 0, status = 0;
	unsigned long dr6;
	long value;
	pid_t pid = fork();

	if (pid == 0)
		tracee();
	if (pid < 0) {
		probe_say(finding, FINDING_NO, "no process could be started (%s)", strerror(errno));
		probe_enable(finding, "raise the limit on processes: ulimit -u");
		return;
	}
	if (!wait_stop(pid, &signal, &status)) {
		say_forbidden(finding, "tracing a child", status);
		return;
	}
	if (ptrace(PTRACE_POKEUSER, pid, DR_OFFSET(0), (void *)(uintptr_t)&watched) < 0 ||
	    ptrace(PTRACE_POKEUSER, pid, DR_OFFSET(7), (void *)DR7_SLOT0_WRITE8) < 0) {
		probe_say(finding, FINDING_NO, "the debug registers of a child cannot be set (%s)",
			  strerror(errno));
		probe_enable(finding, "use a machine or virtual machine that exposes the debug "
				      "registers");
		(void)kill(pid, SIGKILL);
		return;
	}
	(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
	if (!wait_stop(pid, &signal, &status) || signal != SIGTRAP) {
		probe_say(finding, FINDING_NO,
			  "the debug registers were set, but a store went through without a trap");
		probe_enable(finding, "the virtual machine or emulator does not implement debug "
				      "registers: use another one");
		(void)kill(pid, SIGKILL);
		return;
	}
	dr6 = (unsigned long)ptrace(PTRACE_PEEKUSER, pid, DR_OFFSET(6), NULL);
	value = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)&watched, NULL);
	if ((dr6 & DR6_SLOT0) && value == 0x5eed) {
		probe_say(finding, FINDING_OK,
			  "a store of a child trapped, with the new value in place (never sees "
			  "writes made by the kernel)");
	} else {
		probe_say(finding, FINDING_NO,
			  "a store of a child trapped, but not from its watchpoint (status %#lx, "
			  "value %#lx)",
			  dr6, (unsigned long)value);
	}
	(void)kill(pid, SIGKILL);
}

/* Attaches to a process that runs, waits for the stop, lets go. 0 or errno. */
static int attach(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return errno;
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status))
		return EIO;
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return 0;
}

/* Lets a process try that is not the target's ancestor. 0, errno, or -1 when none could start. */
static int attach_as_sibling(pid_t target)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(attach(target));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

void probe_ptrace_scope(struct finding *finding)
{
	char setting[64] = "Yama is not active";
	long scope = probe_read_sysctl(YAMA_PATH);
	int stranger, child;
	pid_t target = fork();

	if (target == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	if (target < 0) {
		probe_say(finding, FINDING_NO, "no process could be started (%s)", strerror(errno));
		return;
	}
	if (scope != PROBE_NO_SYSCTL)
		(void)snprintf(setting, sizeof(setting), "ptrace_scope is %ld", scope);
	stranger = attach_as_sibling(target);
	child = attach(target);
	(void)kill(target, SIGKILL);
	if (stranger == 0) {
		probe_say(finding, FINDING_OK,
			  "attached to a process of this user that is no child (%s)", setting);
	} else if (child == 0) {
		probe_say(finding, FINDING_LIMITED,
			  "attached to a child, but not to another process of this user (%s)",
			  setting);
		probe_lost(finding,
			   "redhand can look into processes it started itself, not into one "
			   "that runs already");
		probe_enable(finding,
			     "as root: sysctl kernel.yama.ptrace_scope=0, or run redhand as "
			     "root for that process");
	} else {
		say_forbidden(finding, "attaching to a process", child);
	}
}
