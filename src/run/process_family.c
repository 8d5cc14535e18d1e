#include "run/process_family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vec.h"

struct process {
	pid_t pid, parent;
	bool ours;
};

/* The parent of a process, or -1 when it has gone or is a zombie. Fields of /proc/PID/stat as in
 * proc(5): the second one, the name, is the program's own choice and may hold anything. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512];
	const char *after;
	ssize_t len;
	char state;
	int parent, fd;

	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	len = read(fd, text, sizeof(text) - 1);
	fd_close(fd);
	if (len <= 0)
		return -1;
	text[len] = '\0';
	after = strrchr(text, ')');
	// NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers
	if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2 || state == 'Z')
		return -1;
	return parent;
}

/*
 * Reads /proc once and marks who descends from us. Not every kernel has /proc/PID/task/TID/children
 * (CONFIG_PROC_CHILDREN), so the whole list is read; that happens only when a
 * trial leaves something behind.
 */
size_t family_signal(int signal)
{
	VEC(struct process) all = { 0 };
	DIR *proc = opendir("/proc");
	pid_t self = getpid();
	struct dirent *entry;
	size_t count = 0;
	bool grown = true;

	while (proc && (entry = readdir(proc)) != NULL) {
		struct process p = { .parent = -1 };

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		p.pid = (pid_t)strtol(entry->d_name, NULL, 10);
		p.parent = parent_of(entry->d_name);
		if (p.parent > 0)
			VEC_PUSH(&all, p);
	}
	if (proc)
		(void)closedir(proc);
	while (grown) {
		grown = false;
		VEC_FOREACH (&all, p) {
			bool below = p->parent == self;

			for (size_t i = 0; !below && !p->ours && i < all.count; i++)
				below = all.items[i].ours && all.items[i].pid == p->parent;
			grown |= below && !p->ours;
			p->ours |= below;
		}
	}
	VEC_FOREACH (&all, p) {
		if (p->ours) {
			(void)kill(p->pid, signal);
			count++;
		}
	}
	VEC_DEINIT(&all);
	return count;
}

bool family_is_below(pid_t pid, pid_t ancestor)
{
	char name[16];

	while (pid > 1) {
		(void)snprintf(name, sizeof(name), "%d", (int)pid);
		pid = parent_of(name);
		if (pid == ancestor)
			return true;
	}
	return false;
}
