#include "run/emitted_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/plan.h"

#define BYTES_MOST (64 << 20)

static bool copy(int from, int to, off_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(to, from, NULL, (size_t)size);

		if (n <= 0)
			return false;
		size -= n;
	}
	return true;
}

/* Its user's own file, written since the trial began. */
static void take_file(int trial, const char *dir, const char *file, int64_t started_ms)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", dir, file);
	AUTO(fd_closep) int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	AUTO(fd_closep) int to = -1;
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (int64_t)st.st_mtim.tv_sec * 1000 + 1000 < started_ms || st.st_size > BYTES_MOST)
		return;
	to = openat(trial, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to >= 0 && copy(from, to, st.st_size))
		(void)unlink(path);
}

void emitted_names_take(int dir, const char *name, const char *cwd, int64_t started_ms)
{
	int trial = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *stream = trial < 0 ? NULL : fdopendir(trial);
	const size_t prefix = strlen(WIRE_LOG_PREFIX);
	struct dirent *entry;

	while (stream && (entry = readdir(stream)) != NULL) {
		long pid = strncmp(entry->d_name, WIRE_LOG_PREFIX, prefix) == 0
				   ? strtol(entry->d_name + prefix, NULL, 10)
				   : 0;
		AUTO(mem_freep) char *map = mem_printf("perf-%ld.map", pid);
		AUTO(mem_freep) char *dump = mem_printf("jit-%ld.dump", pid);

		if (pid <= 0)
			continue;
		take_file(trial, "/tmp", map, started_ms);
		take_file(trial, "/tmp", dump, started_ms);
		take_file(trial, cwd ? cwd : ".", dump, started_ms);
	}
	if (stream)
		(void)closedir(stream);
	else
		fd_close(trial);
}
