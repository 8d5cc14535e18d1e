#include "studies/bisect/workshop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/now.h"
#include "base/tree.h"
#include "base/which.h"
#include "run/observe.h"
#include "run/pool.h"
#include "studies/bisect/git.h"

#define TICK_MS 200
#define OUTPUT_KEPT (1u << 20)
#define LINGER_NS 1000000000u

/* Their directories in builds/ are told by number: git's own job is 0, a commit's build its number
 * plus 1. */
#define GIT_JOB 0

/* git keeps the last part of a tree's path as its name in the repository. It must tell whose it is:
 * a git that was killed may leave nothing but that name behind. */
#define TREE_NAME_LEN 24

/* How many failing lines of git's are told. */
#define TALK_MAX 300

struct tree {
	char *path; /* NULL: not made */
	char *cwd;
	size_t commit; /* WORKSHOP_NONE while it is neither */
	unsigned int users;
	uint64_t used; /* when, by a count of visits */
	bool observable;
};

struct workshop {
	struct workshop_request request;
	char *dir; /* absolute */
	struct trial_settings settings;
	struct pool *pool; /* one slot; NULL once interrupted */
	int signals;
	struct tree *trees;
	uint64_t visits;
	const char *activity;
	size_t active_commit;
};

static const char *top(const struct workshop *w)
{
	return w->request.history->top;
}

static bool stop_pending(const struct workshop *w)
{
	struct pollfd pollfd = { .fd = w->signals, .events = POLLIN };

	return poll(&pollfd, 1, 0) > 0;
}

/* -EINTR: interrupted, and the job has been ended. */
static int run_job(struct workshop *w, struct trial_job *job, struct trial_result *ret,
		   struct err *err)
{
	int r;

	for (const char *const *name = git_variables; *name; name++)
		strv_add(&job->env, *name);
	r = pool_start(w->pool, job, err);
	while (r == 0) {
		r = pool_wait(w->pool, w->signals, TICK_MS, ret, err);
		if (r == 0 && stop_pending(w)) {
			pool_close(TAKE(w->pool));
			return -EINTR;
		}
		if (r == 0 && w->request.tick)
			w->request.tick(w->request.ctx);
	}
	if (r < 0)
		return r;
	if (ret->trouble)
		return err_set(err, ret->trouble_code, "%s", ret->trouble);
	return 0;
}

static bool succeeded(const struct trial_result *result)
{
	return result->end.exit_status == 0 && result->end.signal == 0;
}

static void read_talk(const struct workshop *w, uint64_t number, struct strbuf *ret)
{
	AUTO(mem_freep)
	char *path = mem_printf("%s/builds/%llu/stderr", w->dir, (unsigned long long)number);
	AUTO(mem_freep) char *text = NULL;
	size_t len = 0;

	if (file_read_plain(path, 2 * OUTPUT_KEPT, &text, &len, NULL) < 0)
		return;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	strbuf_add_printable(ret, len > TALK_MAX ? text + len - TALK_MAX : text,
			     len > TALK_MAX ? TALK_MAX : len);
}

static int run_git(struct workshop *w, const char *const *args, struct err *err)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { GIT_JOB } };
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(strbuf_deinit) struct strbuf talk = { 0 };
	int r;

	strv_add(&job.argv, "git");
	/* The user's hooks are for the user's checkouts. */
	strv_add(&job.argv, "-c");
	strv_add(&job.argv, "core.hooksPath=/dev/null");
	for (; *args; args++)
		strv_add(&job.argv, *args);
	r = run_job(w, &job, &result, err);
	if (r < 0 || succeeded(&result))
		return r;
	read_talk(w, GIT_JOB, &talk);
	return err_set(err, -EIO, "git could not check a commit out: %s", strbuf_str(&talk));
}

static void forget_tree(const char *checkout, const char *path)
{
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };

	/* Twice: even if a git that was killed has left it locked. */
	(void)git_ask(checkout,
		      (const char *const[]){ "worktree", "remove", "--force", "--force", path,
					     NULL },
		      &answer, NULL);
	(void)tree_remove_at(AT_FDCWD, path, NULL);
}

static void remove_tree(struct workshop *w, struct tree *tree)
{
	if (tree->path)
		forget_tree(top(w), tree->path);
	mem_free(tree->path);
	mem_free(tree->cwd);
	*tree = (struct tree){ .commit = WORKSHOP_NONE };
}

static void tree_name(const char *dir, char ret[TREE_NAME_LEN])
{
	uint64_t hash = hash_bytes(HASH_START, dir, strlen(dir));

	(void)snprintf(ret, TREE_NAME_LEN, "redhand-%08x-", (unsigned int)(hash ^ hash >> 32));
}

