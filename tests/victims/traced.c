/*
 * A program with a watched global, which does one of the things that a tracer can get wrong.
 *
 *	traced MODE [ARGUMENTS]
 *
 * It says on stdout what it saw of its children and of its system calls: the same with and without
 * anybody watching. Each mode ends by its own exit status or signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define ODD_STATUS 7

volatile unsigned long counter;
static char **arguments;
static atomic_int done;
extern char **environ;

static void told(const char *what, int status)
{
	(void)printf("%s %#x\n", what, (unsigned int)status);
	(void)fflush(stdout);
}

static int wait_for(pid_t child, int options)
{
	int status = -1;

	(void)waitpid(child, &status, options);
	return status;
}

/* ---- writes that are counted -------------------------------------------------------------------
 */

static void *write_many(void *argument)
{
	unsigned long writes = strtoul(arguments[2], NULL, 10);

	for (unsigned long i = 0; i < writes; i++)
		counter = i;
	return NULL;
}

static int mode_writes(void)
{
	unsigned int threads = (unsigned int)atoi(arguments[3]);
	pthread_t list[64];

	if (threads == 0)
		(void)write_many(NULL);
	for (unsigned int i = 0; i < threads; i++)
		(void)pthread_create(&list[i], NULL, write_many, NULL);
	for (unsigned int i = 0; i < threads; i++)
		(void)pthread_join(list[i], NULL);
	return 0;
}

struct item {
	unsigned long tag, rest[7];
};

__attribute__((noinline)) static struct item *item_new(void)
{
	return malloc(sizeof(struct item));
}

/* Each object is written to twice while it is watched. */
static void *items_make(void *argument)
{
	unsigned long count = strtoul(arguments[2], NULL, 10);

	for (unsigned long i = 0; i < count; i++) {
		volatile struct item *item = item_new();

		item->tag = i + 1;
		item->tag = i + 2;
		free((void *)item);
	}
	return NULL;
}

static void *sleep_on(void *argument)
{
	(void)pause();
	return NULL;
}

static int mode_items(void)
{
	pthread_t sleeper;

	(void)pthread_create(&sleeper, NULL, sleep_on, NULL);
	(void)items_make(NULL);
	return 0;
}

/* The other thread writes to an object that was watched from this one. */
static volatile struct item *shared;
static atomic_int turn;

static void *other_writes(void *argument)
{
	unsigned long count = strtoul(arguments[2], NULL, 10);

	for (unsigned long i = 0; i < count; i++) {
		while (atomic_load(&turn) != 1)
			;
		shared->tag = i;
		atomic_store(&turn, 0);
	}
	return NULL;
}

static int mode_handover(void)
{
	unsigned long count = strtoul(arguments[2], NULL, 10);
	pthread_t other;

	(void)pthread_create(&other, NULL, other_writes, NULL);
	for (unsigned long i = 0; i < count; i++) {
		shared = item_new();
		atomic_store(&turn, 1);
		while (atomic_load(&turn) != 0)
			;
	}
	(void)pthread_join(other, NULL);
	return 0;
}

/* ---- ends ---------------------------------------------------------------------------------------
 */

static int mode_exit(void)
{
	counter = 1;
	return ODD_STATUS;
}

static int mode_abort(void)
{
	counter = 1;
	abort();
}

static int mode_segv(void)
{
	counter = 1;
	*(volatile int *)8 = 1;
	return 0;
}

static int mode_kill(void)
{
	counter = 1;
	return raise(SIGKILL);
}

static int mode_breakpoint(void)
{
	counter = 1;
	__asm__ volatile("int3");
	return 0;
}

static int mode_realtime(void)
{
	counter = 1;
	return raise(SIGRTMIN + 3);
}

static void *leave(void *argument)
{
	(void)usleep(10000);
	counter = 1;
	exit(ODD_STATUS);
}

static int mode_leader_gone(void)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, leave, NULL);
	pthread_exit(NULL);
}

/* ---- children -----------------------------------------------------------------------------------
 */

static int mode_fork(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (child == 0) {
			counter = 1;
			counter = 2;
			_exit(i);
		}
		told("child", wait_for(child, 0));
	}
	return 0;
}

static int mode_spawn(void)
{
	char *command[] = { "sh", "-c", "exit 3", NULL };
	pid_t child = 0;

	for (int i = 0; i < 5; i++) {
		counter++;
		(void)posix_spawnp(&child, "sh", NULL, NULL, command, environ);
		told("child", wait_for(child, 0));
	}
	return 0;
}

static void *busy(void *argument)
{
	while (!atomic_load(&done))
		free(item_new());
	return NULL;
}

static int mode_exec(void)
{
	char *command[] = { arguments[0], "exit", NULL };
	pthread_t thread;

	(void)pthread_create(&thread, NULL, busy, NULL);
	counter = 1;
	(void)execv(command[0], command);
	return 1;
}

static void *exec_here(void *argument)
{
	(void)usleep(1000);
	(void)mode_exec();
	return NULL;
}

