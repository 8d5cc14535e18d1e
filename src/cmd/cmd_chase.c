/* `redhand chase`: options, the chase, its evidence into the case, the verdict. */
#include "cmd/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/talk.h"
#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "hunt/chase.h"
#include "judge/judge.h"
#include "report/report_investigation.h"
#include "report/wording.h"
#include "studies/overview/case_investigation.h"

struct chase_options {
	struct common_options common;
	struct trial_options trial;
	uint64_t from, from_evidence;
	uint64_t trials;
	uint64_t wanted;
	uint64_t hops;
	const char *signature;
};

#define TRIALS_DEFAULT 400
#define WANTED_DEFAULT 3
#define HOPS_DEFAULT 3

static const struct option chase_option_table[] = {
	OPTION(COUNT, "from", "TRIAL", offsetof(struct chase_options, from),
	       "Begin with the crash of this trial of the case, which was run with --observe ids "
	       "(default: run it until it crashes)",
	       .min = 1),
	OPTION(COUNT, "from-evidence", "E", offsetof(struct chase_options, from_evidence),
	       "Begin with this piece of evidence of the case: damaged bytes that 'redhand heap' "
	       "found, a write or a holder that was seen",
	       .min = 1),
	OPTION(TEXT, "signature", "ID", offsetof(struct chase_options, signature),
	       "Chase this failure only, as 'redhand repro' names it"),
	OPTION(COUNT, "trials", "N", offsetof(struct chase_options, trials),
	       "Run the program at most N times in all (default 400)", .letter = 'n', .min = 1,
	       .max = 1000000),
	OPTION(COUNT, "failures", "K", offsetof(struct chase_options, wanted),
	       "At each step back, go on until a writer was caught in K failing trials (default 3, or 2 "
	       "where each is proof: the very value that failed, in the very block)",
	       .min = 1, .max = 100),
	OPTION(COUNT, "hops", "N", offsetof(struct chase_options, hops),
	       "Where a value was only copied, follow it back through at most N places (default 3)",
	       .min = 1, .max = 8),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct chase_options *options = ptr;

	options->trials = TRIALS_DEFAULT;
	options->hops = HOPS_DEFAULT;
	options->trial.observe = OBSERVE_WATCH;
}

static void say(void *ctx, const struct said *said)
{
	AUTO(mem_freep) char *line = words_of(said);

	if (line)
		log_note("%s", line);
}

/* How often it failed by itself goes with what was seen. */
static void add_failure(struct chase_result *result)
{
	struct evidence e =
		evidence_new(EVIDENCE_FAILURE, 0, result->found || result->evidence.failed > 0);

	*e.failure = (struct failure_seen){
		.kind = result->found ? FAILURE_SIGNAL : FAILURE_EXIT,
		.fault = result->found,
		.trials = result->evidence.trials,
		.failed = result->evidence.failed,
		.ran = result->evidence.trials,
		.ran_failed = result->evidence.failed,
		.obstacles = (result->interrupted ? OBSTACLE_INTERRUPTED : 0) | OBSTACLE_NOT_CHASED,
	};
	VEC_PUSH(&result->evidence.list, e);
}

/* Evidence first, then what follows from it: from all of it, where the chase began with some. */
static int store(struct case_store *cs, struct chase_result *result, bool all, struct err *err)
{
	AUTO(evidence_list_deinit) struct evidence_list every = { 0 };
	struct verdict verdict = { 0 };
	int r = 0;

	add_failure(result);
	VEC_FOREACH (&result->evidence.list, evidence)
		if (r == 0)
			r = case_add_evidence(cs, evidence, err);
	if (r == 0 && all)
		r = case_evidence(cs, &every, err);
	if (r < 0)
		return r;
	judge_evidence(all ? &every : &result->evidence, &verdict);
	r = case_add_verdict(cs, &verdict, err);
	verdict_deinit(&verdict);
	return r;
}

static int find_lead(struct case_store *cs, uint64_t id, struct evidence_list *list,
		     const struct evidence **ret, struct err *err)
{
	int r = case_evidence(cs, list, err);

	if (r < 0)
		return r;
	*ret = evidence_find(list, id);
	if (*ret)
		return 0;
	if (list->list.count == 0) {
		(void)err_set(err, -ENOENT, "there is no evidence in '%s' yet", case_dir(cs));
		return err_set_remedy(err, "redhand heap or redhand chase -- PROGRAM finds some");
	}
	(void)err_set(err, -ENOENT,
		      "there is no evidence %" PRIu64 " in '%s': it has %" PRIu64 " to %" PRIu64,
		      id, case_dir(cs), list->list.items[0].id,
		      list->list.items[list->list.count - 1].id);
	return err_set_remedy(err, "'redhand report --json' has them all with their numbers");
}

/* A trial that can be begun with. */
static int check_trial(struct case_store *cs, uint64_t number, struct err *err)
{
	AUTO(trial_view_deinit) struct trial_view view = { 0 };
	int r = case_trial(cs, (struct trial_number){ number }, &view, err);

	if (r < 0)
		return err_set_prefix(err, "--from");
	if (view.signatures[0] != '\0')
		return 0;
	(void)err_set(err, -EINVAL, "--from: trial %" PRIu64 " passed, so it has no crash", number);
	return err_set_remedy(err, "redhand case show names failing trials");
}

/* What it begins with, as far as the user named it. */
struct named_start {
	struct evidence_list known;
	struct target target;
	struct bystanders others;
};

static void start_deinit(struct named_start *start)
{
	evidence_list_deinit(&start->known);
	target_deinit(&start->target);
	bystanders_deinit(&start->others);
}

