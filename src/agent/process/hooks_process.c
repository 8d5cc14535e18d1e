/*
 * exec, spawn, exit, dlclose, ptrace, and what takes the trial's directory out of reach.
 *
 * The agent must be in the next image too: when the target hands over an environment of its own,
 * the two variables are added to a copy on the stack. Nothing here allocates, so a vfork child may
 * come through; it writes no records, for it runs on its parent's memory and log.
 */
#include "agent/process/hooks_process.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/guard.h"
#include "agent/core/log.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"
#include "agent/core/signals.h"
#include "agent/core/start.h"
#include "agent/core/text.h"
#include "agent/process/rlimits.h"
#include "agent/process/sandbox.h"
#include "wire/plan.h"

#define AGENT_NAME "libredhand-agent" /* either of the two libraries */
#define PATH_ROOM 1024u
#define LATER_MAX 8u
#define ENVIRONMENT_MAX 16384u /* entries; a larger one is passed on as it is */

enum program_kind {
	PROGRAM_ORDINARY, /* or a script, or unknown */
	PROGRAM_STATIC = LOG_UNOBSERVED_STATIC,
	PROGRAM_SETUID = LOG_UNOBSERVED_SETUID,
	PROGRAM_FOREIGN = LOG_UNOBSERVED_FOREIGN,
	PROGRAM_LIBC = LOG_UNOBSERVED_LIBC,
	PROGRAM_SANDBOXED = LOG_UNOBSERVED_SANDBOXED,
	PROGRAM_USER = LOG_UNOBSERVED_USER,
};

/* Would not start with us in front: it gets an environment without. */
static bool program_refuses(enum program_kind kind)
{
	return kind == PROGRAM_FOREIGN || kind == PROGRAM_LIBC || kind == PROGRAM_SANDBOXED ||
	       kind == PROGRAM_USER;
}

static bool is_denied(const char *path, int mode)
{
	long r = raw_syscall4(SYS_faccessat2, AT_FDCWD, path, mode, AT_EACCESS);

	if (r == -ENOSYS) /* before Linux 5.8 */
		r = raw_syscall3(SYS_faccessat, AT_FDCWD, path, mode);
	return r == -EACCES || r == -EROFS;
}

/* May the user that this process has become write logs, and load the library? Without the latter
 * the loader would say so on the target's stderr. */
static bool user_is_kept_out(void)
{
	const char *library = agent.preload + strlen("LD_PRELOAD=");
	char path[PATH_ROOM];
	size_t len = strcspn(library, ": ");

	if (!agent.trial[0] || !agent.preload[0] || geteuid() == agent.user || len >= sizeof(path))
		return false;
	memcpy(path, library, len);
	path[len] = 0;
	return is_denied(agent.trial, W_OK | X_OK) || is_denied(path, R_OK);
}

/* musl's loader does not find what we need of glibc, and gives up. */
static enum program_kind loader_kind(int fd, const Elf64_Phdr *phdr)
{
	char path[PATH_ROOM];
	const char *name;
	long got;

	if (phdr->p_filesz >= sizeof(path))
		return PROGRAM_ORDINARY;
	got = raw_syscall4(SYS_pread64, fd, path, phdr->p_filesz, phdr->p_offset);
	if (got <= 0)
		return PROGRAM_ORDINARY;
	path[got] = 0;
	name = strrchr(path, '/');
	return text_after(name ? name + 1 : path, "ld-musl") ? PROGRAM_LIBC : PROGRAM_ORDINARY;
}

static enum program_kind elf_kind(int fd, const unsigned char *page, size_t have)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	unsigned i;

	if (have < sizeof(ehdr) || memcmp(page, ELFMAG, SELFMAG) != 0)
		return PROGRAM_ORDINARY;
	memcpy(&ehdr, page, sizeof(ehdr));
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_machine != EM_X86_64)
		return PROGRAM_FOREIGN;
	for (i = 0; i < ehdr.e_phnum && ehdr.e_phoff + (i + 1) * sizeof(phdr) <= have; i++) {
		memcpy(&phdr, page + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_INTERP)
			return loader_kind(fd, &phdr);
	}
	return PROGRAM_STATIC;
}

/* Setuid, setgid or file capabilities: the loader then ignores LD_PRELOAD (ld.so(8), secure
 * execution). Root gains nothing from capabilities. */
