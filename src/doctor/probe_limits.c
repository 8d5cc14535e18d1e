/*
 * Limits of the system: core files and the number of mappings.
 */
#include "doctor/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/tmpdir.h"

#define MAP_COUNT_PATH "/proc/sys/vm/max_map_count"
#define CORE_PATTERN_PATH "/proc/sys/kernel/core_pattern"

/* The kernel's default, which guard pages reckon with. */
#define MAPS_WANTED 65530
/* Enough to know; going on to a million would only take time. */
#define MAPS_TRIED 100000u

static void limit_name(rlim_t limit, char *ret, size_t size)
{
	if (limit == RLIM_INFINITY)
		(void)snprintf(ret, size, "unlimited");
	else
		(void)snprintf(ret, size, "%llu bytes", (unsigned long long)limit);
}

/* The limits that redhand's children get. The isolation has lowered this process's own soft limit,
 * so the parent is asked; where that is forbidden, the hard limit is at least still right. */
static void core_limits(struct rlimit *ret)
{
	if (prlimit(getppid(), RLIMIT_CORE, NULL, ret) < 0)
		(void)getrlimit(RLIMIT_CORE, ret);
}

void probe_core_limit(struct finding *finding)
{
	struct rlimit limit = { 0 }, raised, seen = { 0 };
	char soft[32], hard[32];
	bool works;

	core_limits(&limit);
	limit_name(limit.rlim_cur, soft, sizeof(soft));
	limit_name(limit.rlim_max, hard, sizeof(hard));
	raised = (struct rlimit){ .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
	works = setrlimit(RLIMIT_CORE, &raised) == 0 && getrlimit(RLIMIT_CORE, &seen) == 0 &&
		seen.rlim_cur == raised.rlim_cur;
	if (limit.rlim_cur >= 4096) {
		probe_say(finding, FINDING_OK, "a core file may have %s", soft);
	} else if (works && limit.rlim_max >= 4096) {
		probe_say(finding, FINDING_LIMITED, "set to %s, but may be raised to %s", soft,
			  hard);
		probe_enable(finding, "ulimit -c unlimited");
	} else {
		probe_say(finding, FINDING_NO, "set to %s and may not be raised", soft);
		probe_enable(finding, "as root: raise the hard limit 'core' in "
				      "/etc/security/limits.conf, or LimitCORE= of the service");
	}
}

/* Is there a file in this directory that is not empty? */
static bool holds_a_file(int dir)
{
	DIR *stream;
	const struct dirent *entry;
	bool found = false;
	int copy = dup(dir);

	stream = copy >= 0 ? fdopendir(copy) : NULL;
	if (!stream) {
		fd_close(copy);
		return false;
	}
	while ((entry = readdir(stream)) && !found)
		found = entry->d_name[0] != '.';
	(void)closedir(stream);
	return found;
}

/* Dies in the directory `dir` with the largest core limit that is allowed. Returns the status. */
static int die_in(int dir)
{
	int status = 0, filter;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit limit = { 0 };

		(void)getrlimit(RLIMIT_CORE, &limit);
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_CORE, &limit) < 0 || fchdir(dir) < 0)
			_exit(1);
		/* Headers only: the point is whether a file appears. */
		filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
		if (filter >= 0)
			(void)!write(filter, "0", 1);
		(void)signal(SIGABRT, SIG_DFL);
		abort();
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static void try_core_here(struct finding *finding, const char *pattern)
{
	AUTO(mem_freep) char *path = NULL;
	AUTO(mem_freep) char *inner = NULL;
	struct err err = { 0 };
	AUTO(fd_closep) int dir = -1;
	bool written;
	int status;

	if (tmpdir_make(NULL, "doctor-", &path, &err) < 0) {
		probe_say(finding, FINDING_LIMITED,
			  "the pattern is '%s'; no directory to try it in (%s)", pattern,
			  err.message);
		probe_enable(finding, "set TMPDIR to a directory that can be written");
		return;
	}
	inner = mem_printf("%s/core", path);
	dir = mkdir(inner, 0700) < 0 ? -1 : open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	status = dir >= 0 ? die_in(dir) : -1;
	written = dir >= 0 && holds_a_file(dir);
	tmpdir_remove(path);
	if (status >= 0 && WIFSIGNALED(status) && WCOREDUMP(status) && written) {
		probe_say(
			finding, FINDING_OK,
			"a process was made to crash with the limit raised and left a core file in "
			"its working directory (pattern '%s')",
			pattern);
		return;
	}
	probe_say(finding, FINDING_NO,
		  "a process was made to crash and left no core file (pattern "
		  "'%s')",
		  pattern);
	probe_enable(finding, "%s",
		     pattern[0] == '\0' ? "as root: sysctl kernel.core_pattern=core"
					: "raise the core limit first: ulimit -c unlimited");
}

