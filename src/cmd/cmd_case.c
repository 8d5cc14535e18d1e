/* `redhand case`: what a case holds, and what people write into it. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/value.h"
#include "case/stored_notebook.h"
#include "cmd/case_commands.h"
#include "report/report_case.h"
#include "studies/overview/case_overview.h"

static int show(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(case_overview_deinit) struct case_overview overview = { 0 };
	int r = case_open(options->common.case_dir, CASE_READ, &cs, err);

	if (r == 0)
		r = overview_read(cs, &overview, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_case_json(&overview, stdout);
	else
		report_case_text(&overview, options->common.verbose, stdout);
	return EXIT_AS_EXPECTED;
}

static const struct command case_show = {
	.name = "case show",
	.summary = "Everything that is known, on one screen",
	.usage = "[options]",
	.description =
		"Shows every series with its failure rate and 95 % interval, the ways to fail, the "
		"minimal list of tests, the verdict, redhand's own hypotheses and yours with their status "
		"and what decided it, notes, workarounds, whether the case is parked, and the sentinel. -v shows all of it where the "
		"screen would be too small.",
	CASE_COMMAND(0),
	.run = show,
};

static bool same_dir(const char *a, const char *b)
{
	AUTO(mem_freep) char *x = realpath(a, NULL);
	AUTO(mem_freep) char *y = realpath(b, NULL);

	return x && y && strcmp(x, y) == 0;
}

/* Only what somebody names counts there. */
static void list_defaults(void *ptr)
{
	struct case_options *options = ptr;

	options->common.case_dir = NULL;
}

/* The case that was named comes first, unless it is found below anyway. */
static void list_cases(const struct invocation *inv, struct case_lines *ret)
{
	const struct case_options *options = inv->options;
	const char *named = options->common.case_dir;
	bool found = !named;

	overview_find(inv->arg_count > 0 ? inv->args[0] : ".", ret);
	VEC_FOREACH (&ret->list, line)
		found |= named && same_dir(line->dir, named);
	if (!found)
		overview_add(named, ret);
}

static int list(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	const char *dir = inv->arg_count > 0 ? inv->args[0] : ".";
	AUTO(case_lines_deinit) struct case_lines lines = { 0 };

	if (access(dir, R_OK | X_OK) < 0)
		return err_set_errno(err, -errno, "cannot look into '%s'", dir);
	list_cases(inv, &lines);
	if (options->common.json)
		report_cases_json(&lines, stdout);
	else
		report_cases_text(&lines, stdout);
	return EXIT_AS_EXPECTED;
}

static const struct command case_list = {
	.name = "case list",
	.summary = "The cases that are here, a line each",
	.usage = "[options] [DIR]",
	.description = "Lists the cases in DIR (default: the current directory) and up to three "
		       "directories below, and the one that --case names.",
	COMMON_OPTIONS(struct case_options),
	.args_max = 1,
	.defaults = list_defaults,
	.run = list,
};

static int trials(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_lines_deinit) struct trial_lines lines = { 0 };
	int r = case_open(options->common.case_dir, CASE_READ, &cs, err);

	if (r == 0)
		r = case_trial_lines(cs, &lines, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_trial_lines_json(options->common.case_dir, &lines, stdout);
	else
		report_trial_lines_text(&lines, stdout);
	return EXIT_AS_EXPECTED;
}

static const struct command case_trials = {
	.name = "case trials",
	.summary = "Every stored trial, a line each",
	.usage = "[options]",
	.description =
		"Lists the trials of the case: number, when it began, the command that ran it, how "
		"long it took, whether its output and records are kept, and what became of it. "
		"redhand show tells more about one.",
	CASE_COMMAND(0),
	.run = trials,
};

static int tell(const struct invocation *inv, const char *what, uint64_t id)
{
	const struct case_options *options = inv->options;

	if (options->common.json)
		report_case_change_json(options->common.case_dir, what, id, stdout);
	else
		(void)printf("%s %llu\n", what, (unsigned long long)id);
	return EXIT_AS_EXPECTED;
}

