#include "base/tmpdir.h"
#include "base/now.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/tree.h"
#include "base/vec.h"

#define PREFIX "redhand-"
#define MARK ".redhand-made-this"

/* In pauses of 10 ms: trials are ended at the same time, and may still make files. */
#define REMOVE_TRIES 500

struct made {
	char *path;
	int lock;
	pid_t tidier; /* 0: there is none */
};

/* A process that is forked knows those of its parent. */
static VEC(struct made) made;

static const char *default_place(void)
{
	const char *given = getenv("TMPDIR");

	return given && given[0] == '/' ? given : "/tmp";
}

static int mark(int fd, struct err *err)
{
	AUTO(fd_closep) int file = openat(fd, MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (file < 0)
		return err_set_errno(err, -errno, "cannot write in a temporary directory");
	return 0;
}

static _Noreturn void tidier_main(pid_t maker, const char *path, int lock)
{
	struct pollfd end = { .events = POLLIN };
	sigset_t all;

	(void)prctl(PR_SET_NAME, "rh-tidy");
	(void)setsid();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	/* Nobody is to wait for us: not for a lock that we hold, nor for the end of output. */
	lock = dup3(lock, 3, O_CLOEXEC);
	(void)close_range(0, 2, 0);
	(void)close_range(4, ~0u, 0);
	end.fd = (int)syscall(SYS_pidfd_open, maker, 0);
	if (end.fd >= 0)
		while (poll(&end, 1, -1) < 0 && errno == EINTR)
			;
	for (int i = 0; i < REMOVE_TRIES && tree_remove_at(AT_FDCWD, path, NULL) < 0; i++)
		pause_ms(10);
	_exit(0);
}

/* Without one, the next start removes it. */
static pid_t tidier_start(const char *path, int lock)
{
	pid_t maker = getpid(), pid = fork();

	if (pid == 0)
		tidier_main(maker, path, lock);
	return pid > 0 ? pid : 0;
}

int tmpdir_make(const char *place, const char *kind, char **ret, struct err *err)
{
	AUTO(mem_freep) char *path = NULL;
	int lock;

	if (!place)
		place = default_place();
	path = mem_printf("%s/" PREFIX "%s%d-XXXXXX", place, kind, (int)getpid());
	tmpdir_sweep(place);
	if (!mkdtemp(path))
		return err_set_errno(err, -errno, "cannot make a directory in '%s'", place);
	lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	/* Locked first: nobody is to find the mark without. The mode is whatever the umask left. */
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || fchmod(lock, 0700) < 0 ||
	    mark(lock, err) < 0) {
		int r = err_set_errno(err, -errno, "cannot use the directory '%s'", path);

		fd_close(lock);
		(void)tree_remove_at(AT_FDCWD, path, NULL);
		return r;
	}
	VEC_PUSH(&made, ((struct made){ .path = mem_strdup(path),
					.lock = lock,
					.tidier = tidier_start(path, lock) }));
	*ret = TAKE(path);
	return 0;
}

static void let_go(const char *path)
{
	for (size_t i = 0; i < made.count; i++)
		if (strcmp(made.items[i].path, path) == 0) {
			if (made.items[i].tidier > 0) {
				(void)kill(made.items[i].tidier, SIGKILL);
				(void)waitpid(made.items[i].tidier, NULL, 0);
			}
			fd_close(made.items[i].lock);
			mem_free(made.items[i].path);
			made.items[i] = made.items[--made.count];
			return;
		}
}

void tmpdir_remove(const char *path)
{
	if (!path)
		return;
	(void)tree_remove_at(AT_FDCWD, path, NULL);
	let_go(path);
}

/* Ours, and nobody has it any more. */
static bool is_left(int parent, const char *name)
{
	AUTO(fd_closep)
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       faccessat(fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Is who made it gone, as its name says? He may have been killed before he put the mark. */
static bool is_orphan(int parent, const char *name)
{
	const char *dash = strrchr(name, '-'), *digits = dash;
	struct stat st;
	long pid;

	while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	pid = strtol(digits, NULL, 10);
	return pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
	       fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
}

static void sweep_entry(int parent, const char *name)
{
	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return;
	if (is_left(parent, name))
		(void)tree_remove_at(parent, name, NULL);
	else if (is_orphan(parent, name))
		(void)unlinkat(parent, name, AT_REMOVEDIR); /* an empty one only */
}

void tmpdir_sweep(const char *place)
{
	DIR *stream = opendir(place ? place : default_place());
	struct dirent *entry;

	if (!stream)
		return;
	while ((entry = readdir(stream)) != NULL)
		sweep_entry(dirfd(stream), entry->d_name);
	(void)closedir(stream);
}
