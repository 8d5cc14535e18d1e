/*
 * A guest house for the agent: `guest MODE` does one thing that a preloaded library easily breaks.
 * It knows nothing of the agent; the driver runs it with and without and compares.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int *volatile nowhere;
static sigjmp_buf back;
static void *fixable;

static void crash(void)
{
	*nowhere = 1;
}

static void mode_segv(void)
{
	crash();
}

static void mode_noncanonical(void)
{
	*(volatile int *)0xdead000000000000 = 1;
}

static void mode_ill(void)
{
	__asm__ volatile("ud2");
}

static void mode_fpe(void)
{
	volatile int zero = 0;

	printf("%d\n", 1000 / zero);
}

static void mode_trap(void)
{
	__asm__ volatile("int3");
}

static void mode_abort(void)
{
	abort();
}

static void mode_assert(void)
{
	assert(!"the moon is cheese");
}

static void mode_double_free(void)
{
	char *a = malloc(40);

	free(a);
	free(a);
}

static void mode_sent(void)
{
	raise(SIGSEGV);
}

static void mode_bus(void)
{
	char name[] = "guest-file-XXXXXX";
	int fd = mkstemp(name);
	volatile char *map;

	if (ftruncate(fd, 16384))
		return;
	map = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	map[8192] = 1;
	(void)!ftruncate(fd, 4096);
	unlink(name);
	map[8192] = 2;
}

static int __attribute__((noinline)) deeper(volatile char *above)
{
	volatile char frame[512];

	frame[0] = above[0];
	return deeper(frame) + frame[0];
}

static void mode_overflow(void)
{
	char start[8] = { 0 };

	deeper(start);
}

static void *in_thread(void *run)
{
	pthread_setname_np(pthread_self(), "guest-worker");
	((void (*)(void))run)();
	return NULL;
}

static void thread_with(void (*run)(void))
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, (void *)run);
	pthread_join(thread, NULL);
}

static void mode_thread_overflow(void)
{
	thread_with(mode_overflow);
}

static void mode_thread_segv(void)
{
	thread_with(mode_segv);
}

static void mode_use_after_free(void)
{
	uintptr_t *block = malloc(64);

	block[2] = 0x10;
	free(block);
	block[3] = (uintptr_t)block;
	*(volatile int *)block[2] = 1; /* null + 0x10, with the freed block in a register */
	printf("%p\n", (void *)block);
}

static void on_fault_fix(int signo, siginfo_t *info, void *context)
{
	(void)context;
	if (signo == SIGSEGV && info->si_addr == fixable)
		mprotect(fixable, 4096, PROT_READ | PROT_WRITE);
	else
		_exit(99);
}

static void install(int signo, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	sigaction(signo, &action, NULL);
}

static void mode_handler_fixes(void)
{
	int i;

	fixable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	install(SIGSEGV, on_fault_fix, 0);
	for (i = 0; i < 100; i++) {
		*(volatile int *)fixable = i;
		mprotect(fixable, 4096, PROT_NONE);
	}
	puts("fixed 100 times");
}

static void on_fault_jump(int signo, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	siglongjmp(back, signo);
}

static void mode_handler_jumps(void)
{
	volatile int i;

	install(SIGSEGV, on_fault_jump, 0);
	for (i = 0; i < 1000; i++)
		if (!sigsetjmp(back, 1))
			crash();
	puts("jumped 1000 times");
}

static void on_fault_raise(int signo)
{
	static const char text[] = "handler was here\n";

	(void)!write(1, text, sizeof(text) - 1);
	signal(signo, SIG_DFL);
	raise(signo);
}

static void mode_handler_reraises(void)
{
	signal(SIGSEGV, on_fault_raise);
	crash();
}

static void on_fault_exit(int signo, siginfo_t *info, void *context)
{
	char here;
	stack_t now;

	(void)signo;
	(void)info;
	(void)context;
	sigaltstack(NULL, &now);
	_exit((now.ss_flags & SS_ONSTACK) && &here >= (char *)now.ss_sp &&
			      &here < (char *)now.ss_sp + now.ss_size
		      ? 17
		      : 18);
}

static void mode_own_altstack(void)
{
	static char space[65536];
	stack_t mine = { .ss_sp = space, .ss_size = sizeof(space) };

	sigaltstack(&mine, NULL);
	install(SIGSEGV, on_fault_exit, SA_ONSTACK);
	mode_overflow();
}

static void on_fault_quit(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)info;
	(void)context;
	_exit(21);
}