static bool is_privileged(int fd, const struct stat *stat)
{
	char value[64];

	return ((stat->st_mode & S_ISUID) && stat->st_uid != geteuid()) ||
	       ((stat->st_mode & S_ISGID) && stat->st_gid != getegid()) ||
	       (geteuid() &&
		raw_syscall4(SYS_fgetxattr, fd, "security.capability", value, sizeof(value)) > 0);
}

static bool next_is_sandboxed(void)
{
	return agent.sandboxed == AGENT_LEFT_FOR_GOOD;
}

static enum program_kind program_look_fd(int fd)
{
	enum program_kind kind = PROGRAM_ORDINARY;
	unsigned char page[1024];
	struct stat stat;
	long got;

	if (next_is_sandboxed())
		return PROGRAM_SANDBOXED;
	if (raw_syscall2(SYS_fstat, fd, &stat) || !S_ISREG(stat.st_mode))
		return kind;
	got = raw_syscall4(SYS_pread64, fd, page, sizeof(page), 0);
	kind = elf_kind(fd, page, got > 0 ? (size_t)got : 0);
	if (kind != PROGRAM_ORDINARY)
		return kind;
	if (is_privileged(fd, &stat))
		return PROGRAM_SETUID;
	return user_is_kept_out() ? PROGRAM_USER : kind;
}

static enum program_kind program_look(const char *path)
{
	enum program_kind kind;
	long fd;

	if (next_is_sandboxed())
		return PROGRAM_SANDBOXED;
	if (!path)
		return PROGRAM_ORDINARY;
	fd = raw_syscall4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return PROGRAM_ORDINARY;
	kind = program_look_fd((int)fd);
	(void)raw_syscall1(SYS_close, fd);
	return kind;
}

/* What libc will find along PATH, in `room`; the name itself when it has a slash or nothing is
 * found. */
static const char *program_search(const char *file, char *room, size_t bytes)
{
	const char *at = NULL, *end;
	char **entry;
	struct text text;
	struct stat stat;

	if (!file || strchr(file, '/'))
		return file;
	for (entry = environ; entry && *entry && !at; entry++)
		at = text_after(*entry, "PATH=");
	for (at = at ? at : "/bin:/usr/bin"; at; at = *end ? end + 1 : NULL) {
		end = strchr(at, ':');
		end = end ? end : at + strlen(at);
		if ((size_t)(end - at) + strlen(file) + 2 > bytes)
			continue;
		memcpy(room, at, (size_t)(end - at));
		text_begin(&text, room + (end - at), bytes - (size_t)(end - at));
		text_add(&text, end == at ? "./" : "/");
		text_add(&text, file);
		if (!raw_syscall4(SYS_newfstatat, AT_FDCWD, room, &stat, 0) &&
		    S_ISREG(stat.st_mode) && !raw_syscall3(SYS_faccessat, AT_FDCWD, room, X_OK))
			return room;
	}
	return file;
}

static void unobserved_write(enum program_kind kind, const char *path)
{
	struct log_unobserved record = { .why = kind };
	struct log_writer writer;

	log_publish_sigsafe();
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_UNOBSERVED, &record, sizeof(record));
	log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, path, strlen(path));
}

/* What a vfork child was about to run: it writes no records, but shells and Python start programs
 * so. Its parent writes them down when it ends. The first few stand for all. */
static struct {
	uint32_t taken; /* atomic */
	struct {
		uint32_t kind; /* written last; 0: none */
		uint32_t pid;  /* the parent's: its forked children have a copy of this */
		char path[PATH_ROOM];
	} programs[LATER_MAX];
} later;

static void unobserved_later(enum program_kind kind, const char *path)
{
	struct text text;
	uint32_t at;

	for (at = 0; at < LATER_MAX && later.programs[at].kind; at++)
		if (!strcmp(later.programs[at].path, path))
			return;
	at = __atomic_fetch_add(&later.taken, 1, __ATOMIC_RELAXED);
	if (at >= LATER_MAX)
		return;
	text_begin(&text, later.programs[at].path, PATH_ROOM);
	text_add(&text, path);
	later.programs[at].pid = agent.pid;
	__atomic_store_n(&later.programs[at].kind, kind, __ATOMIC_RELEASE);
}

