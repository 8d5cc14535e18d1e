/* `redhand debug`: what logs, plans and debug information hold, for those who work on redhand. */
#include "cmd/commands.h"

#include <stddef.h>
#include <stdio.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "cmd/common.h"
#include "report/report_debug.h"
#include "report/wording.h"
#include "studies/debug/dump.h"
#include "studies/overview/case_investigation.h"

struct debug_options {
	struct common_options common;
	bool rings, contexts, watch, keys;
};

static const struct option log_option_table[] = {
	OPTION(FLAG, "rings", NULL, offsetof(struct debug_options, rings),
	       "And the history of blocks: a line LIFE for each that was freed or resized"),
	OPTION(FLAG, "contexts", NULL, offsetof(struct debug_options, contexts),
	       "And a line ROW for each place that allocates, with its counters"),
	OPTION(FLAG, "watch", NULL, offsetof(struct debug_options, watch),
	       "And what was watched, who wrote there, and the last hits"),
	OPTION(FLAG, "keys", NULL, offsetof(struct debug_options, keys),
	       "And a line KEY for each block that was freed: what names it in another run"),
	OPTIONS_END,
};

static int print(const struct debug_options *options, const struct strbuf *lines)
{
	if (options->common.json)
		report_dump_json(strbuf_str(lines), stdout);
	else
		(void)fputs(strbuf_str(lines), stdout);
	return EXIT_AS_EXPECTED;
}

static int log_lines(const struct invocation *inv, struct err *err)
{
	const struct debug_options *options = inv->options;
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	unsigned int sections = (options->rings ? DUMP_RINGS : 0) |
				(options->contexts ? DUMP_CONTEXTS : 0) |
				(options->watch ? DUMP_WATCH : 0) | (options->keys ? DUMP_KEYS : 0);
	int r = dump_log(inv->args[0], sections, &lines, err);

	return r < 0 ? r : print(options, &lines);
}

static const struct command debug_log = {
	.name = "debug log",
	.summary = "What did the agent write down about one process",
	.usage = "[options] FILE",
	.description =
		"Prints an event log, events.PID.N.rhl in the folder of a trial: the header, every record "
		"and what of it is damaged, a line each, \"TYPE name=value name=\"text\"\". The header tells "
		"whether libc's cache of freed blocks (libc_cache) was used in the hooks: none (not looked at), watched, used, or left (something was not as "
		"foreseen). Bytes of a text that are not printable stand as \\xNN.",
	.examples = "  redhand debug log --rings redhand-case/trials/7/events.4711.0.rhl\n"
		    "      what is in the log, with the history of blocks?\n",
	OWN_OPTIONS(struct debug_options, "What to print besides header and records",
		    log_option_table),
	.args_min = 1,
	.args_max = 1,
	.run = log_lines,
};

static int plan_lines(const struct invocation *inv, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	int r = dump_plan(inv->args[0], &lines, err);

	return r < 0 ? r : print(inv->options, &lines);
}

static const struct command debug_plan = {
	.name = "debug plan",
	.summary = "What was the agent asked to do",
	.usage = "[options] FILE",
	.description =
		"Prints a plan, the file 'plan' in the folder of a trial ($REDHAND_TRIAL while it runs): "
		"observer and flags, then the items, a line each, as in debug log.",
	.examples = "  redhand debug plan redhand-case/trials/7/plan\n"
		    "      what was the agent asked to do in trial 7?\n",
	COMMON_OPTIONS(struct debug_options),
	.args_min = 1,
	.args_max = 1,
	.run = plan_lines,
};

static void say_verdict(const char *which, const struct verdict *verdict, struct strbuf *lines)
{
	strbuf_addf(lines, "%s class=%s firm=%d sentence=\"", which,
		    verdict_class_name(verdict->class), verdict->firm);
	words_add(&verdict->sentence, lines);
	strbuf_adds(lines, "\"\n");
}

static int judge_again(const struct invocation *inv, struct err *err)
{
	const struct debug_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(verdict_deinit) struct verdict stored = { 0 };
	AUTO(verdict_deinit) struct verdict again = { 0 };
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };
	bool same = false;
	int r = common_need_case(&options->common, err);

	if (r == 0)
		r = case_open(options->common.case_dir, CASE_READ, &cs, err);
	if (r == 0)
		r = judgement_again(cs, &same, &stored, &again, err);
	if (r < 0)
		return r;
	say_verdict("STORED", &stored, &lines);
	say_verdict("AGAIN", &again, &lines);
	strbuf_addf(&lines, "RESULT same=%d\n", same);
	(void)print(options, &lines);
	return same ? EXIT_AS_EXPECTED : EXIT_FOUND;
}

static const struct command debug_judge = {
	.name = "debug judge",
	.summary = "Does the evidence of a case still give the verdict that was stored",
	.usage = "[options]",
	.description =
		"Judges the evidence of the case again and compares the verdict with the stored one, word "
		"for word. Prints both and whether they are the same; the exit status is 1 when they are "
		"not. Evidence that was added after the verdict makes them differ.",
	.examples = "  redhand debug judge --case redhand-case\n"
		    "      does this version of redhand judge the case as the one that made it?\n",
	COMMON_OPTIONS(struct debug_options),
	.run = judge_again,
};

static const struct command *const subcommands[] = { &debug_log, &debug_plan, &debug_judge, NULL };

const struct command cmd_debug = {
	.name = "debug",
	.summary = "For work on redhand itself: what is in its logs, plans and verdicts",
	.usage = "SUB-COMMAND [options] [FILE]",
	.description =
		"Prints the files that redhand and the agent in the program exchange. What the lines hold "
		"may change from version to version.",
	COMMON_OPTIONS(struct debug_options),
	.subcommands = subcommands,
};