/* Removes what has such a name. */
static int remove_strays(const char *dir, const char *name, struct err *err)
{
	DIR *stream = opendir(dir);
	const struct dirent *entry;
	int r = 0;

	while (stream && r == 0 && (entry = readdir(stream)) != NULL)
		if (strncmp(entry->d_name, name, strlen(name)) == 0)
			r = tree_remove_at(dirfd(stream), entry->d_name, err);
	if (stream)
		(void)closedir(stream);
	return r;
}

int workshop_clear(const struct commit_history *history, const char *dir, struct err *err)
{
	AUTO(git_answer_deinit) struct git_answer answer = { 0 };
	AUTO(mem_freep) char *path = realpath(dir, NULL);
	AUTO(mem_freep) char *prefix = NULL;
	AUTO(mem_freep) char *known = mem_printf("%s/worktrees", history->common);
	char name[TREE_NAME_LEN];
	char *save = NULL;
	int r;

	if (!path)
		return 0;
	tree_name(path, name);
	prefix = mem_printf("worktree %s/%s", path, name);
	r = git_ask(history->top, (const char *const[]){ "worktree", "list", "--porcelain", NULL },
		    &answer, err);
	if (r < 0)
		return r;
	for (char *line = strtok_r(answer.out, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, prefix, strlen(prefix)) == 0)
			forget_tree(history->top, line + strlen("worktree "));
	/* What git no longer knows of, or not yet. */
	r = remove_strays(known, name, err);
	return r < 0 ? r : remove_strays(path, name, err);
}

static int add_tree(struct workshop *w, struct tree *tree, const char *hash, struct err *err)
{
	char name[TREE_NAME_LEN];
	int r;

	tree_name(w->dir, name);
	tree->path = mem_printf("%s/%s%zu", w->dir, name, (size_t)(tree - w->trees));
	tree->cwd = mem_printf("%s/%s", tree->path, w->request.history->prefix);
	r = run_git(w,
		    (const char *const[]){ "-C", top(w), "worktree", "add", "--quiet", "--force",
					   "--detach", tree->path, hash, NULL },
		    err);
	if (r < 0)
		remove_tree(w, tree);
	return r;
}

static int check_out(struct workshop *w, struct tree *tree, const char *hash, struct err *err)
{
	int r = -ENOENT;

	if (tree->path)
		r = run_git(w,
			    (const char *const[]){ "-C", tree->path, "checkout", "--quiet",
						   "--force", "--detach", hash, NULL },
			    err);
	if (r == 0 || r == -EINTR)
		return r;
	/* Something is in the way that a build or a trial left. */
	remove_tree(w, tree);
	return add_tree(w, tree, hash, err);
}

/* The one of this commit; else a new one, or the one unused for longest; NULL: all are in use. */
static struct tree *find_tree(struct workshop *w, size_t commit)
{
	struct tree *found = NULL;

	for (unsigned int i = 0; i < w->request.trees; i++)
		if (w->trees[i].commit == commit)
			return &w->trees[i];
	for (unsigned int i = 0; i < w->request.trees; i++) {
		struct tree *tree = &w->trees[i];

		if (!tree->path)
			return tree;
		if (tree->users == 0 && (!found || tree->used < found->used))
			found = tree;
	}
	return found;
}

static int build(struct workshop *w, const struct tree *tree, size_t commit,
		 struct workshop_visit *visit, struct err *err)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { commit + 1 } };
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	int r;

	if (!w->request.build)
		return 0;
	strv_add(&job.argv, "sh");
	strv_add(&job.argv, "-c");
	strv_add(&job.argv, w->request.build);
	job.cwd = mem_strdup(tree->cwd);
	r = run_job(w, &job, &result, err);
	if (r < 0 || succeeded(&result))
		return r;
	visit->state = WORKSHOP_UNUSABLE;
	if (result.end.signal != 0)
		(void)err_set(&visit->why, -ENOEXEC, "the build died from %s",
			      signal_name(result.end.signal));
	else
		(void)err_set(&visit->why, -ENOEXEC, "the build ended with status %d",
			      result.end.exit_status);
	return 0;
}

/* The program as it is at this commit. */
static void look_at_program(const struct workshop *w, struct tree *tree,
			    struct workshop_visit *visit)
{
	AUTO(mem_freep)
	char *name = trial_substitute(w->request.program[0], 0, (struct trial_number){ 1 });
	AUTO(mem_freep) char *path = NULL;

	if (which(name, tree->cwd, &path, &visit->why) < 0)
		visit->state = WORKSHOP_UNUSABLE;
	else
		tree->observable = !observe_obstacle(path, NULL);
}

static int make_ready(struct workshop *w, struct tree *tree, size_t commit,
		      struct workshop_visit *visit, struct err *err)
{
	int r;

