/*
 * Helpers outside of redhand: the Slurm client, a debuginfod server.
 */
#include "doctor/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "debuginfo/debuginfod.h"

#define CONTROLLER_WAIT_MS 3000

/* exec_quietly() failed to start the program. */
#define EXIT_NOT_FOUND 127

static void exec_quietly(char *const argv[], int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDERR_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)execvp(argv[0], argv);
	_exit(EXIT_NOT_FOUND);
}

/* Collects the first line until the program closes its output or the time is over. */
static bool read_line(int fd, long long deadline, char *line, size_t size)
{
	size_t len = 0;
	char chunk[512];

	for (;;) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		long long left = deadline - (long long)(clock_ns() / 1000000);
		ssize_t n;

		if (left <= 0 || poll(&poller, 1, (int)left) == 0)
			return false;
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n && len + 1 < size; i++)
			line[len++] = chunk[i];
	}
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* Runs a program and keeps the first line it prints. Returns its exit status, -ETIMEDOUT, or
 * another -errno. */
static int run_for_line(char *const argv[], char *line, size_t size)
{
	int pipes[2], status;
	bool ended;
	pid_t pid;

	line[0] = '\0';
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_quietly(argv, pipes[1]);
	fd_close(pipes[1]);
	if (pid < 0) {
		fd_close(pipes[0]);
		return -EAGAIN;
	}
	ended = read_line(pipes[0], (long long)(clock_ns() / 1000000) + CONTROLLER_WAIT_MS, line,
			  size);
	fd_close(pipes[0]);
	if (!ended)
		(void)kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	if (!ended)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

void probe_slurm(struct finding *finding)
{
	char *const sinfo_version[] = { (char *)"sinfo", (char *)"--version", NULL };
	char *const sbatch_version[] = { (char *)"sbatch", (char *)"--version", NULL };
	char *const partitions[] = { (char *)"sinfo", (char *)"--noheader", (char *)"--format=%P",
				     NULL };
	char version[128], line[256];
	int sinfo, sbatch, r;

	sinfo = run_for_line(sinfo_version, version, sizeof(version));
	sbatch = run_for_line(sbatch_version, line, sizeof(line));
	if (sinfo == EXIT_NOT_FOUND && sbatch == EXIT_NOT_FOUND) {
		probe_say(finding, FINDING_NO, "neither sinfo nor sbatch is installed");
		probe_enable(finding,
			     "install the Slurm client (Debian: slurm-client) and the "
			     "cluster's slurm.conf; not needed for trials on this machine");
		return;
	}
	if (sinfo != 0 || sbatch != 0) {
		probe_say(finding, FINDING_NO, "%s does not run (status %d)",
			  sinfo != 0 ? "sinfo" : "sbatch", sinfo != 0 ? sinfo : sbatch);
		probe_enable(finding, "repair the installation of the Slurm client");
		return;
	}
	r = run_for_line(partitions, line, sizeof(line));
	if (r == 0 && line[0] != '\0') {
		probe_say(finding, FINDING_OK, "%s; the controller offers partition %s", version,
			  line);
		return;
	}
	probe_say(finding, FINDING_LIMITED, "%s is installed, but %s", version,
		  r == -ETIMEDOUT ? "the controller does not answer"
		  : r == 0	  ? "the controller offers no partition"
				  : "sinfo cannot ask the controller");
	probe_enable(finding, "run 'sinfo' and follow what it says; slurm.conf has to name a "
			      "controller that can be reached from here");
}

void probe_debuginfod(struct finding *finding)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct err err = { 0 };
	int r;

	if (!urls || urls[strspn(urls, " \t")] == '\0') {
		probe_say(finding, FINDING_NO, "DEBUGINFOD_URLS is not set");
		probe_enable(finding, "export DEBUGINFOD_URLS=… with the server of your "
				      "distribution, or install debug packages");
		return;
	}
	r = debuginfod_ask(CONTROLLER_WAIT_MS / 1000, &err);
	if (r == 0) {
		probe_say(finding, FINDING_OK, "'%s' answers", urls);
		return;
	}
	probe_say(finding, FINDING_LIMITED, "'%s': %s", urls, err.message);
	if (err.remedy[0] != '\0')
		probe_enable(finding, "%s", err.remedy);
}
