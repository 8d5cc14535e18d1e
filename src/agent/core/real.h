/*
 * The functions behind our hooks.
 *
 * Filled in by real_resolve() in the constructor. Until then the allocation entries point to the
 * early arena, because dlsym and the loader may allocate before we know where malloc is; free and
 * realloc recognise its blocks for as long as the process lives.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct r_debug;
struct rlimit;
struct timespec;
struct iovec;

struct file_handle;

/* The functions: X(what it gives back, name, arguments, symbol). */

/* Behind the hooks of both libraries. */
#define REAL_FIRST(X)                                                                            \
	X(void *, malloc, (size_t), "malloc")                                                    \
	X(void, free, (void *), "free")                                                          \
	X(void *, calloc, (size_t, size_t), "calloc")                                            \
	X(void *, realloc, (void *, size_t), "realloc")                                          \
	X(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *), \
	  "pthread_create")                                                                      \
	X(int, thrd_create, (pthread_t *, int (*)(void *), void *), "thrd_create")               \
	X(int, pthread_sigmask, (int, const sigset_t *, sigset_t *), "pthread_sigmask")          \
	X(int, sigaction, (int, const struct sigaction *, struct sigaction *), "sigaction")      \
	X(int, sigaltstack, (const stack_t *, stack_t *), "sigaltstack")                         \
	X(int, sigwait, (const sigset_t *, int *), "sigwait")                                    \
	X(int, sigwaitinfo, (const sigset_t *, siginfo_t *), "sigwaitinfo")                      \
	X(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *),           \
	  "sigtimedwait")                                                                        \
	X(int, dlclose, (void *), "dlclose")                                                     \
	X(int, execve, (const char *, char *const[], char *const[]), "execve")                   \
	X(int, execvpe, (const char *, char *const[], char *const[]), "execvpe")                 \
	X(int, fexecve, (int, char *const[], char *const[]), "fexecve")                          \
	X(int, posix_spawn,                                                                      \
	  (pid_t *, const char *, const void *, const void *, char *const[], char *const[]),     \
	  "posix_spawn")                                                                         \
	X(int, posix_spawnp,                                                                     \
	  (pid_t *, const char *, const void *, const void *, char *const[], char *const[]),     \
	  "posix_spawnp")                                                                        \
	X(void, exit_now, (int), "_exit")                                                        \
	X(long, ptrace, (int, ...), "ptrace")                                                    \
	X(int, setuid, (uid_t), "setuid")                                                        \
	X(int, seteuid, (uid_t), "seteuid")                                                      \
	X(int, setreuid, (uid_t, uid_t), "setreuid")                                             \
	X(int, setresuid, (uid_t, uid_t, uid_t), "setresuid")                                    \
	X(int, chroot, (const char *), "chroot")                                                 \
	X(int, prctl, (int, ...), "prctl")                                                       \
	X(int, setrlimit, (int, const struct rlimit *), "setrlimit")                             \
	X(int, getrlimit, (int, struct rlimit *), "getrlimit")                                   \
	X(int, prlimit, (pid_t, int, const struct rlimit *, struct rlimit *), "prlimit")