/* Without an alternate stack a handler cannot run after an overflow: the kernel kills. */
static void mode_overflow_with_handler(void)
{
	install(SIGSEGV, on_fault_quit, 0);
	mode_overflow();
}

static void mode_queries(void)
{
	struct sigaction action;
	sigset_t set, old;
	stack_t stack;

	sigaction(SIGSEGV, NULL, &action);
	printf("default %d\n", action.sa_handler == SIG_DFL);
	printf("signal says %d\n", signal(SIGBUS, on_fault_raise) == SIG_DFL);
	sigaction(SIGBUS, NULL, &action);
	printf("mine %d flags %x\n", action.sa_handler == on_fault_raise,
	       (unsigned)action.sa_flags & (SA_RESTART | SA_SIGINFO | SA_ONSTACK));
	sigaltstack(NULL, &stack);
	printf("stack disabled %d\n", (stack.ss_flags & SS_DISABLE) != 0);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	printf("before: segv %d\n", sigismember(&old, SIGSEGV));
	sigprocmask(SIG_SETMASK, &old, &set);
	printf("blocked: segv %d bus %d term %d\n", sigismember(&set, SIGSEGV),
	       sigismember(&set, SIGBUS), sigismember(&set, SIGTERM));
	sigprocmask(SIG_BLOCK, NULL, &set);
	printf("after: segv %d term %d\n", sigismember(&set, SIGSEGV), sigismember(&set, SIGTERM));
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void mode_block_all(void)
{
	block_all();
	crash();
}

static void mode_block_and_wait(void)
{
	sigset_t set;
	int got = 0;

	block_all();
	kill(getpid(), SIGSEGV);
	puts("still here");
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigwait(&set, &got);
	printf("waited for %d\n", got);
}

static void mode_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	raise(SIGSEGV);
	puts("ignored what was sent");
	fflush(stdout);
	crash();
}

static void mode_close_all(void)
{
	int fd;

	puts("closing");
	fflush(stdout);
	for (fd = 0; fd < 1024; fd++)
		close(fd);
	for (fd = 0; fd < 5000; fd++)
		free(malloc(100));
	crash();
}

static void mode_killed(void)
{
	int i;

	for (i = 0; i < 100; i++) {
		void *volatile block = malloc(24);

		free(block);
	}
	kill(getpid(), SIGKILL);
}

/* Without the right to, it may fail with the agent where it does not without. */
static void mode_lock_all(void)
{
	int r = geteuid() ? 0 : mlockall(MCL_CURRENT | MCL_FUTURE), i;

	for (i = 0; i < 1000; i++) {
		void *volatile block = malloc((size_t)i);

		free(block);
	}
	printf("locked %d\n", r);
}

static void mode_fork(void)
{
	void *before = malloc(100);
	int status = 0;
	pid_t child = fork();

	if (!child) {
		free(before);
		(void)!malloc(77);
		crash();
	}
	waitpid(child, &status, 0);
	printf("child died of %d\n", WTERMSIG(status));
	free(before);
}

static void mode_fork_in_threads(void)
{
	pthread_t threads[4];
	int i, j, status, bad = 0;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, in_thread, (void *)mode_queries);
	for (j = 0; j < 20; j++) {
		pid_t child = fork();

		if (!child) {
			free(malloc(50));
			_exit(3);
		}
		waitpid(child, &status, 0);
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
	}
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	_exit(bad ? 1 : 0);
}

static void mode_vfork(void)
{
	char *arguments[] = { "true", NULL };
	int status = 0;
	pid_t child = vfork();

	if (!child) {
		execv("/bin/true", arguments);
		_exit(1);
	}
	waitpid(child, &status, 0);
	printf("vfork child: %d\n", status);
}

static void mode_exec_empty_environment(void)
{
	char *arguments[] = { "guest", "segv", NULL }, *none[] = { NULL };

	execve("/proc/self/exe", arguments, none);
}

static volatile sig_atomic_t ticks;

static void on_tick(int signo)
{
	(void)signo;
	ticks++;
	free(malloc(33)); /* not allowed, and common */
}

static void mode_signals_mid_hook(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	sigset_t none;
	long i;

	(void)none;
	signal(SIGALRM, on_tick);
	setitimer(ITIMER_REAL, &often, NULL);
	/* The handler allocates too, so the loop must not be inside malloc: it only frees what a
	 * thread-safe but not reentrant allocator can take. Only the hooks' own code is exposed. */
	for (i = 0; ticks < 300; i++)
		(void)getppid();
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	puts("ticked");
}

