/*
 * Who cuts files: a later SIGBUS in a mapping of the file, perhaps in another process, is explained
 * by this record. Only cuts that took something away are written down.
 */
#include "agent/crash/hooks_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/guard.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/core/secret.h"
#include "agent/core/text.h"
#include "agent/ids/context.h"
#include "agent/python/interpreter.h"

EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int at, const char *path, int flags);
EXPORT int __openat64_2(int at, const char *path, int flags);
HIDDEN long file_syscall(long number, long a, long b, long c, long d, long e, long f);

/* Who copies has a buffer in his frame, and his callers are behind it. */
#define CUT_SLICE 32768u

/* The file before the call. */
struct file_before {
	struct stat stat;
	bool known;
};

static void look_path(struct file_before *before, int at, const char *path)
{
	before->known = agent_switch.truncations &&
			!raw_syscall4(SYS_newfstatat, at, path, &before->stat, 0) &&
			S_ISREG(before->stat.st_mode);
}

static void look_fd(struct file_before *before, int fd)
{
	before->known = agent_switch.truncations && !raw_syscall2(SYS_fstat, fd, &before->stat) &&
			S_ISREG(before->stat.st_mode);
}

/* What a handle leads to, without opening it for good. */
static void look_handle(struct file_before *before, int mount, const void *handle)
{
	long fd = agent_switch.truncations
			  ? raw_syscall3(SYS_open_by_handle_at, mount, handle, O_PATH | O_CLOEXEC)
			  : -1;

	if (fd < 0)
		return;
	look_fd(before, (int)fd);
	(void)raw_syscall1(SYS_close, fd);
}

static __attribute__((noinline)) void cut_record(struct guard *guard,
						 const struct file_before *before,
						 enum log_truncation_how how, int64_t new_size,
						 int fd, const char *path, struct caller caller)
{
	struct log_crash place = { .tid = (uint32_t)raw_syscall0(SYS_gettid),
				   .fs_base = arch_fs_base() };
	struct log_truncation cut;
	struct log_writer writer;
	char name[1024], link[40];
	struct text text;
	long got = 0;
	uint64_t bytes;

	memset(&cut, 0, sizeof(cut));
	cut.how = how;
	cut.old_size = before->stat.st_size;
	cut.new_size = new_size;
	cut.realtime_ns = clock_ns_sigsafe(CLOCK_REALTIME);
	cut.device = before->stat.st_dev;
	cut.inode = before->stat.st_ino;
	if (agent_switch.ids)
		cut.context = context_find(guard, caller);
	arch_callee_registers(&cut.registers);
	secret_hide_registers_sigsafe(&cut.registers, sizeof(cut.registers), 8);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_TRUNCATION, &cut, sizeof(cut));
	if (fd >= 0) {
		text_begin(&text, link, sizeof(link));
		text_add(&text, "/proc/self/fd/");
		text_add_number(&text, (uint64_t)fd, 10);
		got = raw_syscall4(SYS_readlinkat, AT_FDCWD, link, name, sizeof(name));
	}
	if (got > 0)
		log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, name, (size_t)got);
	else if (path)
		log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, path, strlen(path));
	bytes = caller.frame + CUT_SLICE - cut.registers.rsp;
	(void)log_memory_sigsafe(&writer, LOG_BLOB_STACK, LOG_STACK_INNER, cut.registers.rsp,
				 bytes);
	/* An interpreter that came later would have to be looked for: not here. */
	if (real.python_runtime)
		interpreter_write_sigsafe(&writer, &place);
}

static void cut_note(const struct file_before *before, enum log_truncation_how how,
		     int64_t new_size, int fd, const char *path, struct caller caller)
{
	struct guard guard;

	if (!before->known || before->stat.st_size <= new_size || !guard_enter_any(&guard))
		return;
	cut_record(&guard, before, how, new_size, fd, path, caller);
	guard_leave(&guard);
}

static int ftruncate_noted(int fd, off_t size, struct caller caller)
{
	struct file_before before;
	int r;

	look_fd(&before, fd);
	r = real.ftruncate(fd, size);
	if (!r)
		cut_note(&before, LOG_BY_FTRUNCATE, size, fd, NULL, caller);
	return r;
}

EXPORT int ftruncate(int fd, off_t size)
{
	struct caller caller = CALLER_HERE;

	return ftruncate_noted(fd, size, caller);
}

EXPORT int ftruncate64(int fd, off64_t size)
{
	struct caller caller = CALLER_HERE;

	return ftruncate_noted(fd, size, caller);
}

