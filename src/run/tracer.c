#include "run/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/now.h"
#include "base/vec.h"
#include "run/process_family.h"
#include "run/restart.h"
#include "run/traced_registers.h"

/*
 * How long one thread waits for the others to take over new aims. Whoever runs is stopped in
 * microseconds; whoever is not, is in the kernel (a vfork parent, a disk) and stops before its next
 * instruction, so nothing is missed if it is not waited for.
 */
#define PATIENCE_NS 5000000u
#define NS_PER_S 1000000000u
#define LOOK_NS 100000000

#define OPTIONS \
	(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

struct traced_process {
	pid_t pid;
	struct register_aim aims[TRACER_REGISTERS];
	uint64_t generation; /* of the aims */
	uint64_t repair;     /* struct tracer_hello; 0: no agent has begun there */
	uint64_t yielded;
	bool yielding; /* its threads are let go of as they stop */
};

/* A trap that waits until the target's handler is back in its place. */
struct repair {
	bool running;
	siginfo_t info;
	struct user_regs_struct registers;
	uint64_t mask;
};

struct traced_thread {
	pid_t tid;
	pid_t pid; /* of its process */
	struct debug_registers registers;
	uint64_t generation; /* of its process's aims, that it has */
	bool interrupted;    /* will stop for us */
	bool straggler;	     /* has been waited for in vain */
	bool asking;	     /* stopped; the answer is due when the others are ready */
	pid_t yields;	     /* asking: which process is to be let go of; 0: none */
	int answer;	     /* 0 or -errno */
	struct repair *repair;
	struct restart restart;
};

struct tracer {
	int fifo;
	pid_t slot;
	bool closing;
	uint64_t deadline_ns; /* for those that are asking */
	VEC(struct traced_process) processes;
	VEC(struct traced_thread) threads;
};

static struct traced_process *find_process(struct tracer *t, pid_t pid)
{
	return VEC_FIND(&t->processes, process, process->pid == pid);
}

static struct traced_thread *find_thread(struct tracer *t, pid_t tid)
{
	return VEC_FIND(&t->threads, thread, thread->tid == tid);
}

static void drop_thread(struct tracer *t, struct traced_thread *thread)
{
	pid_t pid = thread->pid;
	struct traced_process *process;

	mem_free(thread->repair);
	*thread = t->threads.items[--t->threads.count];
	VEC_FOREACH (&t->threads, other)
		if (other->pid == pid)
			return;
	process = find_process(t, pid);
	if (process)
		*process = t->processes.items[--t->processes.count];
}

/* A thread that we know nothing of yet: of a process that we have, or of a new one. Its number
 * alone does not say so, but a signal can only be sent to a thread of the right process. */
static pid_t process_of(struct tracer *t, pid_t tid)
{
	VEC_FOREACH (&t->processes, process)
		if (syscall(SYS_tgkill, process->pid, tid, 0) == 0 || errno == EPERM)
			return process->pid;
	return tid;
}

static struct traced_thread *take_in(struct tracer *t, pid_t tid)
{
	struct traced_thread *thread = find_thread(t, tid);
	pid_t pid;

	if (thread)
		return thread;
	pid = process_of(t, tid);
	if (!find_process(t, pid))
		VEC_PUSH(&t->processes, (struct traced_process){ .pid = pid });
	VEC_PUSH(&t->threads, ((struct traced_thread){ .tid = tid, .pid = pid }));
	return &t->threads.items[t->threads.count - 1];
}

static void update(struct tracer *t, struct traced_thread *thread)
{
	struct traced_process *process = find_process(t, thread->pid);
	int r;

	if (thread->generation == process->generation)
		return;
	r = debug_registers_set(thread->tid, &thread->registers, process->aims);
	thread->generation = process->generation;
	if (r == 0 || r == -ESRCH)
		return;
	thread->answer = r;
	/* Whoever asked for it is told. */
	VEC_FOREACH (&t->threads, other)
		if (other->pid == thread->pid && other->asking)
			other->answer = r;
}

static void resume(struct tracer *t, struct traced_thread *thread, int signal)
{
	update(t, thread);
	(void)ptrace(PTRACE_CONT, thread->tid, NULL, signal);
}

/* A group stop goes on, and we hear when it ends (ptrace(2), PTRACE_LISTEN). */
static void listen_on(struct tracer *t, struct traced_thread *thread)
{
	update(t, thread);
	(void)ptrace(PTRACE_LISTEN, thread->tid, NULL, NULL);
}

static void let_go(struct tracer *t, struct traced_thread *thread, int signal)
{
	static const struct register_aim none[TRACER_REGISTERS];
	struct traced_process *process = find_process(t, thread->pid);

	if (process->yielded != 0)
		(void)ptrace(PTRACE_POKEDATA, thread->tid, process->yielded, 1);
	(void)debug_registers_set(thread->tid, &thread->registers, none);
	(void)ptrace(PTRACE_DETACH, thread->tid, NULL, signal);
	drop_thread(t, thread);
}

static void answer(struct tracer *t, struct traced_thread *thread)
{
	struct traced_process *process = find_process(t, thread->pid);

	thread->asking = false;
	(void)ptrace(PTRACE_POKEUSER, thread->tid, offsetof(struct user, regs.rax),
		     (long)thread->answer);
	if (process->yielding)
		let_go(t, thread, 0);
	else
		resume(t, thread, 0);
}

/* Must `thread` still wait, and for whom? */
static struct traced_thread *awaited(struct tracer *t, const struct traced_thread *thread)
{
	struct traced_process *process = find_process(t, thread->pid);

	VEC_FOREACH (&t->threads, other) {
		if (other->straggler || other->asking)
			continue;
		if (thread->yields > 0
			    ? other->pid == thread->yields
			    : other->pid == thread->pid && other->generation != process->generation)
			return other;
	}
	return NULL;
}

/* Answers those that have nobody left to wait for. */
static void settle(struct tracer *t)
{
	bool again = true, any = true;

	while (again) {
		again = any = false;
		VEC_FOREACH (&t->threads, thread) {
			if (!thread->asking)
				continue;
			any = true;
			if (awaited(t, thread))
				continue;
			answer(t, thread);
			again = true; /* the list may have changed */
			break;
		}
	}
	if (!any)
		t->deadline_ns = 0;
}

static void give_up_waiting(struct tracer *t)
{
	struct traced_thread *late;

	VEC_FOREACH (&t->threads, thread)
		while (thread->asking && (late = awaited(t, thread)) != NULL) {
			late->straggler = true;
			if (thread->yields > 0)
				thread->answer = -EBUSY;
		}
	settle(t);
}

static void interrupt_all(struct tracer *t, pid_t pid, const struct traced_thread *asking)
{
	VEC_FOREACH (&t->threads, other) {
		if (other->pid != pid || other == asking || other->asking || other->interrupted)
			continue;
		other->interrupted = ptrace(PTRACE_INTERRUPT, other->tid, NULL, NULL) == 0;
		if (!other->interrupted)
			other->straggler = true; /* it has died, and we shall hear of it */
	}
}

static void wait_for_others(struct tracer *t, struct traced_thread *thread, pid_t pid)
{
	thread->asking = true;
	interrupt_all(t, pid, thread);
	if (t->deadline_ns == 0)
		t->deadline_ns = clock_ns() + PATIENCE_NS;
}

static bool read_target(pid_t tid, uint64_t address, void *to, size_t bytes)
{
	struct iovec ours = { to, bytes }, theirs = { (void *)(uintptr_t)address, bytes };

	return process_vm_readv(tid, &ours, 1, &theirs, 1, 0) == (ssize_t)bytes;
}

static int hello(struct tracer *t, struct traced_thread *thread, uint64_t address)
{
	struct traced_process *process = find_process(t, thread->pid);
	struct tracer_hello hello;

	if (!read_target(thread->tid, address, &hello, sizeof(hello)))
		return -EFAULT;
	process->repair = hello.repair;
	process->yielded = hello.yielded;
	return 0;
}

static int aim(struct tracer *t, struct traced_thread *thread, uint64_t n, uint64_t address,
	       uint64_t bytes)
{
	struct traced_process *process = find_process(t, thread->pid);

	if (n >= TRACER_REGISTERS || bytes > 8 || (bytes & (bytes - 1)) != 0 ||
	    (bytes > 0 && address % bytes != 0))
		return -EINVAL;
	process->aims[n] = (struct register_aim){ .address = address, .bytes = (uint32_t)bytes };
	process->generation++;
	return 0;
}

/* What the kernel refused would be refused at every later aim. */
static void forget_aim(struct tracer *t, struct traced_thread *thread, uint64_t request, uint64_t n)
{
	struct traced_process *process = find_process(t, thread->pid);

	if (request != TRACER_AIM || n >= TRACER_REGISTERS)
		return;
	process->aims[n].bytes = 0;
	process->generation++;
	(void)debug_registers_set(thread->tid, &thread->registers, process->aims);
	thread->generation = process->generation;
}

static int yield(struct tracer *t, struct traced_thread *thread, pid_t pid)
{
	struct traced_thread *named = pid > 0 ? find_thread(t, pid) : thread;
	struct traced_process *process = named ? find_process(t, named->pid) : NULL;

	if (!process)
		return 0;
	process->yielding = true;
	thread->yields = process->pid;
	return 0;
}

/* The handler is back: the trap that it is for. */
static void repaired(struct tracer *t, struct traced_thread *thread)
{
	struct repair *repair = thread->repair;

	repair->running = false;
	(void)ptrace(PTRACE_SETREGS, thread->tid, NULL, &repair->registers);
	(void)ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(repair->mask), &repair->mask);
	(void)ptrace(PTRACE_SETSIGINFO, thread->tid, NULL, &repair->info);
	resume(t, thread, SIGTRAP);
}

