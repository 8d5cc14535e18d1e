/*
 * The functions behind our hooks.
 *
 * Filled in by real_resolve() in the constructor. Until then the allocation entries point to the
 * early arena, because dlsym and the loader may allocate before we know where malloc is; free and
 * realloc recognise its blocks for as long as the process lives.
 */
#ifndef REDHAND_AGENT_REAL_H
#define REDHAND_AGENT_REAL_H

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

struct real {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*malloc_usable_size)(void *);
	void *(*reallocarray)(void *, size_t, size_t); /* only looked for, never called */

	/* NULL when the program had no C++ library at start */
	void *(*new_plain)(size_t);
	void *(*new_array)(size_t);
	void *(*new_nothrow)(size_t, const void *);
	void *(*new_array_nothrow)(size_t, const void *);
	void *(*new_aligned)(size_t, size_t);
	void *(*new_array_aligned)(size_t, size_t);
	void *(*new_aligned_nothrow)(size_t, size_t, const void *);
	void *(*new_array_aligned_nothrow)(size_t, size_t, const void *);
	void (*delete_plain)(void *);
	void (*delete_array)(void *);
	void (*delete_sized)(void *, size_t);
	void (*delete_array_sized)(void *, size_t);
	void (*delete_nothrow)(void *, const void *);
	void (*delete_array_nothrow)(void *, const void *);
	void (*delete_aligned)(void *, size_t);
	void (*delete_array_aligned)(void *, size_t);
	void (*delete_sized_aligned)(void *, size_t, size_t);
	void (*delete_array_sized_aligned)(void *, size_t, size_t);
	void (*delete_aligned_nothrow)(void *, size_t, const void *);
	void (*delete_array_aligned_nothrow)(void *, size_t, const void *);

	int (*thrd_create)(pthread_t *, int (*)(void *), void *);
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	int (*sigaltstack)(const stack_t *, stack_t *);
	int (*sigwait)(const sigset_t *, int *);
	int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
	int (*dlclose)(void *);

	int (*execve)(const char *, char *const[], char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
	int (*posix_spawn)(pid_t *, const char *, const void *, const void *, char *const[],
			   char *const[]);
	int (*posix_spawnp)(pid_t *, const char *, const void *, const void *, char *const[],
			    char *const[]);
	void (*exit_now)(int); /* _exit */
	long (*ptrace)(int, ...);
	int (*setuid)(uid_t);
	int (*seteuid)(uid_t);
	int (*setreuid)(uid_t, uid_t);
	int (*setresuid)(uid_t, uid_t, uid_t);
	int (*chroot)(const char *);
	int (*prctl)(int, ...);
	int (*setrlimit)(int, const struct rlimit *);
	int (*getrlimit)(int, struct rlimit *);
	int (*prlimit)(pid_t, int, const struct rlimit *, struct rlimit *);

	int (*mlockall)(int);
	int (*ftruncate)(int, off_t);
	int (*fallocate)(int, int, off_t, off_t);
	int (*shm_open)(const char *, int, mode_t);
	int (*open_by_handle_at)(int, struct file_handle *, int);
	int (*truncate)(const char *, off_t);
	int (*open)(const char *, int, ...);
	int (*openat)(int, const char *, int, ...);
	int (*creat)(const char *, mode_t);
	int (*close)(int);
	int (*close_range)(unsigned int, unsigned int, int); /* NULL before glibc 2.34, as is */
	void (*closefrom)(int);				     /* this one */
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
	FILE *(*fopen)(const char *, const char *);
	FILE *(*freopen)(const char *, const char *, FILE *);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*read_chk)(int, void *, size_t, size_t);
	ssize_t (*pread)(int, void *, size_t, off_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recv_chk)(int, void *, size_t, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, void *, void *);
	ssize_t (*recvmsg)(int, void *, int);
	size_t (*fread)(void *, size_t, size_t, FILE *);
	int (*puts)(const char *);
	int (*fputs)(const char *, FILE *);
	int (*fputs_unlocked)(const char *, FILE *);
	int (*fputc)(int, FILE *);
	size_t (*fwrite)(const void *, size_t, size_t, FILE *);
	size_t (*fwrite_unlocked)(const void *, size_t, size_t, FILE *);
	int (*vfprintf)(FILE *, const char *, va_list);
	int (*vfprintf_chk)(FILE *, int, const char *, va_list);

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

#endif