int case_add_text(const struct invocation *inv, const char *what, case_add_fn fn, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	uint64_t id = 0;
	int r = 0;

	if (inv->args[0][strspn(inv->args[0], " \t\n")] == '\0')
		r = err_set(err, -EINVAL, "an empty text says nothing");
	if (r == 0)
		r = common_open_case(&options->common, &cs, err);
	if (r == 0)
		r = fn(cs, inv->args[0], &id, err);
	return r < 0 ? r : tell(inv, what, id);
}

static int add_note(const struct invocation *inv, struct err *err)
{
	return case_add_text(inv, "note", case_add_note, err);
}

static const struct command case_note = {
	.name = "case note",
	.summary = "Write something down",
	.usage = "[options] TEXT",
	.description = "Adds TEXT to the notes of the case, with the time.",
	.examples =
		"  redhand case note 'not seen on the ARM machines'\n      for whoever comes next\n",
	CASE_COMMAND(1),
	.run = add_note,
};

static int add_hypothesis(const struct invocation *inv, struct err *err)
{
	return case_add_text(inv, "hypothesis", case_add_hypothesis, err);
}

static const struct command case_hypothesis_add = {
	.name = "case hypothesis add",
	.summary = "Add an explanation that may turn out true or false",
	.usage = "[options] TEXT",
	.description = "Adds a hypothesis, open, and prints its number.",
	.examples = "  redhand case hypothesis add 'a 2-byte store clips the low bit'\n"
		    "      one of several that stand beside redhand's own\n",
	CASE_COMMAND(1),
	.run = add_hypothesis,
};

/* A verdict on a hypothesis without an observation is an opinion. */
static int read_change(const struct case_options *options, struct hypothesis_change *change,
		       struct err *err)
{
	change->because = (char *)options->because;
	if (change->status != HYPOTHESIS_OPEN && !options->evidence && !options->because) {
		(void)err_set(
			err, -EINVAL,
			"a hypothesis is %s by an observation: --evidence or --because, or both",
			hypothesis_status_word(change->status));
		return err_set_remedy(err, "--evidence 17 for trial 17, --because 'what was seen'");
	}
	if (options->evidence && !citation_parse(options->evidence, &change->seen)) {
		(void)err_set(err, -EINVAL,
			      "--evidence wants a trial (17) or a piece of evidence "
			      "(e3), not '%s'",
			      options->evidence);
		return err_set_remedy(err,
				      "redhand case show lists trials; --because takes any text");
	}
	return 0;
}

static int change(const struct invocation *inv, enum hypothesis_status status, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	struct hypothesis_change to = { .status = status };
	uint64_t id = 0;
	/* Reports call it H1. */
	const char *number = inv->args[0] + (inv->args[0][0] == 'H');
	int r = value_count(number, 1, 0, &id, err);

	if (r < 0) {
		(void)err_set_prefix(err, "ID");
		return err_set_remedy(
			err, "the number of one of yours, as case show has it; redhand's own are "
			     "decided by evidence alone");
	}
	r = read_change(options, &to, err);
	if (r == 0)
		r = common_open_case(&options->common, &cs, err);
	if (r == 0)
		r = case_change_hypothesis(cs, id, &to, err);
	return r < 0 ? r : tell(inv, hypothesis_status_word(status), id);
}

static int reopen(const struct invocation *inv, struct err *err)
{
	return change(inv, HYPOTHESIS_OPEN, err);
}

static int falsify(const struct invocation *inv, struct err *err)
{
	return change(inv, HYPOTHESIS_FALSIFIED, err);
}

static int confirm(const struct invocation *inv, struct err *err)
{
	return change(inv, HYPOTHESIS_CONFIRMED, err);
}