void process_exiting_sigsafe(void)
{
	uint32_t taken = __atomic_load_n(&later.taken, __ATOMIC_RELAXED), at, kind;

	for (at = 0; at < LATER_MAX && at < taken; at++) {
		kind = __atomic_exchange_n(&later.programs[at].kind, 0, __ATOMIC_ACQUIRE);
		if (kind && later.programs[at].pid == agent.pid)
			unobserved_write(kind, later.programs[at].path);
	}
}

static void unobserved_note(enum program_kind kind, const char *path)
{
	if (kind == PROGRAM_ORDINARY || !agent_switch.crash)
		return;
	if (agent_owns_process_sigsafe())
		unobserved_write(kind, path);
	else
		unobserved_later(kind, path);
}

struct environment {
	size_t count;
	const char *preload; /* its LD_PRELOAD entry, or NULL */
	bool has_agent, has_trial;
};

static bool environment_look(char *const envp[], struct environment *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!agent.preload[0])
		return false;
	for (; envp[ret->count]; ret->count++) {
		const char *entry = envp[ret->count];

		if (text_after(entry, "LD_PRELOAD=")) {
			ret->preload = entry;
			ret->has_agent = strstr(entry, AGENT_NAME) != NULL;
		}
		ret->has_trial |= text_after(entry, WIRE_TRIAL_VARIABLE "=") != NULL;
	}
	return ret->count < ENVIRONMENT_MAX;
}

/* Bytes for the LD_PRELOAD entry: ours, a colon, theirs; or theirs without ours. */
static size_t environment_text_bytes(const struct environment *env)
{
	return env->preload ? strlen(agent.preload) + strlen(env->preload) + 1 : 1;
}

/* What is left of an LD_PRELOAD entry without us. False: nothing. */
static bool preload_without_us(const char *entry, char *to, size_t bytes)
{
	char *start = to + strlen("LD_PRELOAD="), *at, *end;
	struct text text;
	char saved;

	text_begin(&text, to, bytes);
	text_add(&text, entry);
	for (at = start; *at;) {
		end = at + strcspn(at, ": ");
		saved = *end;
		*end = 0;
		if (strstr(at, AGENT_NAME)) {
			*end = saved;
			end += saved != 0;
			memmove(at, end, strlen(end) + 1);
		} else {
			*end = saved;
			at = end + (saved != 0);
		}
	}
	return *start != 0;
}

/* Fills `to` (count + 3 places) and `text`. A program that the loader could not preload into gets
 * its LD_PRELOAD without us: the loader would complain on its stderr, or refuse. */
static void environment_fill(char **to, char *text, size_t text_bytes, char *const envp[],
			     const struct environment *env, bool refuses)
{
	struct text joined;
	size_t i, n = 0;

	for (i = 0; i < env->count; i++) {
		if (envp[i] != env->preload || (env->has_agent && !refuses))
			to[n++] = envp[i];
		else if (refuses && preload_without_us(envp[i], text, text_bytes))
			to[n++] = text;
	}
	if (!env->has_agent && !refuses) {
		if (env->preload) {
			text_begin(&joined, text, text_bytes);
			text_add(&joined, agent.preload);
			text_add(&joined, ":");
			text_add(&joined, env->preload + strlen("LD_PRELOAD="));
			to[n++] = text;
		} else {
			to[n++] = agent.preload;
		}
	}
	if (!env->has_trial)
		to[n++] = agent.trial_entry;
	to[n] = NULL;
}

/* NULL is none to the kernel (execve(2), notes); environ is NULL after clearenv(). */
static char *const no_environment[] = { NULL };

/* Declares `next`, the environment to pass on, on the caller's stack. */
#define NEXT_ENVIRONMENT(next, envp, kind)                                                   \
	struct environment look_;                                                            \
	char *const *next = (envp) ? (envp) : no_environment;                                \
	if (environment_look(next, &look_) &&                                                \
	    (!look_.has_agent || !look_.has_trial || program_refuses(kind))) {               \
		size_t bytes_ = environment_text_bytes(&look_);                              \
		char **room_ = __builtin_alloca((look_.count + 3) * sizeof(char *));         \
		char *text_ = __builtin_alloca(bytes_);                                      \
                                                                                             \
		environment_fill(room_, text_, bytes_, next, &look_, program_refuses(kind)); \
		next = room_;                                                                \
	}