/* False: it is not for us. */
static bool request(struct tracer *t, struct traced_thread *thread)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &regs) < 0 || regs.rax != TRACER_MAGIC_A ||
	    regs.r8 != TRACER_MAGIC_B)
		return false;
	thread->yields = 0;
	switch (regs.rdi) {
	case TRACER_REPAIRED:
		if (!thread->repair || !thread->repair->running)
			return false;
		repaired(t, thread);
		return true;
	case TRACER_HELLO:
		thread->answer = hello(t, thread, regs.rsi);
		break;
	case TRACER_AIM:
		thread->answer = aim(t, thread, regs.rsi, regs.rdx, regs.rcx);
		break;
	case TRACER_YIELD:
		thread->answer = yield(t, thread, (pid_t)regs.rsi);
		break;
	default:
		thread->answer = -ENOSYS;
		break;
	}
	update(t, thread);
	if (thread->answer < 0)
		forget_aim(t, thread, regs.rdi, regs.rsi);
	wait_for_others(t, thread, thread->yields > 0 ? thread->yields : thread->pid);
	return true;
}

/* The signals that a process has handlers for: SigCgt of proc(5). */
static bool catches_traps(pid_t pid)
{
	char path[40], text[4096];
	const char *caught;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	len = read(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[len > 0 ? len : 0] = '\0';
	caught = strstr(text, "\nSigCgt:");
	return !caught || (strtoull(caught + 8, NULL, 16) & 1ull << (SIGTRAP - 1));
}

/*
 * The kernel forces the signal of a trap. If the thread had it blocked (in a handler with
 * everything in its mask, or in the middle of the C library), the process has lost its handler for
 * it, and would die. Then the thread first goes through a piece of the agent that takes the signal
 * back.
 */
static bool repair(struct tracer *t, struct traced_thread *thread, const siginfo_t *info)
{
	const struct traced_process *process = find_process(t, thread->pid);
	uint64_t mask = 0, all = ~(1ull << (SIGTRAP - 1));
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof(mask), &mask) < 0 || mask == 0 ||
	    process->repair == 0 || catches_traps(thread->pid))
		return false;
	if (!thread->repair)
		thread->repair = mem_alloc(sizeof(*thread->repair));
	*thread->repair = (struct repair){ .running = true, .info = *info, .mask = mask };
	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &thread->repair->registers) < 0)
		return false;
	regs = thread->repair->registers;
	regs.rip = process->repair;
	(void)ptrace(PTRACE_SETSIGMASK, thread->tid, sizeof(all), &all);
	(void)ptrace(PTRACE_SETREGS, thread->tid, NULL, &regs);
	resume(t, thread, 0);
	return true;
}

