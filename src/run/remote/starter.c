#include "run/remote/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "run/remote/link.h"

#define NS_PER_S 1000000000ull
#define WATCH_NS (NS_PER_S / 4)
#define PRINTED_MOST (64u << 10)
/* A process that ends so often in a row, without a worker, will do so again. */
#define DEATHS_MOST 3u
#define END_PATIENCE_NS (3 * NS_PER_S)

static const struct starter_ops *const starters[] = { &starter_slurm, &starter_ssh, &starter_exec };

static char *own_program(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	return len > 0 ? mem_strndup(path, (size_t)len) : mem_strdup("redhand");
}

static const struct starter_ops *find(const char *runner, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(starters); i++)
		if (strlen(starters[i]->name) == len &&
		    strncmp(starters[i]->name, runner, len) == 0)
			return starters[i];
	return NULL;
}

int starter_open(const char *runner, struct starter **ret, struct err *err)
{
	AUTO(starter_closep) struct starter *s = mem_alloc(sizeof(*s));
	size_t len = strcspn(runner, ":");
	const char *options = runner[len] == ':' ? runner + len + 1 : "";
	int r = 0;

	s->talk = s->answer = -1;
	s->ops = find(runner, len);
	s->options = mem_strdup(options);
	s->redhand = own_program();
	if (!s->ops) {
		(void)err_set(err, -EINVAL, "there is no runner '%s'", runner);
		return err_set_remedy(err, "local, slurm, slurm:SBATCH-OPTIONS, ssh:HOST,HOST or "
					   "exec:COMMAND");
	}
	if (s->ops->takes_options && options[0] == '\0')
		return err_set(err, -EINVAL, "the runner '%s' needs more behind a colon", runner);
	if (s->ops->check)
		r = s->ops->check(s, err);
	if (r < 0)
		return r;
	*ret = TAKE(s);
	return 0;
}

void starter_close(struct starter *s)
{
	if (!s)
		return;
	if (s->ops && s->how.connect)
		s->ops->stop(s);
	VEC_FOREACH (&s->started, one) {
		strv_deinit(&one->argv);
		mem_free(one->input);
	}
	VEC_DEINIT(&s->started);
	fd_close(s->talk);
	fd_close(s->answer);
	if (s->asking > 0) {
		(void)kill(s->asking, SIGKILL);
		(void)waitpid(s->asking, NULL, 0);
	}
	strv_deinit(&s->env);
	strv_deinit(&s->jobs);
	strbuf_deinit(&s->heard);
	MEM_FREE(s->options, s->redhand, s->peer, s->munge_socket);
	said_deinit(&s->told);
	mem_free((char *)s->how.connect);
	mem_free((char *)s->how.variable);
	mem_free(s);
}

int starter_start(struct starter *s, const struct starter_start *how, struct err *err)
{
	AUTO(mem_freep) char *name = mem_strndup(how->variable, strcspn(how->variable, "="));

	s->how = *how;
	s->how.connect = mem_strdup(how->connect);
	s->how.variable = mem_strdup(how->variable);
	strv_copy(&s->env, environ);
	strv_setenv(&s->env, name, how->variable + strlen(name) + 1);
	return s->ops->start(s, err);
}

int starter_watch(struct starter *s, unsigned int joined, struct err *err)
{
	uint64_t now = clock_ns();

	if (now - s->looked_ns < WATCH_NS)
		return 0;
	s->looked_ns = now;
	if (joined > s->most_joined)
		s->most_joined = joined;
	return s->ops->watch(s, joined, err);
}

void starter_say(const struct starter *s, const struct said *said)
{
	if (s->how.say)
		s->how.say(s->how.say_ctx, said);
}

