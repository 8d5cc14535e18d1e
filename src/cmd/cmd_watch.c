/* `redhand watch`: options, plan of the watches, trials, who wrote there. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>

#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "plan/watch/resolve.h"
#include "report/report_watch.h"
#include "studies/loaded_modules.h"
#include "studies/watch/mode.h"
#include "studies/watch/watch_study.h"

struct watch_options {
	struct common_options common;
	struct trial_options trial;
	struct option_list on;
	const char *when;
	unsigned int policy;
	unsigned int mode; /* enum watch_mode */
	bool after_free;
	bool stop;
	uint64_t trials;
	uint64_t failures;
};

#define TRIALS_DEFAULT 20

static const char *const policy_names[] = { [PLAN_WATCH_NEWEST] = "newest",
					    [PLAN_WATCH_OLDEST] = "oldest",
					    [PLAN_WATCH_SAMPLE] = "sample",
					    NULL };

static const struct option watch_option_table[] = {
	OPTION(LIST, "on", "SPEC", offsetof(struct watch_options, on),
	       "What to watch, up to 16 times: global:NAME, addr:0x…, alloc:FUNC, alloc:FILE:LINE, "
	       "alloc:FUNC,size=56 (blocks allocated there), key:CONTEXT#ORDINAL (a block that "
	       "'show' named), ret:FUNC, argN:FUNC (objects that a function returns or is given), "
	       "pytype:NAME, 'struct NAME.field' (or class); each with +OFFSET:LEN or .field; ret:, argN: "
	       "and pytype: also with -OFFSET:LEN, and pytype: with .refcnt, .type, .managed_dict or "
	       ".values, by Python's version. A function "
	       "may be FILE!NAME, 0xADDRESS or FILE!0xADDRESS"),
	OPTION(TEXT, "when", "EXPR", offsetof(struct watch_options, when),
	       "Which writes count: an expression as in C over old, new, size (of the block that "
	       "is written to; 0 for a global), tid, age, writer == NAME, changes, clears(BIT), "
	       "sets(BIT). Others are only counted"),
	OPTION(CHOICE, "policy", "WHICH", offsetof(struct watch_options, policy),
	       "Which objects to watch when there are more than the CPU's four registers: newest "
	       "(default), oldest, sample",
	       .choices = policy_names),
	OPTION(CHOICE, "mode", "HOW", offsetof(struct watch_options, mode),
	       "How: hw (perf events), ptrace (a tracer sets the registers, where perf is "
	       "forbidden; slower, and writes by system calls are not seen), pages (blocks of "
	       "alloc:, key:, ret:, pytype: and struct, any number at once, are placed where every write "
	       "faults; each write to them costs some microseconds, as does each system call), or "
	       "auto (default): hw if it works here, else ptrace",
	       .choices = watch_mode_names),
	OPTION(FLAG, "after-free", NULL, offsetof(struct watch_options, after_free),
	       "Go on watching a block's memory when it has been freed"),
	OPTION(FLAG, "stop", NULL, offsetof(struct watch_options, stop),
	       "Stop the program at the first write that counts, and print how to attach gdb"),
	OPTION(COUNT, "trials", "N", offsetof(struct watch_options, trials),
	       "Run the program N times (default 20)", .letter = 'n', .min = 1, .max = 1000000),
	OPTION(COUNT, "failures", "K", offsetof(struct watch_options, failures),
	       "Stop when K trials have failed", .min = 1),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct watch_options *options = ptr;

	options->trials = TRIALS_DEFAULT;
	options->trial.observe = OBSERVE_WATCH;
}

static int check(const struct watch_options *options, struct err *err)
{
	if (options->on.count == 0) {
		(void)err_set(err, -EINVAL, "nothing to watch was named");
		return err_set_remedy(err,
				      "--on global:NAME, --on alloc:FUNC+OFFSET:LEN, "
				      "--on ret:FUNC.field; redhand help watch lists all forms");
	}
	if (options->on.count > PLAN_WATCHES_MAX)
		return err_set(err, -E2BIG, "--on can be given at most %u times", PLAN_WATCHES_MAX);
	return 0;
}

static void say_stopped(void *ctx, const struct watch_stop *stop)
{
	progress_end(ctx);
	report_watch_stop(stop, stderr);
}