/* As perf would have told it. */
static void hit(struct tracer *t, struct traced_thread *thread)
{
	int n = debug_registers_cause(thread->tid);
	struct perf_siginfo perf = { .signo = SIGTRAP,
				     .code = CODE_TRAP_PERF,
				     .type = PERF_TYPE_BREAKPOINT };
	siginfo_t info = { 0 };

	if (n >= 0) {
		perf.address = thread->registers.aims[n].address;
		perf.data = (uint64_t)n + 1;
		memcpy(&info, &perf, sizeof(perf));
		if (repair(t, thread, &info))
			return;
		(void)ptrace(PTRACE_SETSIGINFO, thread->tid, NULL, &info);
	}
	resume(t, thread, SIGTRAP);
}

static void on_signal(struct tracer *t, struct traced_thread *thread, int signal)
{
	siginfo_t info = { 0 };

	if (signal == SIGTRAP && ptrace(PTRACE_GETSIGINFO, thread->tid, NULL, &info) == 0) {
		if (info.si_code == CODE_TRAP_HWBKPT) {
			hit(t, thread);
			return;
		}
		if (info.si_code == SI_KERNEL && request(t, thread))
			return;
	}
	resume(t, thread, signal);
}

/* A new image: no other threads, no registers, no agent yet. */
static void on_exec(struct tracer *t, struct traced_thread *thread)
{
	pid_t pid = thread->pid, tid = thread->tid;
	struct traced_process *process = find_process(t, pid);

	for (size_t i = t->threads.count; i-- > 0;)
		if (t->threads.items[i].pid == pid && t->threads.items[i].tid != tid)
			drop_thread(t, &t->threads.items[i]);
	thread = find_thread(t, tid);
	mem_free(thread->repair);
	*thread = (struct traced_thread){ .tid = tid, .pid = pid };
	*process = (struct traced_process){ .pid = pid };
	resume(t, thread, 0);
}