/* Behind those that only the whole agent has. reallocarray is never called. */
#define REAL_WHOLE(X)                                                                         \
	X(void *, memalign, (size_t, size_t), "memalign")                                     \
	X(void *, aligned_alloc, (size_t, size_t), "aligned_alloc")                           \
	X(int, posix_memalign, (void **, size_t, size_t), "posix_memalign")                   \
	X(void *, valloc, (size_t), "valloc")                                                 \
	X(void *, pvalloc, (size_t), "pvalloc")                                               \
	X(size_t, malloc_usable_size, (void *), "malloc_usable_size")                         \
	X(void *, reallocarray, (void *, size_t, size_t), "reallocarray")                     \
	X(int, mlockall, (int), "mlockall")                                                   \
	X(int, ftruncate, (int, off_t), "ftruncate")                                          \
	X(int, fallocate, (int, int, off_t, off_t), "fallocate")                              \
	X(int, shm_open, (const char *, int, mode_t), "shm_open")                             \
	X(int, open_by_handle_at, (int, struct file_handle *, int), "open_by_handle_at")      \
	X(int, truncate, (const char *, off_t), "truncate")                                   \
	X(int, open, (const char *, int, ...), "open")                                        \
	X(int, openat, (int, const char *, int, ...), "openat")                               \
	X(int, creat, (const char *, mode_t), "creat")                                        \
	X(int, close, (int), "close")                                                         \
	X(int, dup2, (int, int), "dup2")                                                      \
	X(int, dup3, (int, int, int), "dup3")                                                 \
	X(FILE *, fopen, (const char *, const char *), "fopen")                               \
	X(FILE *, freopen, (const char *, const char *, FILE *), "freopen")                   \
	X(ssize_t, write, (int, const void *, size_t), "write")                               \
	X(ssize_t, writev, (int, const struct iovec *, int), "writev")                        \
	X(ssize_t, read, (int, void *, size_t), "read")                                       \
	X(ssize_t, read_chk, (int, void *, size_t, size_t), "__read_chk")                     \
	X(ssize_t, pread, (int, void *, size_t, off_t), "pread")                              \
	X(ssize_t, readv, (int, const struct iovec *, int), "readv")                          \
	X(ssize_t, recv, (int, void *, size_t, int), "recv")                                  \
	X(ssize_t, recv_chk, (int, void *, size_t, size_t, int), "__recv_chk")                \
	X(ssize_t, recvfrom, (int, void *, size_t, int, void *, void *), "recvfrom")          \
	X(ssize_t, recvmsg, (int, void *, int), "recvmsg")                                    \
	X(size_t, fread, (void *, size_t, size_t, FILE *), "fread")                           \
	X(int, puts, (const char *), "puts")                                                  \
	X(int, fputs, (const char *, FILE *), "fputs")                                        \
	X(int, fputs_unlocked, (const char *, FILE *), "fputs_unlocked")                      \
	X(int, fputc, (int, FILE *), "fputc")                                                 \
	X(size_t, fwrite, (const void *, size_t, size_t, FILE *), "fwrite")                   \
	X(size_t, fwrite_unlocked, (const void *, size_t, size_t, FILE *), "fwrite_unlocked") \
	X(int, vfprintf, (FILE *, const char *, va_list), "vfprintf")                         \
	X(int, vfprintf_chk, (FILE *, int, const char *, va_list), "__vfprintf_chk")

/* NULL before glibc 2.34. */
#define REAL_LATE(X)                                                          \
	X(int, close_range, (unsigned int, unsigned int, int), "close_range") \
	X(void, closefrom, (int), "closefrom")

/* NULL when the program had no C++ library at start. */
#define REAL_NEW(X)                                                                             \
	X(void *, new_plain, (size_t), "_Znwm")                                                 \
	X(void *, new_array, (size_t), "_Znam")                                                 \
	X(void *, new_nothrow, (size_t, const void *), "_ZnwmRKSt9nothrow_t")                   \
	X(void *, new_array_nothrow, (size_t, const void *), "_ZnamRKSt9nothrow_t")             \
	X(void *, new_aligned, (size_t, size_t), "_ZnwmSt11align_val_t")                        \
	X(void *, new_array_aligned, (size_t, size_t), "_ZnamSt11align_val_t")                  \
	X(void *, new_aligned_nothrow, (size_t, size_t, const void *),                          \
	  "_ZnwmSt11align_val_tRKSt9nothrow_t")                                                 \
	X(void *, new_array_aligned_nothrow, (size_t, size_t, const void *),                    \
	  "_ZnamSt11align_val_tRKSt9nothrow_t")                                                 \
	X(void, delete_plain, (void *), "_ZdlPv")                                               \
	X(void, delete_array, (void *), "_ZdaPv")                                               \
	X(void, delete_sized, (void *, size_t), "_ZdlPvm")                                      \
	X(void, delete_array_sized, (void *, size_t), "_ZdaPvm")                                \
	X(void, delete_nothrow, (void *, const void *), "_ZdlPvRKSt9nothrow_t")                 \
	X(void, delete_array_nothrow, (void *, const void *), "_ZdaPvRKSt9nothrow_t")           \
	X(void, delete_aligned, (void *, size_t), "_ZdlPvSt11align_val_t")                      \
	X(void, delete_array_aligned, (void *, size_t), "_ZdaPvSt11align_val_t")                \
	X(void, delete_sized_aligned, (void *, size_t, size_t), "_ZdlPvmSt11align_val_t")       \
	X(void, delete_array_sized_aligned, (void *, size_t, size_t), "_ZdaPvmSt11align_val_t") \
	X(void, delete_aligned_nothrow, (void *, size_t, const void *),                         \
	  "_ZdlPvSt11align_val_tRKSt9nothrow_t")                                                \
	X(void, delete_array_aligned_nothrow, (void *, size_t, const void *),                   \
	  "_ZdaPvSt11align_val_tRKSt9nothrow_t")