static void exec_begin(const char *path)
{
	struct log_writer writer;

	signals_before_exec_sigsafe();
	limits_before_exec_sigsafe(path);
	if (!agent_switch.crash || !agent_owns_process_sigsafe())
		return;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_EXEC, NULL, 0);
	if (path)
		log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, path, strlen(path));
	log_map.header->state = LOG_STATE_EXEC;
}

static int exec_failed(int r)
{
	int saved = errno;

	signals_exec_failed_sigsafe();
	limits_exec_failed_sigsafe();
	if (agent_switch.crash && agent_owns_process_sigsafe())
		log_map.header->state = LOG_STATE_RUNNING;
	errno = saved;
	return r;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	enum program_kind kind = program_look(path);
	NEXT_ENVIRONMENT(next, envp, kind);

	unobserved_note(kind, path);
	exec_begin(path);
	return exec_failed(real.execve(path, argv, next));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	char room[PATH_ROOM];
	const char *path = program_search(file, room, sizeof(room));
	enum program_kind kind = program_look(path);
	NEXT_ENVIRONMENT(next, envp, kind);

	unobserved_note(kind, path);
	exec_begin(path);
	return exec_failed(real.execvpe(file, argv, next));
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	enum program_kind kind = program_look_fd(fd);
	NEXT_ENVIRONMENT(next, envp, kind);

	unobserved_note(kind, "(a program given as a descriptor)");
	exec_begin(NULL);
	return exec_failed(real.fexecve(fd, argv, next));
}

/* By the kernel: libc has it since 2.34 only. */
EXPORT int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	long fd = -1, r;
	enum program_kind kind = PROGRAM_ORDINARY;

	if ((flags & AT_EMPTY_PATH) && !*path)
		kind = program_look_fd(dir);
	else if (!next_is_sandboxed())
		fd = raw_syscall4(SYS_openat, dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd >= 0) {
		kind = program_look_fd((int)fd);
		(void)raw_syscall1(SYS_close, fd);
	}
	NEXT_ENVIRONMENT(next, envp, next_is_sandboxed() ? PROGRAM_SANDBOXED : kind);

	unobserved_note(kind, *path ? path : "(a program given as a descriptor)");
	exec_begin(path);
	r = raw_syscall6(SYS_execveat, dir, (long)path, (long)argv, (long)next, flags, 0);
	errno = (int)-r;
	return exec_failed(-1);
}

/* Counts the strings up to the NULL, then takes them. */
#define ARGUMENT_LIST(argv, first, last)                        \
	size_t count_ = 1, i_;                                  \
	va_list list_;                                          \
	char **argv;                                            \
                                                                \
	va_start(list_, first);                                 \
	while (va_arg(list_, char *))                           \
		count_++;                                       \
	va_end(list_);                                          \
	argv = __builtin_alloca((count_ + 1) * sizeof(char *)); \
	argv[0] = (char *)(uintptr_t)(first);                   \
	va_start(list_, first);                                 \
	for (i_ = 1; i_ <= count_; i_++)                        \
		argv[i_] = va_arg(list_, char *);               \
	last;                                                   \
	va_end(list_)

EXPORT int execl(const char *path, const char *first, ...)
{
	ARGUMENT_LIST(argv, first, (void)0);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	ARGUMENT_LIST(argv, first, (void)0);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *envp;

	ARGUMENT_LIST(argv, first, envp = va_arg(list_, char *const *));
	return execve(path, argv, envp);
}

EXPORT int posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	enum program_kind kind = program_look(path);
	NEXT_ENVIRONMENT(next, envp, kind);

	unobserved_note(kind, path);
	return real.posix_spawn(ret, path, actions, attributes, argv, next);
}

EXPORT int posix_spawnp(pid_t *ret, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	char room[PATH_ROOM];
	const char *path = program_search(file, room, sizeof(room));
	enum program_kind kind = program_look(path);
	NEXT_ENVIRONMENT(next, envp, kind);

	unobserved_note(kind, path);
	return real.posix_spawnp(ret, file, actions, attributes, argv, next);
}

