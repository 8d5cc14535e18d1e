#include "run/framework/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tmpdir.h"
#include "run/framework/listing.h"
#include "run/keeper.h"

/* The list of a very large project has some ten thousand lines. */
#define LISTING_MAX (256u << 20)
#define TALK_MAX 400

int listing_open(struct listing *l, struct err *err)
{
	return tmpdir_make("/tmp", "list-", &l->dir, err);
}

void listing_close(struct listing *l)
{
	tmpdir_remove(l->dir);
	MEM_FREE(l->dir, l->out, l->talk);
	*l = (struct listing){ 0 };
}

int listing_write(const struct listing *l, const char *name, const char *content, struct err *err)
{
	AUTO(fd_closep) int dir = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open '%s'", l->dir);
	return file_write_at(dir, name, content, strlen(content), err);
}

int listing_read(const struct listing *l, const char *name, char **ret, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", l->dir, name);
	size_t len;

	return file_read(path, LISTING_MAX, ret, &len, err);
}

static void set_env(const struct framework *f, const struct strv *env, struct strv *ret)
{
	const struct strv *const parts[] = { f->setup.env, env };

	strv_copy(ret, environ);
	for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
		for (size_t i = 0; parts[p] && i < parts[p]->count; i++) {
			AUTO(mem_freep)
			char *text = trial_substitute(parts[p]->items[i], 0,
						      (struct trial_number){ .value = 1 });
			char *equals = strchr(text, '=');

			if (equals)
				*equals = '\0';
			strv_setenv(ret, text, equals ? equals + 1 : NULL);
		}
	}
}

struct lister {
	const struct listing *l;
	const struct framework *f;
	const struct strv *argv, *env;
};

static int spawn(void *ctx, pid_t *ret)
{
	const struct lister *lister = ctx;
	const struct listing *l = lister->l;
	const struct framework *f = lister->f;
	const struct strv *argv = lister->argv;
	AUTO(mem_freep) char *out = mem_printf("%s/stdout", l->dir);
	AUTO(mem_freep) char *error = mem_printf("%s/stderr", l->dir);
	AUTO(strv_deinit) struct strv environment = { 0 };
	posix_spawn_file_actions_t actions;
	int code;

	set_env(f, lister->env, &environment);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_TRUNC,
					       0600);
	(void)posix_spawn_file_actions_addopen(&actions, 2, error, O_WRONLY | O_CREAT | O_TRUNC,
					       0600);
	if (f->setup.cwd)
		(void)posix_spawn_file_actions_addchdir_np(&actions, f->setup.cwd);
	code = posix_spawnp(ret, argv->items[0], &actions, NULL, argv->items, environment.items);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -code;
}

static int await(pid_t pid, int hold, uint64_t timeout_ns, int *ret_status, struct err *err)
{
	AUTO(fd_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int status, ready = 1;

	if (timeout_ns > 0 && fd >= 0)
		while ((ready = poll(&pollfd, 1, (int)(timeout_ns / 1000000))) < 0 &&
		       errno == EINTR)
			;
	if (ready == 0)
		(void)shutdown(hold, SHUT_RDWR);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set_errno(err, -errno, "cannot wait for the list of tests");
	if (ready == 0)
		return err_set(err, -ETIMEDOUT,
			       "the list of tests did not come before the timeout");
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

static char *last_part(const char *text)
{
	size_t len = strlen(text), start;
	struct strbuf sb = { 0 };

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		len--;
	start = len > TALK_MAX ? len - TALK_MAX : 0;
	strbuf_add_printable(&sb, text + start, len - start);
	return strbuf_take(&sb);
}

int listing_run(struct listing *l, const struct framework *f, const struct strv *argv,
		const struct strv *env, struct err *err)
{
	AUTO(mem_freep) char *error = NULL;
	AUTO(fd_closep) int hold = -1;
	struct lister lister = { l, f, argv, env };
	pid_t pid;
	int r = keeper_start(spawn, &lister, &pid, &hold);

	if (r < 0)
		return err_set_errno(err, r, "cannot run '%s'", argv->items[0]);
	r = await(pid, hold, f->setup.timeout_ns, &l->status, err);
	if (r == 0)
		r = listing_read(l, "stdout", &l->out, err);
	if (r == 0)
		r = listing_read(l, "stderr", &error, err);
	if (r < 0)
		return r;
	l->talk = last_part(error[0] != '\0' ? error : l->out);
	return 0;
}

int listing_lines(char *text, listing_line_fn fn, void *ctx, struct err *err)
{
	int r = 0;

	while (r == 0 && *text != '\0') {
		size_t len = strcspn(text, "\n");
		char *next = text + len + (text[len] == '\n');

		text[len] = '\0';
		if (len > 0 && text[len - 1] == '\r')
			text[len - 1] = '\0';
		r = fn(ctx, text, err);
		text = next;
	}
	return r;
}