/* What is watched is found before there is a case. */
static int prepare(const struct invocation *inv, struct trial_setup *setup,
		   struct watch_report *report, struct err *err)
{
	const struct watch_options *options = inv->options;
	struct lookout_request look = { .settings = &setup->settings,
					.program = inv->program,
					.slot_env = &setup->slot_env };
	struct resolve_request resolve = { .on = (const char *const *)options->on.items,
					   .count = options->on.count,
					   .when = options->when,
					   .policy = options->policy,
					   .flags = (options->after_free ? RESOLVE_AFTER_FREE : 0) |
						    (options->stop ? RESOLVE_STOP : 0),
					   .look = loaded_modules_look,
					   .look_ctx = &look,
					   .say = common_say };
	int r = check(options, err);

	if (r == 0)
		r = trial_setup_init(setup, &options->trial, "watch", inv->program, err);
	if (r == 0)
		r = trial_setup_watch(setup, (enum watch_mode)options->mode, &report->mode_reason,
				      err);
	if (r == 0 && setup->unobserved)
		r = err_set(err, -ENOTSUP, "%s: its memory cannot be watched", setup->unobserved);
	if (r < 0)
		return r;
	if (setup->settings.flags & TRIAL_PAGES)
		resolve.flags |= RESOLVE_PAGES;
	/* Nobody knows how long the user looks at it. */
	if (options->stop)
		setup->settings.timeout_ns = 0;
	resolve.files = trial_setup_files(setup);
	return resolve_plan(&resolve, &setup->settings.plan_items, report, err);
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct watch_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(watch_report_deinit) struct watch_report report = { 0 };
	struct progress progress;
	struct watch_request request = { .trials = options->trials,
					 .failures = options->failures,
					 .stop = options->stop,
					 .stopped = say_stopped };
	int r = prepare(inv, &setup, &report, err);

	if (r == 0)
		r = trial_setup_open(&setup, options->common.case_dir, &cs, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < options->on.count; i++)
		strbuf_addf(&setup.identity, "on %s\n", options->on.items[i]);
	strbuf_addf(&setup.identity, "when %s\n", options->when ? options->when : "");
	request.series = trial_setup_series(&setup, &options->trial, inv, &progress);
	if (options->stop)
		request.series.jobs = 1;
	r = watch_run(cs, &request, &report, err);
	progress_end(&progress);
	if (r < 0)
		return r;
	if (options->common.json)
		report_watch_json(&report, stdout);
	else
		report_watch_text(&report, options->common.verbose, stdout);
	return common_exit(report.interrupted, report.failed > 0);
}

const struct command cmd_watch = {
	.name = "watch",
	.summary = "Who writes to this memory: every write, its width, old and new value, stack",
	.usage = "--on SPEC [--when EXPR] [options] -- PROGRAM ARGS…",
	.description =
		"Runs the program with the CPU's watchpoints on chosen memory and tells who wrote "
		"there: the instruction, how wide it is, the value before and after, the stack, and "
		"which block it was. Nothing is rebuilt, and what is not watched runs at full speed.\n\n"
		"A name can stand for many objects (every block that a function allocates); four at a "
		"time are watched, and the result tells how many of all that were; --mode pages watches all of them. Objects "
		"that lived at one address one after the other are told apart: that their values differ is no change. "
		"A value that changed though nobody was caught is told as an outside writer.\n\n"
		"Names are looked up in the program and its libraries. Where a shell, a script, env, make or "
		"the like starts the program, or a library that is loaded later has the name, the command is "
		"run once before, to see what it loads. What was caught is kept in the case: case show and "
		"report list it, scan marks it.",
	.examples =
		"  redhand watch --on global:config.flags -- ./server --self-test\n"
		"      who changes it?\n\n"
		"  redhand watch --on ret:object_new+0x18:8 --when 'clears(0)' -n 50 -- ./bench\n"
		"      who clears the lowest bit of that word, in any new object?\n\n"
		"  redhand watch --on key:9f31c0ffee123456#7+24:8 -- ./tests\n"
		"      the block that 'redhand show' named in an earlier trial\n\n"
		"  redhand watch --mode pages --on alloc:session_new.struct session.owner -- ./server\n"
		"      all sessions at once, not only four\n",
	TRIAL_OPTIONS(struct watch_options, "What to watch", watch_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
