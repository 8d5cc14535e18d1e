#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"

static int dir_open(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* Lets us into `name`, and first into the directory that it is in: without search permission
 * there (mode 0400, say) nothing about it can be changed. */
static void permit(int parent, const char *name)
{
	(void)fchmod(parent, 0700);
	(void)fchmodat(parent, name, 0700, 0);
}

static int unlink_entry(int parent, const char *name, int flags)
{
	if (unlinkat(parent, name, flags) == 0 || errno == ENOENT)
		return 0;
	if (errno == EACCES && fchmod(parent, 0700) == 0 && unlinkat(parent, name, flags) == 0)
		return 0;
	return -errno;
}

/* Deeper than this a directory is first moved up to the top one: a hostile tree may be deeper
 * than the descriptors a process may have. */
#define TREE_DEEP 64

struct removal {
	dev_t device;
	int top;	    /* the directory that everything too deep is moved to */
	unsigned int moved; /* makes the names there unique */
	struct err *err;
};

static int remove_dir(struct removal *rm, int parent, const char *name, unsigned int depth);

static int lift(struct removal *rm, int parent, const char *name)
{
	bool permitted = false;

	for (;;) {
		char lifted[32];

		(void)snprintf(lifted, sizeof(lifted), ".deep.%u", rm->moved++);
		if (renameat(parent, name, rm->top, lifted) == 0)
			return 0;
		/* The target may have had the same idea for a name; it has taken only so many. */
		if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
			continue;
		if (errno != EACCES || permitted)
			return err_set_errno(rm->err, -errno, "cannot remove '%s'", name);
		permitted = true;
		permit(parent, name);
		(void)fchmod(rm->top, 0700);
	}
}

static int remove_entry(struct removal *rm, int dir, const struct dirent *entry, unsigned int depth)
{
	int r;

	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
		return 0;
	r = entry->d_type == DT_DIR ? -EISDIR : unlink_entry(dir, entry->d_name, 0);
	if (r == -EISDIR)
		return depth < TREE_DEEP ? remove_dir(rm, dir, entry->d_name, depth + 1)
					 : lift(rm, dir, entry->d_name);
	return r < 0 ? err_set_errno(rm->err, r, "cannot remove '%s'", entry->d_name) : 0;
}

static int empty_dir(struct removal *rm, int fd, const char *name, unsigned int depth)
{
	int again = dup(fd); /* closedir() closes the one it was given */
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	int r = 0;

	if (!stream) {
		fd_close(again);
		return err_set_errno(rm->err, -errno, "cannot list '%s'", name);
	}
	rewinddir(stream);
	while (r == 0 && (entry = readdir(stream)) != NULL)
		r = remove_entry(rm, fd, entry, depth);
	(void)closedir(stream);
	return r;
}

static int remove_dir(struct removal *rm, int parent, const char *name, unsigned int depth)
{
	AUTO(fd_closep) int fd = dir_open(parent, name);
	struct stat st;
	int r;

	if (fd < 0 && errno == EACCES) {
		/* The directory around the topmost one is the caller's own. */
		if (depth == 0)
			(void)fchmodat(parent, name, 0700, 0);
		else
			permit(parent, name);
		fd = dir_open(parent, name);
	}
	if (fd < 0)
		return errno == ENOENT ? 0
				       : err_set_errno(rm->err, -errno, "cannot open '%s'", name);
	if (fstat(fd, &st) < 0 || st.st_dev != rm->device)
		return err_set(rm->err, -EXDEV, "'%s' is on another file system and was left",
			       name);
	if (depth == 0)
		rm->top = fd;
	do {
		r = empty_dir(rm, fd, name, depth);
		if (r == 0)
			r = unlink_entry(parent, name, AT_REMOVEDIR);
		else
			return r;
	} while (r == -ENOTEMPTY && depth == 0); /* something was lifted into it */
	return r < 0 ? err_set_errno(rm->err, r, "cannot remove '%s'", name) : 0;
}

int tree_remove_at(int dir, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : err_set_errno(err, -errno, "cannot look at '%s'", name);
	if (!S_ISDIR(st.st_mode)) {
		int r = unlink_entry(dir, name, 0);

		return r < 0 ? err_set_errno(err, r, "cannot remove '%s'", name) : 0;
	}
	return remove_dir(&(struct removal){ .device = st.st_dev, .err = err }, dir, name, 0);
}

static int copy_bytes(int in, int out)
{
	char block[65536];
	ssize_t n;

	while ((n = read(in, block, sizeof(block))) > 0)
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write(out, block + done, (size_t)(n - done));

			if (w < 0)
				return -errno;
			done += w;
		}
	return n < 0 ? -errno : 0;
}

