/* `redhand compare`: arms from options, the comparison, its table. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/which.h"
#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "model/known_secrets.h"
#include "plan/watch/resolve.h"
#include "report/report_series.h"
#include "studies/loaded_modules.h"
#include "studies/series/compare.h"
#include "studies/watch/mode.h"

struct compare_options {
	struct common_options common;
	struct trial_options trial;
	struct option_list arms;
	struct option_list on;
	const char *when;
	uint64_t trials;
	const char *seed; /* text, because 0 is a seed, too */
	bool stop_early;
	unsigned int order;
};

#define ARMS_MAX 26

static const char *const order_names[] = { "random", "abba", NULL };
#define ORDER_ABBA 1

static const struct option compare_option_table[] = {
	OPTION(LIST, "arm", "NAME[:SETTING…]", offsetof(struct compare_options, arms),
	       "One of the things to compare; the first is what the others are compared with. "
	       "Settings, separated by commas: NAME=VALUE sets an environment variable, "
	       "unset=NAME removes one, jobs=N runs that many side by side, cmd=WORDS runs another command "
	       "instead, such as an older build, args=WORDS puts more arguments behind the program's own, observe=OBSERVER chooses how closely it is "
	       "watched (none, valgrind, crash, ids, heap, watch), chaos=KNOBS how it is disturbed (as for --chaos). "
	       "{arm} in the command and in settings becomes the arm's name, so that each arm can have its own directory"),
	OPTION(LIST, "on", "SPEC", offsetof(struct compare_options, on),
	       "What arms with observe=watch watch, as for redhand watch"),
	OPTION(TEXT, "when", "EXPR", offsetof(struct compare_options, when),
	       "Which writes count there"),
	OPTION(COUNT, "trials", "N", offsetof(struct compare_options, trials),
	       "Trials per arm (default 60)", .letter = 'n', .min = 1, .max = 10000000),
	OPTION(FLAG, "stop-early", NULL, offsetof(struct compare_options, stop_early),
	       "Stop as soon as the answer is clear, by a test that allows looking after every "
	       "trial"),
	OPTION(CHOICE, "order", "HOW", offsetof(struct compare_options, order),
	       "How the arms take turns: random (default), or abba: A B, then B A, and so on",
	       .choices = order_names),
	OPTION(TEXT, "seed", "N", offsetof(struct compare_options, seed),
	       "Seed for the order in which the arms take turns (default: a new one, printed at "
	       "the end)"),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct compare_options *options = ptr;

	options->trials = 60;
}

struct arms {
	struct arm list[ARMS_MAX];
	unsigned int count;
};

static void arms_deinit(struct arms *arms)
{
	for (unsigned int i = 0; i < arms->count; i++)
		arm_deinit(&arms->list[i]);
}

static int arms_init(struct arms *arms, const struct option_list *texts, struct err *err)
{
	if (texts->count < 2 || texts->count > ARMS_MAX) {
		(void)err_set(err, -EINVAL, "compare wants 2 to %d arms, not %zu", ARMS_MAX,
			      texts->count);
		return err_set_remedy(err,
				      "redhand compare --arm alone:jobs=1 --arm parallel:jobs=4 "
				      "-- PROGRAM");
	}
	for (size_t i = 0; i < texts->count; i++) {
		int r = arm_parse(texts->items[i], &arms->list[arms->count++], err);

		if (r < 0)
			return r;
		for (size_t k = 0; k < i; k++)
			if (strcmp(arms->list[k].name, arms->list[i].name) == 0)
				return err_set(err, -EINVAL, "two arms have the name '%s'",
					       arms->list[i].name);
	}
	return 0;
}

/* The commands that stand in for the program are there, and what they are: another build of one
 * makes another comparison. */
static int identify_commands(const struct arms *arms, const struct compare_options *options,
			     struct strbuf *program, struct err *err)
{
	for (unsigned int i = 0; i < arms->count; i++) {
		const struct arm *arm = &arms->list[i];
		AUTO(mem_freep) char *path = NULL;
		int r;

		if (arm->cmd.count == 0)
			continue;
		r = which(arm->cmd.items[0], options->trial.cwd, &path, err);
		if (r < 0)
			return err_set_prefix(err, "--arm '%s'", arm->name);
		strbuf_addc(program, ' ');
		file_fingerprint(path, program);
	}
	return 0;
}

static void identify_arms(struct strbuf *identity, const struct compare_options *options)
{
	for (size_t i = 0; i < options->arms.count; i++) {
		AUTO(mem_freep) char *arm = mem_strdup(options->arms.items[i]);

		secret_hide(arm, strlen(arm));
		strbuf_addf(identity, "arm %zu:%s\n", strlen(arm), arm);
	}
	/* The number of trials shapes the order in which arms take turns. */
	strbuf_addf(identity, "trials %llu\n", (unsigned long long)options->trials);
	strbuf_adds(identity, "apart 1\n");
	if (options->order == ORDER_ABBA)
		strbuf_adds(identity, "order abba\n");
	if (options->seed)
		strbuf_addf(identity, "seed %s\n", options->seed);
	for (size_t i = 0; i < options->on.count; i++)
		strbuf_addf(identity, "on %s\n", options->on.items[i]);
	if (options->when)
		strbuf_addf(identity, "when %s\n", options->when);
}

