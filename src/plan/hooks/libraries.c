#include "plan/hooks/libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/fd.h"
#include "base/strbuf.h"
#include "debuginfo/program.h"

#define LIST_MAX (1u << 20)

void library_list_deinit(struct library_list *list)
{
	VEC_FREE(&list->list, library, mem_free(library->path));
	said_list_deinit(&list->notes);
}

const char *library_list_unseen(const struct library_list *list)
{
	VEC_FOREACH (&list->notes.list, note)
		if (note->values.count > 0 && note->values.items[0].kind == SAID_TEXT)
			return note->values.items[0].text;
	return NULL;
}

void libraries_deinit(struct libraries *libraries)
{
	mem_free(libraries->loader);
	library_list_deinit(&libraries->files);
}

/* Is this program there to start others: a shell, env, make …? Where such a program has the name of
 * what it starts, the latter is meant. */
static bool is_launcher(const char *path)
{
	static const char *const names[] = {
		"sh",	 "bash",    "dash",    "zsh",	   "ksh",    "mksh",	"fish",	  "busybox",
		"env",	 "timeout", "nice",    "ionice",   "nohup",  "setsid",	"stdbuf", "taskset",
		"chrt",	 "setarch", "numactl", "prlimit",  "time",   "unshare", "make",	  "gmake",
		"ninja", "ctest",   "xargs",   "parallel", "script",
	};

	return cstr_among(cstr_base(path), names, ARRAY_SIZE(names));
}

static void add(struct libraries *l, const char *path, bool program, bool late)
{
	VEC_FOREACH (&l->files.list, known)
		if (strcmp(known->path, path) == 0)
			return;
	VEC_PUSH(&l->files.list,
		 ((struct library){ .path = mem_strdup(path), .program = program, .late = late }));
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
static void ask_loader(const char *loader, const char *program,
		       const struct libraries_request *request, struct strbuf *ret)
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
	strv_add(&argv, loader);
	strv_add(&argv, "--list");
	strv_add(&argv, program);
	set_env(request->env, &environment);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (request->cwd)
		(void)posix_spawn_file_actions_addchdir_np(&actions, request->cwd);
	status = posix_spawn(&pid, loader, &actions, NULL, argv.items, environment.items);
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
	add(l, path, false, false);
}

static void add_linked(struct libraries *l, const char *program,
		       const struct libraries_request *request)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };

	ask_loader(l->loader, program, request, &text);
	for (const char *at = strbuf_str(&text); *at != '\0';) {
		size_t len = strcspn(at, "\n");

		take_line(l, at, len);
		at += len + (at[len] == '\n');
	}
}

static void add_seen(struct libraries *l, const struct libraries_request *request,
		     const char *program)
{
	if (!request->seen)
		return;
	VEC_FOREACH (&request->seen->list, seen)
		if (strcmp(seen->path, program) != 0)
			add(l, seen->path, seen->program, true);
}

static bool started_others(const struct libraries_request *request, const char *program)
{
	if (request->seen)
		VEC_FOREACH (&request->seen->list, seen)
			if (seen->program && strcmp(seen->path, program) != 0)
				return true;
	return false;
}

bool libraries_launches(const struct libraries_request *request)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	char real[PATH_MAX];

	return program_read(request->program, facts, NULL) == 0 &&
	       is_launcher(realpath(facts->path, real) ? real : facts->path);
}

int libraries_find(const struct libraries_request *request, struct libraries *ret, struct err *err)
{
	const char *path = request->program;
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	AUTO(mem_freep) char *program = NULL;
	char real[PATH_MAX];
	int r = program_read(path, facts, err);

	if (r < 0)
		return r;
	if (facts->kind != PROGRAM_ELF || !facts->native)
		return err_set(err, -ENOEXEC,
			       "'%s' is no program whose functions can be hooked%s%s", path,
			       facts->trouble[0] != '\0' ? ": " : "", facts->trouble);
	program = mem_strdup(realpath(facts->path, real) ? real : facts->path);
	if (is_launcher(program) && started_others(request, program))
		add_seen(ret, request, program);
	add(ret, program, true, false);
	if (facts->dynamic) {
		ret->loader = mem_strdup(facts->loader);
		add_linked(ret, program, request);
	}
	add_seen(ret, request, program);
	return 0;
}

/* libc and the loader call such functions for reasons of their own. */
static bool is_system(const char *path)
{
	static const char *const names[] = { "libc.so.", "libc-", "ld-linux",
					     "ld-musl",	 "libdl", "libpthread" };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

bool libraries_load_more(const struct libraries_request *request)
{
	static const char *const calls[] = { "dlopen", "dlmopen",      "execve",   "execv",
					     "execvp", "execvpe",      "execveat", "fexecve",
					     "execl",  "execlp",       "execle",   "posix_spawn",
					     "system", "posix_spawnp", "popen",	   "syscall",
					     NULL };
	AUTO(libraries_deinit) struct libraries libraries = { 0 };

	if (libraries_find(request, &libraries, NULL) < 0)
		return true;
	return VEC_ANY(&libraries.files.list, file,
		       !is_system(file->path) && program_imports(file->path, calls));
}