static int copy_file(int from, const char *name, int to, const char *to_name)
{
	AUTO(fd_closep)
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	AUTO(fd_closep)
	int out = in < 0 ? -1
			 : openat(to, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				  0600);

	return out < 0 ? -errno : copy_bytes(in, out);
}

static int copy_link(int from, const char *name, int to, const char *to_name)
{
	char target[4096];
	ssize_t len = readlinkat(from, name, target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	target[len] = '\0';
	return symlinkat(target, to, to_name) < 0 ? -errno : 0;
}

static int copy_entry(int from, const char *name, int to, const char *to_name, unsigned int depth);

static int copy_dir(int from, const char *name, int to, const char *to_name, unsigned int depth)
{
	AUTO(fd_closep) int in = dir_open(from, name);
	AUTO(fd_closep) int out = -1;
	int again = in < 0 ? -1 : dup(in), r = 0;
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (!stream) {
		fd_close(again);
		return -errno;
	}
	if (mkdirat(to, to_name, 0700) < 0 || (out = dir_open(to, to_name)) < 0)
		r = -errno;
	while (r == 0 && (entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = copy_entry(in, entry->d_name, out, entry->d_name, depth + 1);
	(void)closedir(stream);
	return r;
}

static int copy_entry(int from, const char *name, int to, const char *to_name, unsigned int depth)
{
	struct stat st;
	int r = 0;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode) && depth < TREE_DEEP)
		r = copy_dir(from, name, to, to_name, depth);
	else if (S_ISREG(st.st_mode))
		r = copy_file(from, name, to, to_name);
	else if (S_ISLNK(st.st_mode))
		r = copy_link(from, name, to, to_name);
	/* What cannot be read, or went away meanwhile, is not worth the rest. */
	return r == -EACCES || r == -ENOENT ? 0 : r;
}

int tree_move_at(int from, const char *name, int to, const char *to_name, struct err *err)
{
	int r = renameat(from, name, to, to_name) < 0 ? -errno : 0;

	if (r == 0)
		return 0;
	if (r == -EXDEV)
		r = copy_entry(from, name, to, to_name, 0);
	if (r < 0)
		return err_set_errno(err, r, "cannot keep '%s'", name);
	return tree_remove_at(from, name, err);
}

static int make_path(const char *path, mode_t last, struct err *err)
{
	AUTO(mem_freep) char *copy = mem_strdup(path);
	int fault = path[0] == '\0' ? ENOENT : fault_hits("mkdir");

	if (fault > 0)
		return err_set_errno(err, -fault, "cannot create '%s'", path);
	for (char *p = copy + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		/* A slash at the end of the path, too, stands behind the last one. */
		if (mkdir(copy, c == '\0' || p[1 + strspn(p + 1, "/")] == '\0' ? last : 0755) < 0 &&
		    errno != EEXIST)
			return err_set_errno(err, -errno, "cannot create '%s'", copy);
		*p = c;
		if (c == '\0')
			break;
	}
	return 0;
}

int tree_make(const char *path, struct err *err)
{
	return make_path(path, 0755, err);
}

int tree_make_private(const char *path, struct err *err)
{
	bool there = access(path, F_OK) == 0;
	int r = make_path(path, 0700, err);

	/* Not less than 0700 either, whatever the umask. */
	if (r == 0 && !there && chmod(path, 0700) < 0)
		return err_set_errno(err, -errno, "cannot set the mode of '%s'", path);
	return r;
}

static int file_make_at(int dir, const char *name, struct err *err)
{
	/* What is there may be the target's work, a directory even; start from a new file. */
	int r = tree_remove_at(dir, name, err), fd;

	if (r < 0)
		return r;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set_errno(err, -errno, "cannot create '%s'", name);
	(void)fchmod(fd, 0600); /* whatever the umask takes away */
	return fd;
}

int file_write_at(int dir, const char *name, const void *bytes, size_t len, struct err *err)
{
	AUTO(fd_closep) int fd = file_make_at(dir, name, err);

	return fd < 0 ? fd : fd_write_all(fd, bytes, len, name, err);
}

FILE *file_create_at(int dir, const char *name, struct err *err)
{
	int fd = file_make_at(dir, name, err);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd >= 0 && !stream) {
		(void)err_set_errno(err, -errno, "cannot create '%s'", name);
		fd_close(fd);
	}
	return stream;
}
