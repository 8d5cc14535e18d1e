/*
 * What watched pages rest on, the way the agent uses it: memory that is there twice, once
 * read-only; a store that faults; code that is written and then run; and system calls that are told
 * before they are made.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_ON 1
#define CODE_USER_DISPATCH 2 /* SYS_USER_DISPATCH */
#define PAGE 4096

static struct {
	char *seen, *writable;
	volatile sig_atomic_t faults, calls;
	volatile char selector; /* 1: calls are told */
} state;

/* The store is made on the other view; the instruction behind it goes on. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	state.faults++;
	if ((char *)info->si_addr < state.seen || (char *)info->si_addr >= state.seen + PAGE ||
	    state.faults > 1)
		_exit(1);
	/* mov byte [rax], 7: three bytes. */
	state.writable[(char *)info->si_addr - state.seen] = 7;
	uc->uc_mcontext.gregs[REG_RIP] += 3;
}

/* One call that is made here instead, which the selector now allows. */
static void on_call(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	state.selector = 0;
	if (info->si_code == CODE_USER_DISPATCH)
		state.calls++;
	uc->uc_mcontext.gregs[REG_RAX] = 4711;
}

static void say_missing(struct finding *finding, const char *what, const char *enable)
{
	probe_say(finding, FINDING_NO, "%s (%s)", what, strerror(errno));
	probe_enable(finding, "%s", enable);
}

static bool views_map(void)
{
	int fd = memfd_create("redhand-probe", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE) < 0)
		return false;
	state.seen = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	state.writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return state.seen != MAP_FAILED && state.writable != MAP_FAILED;
}

void probe_pages(struct finding *finding)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO },
			 call = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO };
	long answer;

	if (!views_map()) {
		say_missing(finding, "memory cannot be mapped twice",
			    "use a kernel with memfd_create, outside of a sandbox that forbids it");
		return;
	}
	if (mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED) {
		say_missing(finding, "memory cannot be both written and run",
			    "allow it for this program (SELinux: execmem)");
		return;
	}
	(void)sigaction(SIGSEGV, &fault, NULL);
	(void)sigaction(SIGSYS, &call, NULL);
	__asm__ volatile("movb $7, (%0)" : : "a"(state.seen) : "memory");
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, 0, 0, &state.selector) < 0) {
		say_missing(finding, "system calls are not told before they are made",
			    "use Linux 5.11 or newer (syscall user dispatch), outside of a sandbox "
			    "that forbids it");
		return;
	}
	state.selector = 1;
	__asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_getpid) : "rcx", "r11", "memory");
	state.selector = 0;
	if (state.faults == 1 && state.calls == 1 && answer == 4711 && state.seen[0] == 7)
		probe_say(finding, FINDING_OK,
			  "a store to a read-only page faulted and was made on its other view; a "
			  "system call was told before it was made");
	else
		probe_say(finding, FINDING_NO,
			  "%d faults and %d system calls were told, of one and one",
			  (int)state.faults, (int)state.calls);
}