#define REAL_MEMBER(type, name, arguments, symbol) type(*name) arguments;
struct real {
	REAL_FIRST(REAL_MEMBER)
	REAL_WHOLE(REAL_MEMBER)
	REAL_LATE(REAL_MEMBER)
	REAL_NEW(REAL_MEMBER)

	const struct r_debug *loader; /* <link.h>; NULL when it has none */
	/* GLIBC_PRIVATE, may be NULL: points to { unsigned size; char text[]; } or to NULL */
	void **abort_message;
	void (*throw_bad_alloc)(void);
	/* NULL when the program is not CPython */
	void (*python_get_allocator)(int domain, void *ret);
	void (*python_set_allocator)(int domain, void *allocator);
	const void *python_runtime;
	const uint64_t *python_version;
	const void *(*python_thread_state)(void); /* that has the interpreter; may be another's */
	bool python_unlocked;

	bool glibc_malloc; /* the real malloc is libc's own: blocks are never nearer than 32 bytes
			    */
	bool past_us;	/* the program has a malloc inside: nobody's calls come to ours, unless they
			 * are brought there (builtin_malloc.h) */
	bool sanitized; /* built with -fsanitize=address, thread, memory or hwaddress */
	bool hooked_new; /* every program's new and delete come to our hooks */
	/* Operator new and delete are all the C++ library's: they do nothing but call malloc and
	 * free. */
	bool plain_new;
};
#undef REAL_MEMBER

extern __attribute__((visibility("hidden"))) struct real real;

/* Functions of a malloc that the program has inside come to us: builtin_malloc.h */
extern __attribute__((visibility("hidden"))) bool builtin_replaced;

/* libc's dlopen(), where arch/x86_64_dlopen.S jumps to it. */
extern __attribute__((visibility("hidden"))) void *(*real_dlopen)(const char *, int);

/* libc's syscall(), where arch/x86_64_syscall.S jumps to it. */
extern __attribute__((visibility("hidden"))) long (*real_syscall)(long, long, long, long, long,
								  long, long);

/* Looks everything up. Allocations made by dlsym meanwhile come from the early arena, so that the
 * heap stays as it would be. False when there is no malloc to be found. */
bool real_resolve(void);

/* C++ symbols may come later, with a library that dlopen brought. Called outside of any hook. */
void real_resolve_new(void);

/* Blocks served before real_resolve(). */
#define EARLY_BYTES 65536u
extern __attribute__((visibility("hidden"))) _Alignas(16) unsigned char early_arena[EARLY_BYTES];

static inline bool early_owns(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)early_arena < EARLY_BYTES;
}

/* Size that was asked for, of a block of the early arena. */
size_t early_size(const void *ptr);
uint64_t early_count(void);
/* A block of the early arena moves to the heap when it is resized. */
void *early_leave(void *ptr, size_t size);