static void mode_errno(void)
{
	void *block;
	int i, bad = 0;

	for (i = 0; i < 10000; i++) {
		errno = 4711;
		block = malloc((size_t)i * 37);
		bad += errno != 4711;
		free(block);
		bad += errno != 4711;
	}
	errno = 4711;
	free(realloc(malloc(10), 100000));
	bad += errno != 4711;
	printf("errno changed %d times\n", bad);
}

static void *short_life(void *argument)
{
	free(malloc(64));
	return argument;
}

static void mode_many_threads(void)
{
	pthread_t threads[50];
	int round, i;

	for (round = 0; round < 40; round++) {
		for (i = 0; i < 50; i++)
			pthread_create(&threads[i], NULL, short_life, NULL);
		for (i = 0; i < 50; i++)
			pthread_join(threads[i], NULL);
	}
	puts("2000 threads");
}

/* Addresses far from everything that the program has: what can be read there? */
static void mode_nowhere(void)
{
	int ends[2], readable = 0;

	if (pipe(ends) != 0)
		exit(1);
	for (uint64_t at = 1ull << 40; at < 80ull << 40; at += 1ull << 36) {
		char byte;

		if (syscall(SYS_write, ends[1], at, 1) == 1)
			readable += read(ends[0], &byte, 1) == 1;
	}
	/* Some of it may lie under a probe by chance. */
	printf("%s readable\n", readable > 8 ? "much" : "next to nothing");
}

/* Offsets within the heap: the same with and without the agent. */
/* Past libc's functions, but through its syscall(). */
static void mode_raw_mask(void)
{
	uint64_t all = ~0ull, seen = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &seen, 8);
	printf("blocked %lx, bad %ld %d\n", (unsigned long)seen,
	       syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8), errno);
	fflush(stdout);
	crash();
}

static void mode_raw_action(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags, restorer, mask;
	} wanted = { SIG_IGN, 0, 0, 0 }, seen = { 0 };

	syscall(SYS_rt_sigaction, SIGSEGV, NULL, &seen, 8);
	printf("default %d\n", seen.handler == SIG_DFL);
	syscall(SYS_rt_sigaction, SIGSEGV, &wanted, NULL, 8);
	syscall(SYS_rt_sigaction, SIGSEGV, NULL, &seen, 8);
	printf("ignored %d\n", seen.handler == SIG_IGN);
	raise(SIGSEGV);
	fflush(stdout);
	crash();
}

static void crash_in_handler(int signo)
{
	(void)signo;
	crash();
}

static void mode_handler_mask(void)
{
	struct sigaction action = { .sa_handler = crash_in_handler }, seen;

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &seen);
	printf("%d %d\n", sigismember(&seen.sa_mask, SIGSEGV), sigismember(&seen.sa_mask, SIGUSR2));
	fflush(stdout);
	raise(SIGUSR1);
}

/* A handler for it is there: blocked means that the kernel kills, without asking it. */
static void say_caught(int signo)
{
	(void)signo;
	(void)!write(1, "caught\n", 7);
	_exit(3);
}

static void mode_handler_mask_kept(void)
{
	struct sigaction action = { .sa_handler = crash_in_handler };

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGSEGV, say_caught);
	raise(SIGUSR1);
}

/* Faults with alignment checks on, which stay on in handlers. */
static void mode_alignment(void)
{
	static char bytes[16] __attribute__((aligned(8)));

	__asm__ volatile("subq $128, %%rsp\n\tpushfq\n\torl $0x40000, (%%rsp)\n\tpopfq\n\t"
			 "movl (%0), %%eax"
			 :
			 : "r"(bytes + 1)
			 : "rax", "memory", "cc");
}

static void *crash_alone(void *argument)
{
	usleep(20000);
	crash();
	return argument;
}

static void mode_first_thread_gone(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, crash_alone, NULL);
	pthread_exit(NULL);
}

static void *address_thread(void *number)
{
	char *block = malloc(100 + (size_t)number);

	free(block);
	return block;
}