/* The handler gets its program from a pattern such as "|/usr/share/apport/apport -p%p". */
static void say_piped(struct finding *finding, const char *pattern)
{
	char program[512];
	size_t len = strcspn(pattern + 1, " \t");

	(void)snprintf(program, sizeof(program), "%.*s", (int)len, pattern + 1);
	/* Not tried: each try would leave an entry in the handler's records of crashes. */
	probe_say(finding, FINDING_LIMITED,
		  "cores go to the program '%s', which is %s; not tried, "
		  "because it would record a crash",
		  program, access(program, X_OK) == 0 ? "there" : "not to be seen from here");
	probe_lost(finding,
		   "core files have to be fetched from that program; redhand keeps its own "
		   "record of each crash and does not need them");
	probe_enable(finding, "as root: sysctl kernel.core_pattern=core");
}

static void say_absolute(struct finding *finding, const char *pattern)
{
	char folder[512];
	char *slash;

	(void)snprintf(folder, sizeof(folder), "%s", pattern);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder ? 1 : 0] = '\0';
	if (strchr(folder, '%') || access(folder, W_OK) == 0) {
		probe_say(finding, FINDING_OK,
			  "cores go to '%s'; not tried, so that nothing is left there", pattern);
		return;
	}
	probe_say(finding, FINDING_NO, "cores would go to '%s', where this user cannot write (%s)",
		  folder, strerror(errno));
	probe_enable(finding, "as root: sysctl kernel.core_pattern=core");
}

void probe_core_file(struct finding *finding)
{
	AUTO(mem_freep) char *pattern = NULL;

	if (file_read(CORE_PATTERN_PATH, 4096, &pattern, NULL, NULL) < 0)
		pattern = mem_strdup("core");
	pattern[strcspn(pattern, "\n")] = '\0';
	if (pattern[0] == '|')
		say_piped(finding, pattern);
	else if (pattern[0] == '/')
		say_absolute(finding, pattern);
	else
		try_core_here(finding, pattern);
}

/* Splits one reservation page by page until the kernel refuses. Returns how many mappings that
 * made, or 0 when there was not even the reservation. */
static size_t make_mappings(void)
{
	const size_t page = 4096;
	char *area = mmap(NULL, MAPS_TRIED * page, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t made = 0;

	if (area == MAP_FAILED)
		return 0;
	/* Every second page readable: each one adds itself and the gap behind it. */
	while (made < MAPS_TRIED) {
		if (mprotect(area + made * page, page, PROT_READ) < 0)
			break;
		made += 2;
	}
	return made;
}

void probe_map_count(struct finding *finding)
{
	long setting = probe_read_sysctl(MAP_COUNT_PATH);
	size_t made = make_mappings();
	char setting_text[64] = "not readable";

	if (setting != PROBE_NO_SYSCTL)
		(void)snprintf(setting_text, sizeof(setting_text), "%ld", setting);
	if (made == 0 && setting != PROBE_NO_SYSCTL)
		made = (size_t)(setting > 0 ? setting : 0);
	/* The process has some mappings of its own, so a little less than the setting is right. */
	if (made + 1000 >= MAPS_WANTED) {
		probe_say(finding, FINDING_OK, "%s%zu mappings were made (the setting is %s)",
			  made >= MAPS_TRIED ? "at least " : "", made, setting_text);
		return;
	}
	probe_say(finding, made < 1000 ? FINDING_NO : FINDING_LIMITED,
		  "only %zu mappings could be made (the setting is %s)", made, setting_text);
	probe_enable(finding, "as root: sysctl vm.max_map_count=%d", MAPS_WANTED);
}
