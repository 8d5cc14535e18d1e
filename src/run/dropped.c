#include "run/dropped.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"

#define HEAD_BYTES 128

void dropped_begin(struct dropped *dropped, const char *cwd)
{
	dropped->dir = open(cwd ? cwd : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dropped->core_before = faccessat(dropped->dir, "core", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Is it what its name says? Somebody may well call a file of his own `core`. */
static bool is_left_by_a_crash(int dir, const char *name, int64_t started_ms)
{
	static const char core[] = { 0x7f, 'E', 'L', 'F' };
	AUTO(fd_closep)
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char head[HEAD_BYTES + 1] = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (int64_t)st.st_mtim.tv_sec * 1000 + 1000 < started_ms ||
	    pread(fd, head, HEAD_BYTES, 0) < (ssize_t)sizeof(core))
		return false;
	/* The 17th byte of a core file says that it is one (ET_CORE in <elf.h>). */
	return name[0] == 'c' ? memcmp(head, core, sizeof(core)) == 0 && head[16] == 4
			      : strstr(head, "fatal error") != NULL;
}

static void take(const struct dropped *dropped, const char *file, const struct trial_end *end,
		 int trials, const char *name)
{
	char to[96];

	(void)snprintf(to, sizeof(to), "%s/%s", name, file);
	if (is_left_by_a_crash(dropped->dir, file, end->started_ms))
		(void)renameat(dropped->dir, file, trials, to);
}

void dropped_end(struct dropped *dropped, const struct trial_end *end, pid_t main, int trials,
		 const char *name)
{
	const pid_t died[] = { main, end->stray.pid, end->observed.pid };
	char file[48];

	if (dropped->dir >= 0 && (end->signal | end->stray.signal | end->observed.signal)) {
		if (!dropped->core_before)
			take(dropped, "core", end, trials, name);
		for (size_t i = 0; i < ARRAY_SIZE(died); i++) {
			(void)snprintf(file, sizeof(file), "core.%d", (int)died[i]);
			take(dropped, file, end, trials, name);
			(void)snprintf(file, sizeof(file), "hs_err_pid%d.log", (int)died[i]);
			take(dropped, file, end, trials, name);
		}
	}
	fd_close(dropped->dir);
}