/* libc keeps a table for each thread in the heap of whoever makes it. */
static void addresses_between_threads(void)
{
	char *before = malloc(24), *after;
	pthread_t threads[4];
	size_t round, i;

	for (round = 0; round < 3; round++) { /* from the second on, on stacks that were used */
		for (i = 0; i < 4; i++) {
			if (pthread_create(&threads[i], NULL, address_thread, (void *)i))
				_exit(1);
			after = malloc(24);
			printf("behind a thread: %ld\n", (long)(after - before));
			before = after;
		}
		for (i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
}

static void mode_addresses(void)
{
	static char *blocks[2000];
	char *base = malloc(1);
	unsigned seed = 1, i;

	addresses_between_threads(); /* while the heap has no holes that the tables fit */
	for (i = 0; i < 20000; i++) {
		unsigned k;

		seed = seed * 1664525u + 1013904223u;
		k = (seed >> 8) % 2000;
		if (seed & 1) {
			blocks[k] = realloc(blocks[k], 1 + (seed >> 20) % 3000);
		} else {
			free(blocks[k]);
			blocks[k] = calloc(1, 1 + (seed >> 20) % 700);
		}
		printf("%ld\n", (long)(blocks[k] - base));
	}
	printf("first block at %lx\n", (unsigned long)base & 0xfff);
	/* What is mapped lies where the libraries do. */
	base = malloc(1 << 20);
	printf("large one near: %d\n", labs((long)base - (long)stdout) >> 36 == 0);
}

static void mode_all_entry_points(void)
{
	void *p = NULL;
	int i;

	for (i = 0; i < 100; i++) {
		free(memalign(64, 100));
		free(aligned_alloc(64, 128));
		if (!posix_memalign(&p, 256, 100))
			free(p);
		free(valloc(100));
		free(pvalloc(100));
		free(reallocarray(NULL, 10, 10));
		free(reallocarray(malloc(10), 100, 100));
		p = calloc(10, 10);
		p = realloc(p, 20);
		p = realloc(p, 200000);
		if (malloc_usable_size(p) < 200000)
			puts("usable size shrank");
		p = realloc(p, 0);
		free(p);
		free(NULL);
		if (realloc(malloc(8), (size_t)-100))
			puts("huge realloc worked");
	}
	puts("done");
}

/* No file can be opened any more, and nobody may change that. */
static void mode_no_files(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 });
	*(volatile int *)8 = 1;
}

static __attribute__((noinline)) void let_go(void *block)
{
	free(block);
	__asm__ volatile("");
}

/* A pointer that is off by one is none that malloc gave out, also where the block has a mark, which
 * those have that are watched or that are this large. */
static void mode_free_inside(void)
{
	void *volatile blocks[10];
	int i;

	for (i = 0; i < 9; i++)
		blocks[i] = malloc(100);
	blocks[i] = malloc(5ull << 30);
	if (!blocks[i])
		_exit(77);
	blocks[i] = (char *)blocks[i] + 1;
	/* All by one way, as the hot path takes it. */
	for (i = 0; i < 10; i++)
		let_go(blocks[i]);
}

static void mode_truncate(void)
{
	char name[] = "guest-cut-XXXXXX";
	int fd = mkstemp(name);
	FILE *file;

	(void)!write(fd, "0123456789", 10);
	(void)!ftruncate(fd, 5);
	(void)!truncate(name, 3);
	close(fd);
	fd = open(name, O_WRONLY | O_TRUNC);
	(void)!write(fd, "abc", 3);
	close(fd);
	file = fopen(name, "w");
	fputs("xyz", file);
	fclose(file);
	close(creat(name, 0600));
	unlink(name);
	puts("cut five times");
}

static void refill(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT, 0600);

	(void)!write(fd, "0123456789", 10);
	close(fd);
}

/* Past libc's own functions, and by those that open inside of libc. */
static void mode_truncate_past(void)
{
	char name[] = "guest-cut-XXXXXX", shared[64];
	struct open_how how = { .flags = O_WRONLY | O_TRUNC };
	int fd = mkstemp(name);
	FILE *file;

	refill(name);
	(void)!syscall(SYS_ftruncate, fd, 9l);
	(void)!syscall(SYS_truncate, name, 8l);
	close((int)syscall(SYS_open, name, O_WRONLY | O_TRUNC, 0));
	refill(name);
	close((int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_TRUNC, 0));
	refill(name);
	close((int)syscall(SYS_creat, name, 0600));
	refill(name);
	fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof(how));
	if (fd < 0)
		(void)!truncate(name, 0);
	close(fd);
	refill(name);
	file = fopen(name, "r+");
	file = freopen(NULL, "w", file);
	fclose(file);
	/* None of these takes anything away. */
	(void)!syscall(SYS_openat, AT_FDCWD, "guest-cut-no-such-file", O_WRONLY | O_TRUNC, 0);
	errno = 0;
	if (syscall(SYS_truncate, "guest-cut-no-such-file", 0l) != -1 || errno != ENOENT)
		abort();
	close((int)syscall(SYS_open, name, O_RDWR, 0));
	unlink(name);
	(void)snprintf(shared, sizeof(shared), "/guest-cut-%d", (int)getpid());
	fd = shm_open(shared, O_RDWR | O_CREAT, 0600);
	(void)!ftruncate(fd, 10);
	close(shm_open(shared, O_RDWR | O_TRUNC, 0600));
	close(fd);
	shm_unlink(shared);
	puts("cut in eight more ways");
}

