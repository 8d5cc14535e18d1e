#include "studies/watch/stop.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "read/reading.h"
#include "wire/plan.h"

/* Stopped by a signal, not by a tracer: then somebody is there already. */
static bool is_stopped(int pid)
{
	char path[40], stat[512], *end;
	ssize_t n;
	AUTO(fd_closep) int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	if (n <= 0)
		return false;
	stat[n] = '\0';
	end = strrchr(stat, ')'); /* the program's own name may hold anything */
	return end && strncmp(end, ") T", 3) == 0;
}

/* events.PID.IMAGE.rhl */
static int log_pid(const char *name)
{
	size_t len = strlen(WIRE_LOG_PREFIX);
	long pid = strncmp(name, WIRE_LOG_PREFIX, len) == 0 && isdigit((unsigned char)name[len])
			   ? strtol(name + len, NULL, 10)
			   : 0;

	/* The program may have put a file of any name there. */
	return pid <= INT_MAX ? (int)pid : 0;
}

static int find_stopped(int trials, const char *name)
{
	int fd = openat(trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), pid = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		fd_close(fd);
		return 0;
	}
	while (pid == 0 && (entry = readdir(dir)) != NULL) {
		pid = log_pid(entry->d_name);
		if (pid > 0 && !is_stopped(pid))
			pid = 0;
	}
	(void)closedir(dir);
	return pid;
}

/* The trial still runs, and this is a look at what it has told so far; when it has ended it is read
 * like any other. */
bool watch_stop_find(struct case_store *cs, uint64_t trial, struct symbols *symbols,
		     struct watch_stop *ret)
{
	AUTO(reading_closep)
	struct reading *reading = reading_open(&(struct reading_of){
		.trials = case_trials_dir(cs), .trial = trial, .symbols = symbols });
	int pid = find_stopped(case_trials_dir(cs), reading_name(reading));
	const struct hit *last = NULL;

	if (pid == 0)
		return false;
	VEC_FOREACH (&reading_hits(reading)->hits, caught)
		if ((int)caught->log->reader.header.pid == pid)
			last = caught;
	/* Without a hit it was stopped by somebody else. */
	if (last) {
		ret->pid = pid;
		ret->write = mem_alloc(sizeof(*ret->write));
		hit_describe(last, symbols, ret->write);
	}
	return last != NULL;
}
