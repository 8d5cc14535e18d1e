/*
 * Calls that fill memory. Where the kernel's writes to watched memory are not caught, each of them
 * that touches it is noted (unexplained_changes.h); else a hook is one comparison and a jump, and
 * leaves no frame on the stack.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/core/agent.h"
#include "agent/core/real.h"
#include "agent/watch/unexplained_changes.h"

EXPORT ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
EXPORT ssize_t __recv_chk(int fd, void *to, size_t bytes, size_t room, int flags);
EXPORT ssize_t pread64(int fd, void *to, size_t bytes, off64_t from);

static inline void noted(uint32_t number, int fd, const void *to, ssize_t got, const void *caller)
{
	if (got > 0)
		unexplained_note_sigsafe(number, fd, to, (size_t)got, caller);
}

/* MSG_TRUNC returns more than was there room for. */
static inline void received(int fd, const void *to, size_t room, ssize_t got, const void *caller)
{
	noted(SYS_recvfrom, fd, to, got > (ssize_t)room ? (ssize_t)room : got, caller);
}

static void parts_noted(uint32_t number, int fd, const struct iovec *parts, size_t count,
			ssize_t got, const void *caller)
{
	size_t i, left = got > 0 ? (size_t)got : 0, here;

	for (i = 0; i < count && left; i++, left -= here) {
		here = parts[i].iov_len < left ? parts[i].iov_len : left;
		unexplained_note_sigsafe(number, fd, parts[i].iov_base, here, caller);
	}
}

#define HERE __builtin_return_address(0)

/* `call` of the function behind it, and whom it is told to. */
#define READ_HOOK(type, name, arguments, call, tell)  \
	EXPORT type name arguments                    \
	{                                             \
		type got;                             \
                                                      \
		if (likely(!unexplained_notes_calls)) \
			return real.call;             \
		got = real.call;                      \
		tell;                                 \
		return got;                           \
	}

READ_HOOK(ssize_t, read, (int fd, void *to, size_t bytes), read(fd, to, bytes),
	  noted(SYS_read, fd, to, got, HERE))
READ_HOOK(ssize_t, __read_chk, (int fd, void *to, size_t bytes, size_t room),
	  read_chk(fd, to, bytes, room), noted(SYS_read, fd, to, got, HERE))
READ_HOOK(ssize_t, pread64, (int fd, void *to, size_t bytes, off64_t from),
	  pread(fd, to, bytes, from), noted(SYS_pread64, fd, to, got, HERE))
READ_HOOK(ssize_t, pread, (int fd, void *to, size_t bytes, off_t from), pread(fd, to, bytes, from),
	  noted(SYS_pread64, fd, to, got, HERE))
READ_HOOK(ssize_t, readv, (int fd, const struct iovec *parts, int count), readv(fd, parts, count),
	  parts_noted(SYS_readv, fd, parts, count > 0 ? (size_t)count : 0, got, HERE))
READ_HOOK(ssize_t, recv, (int fd, void *to, size_t bytes, int flags), recv(fd, to, bytes, flags),
	  received(fd, to, bytes, got, HERE))
READ_HOOK(ssize_t, __recv_chk, (int fd, void *to, size_t bytes, size_t room, int flags),
	  recv_chk(fd, to, bytes, room, flags), received(fd, to, bytes, got, HERE))
READ_HOOK(ssize_t, recvfrom,
	  (int fd, void *restrict to, size_t bytes, int flags, struct sockaddr *restrict from,
	   socklen_t *restrict from_bytes),
	  recvfrom(fd, to, bytes, flags, from, from_bytes), received(fd, to, bytes, got, HERE))
READ_HOOK(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
	  recvmsg(fd, message, flags),
	  if (got > 0)
		  parts_noted(SYS_recvmsg, fd, message->msg_iov, message->msg_iovlen, got, HERE))
/* libc reads into the buffer itself where it is large. */
READ_HOOK(size_t, fread, (void *restrict to, size_t size, size_t count, FILE *restrict stream),
	  fread(to, size, count, stream), noted(SYS_read, -1, to, (ssize_t)(got *size), HERE))