/* A large reserve for emitted code, of which little is used: two pages here, `more` there. */
static void emit(size_t more)
{
	static const unsigned char code[] = { 0x80, 0x63, 0x18, 0xfe, 0xc3 };
	size_t bytes = 16 << 20, i;
	unsigned char *reserve = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (reserve == MAP_FAILED)
		_exit(3);
	memcpy(reserve, code, sizeof(code));
	memcpy(reserve + bytes / 2, code, sizeof(code));
	for (i = 0; i < more; i++)
		reserve[bytes / 2 + 4096 * (i + 1)] = 0xc3;
}

static void mode_no_descriptors(void)
{
	struct rlimit few = { 48, 48 };

	setrlimit(RLIMIT_NOFILE, &few);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	crash();
}

/* The root of a test machine's container: the directory of the trial is not nobody's. */
static void mode_other_user(void)
{
	if (geteuid() == 0 && seteuid(65534))
		exit(9);
	crash();
}

/* Nothing can be written any more; it must still be this signal that ends it. */
static void mode_no_file_size(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_FSIZE, &none);
	crash();
}

static void mode_emitted(void)
{
	emit(0);
	crash();
}

static void mode_emitted_exit(void)
{
	emit(0);
}

static void mode_emitted_much(void)
{
	emit(1500);
	crash();
}

static void say_and_return(int signo)
{
	(void)signo;
	(void)!write(1, "handler\n", 8);
}

static void mode_abort_ignored(void)
{
	signal(SIGABRT, SIG_IGN);
	abort();
}

static void mode_abort_handled(void)
{
	signal(SIGABRT, say_and_return);
	abort();
}

static void crash_again(int signo)
{
	say_and_return(signo);
	crash();
}

static void mode_handler_crashes(void)
{
	signal(SIGSEGV, crash_again);
	crash();
}

/* Ways to say sigaction that libc does not tell its callers apart by. */
static void mode_older_names(void)
{
	struct sigaction now;

	printf("%d", sigset(SIGSEGV, say_and_return) == SIG_DFL);
	printf("%d", !siginterrupt(SIGSEGV, 1) && !sigaction(SIGSEGV, NULL, &now) &&
			     now.sa_handler == say_and_return && !(now.sa_flags & SA_RESTART));
	printf("%d", sigset(SIGSEGV, SIG_HOLD) == say_and_return);
	printf("%d", sigset(SIGSEGV, SIG_IGN) == SIG_HOLD);
	raise(SIGSEGV);
	printf("%d", !sigignore(SIGBUS) && signal(SIGBUS, SIG_DFL) == SIG_IGN);
	/* From now on signal() does not ask for calls to be restarted. */
	printf("%d", !siginterrupt(SIGUSR1, 1) && signal(SIGUSR1, say_and_return) == SIG_DFL &&
			     !sigaction(SIGUSR1, NULL, &now) && !(now.sa_flags & SA_RESTART));
	printf("%d\n", sigset(SIGSEGV, SIG_DFL) == SIG_IGN);
	fflush(stdout);
	crash();
}

/* Both are deadly; the kernel takes the fault's first. */
static void mode_two_pending(void)
{
	sigset_t both, pending;

	sigemptyset(&both);
	sigaddset(&both, SIGSEGV);
	sigaddset(&both, SIGABRT);
	sigprocmask(SIG_BLOCK, &both, NULL);
	raise(SIGABRT);
	raise(SIGSEGV);
	sigpending(&pending);
	printf("%d%d\n", sigismember(&pending, SIGSEGV), sigismember(&pending, SIGABRT));
	fflush(stdout);
	sigprocmask(SIG_UNBLOCK, &both, NULL);
}

static void mode_exec_no_environment(void)
{
	char *arguments[] = { "guest", "segv", NULL };

	clearenv();
	execv("/proc/self/exe", arguments);
}

static int overflow_c11(void *argument)
{
	(void)argument;
	mode_overflow();
	return 0;
}

static void mode_c11_overflow(void)
{
	thrd_t thread;

	thrd_create(&thread, overflow_c11, NULL);
	thrd_join(thread, NULL);
}

