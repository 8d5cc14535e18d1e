/*
 * More of what a preloaded library easily breaks: processes, libraries, signals in the middle of
 * everything. `lodger MODE [ARGUMENT]` knows nothing of the agent; the driver runs it with and
 * without and compares.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *self, *argument;
static volatile int *volatile nowhere;

static void crash(void)
{
	*nowhere = 1;
}

static void tell(const char *what, int status)
{
	if (WIFSIGNALED(status))
		printf("%s died of %d\n", what, WTERMSIG(status));
	else
		printf("%s ended with %d\n", what, WEXITSTATUS(status));
	fflush(stdout);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void mode_raw_clone(void)
{
	void *before = malloc(100);
	int status = 0;
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!child) {
		free(before);
		free(malloc(3000));
		crash();
	}
	waitpid(child, &status, 0);
	tell("clone", status);
	free(malloc(200));
	free(before);
	crash();
}

static void mode_spawn(void)
{
	char *arguments[] = { (char *)self, "crash", NULL }, *quiet[] = { "true", NULL };
	char *bare[] = { "PATH=/usr/bin:/bin", NULL };
	int status = 0;
	pid_t child;

	printf("spawn %d\n", posix_spawn(&child, self, NULL, NULL, arguments, bare));
	waitpid(child, &status, 0);
	tell("spawned", status);
	printf("spawnp %d\n", posix_spawnp(&child, "true", NULL, NULL, quiet, environ));
	waitpid(child, &status, 0);
	tell("spawned", status);
	printf("missing %d\n", posix_spawn(&child, "/nowhere/at/all", NULL, NULL, quiet, environ));
}

static void mode_vfork(void)
{
	char *arguments[] = { (char *)self, "crash", NULL };
	int status = 0, i;
	pid_t child;

	for (i = 0; i < 3; i++) {
		child = vfork();
		if (!child) {
			if (i == 0)
				execv(self, arguments);
			else
				execv("/nowhere/at/all", arguments);
			_exit(errno == ENOENT ? 7 : 8);
		}
		waitpid(child, &status, 0);
		tell("vfork", status);
		free(malloc(100));
	}
	crash();
}

static void mode_exec(void)
{
	char *arguments[] = { (char *)argument, NULL };
	int status = 0;
	pid_t child = fork();

	if (!child) {
		execv(argument, arguments);
		_exit(errno == ENOEXEC ? 126 : 127);
	}
	waitpid(child, &status, 0);
	tell("child", status);
}

/* As servers do: root starts it as somebody else. */
static void mode_exec_other_user(void)
{
	if (setresuid(65534, 65534, 65534))
		_exit(53);
	mode_exec();
}

/* The same along PATH, and by descriptor. */
static void mode_exec_search(void)
{
	char *arguments[] = { (char *)argument, NULL }, path[4096];
	const char *name = strrchr(argument, '/') + 1;
	int status = 0, fd = open(argument, O_RDONLY);
	pid_t child;

	snprintf(path, sizeof(path), "/nowhere:%.*s:/bin", (int)(name - 1 - argument), argument);
	setenv("PATH", path, 1);
	child = fork();
	if (!child) {
		execvp(name, arguments);
		_exit(127);
	}
	waitpid(child, &status, 0);
	tell("searched", status);
	if (posix_spawnp(&child, name, NULL, NULL, arguments, environ))
		_exit(52);
	waitpid(child, &status, 0);
	tell("spawned", status);
	child = fork();
	if (!child) {
		fexecve(fd, arguments, environ);
		_exit(127);
	}
	waitpid(child, &status, 0);
	tell("by descriptor", status);
}

static volatile int stop;

static void *allocate(void *unused)
{
	unsigned i = 0;

	while (!stop)
		free(realloc(malloc(i % 500 + 1), ++i % 3000 + 1));
	return unused;
}

static void mode_fork_while_allocating(void)
{
	pthread_t threads[3];
	int i, status, bad = 0;

	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, allocate, NULL);
	for (i = 0; i < 40; i++) {
		pid_t child = fork();

		if (!child) {
			int k;

			for (k = 0; k < 200; k++)
				free(malloc((size_t)k * 7));
			_exit(3);
		}
		waitpid(child, &status, 0);
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	}
	stop = 1;
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%d of 40 children went wrong\n", bad);
}

/* ---- descriptors and limits ------------------------------------------------------------------ */

static void mode_close_range(void)
{
	int i;

	syscall(SYS_close_range, 3u, ~0u, 0);
	for (i = 0; i < 3000; i++)
		free(malloc(100));
	closefrom(3);
	crash();
}

static void mode_prctl(void)
{
	prctl(PR_SET_NAME, "renamed", 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	free(malloc(100));
	crash();
}

/* ---- signals --------------------------------------------------------------------------------- */

static void forbid(int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(50);
}

static void mode_seccomp(void)
{
	forbid(SYS_getppid);
	(void)getppid();
}

static void on_forbidden(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	printf("asked for %d\n", info->si_syscall == SYS_getppid);
}

static void mode_seccomp_handled(void)
{
	struct sigaction action = { .sa_sigaction = on_forbidden, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	forbid(SYS_getppid);
	(void)getppid();
}

static volatile sig_atomic_t ticks;

static void on_tick(int signo)
{
	(void)signo;
	free(malloc(33));
	ticks++;
}

/* Only for an allocator that can be interrupted by itself (pool.c). */
static void mode_interrupted(void)
{
	struct itimerval often = { { 0, 30 }, { 0, 30 } };
	long i;

	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; ticks < 4000; i++) {
		char *block = malloc(100);

		block[0] = 1;
		free(block);
	}
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	puts("interrupted often enough");
}

static sigjmp_buf back;

static void show_mask(const char *when)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("%s: segv %d usr1 %d\n", when, sigismember(&now, SIGSEGV),
	       sigismember(&now, SIGUSR1));
}

