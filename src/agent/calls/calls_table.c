#include "agent/calls/calls_table.h"

#include <stddef.h>
#include <sys/syscall.h>

/* Rows of one call together; the last has number UINT16_MAX. Sizes are those of the kernel's
 * structs on x86-64. */
static const struct call_output rows[] = {
	{ SYS_read, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_pread64, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_recvfrom, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_getrandom, 0, CALL_RETURNS_BYTES, 1 },
	{ SYS_readlink, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_readlinkat, 2, CALL_RETURNS_BYTES, 1 },
	{ SYS_getdents, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_getdents64, 1, CALL_RETURNS_BYTES, 1 },
	{ SYS_getcwd, 0, CALL_RETURNS_BYTES, 1 },
	{ SYS_epoll_wait, 1, CALL_RETURNS_BYTES, 12 },
	{ SYS_epoll_pwait, 1, CALL_RETURNS_BYTES, 12 },
	{ SYS_stat, 1, CALL_FILLS, 144 },
	{ SYS_fstat, 1, CALL_FILLS, 144 },
	{ SYS_lstat, 1, CALL_FILLS, 144 },
	{ SYS_newfstatat, 2, CALL_FILLS, 144 },
	{ SYS_statx, 4, CALL_FILLS, 256 },
	{ SYS_pipe, 0, CALL_FILLS, 8 },
	{ SYS_pipe2, 0, CALL_FILLS, 8 },
	{ SYS_socketpair, 3, CALL_FILLS, 8 },
	{ SYS_clock_gettime, 1, CALL_FILLS, 16 },
	{ SYS_gettimeofday, 0, CALL_FILLS, 16 },
	{ SYS_uname, 0, CALL_FILLS, 390 },
	{ SYS_sysinfo, 0, CALL_FILLS, 112 },
	{ SYS_getrusage, 1, CALL_FILLS, 144 },
	{ SYS_times, 0, CALL_FILLS, 32 },
	{ SYS_statfs, 1, CALL_FILLS, 120 },
	{ SYS_fstatfs, 1, CALL_FILLS, 120 },
	{ SYS_getrlimit, 1, CALL_FILLS, 16 },
	{ SYS_prlimit64, 3, CALL_FILLS, 16 },
	{ UINT16_MAX, 0, 0, 0 },
};

static const uint16_t readers[] = {
	SYS_write,   SYS_pwrite64, SYS_writev,	 SYS_pwritev, SYS_pwritev2,   SYS_sendto,
	SYS_sendmsg, SYS_open,	   SYS_openat,	 SYS_access,  SYS_faccessat,  SYS_connect,
	SYS_bind,    SYS_execve,   SYS_execveat, SYS_unlink,  SYS_unlinkat,   SYS_mkdir,
	SYS_rmdir,   SYS_rename,   SYS_chdir,	 SYS_chmod,   SYS_setsockopt, SYS_epoll_ctl,
};

const struct call_output *call_outputs(long number)
{
	const struct call_output *row;

	for (row = rows; row->number != UINT16_MAX; row++)
		if (row->number == number)
			return row;
	return NULL;
}

bool call_only_reads(long number)
{
	size_t i;

	for (i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		if (readers[i] == number)
			return true;
	return false;
}
