#include "agent/core/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/text.h"

/* Those of the thread: the process's own are empty once its first thread has left (pthread_exit).
 * To the first thread itself the two are the same, and /proc has less to make for this one. */
size_t maps_text_sigsafe(const char *path, char *to, size_t room)
{
	long fd = raw_syscall4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	long got = raw_syscall3(SYS_read, fd, to, room - 1);

	if (fd >= 0)
		(void)raw_syscall1(SYS_close, fd);
	to[got > 0 ? got : 0] = 0;
	return got > 0 ? (size_t)got : 0;
}

long maps_open_sigsafe(void)
{
	long fd = -ENOENT;

	if (raw_syscall0(SYS_gettid) != raw_syscall0(SYS_getpid))
		fd = raw_syscall4(SYS_openat, AT_FDCWD, "/proc/thread-self/maps",
				  O_RDONLY | O_CLOEXEC, 0);

	if (fd != -ENOENT)
		return fd;
	return raw_syscall4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
}

static bool walk_begin(struct maps_walk *walk, struct maps_buffer *buffer, long fd)
{
	memset(walk, 0, sizeof(*walk));
	walk->buffer = buffer;
	walk->fd = (int)fd;
	return fd >= 0;
}

bool maps_begin_at_sigsafe(struct maps_walk *walk, struct maps_buffer *buffer, const char *path)
{
	return walk_begin(walk, buffer,
			  raw_syscall4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
}

bool maps_begin_sigsafe(struct maps_walk *walk, struct maps_buffer *buffer)
{
	return walk_begin(walk, buffer, maps_open_sigsafe());
}

void maps_end_sigsafe(struct maps_walk *walk)
{
	(void)raw_syscall1(SYS_close, walk->fd);
}

static const char *line_end(struct maps_walk *walk)
{
	char *bytes = walk->buffer->bytes;
	const char *newline;
	long got;

	for (;;) {
		newline = memchr(bytes + walk->at, '\n', walk->have - walk->at);
		if (newline || walk->end)
			return newline;
		memmove(bytes, bytes + walk->at, walk->have - walk->at);
		walk->have -= walk->at;
		walk->at = 0;
		if (walk->have == sizeof(walk->buffer->bytes))
			return NULL;
		got = raw_syscall3(SYS_read, walk->fd, bytes + walk->have,
				   sizeof(walk->buffer->bytes) - walk->have);
		if (got <= 0)
			walk->end = true;
		else
			walk->have += (size_t)got;
	}
}

static void skip_blanks(const char **at, const char *end)
{
	while (*at < end && **at == ' ')
		++*at;
}

/* low-high perms offset major:minor inode path  (proc(5)) */
bool maps_next_sigsafe(struct maps_walk *walk, struct maps_line *ret)
{
	const char *end = line_end(walk), *at;
	size_t path_bytes;

	if (!end)
		return false;
	at = walk->buffer->bytes + walk->at;
	memset(ret, 0, sizeof(*ret));
	ret->text = at;
	ret->text_bytes = (size_t)(end + 1 - at);
	walk->at += ret->text_bytes;
	ret->low = text_number(&at, end, 16);
	at += at < end;
	ret->high = text_number(&at, end, 16);
	at += at < end;
	if (end - at < 5)
		return false;
	ret->readable = at[0] == 'r';
	ret->writable = at[1] == 'w';
	ret->executable = at[2] == 'x';
	ret->shared = at[3] == 's';
	at += 5;
	ret->offset = text_number(&at, end, 16);
	at += at < end;
	ret->device = text_number(&at, end, 16) << 20;
	at += at < end;
	ret->device |= text_number(&at, end, 16);
	at += at < end;
	ret->inode = text_number(&at, end, 10);
	skip_blanks(&at, end);
	path_bytes = (size_t)(end - at);
	if (path_bytes >= sizeof(walk->buffer->path))
		path_bytes = sizeof(walk->buffer->path) - 1;
	memcpy(walk->buffer->path, at, path_bytes);
	walk->buffer->path[path_bytes] = 0;
	ret->path = walk->buffer->path;
	return true;
}
