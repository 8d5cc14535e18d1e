#include "studies/loaded_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cstr.h"
#include "base/now.h"
#include "base/tmpdir.h"
#include "case/case.h"
#include "studies/series/repro.h"

/* What has been named may well turn up in the first moments; a command that is short comes to its
 * own end all the same. */
#define LOOK_S 10.0
#define FILES_MAX 4096u

struct lookout {
	const struct lookout_request *request;
	struct runner runner;
	struct trial_budget budget;
	struct library_list *seen;
	uint64_t running;
	double started_s;
	bool launched;
};

static void add(struct library_list *list, const char *path, bool program)
{
	char real[PATH_MAX];
	struct stat st;

	/* Paths that were cut, mappings that are no files, files that are gone. */
	if (!path || path[0] != '/' || !realpath(path, real) || stat(real, &st) < 0 ||
	    !S_ISREG(st.st_mode) || strncmp(cstr_base(real), "libredhand-agent", 16) == 0 ||
	    list->list.count >= FILES_MAX)
		return;
	VEC_FOREACH (&list->list, known)
		if (strcmp(known->path, real) == 0)
			return;
	VEC_PUSH(&list->list,
		 ((struct library){ .path = mem_strdup(real), .program = program, .late = true }));
}

static void read_logs(struct lookout *look, struct reading *reading)
{
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	said_list_deinit(&look->seen->notes);
	said_list_copy(&look->seen->notes, &logs->notes);
	VEC_FOREACH (&logs->list, log)
		add(look->seen, log->program, true);
	VEC_FOREACH (&logs->list, log)
		VEC_FOREACH (&log->modules, module)
			add(look->seen, module->path, false);
}

static int next(void *ctx, unsigned int slot, struct run *ret, struct err *err)
{
	struct lookout *look = ctx;

	if (look->launched)
		return 0;
	look->launched = true;
	*ret = (struct run){ .position = 1 };
	return 1;
}

static void prepare(void *ctx, const struct run *run, struct trial_job *job)
{
	struct lookout *look = ctx;

	series_fill_job(look->request->program, look->request->slot_env, job);
	job->examined = true;
	job->chaos.knobs = 0;
	look->running = job->number.value;
}

static void examine(void *ctx, const struct trial_result *result, struct reading *reading)
{
	read_logs(ctx, reading);
}

static bool ended(void *ctx, const struct run *run, bool failed)
{
	return true;
}

/* What the trial has loaded so far, while it still runs. */
static void tick(void *ctx)
{
	struct lookout *look = ctx;
	size_t before = look->seen->list.count;
	AUTO(reading_closep) struct reading *so_far = NULL;

	if (!look->request->enough || clock_s() - look->started_s < LOOK_S)
		return;
	so_far = reading_open(&(struct reading_of){ .trials = case_trials_dir(look->runner.cs),
						    .trial = look->running,
						    .symbols = runner_symbols(&look->runner) });
	read_logs(look, so_far);
	if (look->seen->list.count > before &&
	    look->request->enough(look->request->ctx, look->seen))
		look->budget.deadline_s = look->started_s;
}

static const struct runner_ops ops = {
	.next = next,
	.prepare = prepare,
	.examine = examine,
	.ended = ended,
	.tick = tick,
};

static int look_on(struct lookout *look, struct case_store *cs, const char *dir, struct err *err)
{
	AUTO(mem_freep) char *named = mem_printf("%s/trials", dir);
	AUTO(mem_freep) char *trials = realpath(named, NULL);
	AUTO(mem_freep) char *scratch = mem_printf("%s/tmp", dir);
	struct trial_settings settings = *look->request->settings;
	struct series_identity identity = { .command = "look", .settings = "", .program = "" };
	struct series_start start = { 0 };
	int r;

	if (!trials)
		return err_set_errno(err, -errno, "cannot find '%s'", named);
	if (mkdir(scratch, 0700) < 0)
		return err_set_errno(err, -errno, "cannot create '%s'", scratch);
	/* The same surroundings, and nothing watched yet. */
	settings.trials.path = trials;
	settings.trials.tmp_dirs = scratch;
	settings.flags &= ~(unsigned int)(TRIAL_TRACED | TRIAL_PAGES);
	settings.keep = KEEP_NONE;
	settings.plan_items = (struct strbuf){ 0 };
	settings.shared.budget = &look->budget;
	settings.shared.readings = NULL; /* it is another case */
	look->runner.settings = &settings;
	look->runner.observer = OBSERVE_IDS;
	look->runner.slots = 1;
	look->runner.ops = &ops;
	look->runner.ctx = look;
	r = series_resume(cs, &identity, true, 0, &look->runner, &start, err);
	if (r == 0)
		r = runner_run(&look->runner, err);
	if (r == 0 && look->runner.interrupted)
		r = err_set(err, -EINTR,
			    "interrupted while the command was run to see what it "
			    "loads");
	runner_deinit(&look->runner);
	return r;
}

int lookout_run(const struct lookout_request *request, struct library_list *ret, struct err *err)
{
	AUTO(mem_freep) char *dir = NULL;
	AUTO(library_list_deinit) struct library_list seen = { 0 };
	AUTO(mem_freep) char *inside = NULL;
	struct lookout look = { .request = request,
				.budget = { .trials = 1, .failures = UINT64_MAX },
				.seen = &seen,
				.started_s = clock_s() };
	struct case_store *cs = NULL;
	sigset_t before;
	int r = tmpdir_make(NULL, "look-", &dir, err);

	if (r < 0)
		return r;
	inside = mem_printf("%s/case", dir);
	(void)sigprocmask(SIG_BLOCK, NULL, &before);
	r = case_open(inside, CASE_WRITE, &cs, err);
	if (r == 0)
		r = look_on(&look, cs, inside, err);
	case_close(cs);
	/* Whoever runs trials later looks at what was blocked before. */
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	tmpdir_remove(dir);
	if (r < 0)
		return r;
	*ret = seen;
	seen = (struct library_list){ 0 };
	return 0;
}

int loaded_modules_look(void *request, bool (*enough)(void *ctx, const struct library_list *seen),
			void *ctx, struct library_list *ret, struct err *err)
{
	struct lookout_request look = *(struct lookout_request *)request;

	look.enough = enough;
	look.ctx = ctx;
	return lookout_run(&look, ret, err);
}