EXPORT __attribute__((noreturn)) void _exit(int status)
{
	agent_exiting_sigsafe((uint32_t)status, 2);
	real.exit_now(status);
	__builtin_unreachable();
}

EXPORT __attribute__((noreturn, alias("_exit"))) void _Exit(int status);

EXPORT int dlclose(void *handle)
{
	int r = real.dlclose(handle);

	modules_stale_sigsafe();
	return r;
}

/* A process has one tracer at most: where the target debugs, ours makes room. A vfork child comes
 * through, too (gdb starts programs so). */
EXPORT long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	void *address, *data;
	int saved = errno;
	pid_t pid;

	va_start(list, request);
	pid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	if (request == PTRACE_TRACEME) {
		FEATURES_TELL(process.traced, 0);
		sandbox_traced();
	} else if (request == PTRACE_ATTACH || request == PTRACE_SEIZE)
		FEATURES_TELL(process.traced, pid);
	errno = saved;
	return real.ptrace((int)request, pid, address, data);
}

/* Root becomes somebody else, who starts programs: they are to have logs, too. What a trial of
 * nobody else's concern needs is opened no earlier than now; as in /tmp, files are their owners'.
 */
static void share(const char *path, const char *below, mode_t mode)
{
	char name[PATH_ROOM + 16];
	struct text text;
	struct stat stat;

	text_begin(&text, name, sizeof(name));
	text_add(&text, path);
	text_add(&text, below);
	if (!text.cut && !raw_syscall4(SYS_newfstatat, AT_FDCWD, name, &stat, 0) && !stat.st_uid)
		(void)raw_syscall3(SYS_fchmodat, AT_FDCWD, name, (stat.st_mode & 07777) | mode);
}

/* The temporary directory that redhand made, and no other. */
static void tmp_share(void)
{
	const char *path = NULL, *name;
	char **entry;

	for (entry = environ; entry && *entry && !path; entry++)
		path = text_after(*entry, "TMPDIR=");
	name = path ? strstr(path, "/redhand-") : NULL;
	if (!name || path[0] != '/' || !strchr(name + 1, '/'))
		return;
	share(path, "/..", 0011);
	share(path, "", 01777);
}

static void directory_share(uid_t user)
{
	int saved = errno;

	if (agent.trial[0] && user && user != (uid_t)-1 && !geteuid()) {
		share(agent.trial, "/../..", 0011); /* on the way there, nothing can be listed */
		share(agent.trial, "/..", 0011);
		share(agent.trial, "/" WIRE_PLAN_NAME, 0444);
		share(agent.trial, "", 01777);
		tmp_share();
	}
	errno = saved;
}

/* Behind these, the directory of the trial may be out of reach: a draft of the log is made a file
 * before. A vfork child has none of its own. */
static bool log_keep_reachable(void)
{
	int saved = errno;
	bool ours = agent_switch.crash && agent_owns_process_sigsafe();

	if (ours)
		log_publish_sigsafe();
	errno = saved;
	return ours;
}

/* Children that it forks have no log to write this to. One that goes on as another program is noted
 * under that one's name. */
static int user_changed(int r)
{
	int saved = errno;
	char path[PATH_ROOM];
	long got;

	if (!r && user_is_kept_out() && agent_switch.crash && agent_owns_process_sigsafe()) {
		got = raw_syscall4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path,
				   sizeof(path) - 1);
		path[got > 0 ? got : 0] = 0;
		unobserved_later(PROGRAM_USER, path);
	}
	errno = saved;
	return r;
}

#define USER_HOOK(name, effective, arguments, ...)           \
	EXPORT int name arguments                            \
	{                                                    \
		directory_share(effective);                  \
		(void)log_keep_reachable();                  \
		return user_changed(real.name(__VA_ARGS__)); \
	}

USER_HOOK(setuid, uid, (uid_t uid), uid)
USER_HOOK(seteuid, uid, (uid_t uid), uid)
USER_HOOK(setreuid, effective, (uid_t uid, uid_t effective), uid, effective)
USER_HOOK(setresuid, effective, (uid_t uid, uid_t effective, uid_t saved), uid, effective, saved)

/* There may be no /proc in there: where code lies is written down before. */
EXPORT int chroot(const char *path)
{
	if (log_keep_reachable())
		modules_refresh_sigsafe();
	return real.chroot(path);
}