/* As much as one takes that prints names and lines. */
static void large_handler(int signo)
{
	volatile char room[160 << 10];
	unsigned i;

	for (i = 0; i < sizeof(room); i += 512)
		room[i] = (char)signo;
	say_and_return(signo);
	if (signo == SIGSEGV)
		_exit(room[512] == SIGSEGV ? 5 : 6);
}

/* Asks for an alternate stack and has none, then has one. */
static void mode_handler_stack(void)
{
	struct sigaction action = { .sa_handler = large_handler, .sa_flags = SA_ONSTACK }, now;
	stack_t stack = { .ss_size = 4 << 20 };

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	raise(SIGUSR1);
	printf("%d", !sigaction(SIGUSR1, NULL, &now) && (now.sa_flags & SA_ONSTACK));
	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	raise(SIGUSR1);
	printf("%d", !sigaction(SIGUSR1, NULL, &now) && (now.sa_flags & SA_ONSTACK));
	printf("\n");
	fflush(stdout);
	crash();
}

/* What is asked for is left over, whatever somebody else has reserved. */
static void mode_memory_limit(void)
{
	struct rlimit limit = { 512ul << 20, 1ul << 30 }, now;
	size_t got = 0;
	int which[] = { RLIMIT_DATA, RLIMIT_AS }, i;

	for (i = 0; i < 2; i++) {
		printf("%d", setrlimit(which[i], &limit));
		printf("%d", !getrlimit(which[i], &now) && now.rlim_cur == limit.rlim_cur &&
				     now.rlim_max == limit.rlim_max);
		printf("%d\n", !prlimit(0, which[i], NULL, &now) && now.rlim_cur == limit.rlim_cur);
	}
	while (got < 1000 && malloc(1 << 20))
		got++;
	printf("%s\n", got > 440 && got < 512 ? "as asked for" : "not as asked for");
	fflush(stdout);
	execl("/bin/sh", "sh", "-c", "ulimit -v", (char *)NULL);
}

/* A block that lies by itself in memory: behind it comes what comes without anybody else. */
static void mode_beyond_mapped(void)
{
	volatile char *block = malloc(1 << 20);
	size_t i;

	for (i = 0; i < 64u << 20; i += 512)
		block[i] = 1;
}

static int no_way_back; /* from a signal's handler */

/* Writing, reading, leaving and little more is let through; for the rest there is `answer`. */
static void filter(unsigned answer)
{
	static const unsigned let[] = { SYS_write, SYS_exit_group, SYS_rt_sigreturn, SYS_brk };
	struct sock_filter code[2 * sizeof(let) / sizeof(let[0]) + 2] = { BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .filter = code };
	unsigned i, n = 1;

	for (i = 0; i < sizeof(let) / sizeof(let[0]); i++) {
		if (no_way_back && let[i] == SYS_rt_sigreturn)
			continue;
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, let[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	program.len = (unsigned short)n;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (answer == SECCOMP_RET_TRAP ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
				       : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		perror("filter");
}

static void mode_filter_refuses(void)
{
	free(malloc(1));
	filter(SECCOMP_RET_ERRNO | EPERM);
	crash();
}

static void mode_filter_kills(void)
{
	unsigned i;

	free(malloc(1));
	filter(SECCOMP_RET_KILL_PROCESS);
	for (i = 0; i < 3000; i++)
		malloc(i);
	_exit(4);
}

/* A program that cuts every file of the folder it finds itself in: ours are among them. */
static void cut_logs(off_t left)
{
	const char *folder = getenv("REDHAND_TRIAL");
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *entry;
	char path[4096];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strstr(entry->d_name, ".rhl") && truncate(path, left))
			perror(path);
	}
	if (dir)
		closedir(dir);
}

static void *work(void *argument)
{
	for (size_t i = 0; i < 3000; i++)
		free(malloc(i % 300));
	return argument;
}

static void cut_and_work(off_t left)
{
	pthread_t thread;
	int i;

	(void)work(NULL);
	cut_logs(left);
	for (i = 0; i < 10; i++) {
		(void)work(NULL);
		pthread_create(&thread, NULL, work, NULL);
		pthread_join(thread, NULL);
	}
	if (fork() == 0)
		_exit(work(NULL) != NULL);
	wait(&i);
	printf("child %d\n", i);
	fflush(stdout);
}

static void mode_cuts_logs(void)
{
	cut_and_work(0);
}

static void mode_cuts_logs_behind(void)
{
	cut_and_work(8192);
}

static void mode_cuts_logs_crash(void)
{
	cut_and_work(0);
	crash();
}

static long put_there;

static void go_on(int signo, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signo;
	(void)info;
	uc->uc_mcontext.gregs[REG_RAX] = (greg_t)&put_there;
}

/* As Java tests for NULL: the handler puts it right and goes on. */
static void mode_faults_often(void)
{
	struct sigaction action = { .sa_sigaction = go_on, .sa_flags = SA_SIGINFO };
	long i, sum = 0;

	sigaction(SIGSEGV, &action, NULL);
	for (i = 0; i < 20000; i++) {
		long got;

		__asm__ volatile("xor %%eax, %%eax\n\tmov (%%rax), %0" : "=r"(got) : : "rax");
		sum += got != 0;
	}
	printf("%ld\n", sum >= 0);
	fflush(stdout);
	_exit(0);
}

/* Blocks from before and after, of all sizes, are written to, freed and resized in there. */
static void use_blocks(char *before[], unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		char *block = malloc(i * 7 + 1);

		before[i][i % 40] = 'b';
		block[i] = 'a';
		if (i % 3)
			before[i] = realloc(before[i], 41 + i * 5);
		if (i % 5)
			free(before[i]);
		free(block);
	}
}