static int truncate_noted(const char *path, off_t size, struct caller caller)
{
	struct file_before before;
	int r;

	look_path(&before, AT_FDCWD, path);
	r = real.truncate(path, size);
	if (!r)
		cut_note(&before, LOG_BY_TRUNCATE, size, -1, path, caller);
	return r;
}

EXPORT int truncate(const char *path, off_t size)
{
	struct caller caller = CALLER_HERE;

	return truncate_noted(path, size, caller);
}

EXPORT int truncate64(const char *path, off64_t size)
{
	struct caller caller = CALLER_HERE;

	return truncate_noted(path, size, caller);
}

static inline bool needs_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int openat_noted(int at, const char *path, int flags, mode_t mode, struct caller caller)
{
	struct file_before before = { .known = false };
	int fd;

	if (flags & O_TRUNC)
		look_path(&before, at, path);
	fd = at == AT_FDCWD ? real.open(path, flags, mode) : real.openat(at, path, flags, mode);
	if (fd >= 0)
		cut_note(&before, LOG_BY_OPEN, 0, fd, path, caller);
	return fd;
}

#define MODE_ARGUMENT(flags, mode)                        \
	do {                                              \
		if (needs_mode(flags)) {                  \
			va_list arguments;                \
                                                          \
			va_start(arguments, flags);       \
			mode = va_arg(arguments, mode_t); \
			va_end(arguments);                \
		}                                         \
	} while (0)

EXPORT int open(const char *path, int flags, ...)
{
	struct caller caller = CALLER_HERE;
	mode_t mode = 0;

	MODE_ARGUMENT(flags, mode);
	return openat_noted(AT_FDCWD, path, flags, mode, caller);
}

EXPORT int open64(const char *path, int flags, ...)
{
	struct caller caller = CALLER_HERE;
	mode_t mode = 0;

	MODE_ARGUMENT(flags, mode);
	return openat_noted(AT_FDCWD, path, flags | O_LARGEFILE, mode, caller);
}

EXPORT int openat(int at, const char *path, int flags, ...)
{
	struct caller caller = CALLER_HERE;
	mode_t mode = 0;

	MODE_ARGUMENT(flags, mode);
	return openat_noted(at, path, flags, mode, caller);
}

EXPORT int openat64(int at, const char *path, int flags, ...)
{
	struct caller caller = CALLER_HERE;
	mode_t mode = 0;

	MODE_ARGUMENT(flags, mode);
	return openat_noted(at, path, flags | O_LARGEFILE, mode, caller);
}

/* The fortified names: no mode, because the compiler saw that none is needed. */
EXPORT int __open_2(const char *path, int flags)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(AT_FDCWD, path, flags, 0, caller);
}

EXPORT int __open64_2(const char *path, int flags)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(AT_FDCWD, path, flags | O_LARGEFILE, 0, caller);
}

EXPORT int __openat_2(int at, const char *path, int flags)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(at, path, flags, 0, caller);
}

EXPORT int __openat64_2(int at, const char *path, int flags)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(at, path, flags | O_LARGEFILE, 0, caller);
}

EXPORT int creat(const char *path, mode_t mode)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode, caller);
}

EXPORT int creat64(const char *path, mode_t mode)
{
	struct caller caller = CALLER_HERE;

	return openat_noted(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode,
			    caller);
}

static FILE *fopen_noted(const char *path, const char *mode, struct caller caller)
{
	struct file_before before = { .known = false };
	FILE *file;

	if (mode && mode[0] == 'w')
		look_path(&before, AT_FDCWD, path);
	file = real.fopen(path, mode);
	if (file)
		cut_note(&before, LOG_BY_OPEN, 0, fileno(file), path, caller);
	return file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	struct caller caller = CALLER_HERE;

	return fopen_noted(path, mode, caller);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	struct caller caller = CALLER_HERE;

	return fopen_noted(path, mode, caller);
}

static FILE *freopen_noted(const char *path, const char *mode, FILE *stream, struct caller caller)
{
	struct file_before before = { .known = false };
	FILE *file;

	if (path && mode && mode[0] == 'w')
		look_path(&before, AT_FDCWD, path);
	else if (mode && mode[0] == 'w' && fileno(stream) >= 0)
		look_fd(&before, fileno(stream)); /* the same file again */
	file = real.freopen(path, mode, stream);
	if (file)
		cut_note(&before, LOG_BY_OPEN, 0, fileno(file), path, caller);
	return file;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	struct caller caller = CALLER_HERE;

	return freopen_noted(path, mode, stream, caller);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	struct caller caller = CALLER_HERE;

	return freopen_noted(path, mode, stream, caller);
}

/* A range taken out of the middle makes a file shorter. One that is punched out leaves its size,
 * and nobody who has it mapped dies of it. */
