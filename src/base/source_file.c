#include "base/source_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"

#define SOURCE_MAX (64u << 20)

/* Files in which the kernel writes what it likes. */
static bool is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == DEBUGFS_MAGIC || fs.f_type == TRACEFS_MAGIC ||
	       fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == SECURITYFS_MAGIC;
}

/* Could everybody read it? All directories on the way count. */
static bool is_public(const char *plain, const struct stat *file)
{
	AUTO(mem_freep) char *path = mem_strdup(plain);
	struct stat st;
	char *slash;

	if (!(file->st_mode & S_IROTH))
		return false;
	while ((slash = strrchr(path, '/')) != NULL && slash != path) {
		*slash = '\0';
		if (stat(path, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

/* Below `dir` or the checkout around it; what lies in hidden folders there is no source. Somebody's
 * home is no program's tree, nor is /etc. */
static bool is_in_tree(const char *plain, const char *dir)
{
	AUTO(mem_freep) char *real = dir ? realpath(dir, NULL) : NULL;
	AUTO(mem_freep) char *git = real ? path_find_up(real, ".git") : NULL;
	AUTO(mem_freep) char *home = getenv("HOME") ? realpath(getenv("HOME"), NULL) : NULL;
	const char *root = git ? git : real, *below;

	if (!root || (!git && !strchr(root + 1, '/')) || (home && path_below(root, home)))
		return false;
	below = path_below(root, plain);
	return below && below[0] != '.' && !strstr(below, "/.");
}

static bool may_be_quoted(int fd, const char *module, const struct stat *st)
{
	/* Of what was opened: the name may mean another file by now. */
	AUTO(mem_freep) char *own = mem_printf("/proc/self/fd/%d", fd);
	AUTO(mem_freep) char *plain = realpath(own, NULL);
	AUTO(mem_freep) char *dir = NULL;
	const char *slash = module ? strrchr(module, '/') : NULL;

	if (!plain)
		return false;
	if (is_public(plain, st))
		return true;
	dir = slash ? mem_strndup(module, (size_t)(slash - module)) : NULL;
	return is_in_tree(plain, dir) || is_in_tree(plain, ".");
}

FILE *source_open(const char *file, const char *module)
{
	int fd = file[0] == '/' ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	FILE *stream = NULL;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SOURCE_MAX &&
	    !is_kernels(fd) && may_be_quoted(fd, module, &st))
		stream = fdopen(fd, "r");
	if (!stream)
		fd_close(fd);
	return stream;
}