static void strict_or_filter(int strict)
{
	static char *before[300], *watched;
	unsigned i;

	mallopt(M_TOP_PAD, 16 << 20); /* there is no asking for more in there */
	for (i = 0; i < 300; i++)
		before[i] = calloc(1, 41 + i);
	watched = calloc(1, 4208);
	watched[16] = 1;
	printf("%d\n", watched[16]);
	fflush(stdout);
	if (strict)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else
		filter(no_way_back ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS);
	watched[16]++;
	watched = realloc(watched, 70000);
	watched[16]++;
	use_blocks(before, 300);
	free(watched);
	if (write(1, "inside\n", 7) != 7)
		abort();
}

static void mode_filter_uses(void)
{
	strict_or_filter(0);
	_exit(4);
}

/* Nothing but read, write, _exit (of a thread) and sigreturn is let through. */
static void mode_strict(void)
{
	strict_or_filter(1);
	syscall(SYS_exit, 4);
}

/* A process that goes on outside, and a child that goes inside. */
static void mode_filter_child(void)
{
	int status = 0;

	if (fork() == 0) {
		strict_or_filter(0);
		_exit(4);
	}
	wait(&status);
	free(malloc(4208));
	printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fflush(stdout);
	_exit(4);
}

static volatile int stop;

static void *stays_outside(void *argument)
{
	char *block = calloc(1, 4208);
	long i;

	for (i = 0; !stop; i++) {
		block[16]++;
		free(malloc((size_t)i % 500));
		if (i % 64 == 0)
			(void)getppid();
	}
	free(block);
	return argument;
}

/* A filter is that of one thread; the others are where they were. */
static void mode_filter_thread(void)
{
	pthread_t outside;

	pthread_create(&outside, NULL, stays_outside, NULL);
	usleep(2000);
	strict_or_filter(0);
	stop = 1;
	_exit(4);
}

static void mode_filter_no_way_back(void)
{
	no_way_back = 1;
	strict_or_filter(0);
	_exit(4);
}

static void use_behind(void (*shut)(void), long *times)
{
	static char *before[300], *watched;
	unsigned i;

	for (i = 0; i < 300; i++)
		before[i] = calloc(1, 41 + i);
	watched = calloc(1, 4208);
	watched[16] = 1;
	shut();
	for (i = 0; i < 30; i++)
		watched[16]++;
	use_blocks(before, 300);
	printf("%d %ld\n", watched[16], times ? *times : 0);
	fflush(stdout);
	if (times && fork() == 0)
		execl("/bin/true", "true", NULL);
	_exit(4);
}

/* Has its own system calls told, as Wine has those of Windows' programs. */
static volatile char dispatch_selector;
static long dispatched;

static void on_dispatch(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	dispatch_selector = 0;
	dispatched += info->si_syscall == SYS_getppid;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
}

static void dispatch(void)
{
	struct sigaction action = { .sa_sigaction = on_dispatch, .sa_flags = SA_SIGINFO };
	long i;

	sigaction(SIGSYS, &action, NULL);
	if (prctl(59, 1, 0, 0, &dispatch_selector))
		perror("dispatch");
	for (i = 0; i < 20; i++) {
		dispatch_selector = 1;
		if (syscall(SYS_getppid) != 4711)
			abort();
	}
}