static const struct option change_option_table[] = {
	OPTION(TEXT, "evidence", "E", offsetof(struct case_options, evidence),
	       "The observation: the number of a trial, or e and the number of a stored piece of "
	       "evidence (17, e3)"),
	OPTION(TEXT, "because", "TEXT", offsetof(struct case_options, because),
	       "The observation in words"),
	OPTIONS_END,
};

#define HYPOTHESIS_CHANGE(variable, word, what, does, how)                                 \
	static const struct command variable = {                                           \
		.name = "case hypothesis " word,                                           \
		.summary = what,                                                           \
		.usage = "[options] ID",                                                   \
		.description = does,                                                       \
		MORE_OPTIONS(struct case_options, "What decides it", change_option_table), \
		.args_min = 1,                                                             \
		.args_max = 1,                                                             \
		.program = PROGRAM_NONE,                                                   \
		.run = how,                                                                \
	}

HYPOTHESIS_CHANGE(case_hypothesis_open, "open", "Open a hypothesis again",
		  "Opens a hypothesis that was decided. Its history stays.", reopen);
HYPOTHESIS_CHANGE(case_hypothesis_falsify, "falsify", "Rule a hypothesis out, by an observation",
		  "Says which observation speaks against it: --evidence, --because, or both.",
		  falsify);
HYPOTHESIS_CHANGE(case_hypothesis_confirm, "confirm", "Confirm a hypothesis, by an observation",
		  "Says which observation shows it: --evidence, --because, or both.", confirm);

static int add_workaround(const struct invocation *inv, struct err *err)
{
	return case_add_text(inv, "workaround", case_add_workaround, err);
}

static const struct command case_workaround_add = {
	.name = "case workaround add",
	.summary = "Record what hides the bug for the time being",
	.usage = "[options] TEXT",
	.description = "Says what is skipped and where: a test, an entry in a skip list. case show "
		       "keeps saying that it hides an open bug, until workaround remove.",
	.examples = "  redhand case workaround add 'test_issue1270: skip_serde_check=True'\n"
		    "      so that nobody takes silence for a fix\n",
	CASE_COMMAND(1),
	.run = add_workaround,
};

int case_end_numbered(const struct invocation *inv, const char *what, case_end_fn fn,
		      struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	uint64_t id = 0;
	int r = value_count(inv->args[0], 1, 0, &id, err);

	if (r < 0)
		return err_set_prefix(err, "N");
	r = common_open_case(&options->common, &cs, err);
	if (r == 0)
		r = fn(cs, id, err);
	return r < 0 ? r : tell(inv, what, id);
}

static int remove_workaround(const struct invocation *inv, struct err *err)
{
	return case_end_numbered(inv, "removed workaround", case_remove_workaround, err);
}

static const struct command case_workaround_remove = {
	.name = "case workaround remove",
	.summary = "Say that a workaround is no longer in place",
	.usage = "[options] N",
	.description = "N is the number that case show prints.",
	CASE_COMMAND(1),
	.run = remove_workaround,
};

/* Those that share a first word stand together: completion offers that word once. */
static const struct command *const subcommands[] = {
	&case_show,
	&case_list,
	&case_trials,
	&case_note,
	&case_hypothesis_add,
	&case_hypothesis_open,
	&case_hypothesis_falsify,
	&case_hypothesis_confirm,
	&case_workaround_add,
	&case_workaround_remove,
	&case_attempt_command,
	&case_step_add_command,
	&case_step_done_command,
	&case_relate_command,
	&case_park_command,
	&case_resume_command,
	NULL,
};

const struct command cmd_case = {
	.name = "case",
	.summary = "What is known: rates, hypotheses, notes; park and resume",
	.usage = "SUB-COMMAND [options]",
	.description =
		"Everything that redhand finds out is kept in a case directory. These commands show it, "
		"add what people know, and set the case aside and take it up again.",
	CASE_COMMAND(0),
	.subcommands = subcommands,
};