static int find_start(const struct chase_options *options, struct case_store *cs,
		      struct named_start *start, struct chase_request *request, struct err *err)
{
	int r = options->from != 0 ? check_trial(cs, options->from, err) : 0;

	if (r == 0 && options->signature) {
		r = target_set(&start->target, cs, options->signature, err);
		if (r == 0)
			r = bystanders_read(&start->others, &start->target, cs, err);
		request->target = &start->target;
		request->others = &start->others;
		request->start.unfailed = false;
	}
	if (r < 0)
		return r;
	return options->from_evidence != 0 ? find_lead(cs, options->from_evidence, &start->known,
						       &request->start.lead, err)
					   : case_clear_evidence(cs, err);
}

static int chase(const struct invocation *inv, struct readings *readings,
		 struct chase_result *result, struct case_store **cs, struct err *err)
{
	const struct chase_options *options = inv->options;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	struct progress progress;
	struct chase_request request = { .settings = &setup.settings,
					 .program = inv->program,
					 .slot_env = &setup.slot_env,
					 .jobs = (unsigned int)options->trial.jobs,
					 .start.from = options->from,
					 .limits.trials = options->trials,
					 .start.unfailed = true,
					 .fresh = options->trial.fresh,
					 .limits.wanted = options->wanted > 0 ? options->wanted
									      : WANTED_DEFAULT,
					 .limits.proofs = options->wanted == 0,
					 .limits.hops = (unsigned int)options->hops,
					 .progress = progress_show,
					 .progress_ctx = &progress,
					 .say = say };
	AUTO(start_deinit) struct named_start start = { .target.faults = true };
	AUTO(mem_freep) char *reason = NULL;
	int r = trial_setup_init(&setup, &options->trial, "chase", inv->program, err);

	setup.settings.shared.readings = readings;
	if (r == 0 && setup.unobserved)
		r = err_set(err, -ENOTSUP, "%s: it cannot be chased", setup.unobserved);
	if (r == 0)
		r = trial_setup_watch(&setup, WATCH_AUTO, &reason, err);
	if (reason)
		log_note("watching through ptrace: %s", reason);
	/* What is begun with must be there, so that a mistyped one makes no case. */
	if (r == 0 && (options->signature || options->from != 0 || options->from_evidence != 0))
		r = common_need_case(&options->common, err);
	if (r == 0)
		r = trial_setup_open(&setup, options->common.case_dir, cs, err);
	if (r == 0)
		r = find_start(options, *cs, &start, &request, err);
	if (r < 0)
		return r;
	setup.settings.flags |= TRIAL_PYTHON;
	request.program_path = setup.program_path;
	request.identity = trial_setup_identity(&setup, "chase");
	progress_init(&progress);
	r = chase_run(*cs, &request, result, err);
	progress_end(&progress);
	return r == 0 ? store(*cs, result, request.start.lead != NULL, err) : r;
}

static int work(const struct invocation *inv, struct err *err)
{
	const struct chase_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(readings_deinit) struct readings readings = { 0 };
	AUTO(chase_result_deinit) struct chase_result result = { 0 };
	AUTO(investigation_deinit) struct investigation investigation = { 0 };
	int r = chase(inv, &readings, &result, &cs, err);

	if (r == 0)
		r = investigation_read(cs, &readings, &investigation, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_hunt_json(&investigation, stdout);
	else
		report_verdict_text(&investigation,
				    &(struct terminal){ common_colour(), common_columns() },
				    stdout);
	say(NULL, &result.outcome);
	/* What guards found is something, though nothing failed. */
	return common_exit(result.interrupted,
			   result.evidence.failed > 0 ||
				   investigation.verdict.class != VERDICT_NOT_CAUGHT);
}

const struct command cmd_chase = {
	.name = "chase",
	.summary = "From a crash to the write that caused it, by running the program again",
	.usage = "[--from TRIAL | --from-evidence E] [options] -- PROGRAM ARGS…",
	.description =
		"Reads back from the crash which places in memory the bad value came through, across calls. "
		"Then runs the program again with the CPU's watchpoints on these places, from the birth of "
		"their blocks on. The last write to such a place before a failure is the culprit; if it only "
		"copied the value, the chase goes on at its source. The verdict says in how many of the "
		"failing trials that were watched it was caught.\n\n"
		"The same block is found again in the next run by its key: the stack of its allocation and its "
		"number there. Where that differs from run to run, redhand watches what a function on the "
		"crash's stack is given as an argument.\n\n"
		"If it does not crash in the first 40 trials, guards around blocks show whether memory is "
		"damaged all the same, as 'redhand heap' does, and the chase goes on with the damaged bytes.\n\n"
		"If the guards show nothing either, as when the program stops itself over a wrong value, "
		"redhand fills freed blocks, then new ones, with random bytes for 40 trials or more: does the "
		"failure depend on the contents of some blocks? The pages of these blocks are then protected "
		"when they are freed, and the code that touches one is named. The exit status is 1 when it "
		"failed or something was found.",
	.examples =
		"  redhand chase -- ./mytests --gtest_filter='Cache*'\n"
		"      who wrote the pointer that it dies of?\n\n"
		"  redhand repro --observe ids -n 50 -- ./bench; redhand chase --from 7 -- ./bench\n"
		"      go on from a crash that is in the case\n\n"
		"  redhand heap -- ./server; redhand chase --from-evidence 3 -- ./server\n"
		"      who damaged the block of the finding that heap calls 'evidence 3'?\n",
	TRIAL_OPTIONS(struct chase_options, "What to chase", chase_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = work,
};