	w->active_commit = commit;
	w->activity = "checking out";
	tree->commit = WORKSHOP_NONE;
	r = check_out(w, tree, w->request.history->commits.items[commit], err);
	if (r < 0)
		return r;
	if (access(tree->cwd, F_OK) < 0) {
		visit->state = WORKSHOP_UNUSABLE;
		(void)err_set(&visit->why, -ENOENT,
			      "it does not have the directory where the program runs");
		return 0;
	}
	w->activity = "building";
	r = build(w, tree, commit, visit, err);
	if (r == 0 && visit->state == WORKSHOP_READY)
		look_at_program(w, tree, visit);
	if (r == 0 && visit->state == WORKSHOP_READY)
		tree->commit = commit;
	return r;
}

int workshop_prepare(struct workshop *w, size_t commit, struct workshop_visit *ret, struct err *err)
{
	struct workshop_visit visit = { .state = WORKSHOP_READY, .evicted = WORKSHOP_NONE };
	struct tree *tree = find_tree(w, commit);
	uint64_t start = clock_ns();
	int r = 0;

	if (!w->pool || !tree) {
		visit.state = !w->pool ? WORKSHOP_INTERRUPTED : WORKSHOP_BUSY;
		*ret = visit;
		return 0;
	}
	visit.tree = (size_t)(tree - w->trees);
	if (tree->commit != commit) {
		visit.evicted = tree->commit;
		visit.built = true;
		r = make_ready(w, tree, commit, &visit, err);
		w->activity = NULL;
	}
	if (r == -EINTR)
		visit.state = WORKSHOP_INTERRUPTED;
	else if (r < 0)
		return r;
	tree->used = ++w->visits;
	visit.wall_ns = clock_ns() - start;
	*ret = visit;
	return 0;
}

void workshop_enter(struct workshop *w, size_t tree)
{
	w->trees[tree].users++;
}

void workshop_leave(struct workshop *w, size_t tree)
{
	w->trees[tree].users--;
}

const char *workshop_cwd(const struct workshop *w, size_t tree)
{
	return w->trees[tree].cwd;
}

bool workshop_observable(const struct workshop *w, size_t tree)
{
	return w->trees[tree].observable;
}

const char *workshop_activity(const struct workshop *w, size_t *ret_commit)
{
	if (w->activity)
		*ret_commit = w->active_commit;
	return w->activity;
}

static int listen_for_stop(struct workshop *w, struct err *err)
{
	sigset_t set;

	/* As the runner does: the signals are left pending for it. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return w->signals < 0 ? err_set_errno(err, -errno, "cannot listen for signals") : 0;
}

static int make_dir(struct workshop *w, struct err *err)
{
	AUTO(mem_freep) char *builds = mem_printf("%s/builds", w->request.dir);
	int r = tree_make(builds, err);

	if (r < 0)
		return r;
	w->dir = realpath(w->request.dir, NULL);
	w->settings.trials.path = realpath(builds, NULL);
	if (!w->dir || !w->settings.trials.path)
		return err_set_errno(err, -errno, "cannot find '%s'", builds);
	return 0;
}

int workshop_open(const struct workshop_request *request, struct workshop **ret, struct err *err)
{
	AUTO(workshop_closep) struct workshop *w = mem_alloc(sizeof(*w));
	int r;

	w->request = *request;
	fd_init(&w->signals);
	w->trees = mem_alloc(request->trees * sizeof(w->trees[0]));
	for (unsigned int i = 0; i < request->trees; i++)
		w->trees[i].commit = WORKSHOP_NONE;
	w->settings.stdin_path = mem_strdup("/dev/null");
	w->settings.flags = TRIAL_SHARE_TMP;
	w->settings.keep = KEEP_ALL;
	w->settings.linger_ns = LINGER_NS;
	w->settings.output_limit = OUTPUT_KEPT;
	w->settings.signal_mask = request->settings->signal_mask;
	r = make_dir(w, err);
	if (r == 0)
		r = listen_for_stop(w, err);
	if (r == 0)
		r = pool_open(1, &w->settings, request->lock_fd, &w->pool, err);
	if (r < 0)
		return r;
	*ret = TAKE(w);
	return 0;
}

/* What git said is of no use to anybody; what a build said is. */
static void tidy_output(const struct workshop *w)
{
	AUTO(mem_freep)
	char *git = w->dir ? mem_printf("%s/builds/%d", w->dir, GIT_JOB) : NULL;

	if (!w->dir)
		return;
	(void)tree_remove_at(AT_FDCWD, w->request.build ? git : w->dir, NULL);
}

void workshop_close(struct workshop *w)
{
	if (!w)
		return;
	pool_close(w->pool);
	for (unsigned int i = 0; i < w->request.trees; i++)
		remove_tree(w, &w->trees[i]);
	tidy_output(w);
	fd_close(w->signals);
	trial_settings_deinit(&w->settings);
	mem_free(w->trees);
	mem_free(w->dir);
	mem_free(w);
}