static void child(const struct starter *s, const char *const *argv, int in, int out, int error)
{
	sigset_t none;

	/* Ctrl-C is for redhand, which ends its workers itself. */
	(void)setsid();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(in, 0);
	(void)dup2(out, 1);
	(void)dup2(error, 2);
	(void)close_range(3, ~0u, 0);
	if (s->env.items)
		environ = s->env.items;
	(void)execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static pid_t spawn(const struct starter *s, const char *const *argv, int in, int out, int error)
{
	AUTO(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = fork();

	if (pid == 0)
		child(s, argv, in >= 0 ? in : null, out >= 0 ? out : null,
		      error >= 0 ? error : null);
	return pid < 0 ? -errno : pid;
}

/* A file without a name that holds `text`, to be read from its beginning; -1. */
static int input_file(const char *text)
{
	int fd = memfd_create("redhand-input", MFD_CLOEXEC);

	if (fd >= 0 && (fd_write_all(fd, text, strlen(text), "input", NULL) < 0 ||
			lseek(fd, 0, SEEK_SET) < 0)) {
		fd_close(fd);
		return -1;
	}
	return fd;
}

static void take_printed(int fd, struct strbuf *ret)
{
	char bytes[4096];
	ssize_t n;

	(void)lseek(fd, 0, SEEK_SET);
	while (ret->len < PRINTED_MOST && (n = read(fd, bytes, sizeof(bytes))) > 0)
		strbuf_add_printable(ret, bytes, (size_t)n);
}

int starter_ask(const struct starter *s, const char *const *argv, const char *input,
		unsigned int seconds, struct strbuf *ret_out, struct strbuf *ret_err,
		struct err *err)
{
	AUTO(fd_closep) int in = input ? input_file(input) : -1;
	AUTO(fd_closep) int out = memfd_create("redhand-out", MFD_CLOEXEC);
	AUTO(fd_closep) int error = memfd_create("redhand-err", MFD_CLOEXEC);
	uint64_t give_up = clock_ns() + seconds * NS_PER_S;
	pid_t pid = spawn(s, argv, in, out, error);
	int status = 0;

	if (pid < 0)
		return err_set_errno(err, (int)pid, "cannot run '%s'", argv[0]);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_ns() >= give_up) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return err_set(err, -ETIMEDOUT, "'%s' does not answer", argv[0]);
		}
		pause_ms(5);
	}
	take_printed(out, ret_out);
	take_printed(error, ret_err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int starter_begin_ask(struct starter *s, const char *const *argv)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	s->asking = spawn(s, argv, -1, pair[1], -1);
	fd_close(pair[1]);
	if (s->asking < 0) {
		fd_close(pair[0]);
		s->asking = 0;
		return -ECHILD;
	}
	s->answer = pair[0];
	strbuf_clear(&s->heard);
	return 0;
}

void started_add(struct starter *s, unsigned int slot, const struct strv *argv, const char *input)
{
	struct started one = { .slot = slot, .input = input ? mem_strdup(input) : NULL };

	strv_copy(&one.argv, argv->items);
	VEC_PUSH(&s->started, one);
}

static int begin_one(struct starter *s, struct started *one)
{
	AUTO(fd_closep) int in = one->input ? input_file(one->input) : -1;
	pid_t pid = spawn(s, (const char *const *)one->argv.items, in, s->talk, s->talk);

	if (pid < 0)
		return (int)pid;
	one->pid = pid;
	one->since_ns = clock_ns();
	return 0;
}

int started_begin(struct starter *s, struct err *err)
{
	int r = 0;

	s->talk = memfd_create("redhand-talk", MFD_CLOEXEC);
	if (s->talk >= 0)
		(void)fcntl(s->talk, F_SETFL, O_APPEND);
	VEC_FOREACH (&s->started, one)
		if (r == 0)
			r = begin_one(s, one);
	return r < 0 ? err_set_errno(err, r, "cannot start workers") : 0;
}

/* The last line that any of them printed. */
static int tell_why(const struct starter *s, int status, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	char bytes[4096];
	off_t end = lseek(s->talk, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(bytes) ? end - (off_t)sizeof(bytes) : 0;
	ssize_t n = pread(s->talk, bytes, sizeof(bytes), from);
	const char *line;

	while (n > 0 && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
		n--;
	line = n > 0 ? memrchr(bytes, '\n', (size_t)n) : NULL;
	line = line ? line + 1 : bytes;
	if (n > 0)
		strbuf_add_printable(&sb, line, (size_t)(bytes + n - line));
	return err_set(err, -ECHILD, "no worker comes: what starts them ends with status %d%s%s",
		       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		       sb.len > 0 ? ": " : "", strbuf_str(&sb));
}

int started_watch(struct starter *s, unsigned int joined, struct err *err)
{
	VEC_FOREACH (&s->started, one) {
		int status = 0;
		uint64_t now = clock_ns();

		if (one->pid > 0 && waitpid(one->pid, &status, WNOHANG) == one->pid) {
			one->pid = 0;
			/* One that was at work for a while is no sign of anything. */
			one->deaths = now - one->since_ns > 5 * NS_PER_S ? 1 : one->deaths + 1;
			one->since_ns = now;
			if (one->deaths >= DEATHS_MOST && joined == 0)
				return tell_why(s, status, err);
		}
		/* A template for all of them has done its work when it has ended well. */
		if (one->pid == 0 && one->deaths < DEATHS_MOST * 2 &&
		    now - one->since_ns > NS_PER_S / 2 &&
		    !(one->slot == UINT32_MAX && WIFEXITED(status) && WEXITSTATUS(status) == 0))
			(void)begin_one(s, one);
	}
	return 0;
}

void started_stop(struct starter *s)
{
	uint64_t asked = clock_ns();
	bool left = true;

	while (left) {
		uint64_t now = clock_ns();

		left = false;
		VEC_FOREACH (&s->started, one) {
			if (one->pid > 0 && waitpid(one->pid, NULL, WNOHANG) == one->pid)
				one->pid = 0;
			if (one->pid > 0 && now - asked > END_PATIENCE_NS)
				(void)kill(-one->pid, SIGKILL);
			else if (one->pid > 0 && now - asked > END_PATIENCE_NS / 3)
				(void)kill(-one->pid, SIGTERM);
			left |= one->pid > 0;
		}
		if (left)
			pause_ms(10);
	}
}
