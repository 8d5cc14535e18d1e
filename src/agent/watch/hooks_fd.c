/*
 * Who closes descriptors: many programs close all they find, or all from a number on, before they
 * settle down. The events behind the watches (watch_perf.h) are to survive that. To the target they
 * do not exist: closing one answers EBADF, as for any number that is not open, and a range is
 * closed around them. Only dup2() onto one of them fails where it would not have; numbers that
 * high are chosen by nobody.
 *
 * Nothing else than a comparison while nothing is watched.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/watch/watch_perf.h"

EXPORT int close_range(unsigned int first, unsigned int last, int flags);
EXPORT void closefrom(int low);
EXPORT int dup3(int from, int to, int flags);

static inline bool is_ours(int fd)
{
	int first = watch_perf_first_fd_sigsafe();

	return unlikely(first >= 0) && fd >= first && fd < first + (int)WATCH_REGISTERS;
}

static int not_open(void)
{
	errno = EBADF;
	return -1;
}

EXPORT int close(int fd)
{
	return is_ours(fd) ? not_open() : real.close(fd);
}

EXPORT int dup2(int from, int to)
{
	return is_ours(from) || is_ours(to) ? not_open() : real.dup2(from, to);
}

EXPORT int dup3(int from, int to, int flags)
{
	return is_ours(from) || is_ours(to) ? not_open() : real.dup3(from, to, flags);
}

/* CLOSE_RANGE_CLOEXEC leaves them open, and they have that flag already. */
EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	int fd = watch_perf_first_fd_sigsafe();
	unsigned int low = (unsigned int)fd, high = low + WATCH_REGISTERS - 1;
	int r = 0;

	if (!real.close_range) {
		errno = ENOSYS;
		return -1;
	}
	if (likely(fd < 0) || first > last || first > high || last < low ||
	    (flags & CLOSE_RANGE_CLOEXEC))
		return real.close_range(first, last, flags);
	if (first < low)
		r = real.close_range(first, low - 1, flags);
	if (!r && last > high)
		r = real.close_range(high + 1, last, flags);
	return r;
}

/* Kernels before 5.9 have no close_range(). */
static void close_below(int low, int high)
{
	if (low < high && raw_syscall3(SYS_close_range, low, high - 1, 0))
		for (; low < high; low++)
			(void)raw_syscall1(SYS_close, low);
}

EXPORT void closefrom(int low)
{
	int fd = watch_perf_first_fd_sigsafe();
	int behind = fd + (int)WATCH_REGISTERS;

	if (unlikely(fd >= 0) && low < behind) {
		close_below(low < 0 ? 0 : low, fd);
		low = behind;
	}
	real.closefrom(low);
}