/* What watched arms watch. A tracer would be there in every arm, so it is not for comparing. */
static int plan_watch(const struct compare_options *options, char *const *program,
		      const struct arms *arms, struct trial_setup *setup, struct strbuf *items,
		      struct err *err)
{
	AUTO(watch_report_deinit) struct watch_report unused = { 0 };
	struct lookout_request look = { .settings = &setup->settings,
					.program = program,
					.slot_env = &setup->slot_env };
	struct resolve_request resolve = { .on = (const char *const *)options->on.items,
					   .count = options->on.count,
					   .when = options->when,
					   .files = trial_setup_files(setup),
					   .look = loaded_modules_look,
					   .look_ctx = &look,
					   .say = common_say };
	bool watched = false;
	int r;

	for (unsigned int i = 0; i < arms->count; i++)
		watched |= arms->list[i].observed && arms->list[i].observer == OBSERVE_WATCH;
	if (watched != (options->on.count > 0)) {
		(void)err_set(err, -EINVAL,
			      watched ? "an arm is watched, but nothing to watch was named"
				      : "--on names what to watch, but no arm is watched");
		return err_set_remedy(err,
				      "--arm plain --arm watched:observe=watch --on global:NAME");
	}
	if (!watched)
		return 0;
	r = trial_setup_watch(setup, WATCH_HW, &unused.mode_reason, err);
	return r < 0 ? r : resolve_plan(&resolve, items, &unused, err);
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct compare_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(strbuf_deinit) struct strbuf watch = { 0 };
	AUTO(arms_deinit) struct arms arms = { 0 };
	AUTO(compare_result_deinit) struct compare_result result = { 0 };
	struct progress progress;
	struct compare_request request = {
		.arms = arms.list,
		.watch = &watch,
		.trials = options->trials,
		.stop_early = options->stop_early,
		.mirrored = options->order == ORDER_ABBA,
		.apart = true,
	};
	int r = arms_init(&arms, &options->arms, err);

	request.arm_count = arms.count;
	if (r == 0)
		r = trial_seed(options->seed, &request.seed, err);
	if (r == 0)
		r = trial_setup_init(&setup, &options->trial, "compare", inv->program, err);
	if (r == 0)
		r = identify_commands(&arms, options, &setup.program, err);
	if (r == 0)
		r = plan_watch(options, inv->program, &arms, &setup, &watch, err);
	if (r == 0)
		r = trial_setup_open(&setup, options->common.case_dir, &cs, err);
	if (r < 0)
		return r;
	identify_arms(&setup.identity, options);
	request.series = trial_setup_series(&setup, &options->trial, inv, &progress);
	r = compare_run(cs, &request, &result, err);
	trial_progress_end(&progress, result.program_changed);
	if (r < 0)
		return r;
	if (options->common.json)
		report_compare_json(&result, stdout);
	else
		report_compare_text(&result, stdout);
	return common_exit(result.interrupted, result.p < COMPARE_ALPHA);
}

const struct command cmd_compare = {
	.name = "compare",
	.summary = "Does this setting change how often it fails, or is it chance",
	.usage = "--arm NAME[:SETTING…] --arm … [options] -- PROGRAM ARGS…",
	.description =
		"Runs the program under two or more settings, in random turns, so that a machine that "
		"slows down meanwhile hits all alike, and tells each arm's failure rate with its 95 % "
		"interval, the difference, and the probability (Fisher's exact test, corrected when "
		"there are more than two arms) that chance alone makes such a difference.\n\n"
		"Failures that every run shows do not count when there are others. An arm that uses "
		"fewer slots than another goes through all slots in turn, so that 'alone' does not "
		"come to mean 'on slot 0'. How long the trials that pass take is compared, too: medians, and how "
		"many times as long an arm takes, with a 95 % interval by ranks. The exit status is 1 when a difference was found (p < 0.05).",
	.examples =
		"  redhand compare --arm alone:jobs=1 --arm parallel:jobs=4 -- ./run_tests\n"
		"      is it concurrency?\n\n"
		"  redhand compare --arm plain --arm nocache:CACHE=off --stop-early -- ./run_tests\n"
		"      does the variable matter? stop as soon as that is clear\n\n"
		"  redhand compare --arm off --arm 'on:args=--parallel-compile' -- ./run_tests\n"
		"      does the flag matter, even if unused?\n\n"
		"  redhand compare --arm calm --arm disturbed:chaos=all -- ./run_tests\n"
		"      does --chaos bring it out more often?\n\n"
		"  redhand compare --arm new --arm 'old:cmd=../old/run_tests' --order abba -- ./run_tests\n"
		"      is the older build immune, and how fast is either?\n\n"
		"  redhand compare --arm off --arm on:observe=watch --on global:count -- ./run_tests\n"
		"      does watching hide it?\n",
	TRIAL_OPTIONS(struct compare_options, "What to compare", compare_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