static void mode_dispatch(void)
{
	use_behind(dispatch, &dispatched);
}

/* So that no debugger can: its parent lets nothing go on that stops. */
static void traceme(void)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		perror("traced");
}

static void mode_traced(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		use_behind(traceme, NULL);
	waitpid(child, &status, 0);
	if (WIFSTOPPED(status)) {
		printf("stopped by %d\n", WSTOPSIG(status));
		fflush(stdout);
		kill(child, SIGKILL);
	}
	_exit(4);
}

static void mode_filter_kills_crash(void)
{
	filter(SECCOMP_RET_KILL_PROCESS);
	crash();
}

static void mode_filter_traps_crash(void)
{
	filter(SECCOMP_RET_TRAP);
	crash();
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "segv", mode_segv },
	{ "noncanonical", mode_noncanonical },
	{ "ill", mode_ill },
	{ "fpe", mode_fpe },
	{ "trap", mode_trap },
	{ "abort", mode_abort },
	{ "assert", mode_assert },
	{ "double-free", mode_double_free },
	{ "sent", mode_sent },
	{ "bus", mode_bus },
	{ "overflow", mode_overflow },
	{ "thread-overflow", mode_thread_overflow },
	{ "thread-segv", mode_thread_segv },
	{ "use-after-free", mode_use_after_free },
	{ "handler-fixes", mode_handler_fixes },
	{ "handler-jumps", mode_handler_jumps },
	{ "handler-reraises", mode_handler_reraises },
	{ "own-altstack", mode_own_altstack },
	{ "overflow-with-handler", mode_overflow_with_handler },
	{ "queries", mode_queries },
	{ "block-all", mode_block_all },
	{ "block-and-wait", mode_block_and_wait },
	{ "raw-mask", mode_raw_mask },
	{ "raw-action", mode_raw_action },
	{ "handler-mask", mode_handler_mask },
	{ "handler-mask-kept", mode_handler_mask_kept },
	{ "alignment", mode_alignment },
	{ "first-thread-gone", mode_first_thread_gone },
	{ "ignored", mode_ignored },
	{ "close-all", mode_close_all },
	{ "no-descriptors", mode_no_descriptors },
	{ "other-user", mode_other_user },
	{ "no-file-size", mode_no_file_size },
	{ "no-files", mode_no_files },
	{ "killed", mode_killed },
	{ "lock-all", mode_lock_all },
	{ "fork", mode_fork },
	{ "fork-in-threads", mode_fork_in_threads },
	{ "vfork", mode_vfork },
	{ "exec-empty-environment", mode_exec_empty_environment },
	{ "signals-mid-hook", mode_signals_mid_hook },
	{ "errno", mode_errno },
	{ "many-threads", mode_many_threads },
	{ "addresses", mode_addresses },
	{ "nowhere", mode_nowhere },
	{ "all-entry-points", mode_all_entry_points },
	{ "free-inside", mode_free_inside },
	{ "truncate", mode_truncate },
	{ "truncate-past", mode_truncate_past },
	{ "emitted", mode_emitted },
	{ "emitted-exit", mode_emitted_exit },
	{ "emitted-much", mode_emitted_much },
	{ "abort-ignored", mode_abort_ignored },
	{ "abort-handled", mode_abort_handled },
	{ "handler-crashes", mode_handler_crashes },
	{ "older-names", mode_older_names },
	{ "two-pending", mode_two_pending },
	{ "exec-no-environment", mode_exec_no_environment },
	{ "c11-overflow", mode_c11_overflow },
	{ "handler-stack", mode_handler_stack },
	{ "memory-limit", mode_memory_limit },
	{ "beyond-mapped", mode_beyond_mapped },
	{ "filter-refuses", mode_filter_refuses },
	{ "filter-kills", mode_filter_kills },
	{ "cuts-logs", mode_cuts_logs },
	{ "cuts-logs-behind", mode_cuts_logs_behind },
	{ "cuts-logs-crash", mode_cuts_logs_crash },
	{ "faults-often", mode_faults_often },
	{ "filter-uses", mode_filter_uses },
	{ "filter-no-way-back", mode_filter_no_way_back },
	{ "filter-child", mode_filter_child },
	{ "dispatch", mode_dispatch },
	{ "traced", mode_traced },
	{ "filter-thread", mode_filter_thread },
	{ "strict", mode_strict },
	{ "filter-kills-crash", mode_filter_kills_crash },
	{ "filter-traps-crash", mode_filter_traps_crash },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			return 0;
		}
	return 2;
}