static bool is_group_stop(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void on_stop(struct tracer *t, struct traced_thread *thread, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (thread->interrupted && event == PTRACE_EVENT_STOP && signal == SIGTRAP)
		restart_call(thread->tid, &thread->restart);
	thread->interrupted = thread->straggler = false;
	if (find_process(t, thread->pid)->yielding)
		let_go(t, thread, event == 0 ? signal : 0);
	else if (event == 0)
		on_signal(t, thread, signal);
	else if (event == PTRACE_EVENT_EXEC)
		on_exec(t, thread);
	else if (event == PTRACE_EVENT_STOP && is_group_stop(signal))
		listen_on(t, thread);
	else
		resume(t, thread, 0);
}

static void on_status(struct tracer *t, pid_t tid, int status)
{
	struct traced_thread *thread;

	if (WIFSTOPPED(status)) {
		on_stop(t, take_in(t, tid), status);
		return;
	}
	thread = find_thread(t, tid);
	if (thread)
		drop_thread(t, thread);
}

/* The fifo is the target's to write to: only what belongs to the trial is taken. */
static void seize(struct tracer *t, pid_t pid)
{
	if (pid <= 0 || find_thread(t, pid) || !family_is_below(pid, t->slot) || pid == getpid())
		return;
	if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) == 0)
		(void)take_in(t, pid);
	else if (errno == EPERM && t->threads.count == 0)
		t->closing = true; /* nobody will be: agents see that we have gone */
}

static void read_requests(struct tracer *t)
{
	int32_t pid;

	while (read(t->fifo, &pid, sizeof(pid)) == sizeof(pid))
		seize(t, (pid_t)pid);
}

/* At most LOOK_NS: not every end comes with a SIGCHLD (clone(2) lets a process choose). */
static void wait_for_news(struct tracer *t, const sigset_t *signals)
{
	struct timespec left = { .tv_nsec = LOOK_NS };
	uint64_t now = clock_ns();
	siginfo_t info;
	int signal;

	if (t->deadline_ns > 0)
		left.tv_nsec = t->deadline_ns > now ? (long)(t->deadline_ns - now) : 0;
	signal = sigtimedwait(signals, &info, &left);
	if (signal < 0 && errno == EAGAIN && t->deadline_ns > 0)
		give_up_waiting(t);
	if (signal == SIGIO)
		read_requests(t);
	if (signal == SIGTERM)
		t->closing = true;
}

static void trace(struct tracer *t)
{
	sigset_t signals;
	int status;
	pid_t tid;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGCHLD);
	(void)sigaddset(&signals, SIGIO);
	(void)sigaddset(&signals, SIGTERM);
	read_requests(t);
	while (!t->closing || t->threads.count > 0) {
		while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
			on_status(t, tid, status);
		settle(t);
		if (!t->closing || t->threads.count > 0)
			wait_for_news(t, &signals);
	}
}

/* Nothing of the slot's may be held open: redhand and the commands wait for ends of files. */
static _Noreturn void tracer_main(int fifo, pid_t slot)
{
	struct tracer t = { .fifo = 3, .slot = slot };

	(void)prctl(PR_SET_NAME, "redhand-tracer");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGCHLD, SIG_DFL);
	if (getppid() != slot || (fifo != 3 && dup2(fifo, 3) < 0) || close_range(4, ~0u, 0) < 0)
		_exit(1);
	(void)fcntl(t.fifo, F_SETOWN, getpid());
	(void)fcntl(t.fifo, F_SETFL, O_NONBLOCK | O_ASYNC);
	trace(&t);
	_exit(0);
}

int tracer_start(int dir, pid_t *ret, struct err *err)
{
	AUTO(fd_closep) int fifo = -1;
	int fault = fault_hits("tracer");
	pid_t pid, self = getpid();

	if (mkfifoat(dir, WIRE_TRACER_NAME, 0600) == 0)
		fifo = openat(dir, WIRE_TRACER_NAME, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fifo < 0)
		return err_set_errno(err, -errno, "cannot make the fifo for the tracer");
	/* Signals stay blocked, as in the slot. */
	pid = fault > 0 ? (errno = fault, -1) : fork();
	if (pid == 0)
		tracer_main(fifo, self);
	if (pid < 0)
		return err_set_errno(err, -errno, "cannot start the tracer");
	*ret = pid;
	return 0;
}

void tracer_finish(pid_t tracer)
{
	(void)kill(tracer, SIGTERM);
}