static int mode_thread_exec(void)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, exec_here, NULL);
	(void)pthread_join(thread, NULL);
	return 1;
}

static void *brief(void *argument)
{
	counter = 1;
	return NULL;
}

static int mode_brief_threads(void)
{
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		(void)pthread_create(&thread, NULL, brief, NULL);
		(void)pthread_join(thread, NULL);
	}
	return 0;
}

/* ---- stops and signals --------------------------------------------------------------------------
 */

static void stop_with_threads(int go_on)
{
	pthread_t list[3];
	char byte;

	for (int i = 0; i < 3; i++)
		(void)pthread_create(&list[i], NULL, busy, NULL);
	(void)usleep(5000);
	(void)kill(getpid(), SIGSTOP);
	(void)!read(go_on, &byte, 1);
	counter = 1;
	atomic_store(&done, 1);
	for (int i = 0; i < 3; i++)
		(void)pthread_join(list[i], NULL);
	_exit(ODD_STATUS);
}

static int mode_stop(void)
{
	int go_on[2];
	pid_t child;

	if (pipe(go_on) < 0)
		return 1;
	child = fork();
	if (child == 0)
		stop_with_threads(go_on[0]);
	told("stopped", wait_for(child, WUNTRACED));
	(void)usleep(20000);
	told("still", waitpid(child, NULL, WNOHANG | WCONTINUED));
	(void)kill(child, SIGCONT);
	told("continued", wait_for(child, WCONTINUED));
	(void)!write(go_on[1], "x", 1);
	told("ended", wait_for(child, 0));
	return 0;
}

static void on_signal(int signal)
{
	counter = 1;
	counter = 2;
}

/* The kernel takes a handler away when its signal has to be forced. */
static int mode_masked(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	(void)sigfillset(&action.sa_mask);
	(void)sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 10; i++) {
		(void)raise(SIGUSR1);
		counter = 3;
	}
	return 0;
}

/* None of these returns early because another thread has something watched. */
static int mode_waits(void)
{
	int queue = epoll_create1(0), early = 0;
	struct epoll_event event;
	pthread_t thread;

	(void)pthread_create(&thread, NULL, busy, NULL);
	for (int i = 0; i < 3; i++)
		early += epoll_wait(queue, &event, 1, 30) != 0;
	for (int i = 0; i < 3; i++)
		early += usleep(20000) != 0;
	atomic_store(&done, 1);
	(void)pthread_join(thread, NULL);
	told("early", early);
	return 0;
}

/* ---- tracers of its own
 * -------------------------------------------------------------------------- */

static int mode_trace_me(void)
{
	pid_t child = fork();

	if (child == 0) {
		counter = 1;
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(errno);
		(void)raise(SIGSTOP);
		_exit(ODD_STATUS);
	}
	told("stopped", wait_for(child, 0));
	(void)ptrace(PTRACE_CONT, child, NULL, NULL);
	told("ended", wait_for(child, 0));
	return 0;
}

static int mode_attach(void)
{
	int out[2];
	char byte;
	pid_t child;

	if (pipe(out) < 0)
		return 1;
	child = fork();
	if (child == 0) {
		counter = 1;
		(void)!write(out[1], "x", 1);
		for (;;)
			(void)pause();
	}
	(void)!read(out[0], &byte, 1);
	told("attach", (int)ptrace(PTRACE_ATTACH, child, NULL, NULL));
	told("stopped", wait_for(child, 0));
	(void)kill(child, SIGKILL);
	told("ended", wait_for(child, 0));
	return 0;
}

/* Long enough for somebody to be killed meanwhile. A file tells that it is on its way. */
static int mode_steps(void)
{
	unsigned long steps = strtoul(arguments[2], NULL, 10);

	for (unsigned long i = 0; i < steps; i++) {
		void *item = item_new();

		counter = i;
		/* Whoever is killed meanwhile leaves a register on this item, which free() writes
		 * to. */
		(void)usleep(1000);
		free(item);
		if (i == 20)
			(void)fclose(fopen(arguments[3], "w"));
	}
	return ODD_STATUS;
}

static const struct {
	const char *name;
	int (*run)(void);
} modes[] = {
	{ "writes", mode_writes },
	{ "items", mode_items },
	{ "handover", mode_handover },
	{ "exit", mode_exit },
	{ "abort", mode_abort },
	{ "segv", mode_segv },
	{ "kill", mode_kill },
	{ "breakpoint", mode_breakpoint },
	{ "realtime", mode_realtime },
	{ "leader-gone", mode_leader_gone },
	{ "fork", mode_fork },
	{ "spawn", mode_spawn },
	{ "exec", mode_exec },
	{ "thread-exec", mode_thread_exec },
	{ "brief-threads", mode_brief_threads },
	{ "stop", mode_stop },
	{ "masked", mode_masked },
	{ "waits", mode_waits },
	{ "trace-me", mode_trace_me },
	{ "attach", mode_attach },
	{ "steps", mode_steps },
};

int main(int argc, char **argv)
{
	arguments = argv;
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(modes[i].name, argv[1]) == 0)
			return modes[i].run();
	return 64;
}