static int fallocate_noted(int fd, int mode, off_t offset, off_t len, struct caller caller)
{
	struct file_before before = { .known = false };
	int r;

	if (mode & FALLOC_FL_COLLAPSE_RANGE)
		look_fd(&before, fd);
	r = real.fallocate(fd, mode, offset, len);
	if (!r)
		cut_note(&before, LOG_BY_FALLOCATE, before.stat.st_size - len, fd, NULL, caller);
	return r;
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t len)
{
	struct caller caller = CALLER_HERE;

	return fallocate_noted(fd, mode, offset, len, caller);
}

EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
	struct caller caller = CALLER_HERE;

	return fallocate_noted(fd, mode, offset, len, caller);
}

/* libc opens it by itself, under /dev/shm. */
EXPORT int shm_open(const char *name, int flags, mode_t mode)
{
	struct caller caller = CALLER_HERE;
	struct file_before before = { .known = false };
	char path[300];
	struct text text;
	int fd;

	if (!real.shm_open) { /* of librt, before glibc 2.34 */
		errno = ENOSYS;
		return -1;
	}
	text_begin(&text, path, sizeof(path));
	text_add(&text, "/dev/shm/");
	if ((flags & O_TRUNC) && name)
		text_add(&text, name);
	if ((flags & O_TRUNC) && !text.cut)
		look_path(&before, AT_FDCWD, path);
	fd = real.shm_open(name, flags, mode);
	if (fd >= 0)
		cut_note(&before, LOG_BY_OPEN, 0, fd, path, caller);
	return fd;
}

EXPORT int open_by_handle_at(int mount, struct file_handle *handle, int flags)
{
	struct caller caller = CALLER_HERE;
	struct file_before before = { .known = false };
	int fd;

	if (flags & O_TRUNC)
		look_handle(&before, mount, handle);
	fd = real.open_by_handle_at(mount, handle, flags);
	if (fd >= 0)
		cut_note(&before, LOG_BY_OPEN, 0, fd, NULL, caller);
	return fd;
}

static uint64_t openat2_flags(uint64_t how)
{
	uint64_t flags;

	return memory_read_sigsafe(&flags, how + offsetof(struct open_how, flags), sizeof(flags)) ==
			       sizeof(flags)
		       ? flags
		       : 0;
}

/* What of syscall() may cut a file, from arch/x86_64_syscall.S. */
/* What a call may cut off, and the file as it was. */
struct cut {
	struct file_before before;
	enum log_truncation_how how;
	const char *path;
	int64_t size;
	int fd;
};

static void look_cut(struct cut *cut, enum log_truncation_how how, int dir, const char *path)
{
	cut->how = how;
	cut->path = path;
	look_path(&cut->before, dir, path);
}

static void cut_look(long number, const long a[4], struct cut *cut)
{
	bool shortens = number == SYS_ftruncate;

	if (shortens || (number == SYS_fallocate && (a[1] & FALLOC_FL_COLLAPSE_RANGE))) {
		cut->fd = (int)a[0];
		look_fd(&cut->before, cut->fd);
		cut->how = shortens ? LOG_BY_FTRUNCATE : LOG_BY_FALLOCATE;
		cut->size = shortens ? a[1] : cut->before.stat.st_size - a[3];
	} else if (number == SYS_truncate) {
		look_cut(cut, LOG_BY_TRUNCATE, AT_FDCWD, (const char *)a[0]);
		cut->size = a[1];
	} else if (number == SYS_creat || (number == SYS_open && (a[1] & O_TRUNC))) {
		look_cut(cut, LOG_BY_OPEN, AT_FDCWD, (const char *)a[0]);
	} else if ((number == SYS_openat && (a[2] & O_TRUNC)) ||
		   (number == SYS_openat2 && (openat2_flags((uint64_t)a[2]) & O_TRUNC))) {
		look_cut(cut, LOG_BY_OPEN, (int)a[0], (const char *)a[1]);
	} else if (number == SYS_open_by_handle_at && (a[2] & O_TRUNC)) {
		look_handle(&cut->before, (int)a[0], (const void *)a[1]);
	}
}

HIDDEN long file_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct caller caller = CALLER_HERE;
	struct cut cut = { .how = LOG_BY_OPEN, .fd = -1 };
	long r;

	cut_look(number, (const long[4]){ a, b, c, d }, &cut);
	r = real_syscall(number, a, b, c, d, e, f);
	if (r >= 0)
		cut_note(&cut.before, cut.how, cut.size, cut.how == LOG_BY_OPEN ? (int)r : cut.fd,
			 cut.path, caller);
	return r;
}

void file_switch_on(void)
{
	agent_switch.truncations = (agent.plan.flags & PLAN_TRUNCATIONS) != 0;
}
