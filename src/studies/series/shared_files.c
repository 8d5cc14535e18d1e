#include "studies/series/shared_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

#define LOOKS_MAX 16u	   /* times that directories are walked through */
#define ENTRIES_MAX 20000u /* looked at each time */
#define DEPTH_MAX 8u
#define FILES_MAX 2000u

struct look {
	struct shared_files *files;
	unsigned int arm;
	unsigned int entries;
	struct stat own; /* the case */
};

void shared_files_deinit(struct shared_files *files)
{
	VEC_FREE(&files->list, file, mem_free(file->path));
}

void shared_files_begin(struct shared_files *files)
{
	/* The clock that the kernel writes into files; the fine one is ahead of it. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, &files->since);
}

static void note(struct look *look, const char *path)
{
	struct shared_files *files = look->files;

	VEC_FOREACH (&files->list, file)
		if (strcmp(file->path, path) == 0) {
			file->often |= file->arms & 1u << look->arm;
			file->arms |= 1u << look->arm;
			return;
		}
	if (files->list.count < FILES_MAX)
		VEC_PUSH(&files->list, ((struct shared_file){ .path = mem_strdup(path),
							      .arms = 1u << look->arm }));
}

static bool changed(const struct look *look, const struct stat *st)
{
	const struct timespec *since = &look->files->since;

	return st->st_mtim.tv_sec > since->tv_sec ||
	       (st->st_mtim.tv_sec == since->tv_sec && st->st_mtim.tv_nsec >= since->tv_nsec);
}

static void walk(struct look *look, int parent, const char *name, const char *path,
		 unsigned int depth);

static void look_at(struct look *look, int dir, const char *name, const char *within,
		    unsigned int depth)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", within, name);
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX &&
	    !(st.st_ino == look->own.st_ino && st.st_dev == look->own.st_dev))
		walk(look, dir, name, path, depth + 1);
	else if (S_ISREG(st.st_mode) && changed(look, &st))
		note(look, path);
}

static void walk(struct look *look, int parent, const char *name, const char *path,
		 unsigned int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!stream) {
		fd_close(fd);
		return;
	}
	while (look->entries < ENTRIES_MAX && (entry = readdir(stream)) != NULL) {
		look->entries++;
		look_at(look, dirfd(stream), entry->d_name, path, depth);
	}
	(void)closedir(stream);
}

static bool lies_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

void shared_files_end(struct shared_files *files, unsigned int arm)
{
	struct look look = { .files = files, .arm = arm };
	const char *home = getenv("HOME"), *given = getenv("XDG_CACHE_HOME");
	AUTO(mem_freep) char *in_home = home && *home ? mem_printf("%s/.cache", home) : NULL;
	AUTO(mem_freep) char *here = realpath(files->cwd ? files->cwd : ".", NULL);
	AUTO(mem_freep)
	char *caches = given && *given ? realpath(given, NULL)
		       : in_home       ? realpath(in_home, NULL)
				       : NULL;

	if (files->looks++ >= LOOKS_MAX || arm >= 32)
		return;
	(void)stat(files->case_dir, &look.own);
	if (here)
		walk(&look, AT_FDCWD, here, here, 0);
	if (caches && !(here && lies_in(caches, here)))
		walk(&look, AT_FDCWD, caches, caches, 0);
}

void shared_files_tell(const struct shared_files *files, struct strv *ret)
{
	VEC_FOREACH (&files->list, file)
		if ((file->often & (file->often - 1)) != 0)
			strv_add(ret, file->path);
}