static void on_segv_quit(int signo)
{
	_exit(signo);
}

/* libc changes the mask without a call that could be seen. */
static void mode_masks(void)
{
	char *arguments[] = { (char *)self, "mask", NULL };
	int status = 0;
	sigset_t all;

	sigfillset(&all);
	show_mask("at first");
	if (!sigsetjmp(back, 1)) {
		sigprocmask(SIG_SETMASK, &all, NULL);
		show_mask("blocked");
		siglongjmp(back, 1);
	}
	show_mask("jumped");
	sigprocmask(SIG_BLOCK, &all, NULL);
	sigsetmask(0);
	show_mask("set to nothing");
	fflush(stdout);
	if (!fork()) {
		sigprocmask(SIG_BLOCK, &all, NULL);
		sigsetmask(0);
		signal(SIGSEGV, on_segv_quit);
		crash();
	}
	wait(&status);
	tell("with a handler", status);
	sigprocmask(SIG_BLOCK, &all, NULL);
	sigsetmask(0);
	execv(self, arguments);
}

static void mode_mask(void)
{
	show_mask("after exec");
}

static void on_segv_abort(int signo)
{
	(void)signo;
	abort();
}

static void mode_handler_aborts(void)
{
	signal(SIGSEGV, on_segv_abort);
	crash();
}

/* ---- libraries ------------------------------------------------------------------------------- */

static void *late_function(const char *path, int flags, const char *name, void **ret)
{
	*ret = dlopen(path, RTLD_NOW | flags);
	if (!*ret)
		_exit(51);
	return dlsym(*ret, name);
}

static void mode_late(void)
{
	void *library;
	void *(*make)(size_t) = late_function(argument, 0, "late_make_deeper", &library);
	void *kept = make(4242), *other;
	int i;

	printf("kept %d\n", kept != NULL);
	for (i = 0; i < 20; i++) {
		dlclose(library);
		make = late_function(argument, 0, "late_make", &library);
		other = make(777);
		free(other);
	}
	free(kept);
	kept = make(5151);
	crash();
}

/* A library that finds libc's malloc before any other: it frees what the program allocated, and the
 * other way round. */
static void mode_deepbind(void)
{
	void *library;
	void *(*make)(size_t) = late_function(argument, RTLD_DEEPBIND, "late_make", &library);
	void (*end)(void *) = dlsym(library, "late_end");
	size_t size;

	for (size = 24; size < 6000; size += 200) {
		end(malloc(size));
		free(make(size));
		end(strdup(argument));
	}
	puts("all given back");
}

/* Memory that the program frees, but that was allocated behind its back. */
static void mode_behind(void)
{
	void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *(*make)(size_t) = dlsym(library, "malloc");
	size_t size;

	for (size = 24; size < 6000; size += 200) {
		free(malloc(size));
		free(make(size));
	}
	puts("all given back");
}

static void mode_pool(void)
{
	void *(*take)(size_t) = dlsym(RTLD_DEFAULT, "pool_take");
	size_t size;

	for (size = 10; size < 6000; size += 100) {
		free(malloc(size));
		free(take ? take(size) : NULL);
	}
	puts("all given back");
}

static void mode_double_free(void)
{
	char *blocks[8];
	int i;

	for (i = 0; i < 8; i++)
		blocks[i] = malloc(50);
	free(blocks[1]);
	free(blocks[2]);
	free(blocks[3]);
	free(blocks[2]);
}

static void mode_late_python(void)
{
	void *library;
	void (*start)(void) = late_function(argument, 0, "Py_Initialize", &library);
	int (*run)(const char *) = dlsym(library, "PyRun_SimpleString");

	start();
	run("import os\n"
	    "def inner(): os.kill(os.getpid(), 11)\n"
	    "def outer(): inner()\n"
	    "outer()\n");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "crash", crash },
	{ "raw-clone", mode_raw_clone },
	{ "spawn", mode_spawn },
	{ "vfork", mode_vfork },
	{ "exec", mode_exec },
	{ "exec-other-user", mode_exec_other_user },
	{ "exec-search", mode_exec_search },
	{ "fork-while-allocating", mode_fork_while_allocating },
	{ "close-range", mode_close_range },
	{ "prctl", mode_prctl },
	{ "seccomp", mode_seccomp },
	{ "seccomp-handled", mode_seccomp_handled },
	{ "interrupted", mode_interrupted },
	{ "handler-aborts", mode_handler_aborts },
	{ "masks", mode_masks },
	{ "mask", mode_mask },
	{ "late", mode_late },
	{ "deepbind", mode_deepbind },
	{ "behind", mode_behind },
	{ "pool", mode_pool },
	{ "double-free", mode_double_free },
	{ "late-python", mode_late_python },
};

int main(int argc, char **argv)
{
	size_t i;

	self = argv[0];
	argument = argc > 2 ? argv[2] : NULL;
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			return 0;
		}
	return 2;
}
