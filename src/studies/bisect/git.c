#include "studies/bisect/git.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/strbuf.h"

#define TALK_MAX 400

const char *const git_variables[] = {
	"GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_CONFIG",
	"GIT_CONFIG_PARAMETERS",
	"GIT_CONFIG_COUNT",
	"GIT_OBJECT_DIRECTORY",
	"GIT_DIR",
	"GIT_WORK_TREE",
	"GIT_IMPLICIT_WORK_TREE",
	"GIT_GRAFT_FILE",
	"GIT_INDEX_FILE",
	"GIT_NO_REPLACE_OBJECTS",
	"GIT_REPLACE_REF_BASE",
	"GIT_PREFIX",
	"GIT_SHALLOW_FILE",
	"GIT_COMMON_DIR",
	NULL,
};

void git_answer_deinit(struct git_answer *answer)
{
	mem_free(answer->out);
	mem_free(answer->talk);
}

static int spawn(const struct strv *argv, int out, int talk, pid_t *ret, struct err *err)
{
	AUTO(strv_deinit) struct strv env = { 0 };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int code;

	strv_copy(&env, environ);
	for (const char *const *name = git_variables; *name; name++)
		strv_setenv(&env, *name, NULL);
	strv_setenv(&env, "LC_ALL", "C");
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, out, 1);
	(void)posix_spawn_file_actions_adddup2(&actions, talk, 2);
	(void)sigemptyset(&none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	code = posix_spawnp(ret, "git", &actions, &attributes, argv->items, env.items);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	if (code == 0)
		return 0;
	(void)err_set_errno(err, -code, "cannot run git");
	return err_set_remedy(err, "bisect needs git in PATH");
}

static int read_back(int fd, struct strbuf *ret, struct err *err)
{
	struct stat st;
	size_t size;

	if (fstat(fd, &st) < 0)
		return err_set_errno(err, -errno, "cannot read what git printed");
	size = (size_t)st.st_size;
	while (ret->len < size) {
		ssize_t n = pread(fd, strbuf_reserve(ret, size - ret->len), size - ret->len,
				  (off_t)ret->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set_errno(err, n < 0 ? -errno : -EIO,
					     "cannot read what git printed");
		ret->len += (size_t)n;
	}
	strbuf_adds(ret, ""); /* ends the text */
	return 0;
}

static char *last_part(const struct strbuf *text)
{
	struct strbuf sb = { 0 };
	size_t len = text->len, start;

	while (len > 0 && (text->data[len - 1] == '\n' || text->data[len - 1] == ' '))
		len--;
	start = len > TALK_MAX ? len - TALK_MAX : 0;
	while (start < len) {
		const char *line = text->data + start;
		const char *end = memchr(line, '\n', len - start);
		size_t size = end ? (size_t)(end - line) : len - start;

		strbuf_add_printable(&sb, line, size);
		strbuf_adds(&sb, end ? "; " : "");
		start += size + 1;
	}
	return strbuf_take(&sb);
}

int git_ask(const char *dir, const char *const *args, struct git_answer *ret, struct err *err)
{
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strbuf_deinit) struct strbuf out_text = { 0 };
	AUTO(strbuf_deinit) struct strbuf talk_text = { 0 };
	AUTO(fd_closep) int out = memfd_create("git-out", MFD_CLOEXEC);
	AUTO(fd_closep) int talk = memfd_create("git-talk", MFD_CLOEXEC);
	int status, r;
	pid_t pid;

	if (out < 0 || talk < 0)
		return err_set_errno(err, -errno, "cannot make a file in memory");
	strv_add(&argv, "git");
	strv_add(&argv, "-C");
	strv_add(&argv, dir);
	for (; *args; args++)
		strv_add(&argv, *args);
	r = spawn(&argv, out, talk, &pid, err);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set_errno(err, -errno, "cannot wait for git");
	r = read_back(out, &out_text, err);
	if (r == 0)
		r = read_back(talk, &talk_text, err);
	if (r < 0)
		return r;
	ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	ret->out = strbuf_take(&out_text);
	ret->talk = last_part(&talk_text);
	return 0;
}

int git_line(const char *dir, const char *const *args, char **ret, struct err *err)
{
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };
	int r = git_ask(dir, args, &answer, err);

	if (r < 0)
		return r;
	if (answer.status != 0)
		return err_set(err, -EINVAL, "git: %s", answer.talk);
	*ret = mem_strndup(answer.out, strcspn(answer.out, "\n"));
	return 0;
}
