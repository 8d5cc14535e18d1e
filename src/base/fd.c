#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fault.h"
#include "base/mem.h"

void fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved;
}

void fd_closep(int *fd)
{
	fd_close(*fd);
}

static ssize_t write_once(int fd, const void *bytes, size_t len)
{
	int fault = fault_hits("write");

	if (fault > 0) {
		errno = fault;
		return -1;
	}
	return write(fd, bytes, len);
}

int fd_write_all(int fd, const void *bytes, size_t len, const char *name, struct err *err)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write_once(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			(void)err_set_errno(err, -errno, "cannot write '%s'", name);
			if (errno == ENOSPC || errno == EDQUOT)
				(void)err_set_remedy(err,
						     "free some space and run the same command "
						     "again: it goes on where it was");
			return err ? err->code : -errno;
		}
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_whole(const char *path, int flags, size_t limit, char **ret, size_t *ret_len,
		      struct err *err)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
	AUTO(mem_freep) char *data = NULL;
	size_t len = 0, room = 4096;
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, -errno, "cannot open '%s'", path);
	if (flags & O_NOFOLLOW && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return err_set(err, -EINVAL, "'%s' is a link or no ordinary file", path);
	data = mem_alloc(room + 1);
	for (;;) {
		ssize_t n = read(fd, data + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set_errno(err, -errno, "cannot read '%s'", path);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > limit)
			return err_set(err, -EFBIG, "'%s' is larger than %zu bytes", path, limit);
		if (len == room) {
			room *= 2;
			data = mem_resize(data, room + 1, 1);
		}
	}
	data[len] = '\0';
	*ret = TAKE(data);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int file_read(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err)
{
	return read_whole(path, 0, limit, ret, ret_len, err);
}

int file_read_plain(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err)
{
	return read_whole(path, O_NOFOLLOW | O_NONBLOCK, limit, ret, ret_len, err);
}

bool file_holds_at(int dir, const char *name, const void *bytes, size_t len)
{
	AUTO(fd_closep)
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	AUTO(mem_freep) char *held = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)len)
		return false;
	held = mem_alloc(len + 1);
	return pread(fd, held, len + 1, 0) == (ssize_t)len && memcmp(held, bytes, len) == 0;
}

int stat_check_owner(const struct stat *st, uid_t owner, const char *path, struct err *err)
{
	/* Where every user has a group of the same number, to be in it is to be that user. */
	bool own_group = st->st_gid == owner;

	if (st->st_uid != owner)
		(void)err_set(err, -EPERM, "'%s' belongs to another user (%u, not %u)", path,
			      (unsigned int)st->st_uid, (unsigned int)owner);
	else if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && !own_group))
		(void)err_set(err, -EPERM, "'%s' can be changed by other users (mode %04o)", path,
			      (unsigned int)st->st_mode & 07777);
	else
		return 0;
	(void)err_set_remedy(err,
			     "look at it, then make a copy of your own (cp -r), or chmod go-w");
	return -EPERM;
}

static int fd_check_owner(int fd, uid_t owner, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, -errno, "cannot look at '%s'", path);
	return stat_check_owner(&st, owner, path, err);
}

int fd_check_owner_of(int fd, int dir, const char *path, struct err *err)
{
	struct stat above;

	return fd_check_owner(fd, fstat(dir, &above) < 0 ? (uid_t)-1 : above.st_uid, path, err);
}

int fd_check_ours(int fd, const char *path, struct err *err)
{
	return fd_check_owner(fd, geteuid(), path, err);
}
