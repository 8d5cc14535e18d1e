#include "engine/hooks/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/strbuf.h"
#include "debuginfo/program.h"

#define LIST_MAX (1u << 20)

void libraries_deinit(struct libraries *libraries)
{
	mem_free(libraries->program);
	mem_free(libraries->loader);
	strv_deinit(&libraries->linked);
}

static void set_env(const struct strv *env, struct strv *ret)
{
	strv_copy(ret, environ);
	for (size_t i = 0; env && i < env->count; i++) {
		AUTO(mem_freep) char *text = mem_strdup(env->items[i]);
		char *equals = strchr(text, '=');

		if (!equals)
			continue;
		*equals = '\0';
		strv_setenv(ret, text, equals + 1);
	}
}

/* What the loader prints, from the start; it ends by itself. */
static void ask_loader(const struct libraries *l, const char *cwd, const struct strv *env,
		       struct strbuf *ret)
{
	AUTO(strv_deinit) struct strv environment = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(fd_closep) int in = -1;
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	pid_t pid;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	in = ends[0];
	strv_add(&argv, l->loader);
	strv_add(&argv, "--list");
	strv_add(&argv, l->program);
	set_env(env, &environment);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (cwd)
		(void)posix_spawn_file_actions_addchdir_np(&actions, cwd);
	status = posix_spawn(&pid, l->loader, &actions, NULL, argv.items, environment.items);
	(void)posix_spawn_file_actions_destroy(&actions);
	fd_close(ends[1]);
	if (status != 0)
		return;
	while (ret->len < LIST_MAX) {
		n = read(in, strbuf_reserve(ret, 4096), 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		ret->len += (size_t)n;
	}
	/* It is read as text. */
	*strbuf_reserve(ret, 1) = '\0';
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

/* Lines such as "\tlibm.so.6 => /lib/libm.so.6 (0x7f…)", or only the path when it was given so. */
static void take_line(struct libraries *l, const char *line, size_t len)
{
	AUTO(mem_freep) char *text = mem_strndup(line, len);
	char *path = strstr(text, " => "), *end;

	path = path ? path + 4 : text + strspn(text, " \t");
	end = strstr(path, " (0x");
	if (!end || path[0] != '/')
		return;
	*end = '\0';
	strv_add(&l->linked, path);
}

int libraries_find(const char *path, const char *cwd, const struct strv *env, struct libraries *ret,
		   struct err *err)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	char real[PATH_MAX];
	int r = program_read(path, facts, err);

	if (r < 0)
		return r;
	if (facts->kind != PROGRAM_ELF || !facts->native)
		return err_set(err, -ENOEXEC,
			       "'%s' is no program whose functions can be hooked%s%s", path,
			       facts->trouble[0] != '\0' ? ": " : "", facts->trouble);
	ret->program = mem_strdup(realpath(facts->path, real) ? real : facts->path);
	if (!facts->dynamic)
		return 0;
	ret->loader = mem_strdup(facts->loader);
	ask_loader(ret, cwd, env, &text);
	for (const char *at = strbuf_str(&text); *at != '\0';) {
		size_t len = strcspn(at, "\n");

		take_line(ret, at, len);
		at += len + (at[len] == '\n');
	}
	return 0;
}
