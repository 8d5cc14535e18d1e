/* `redhand show`: one trial, its crash and what its log says. */
#include "cmd/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "base/value.h"
#include "base/which.h"
#include "case/case.h"
#include "cmd/common.h"
#include "model/signature.h"
#include "report/report_crash.h"
#include "report/wording.h"
#include "run/observe.h"
#include "run/settings.h"
#include "studies/overview/trial_crashes.h"

#define SHELL_SIGNAL 128 /* what a shell adds to the signal that its command died of */

struct show_options {
	struct common_options common;
};

static int describe_outcome(struct case_store *cs, const char *ids, struct strbuf *ret,
			    int *ret_stray, struct err *err)
{
	AUTO(mem_freep) char *copy = mem_strdup(ids);
	char *rest = copy, *id;

	while ((id = strsep(&rest, " ")) != NULL && id[0] != '\0') {
		AUTO(signature_deinit) struct signature signature = { 0 };
		int r = case_signature(cs, id, &signature, err);

		if (r < 0)
			return r;
		strbuf_addf(ret, "%s%s [%s]", ret->len > 0 ? "; " : "", signature.summary, id);
		if (signature.stray)
			*ret_stray = signature.signal;
	}
	if (ret->len == 0)
		strbuf_adds(ret, "passed");
	return 0;
}

/* Why nothing was put into the program, if that can be told: the caller's to free. */
static char *why_unobserved(const struct trial_view *view)
{
	AUTO(series_settings_deinit) struct series_settings settings = { 0 };
	AUTO(said_deinit) struct said obstacle = { 0 };
	AUTO(mem_freep) char *path = NULL;

	if (series_settings_read(view->settings, &settings, NULL) < 0)
		return NULL;
	if (settings.observer == OBSERVE_NONE && settings.arms.count == 0)
		return mem_strdup("it ran with --observe none");
	/* Of a child it is not known which program it was. */
	if (view->signal == 0 || settings.program.count == 0 ||
	    which(settings.program.items[0], settings.cwd, &path, NULL) < 0)
		return NULL;
	return observe_obstacle(path, &obstacle) ? words_of(&obstacle) : NULL;
}

/* A death that nobody told of wants a reason. `stray`: what a child died of, 0 for none. */
static void note_silence(const struct trial_view *view, int stray, struct crash_report *report)
{
	static const int deadly[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP };
	int signal = view->signal != 0 ? view->signal : stray;
	const char *who = view->signal != 0 ? "it" : "a child process";
	AUTO(mem_freep) char *why = NULL;

	if (!view->kept || report->crashes.count > 0)
		return;
	/* A shell's word for it. Whoever is known to have run unobserved is told already. */
	if (signal == 0 && report->notes.list.count == 0 && view->exit_status > SHELL_SIGNAL)
		signal = view->exit_status - SHELL_SIGNAL;
	for (size_t i = 0; i < ARRAY_SIZE(deadly); i++) {
		if (signal != deadly[i])
			continue;
		why = why_unobserved(view);
		said_new(&report->notes)->text =
			why ? mem_printf("%s died of %s and left no record of it: %s", who,
					 signal_name(signal), why)
			    : mem_printf("%s died of %s and left no record of it: it is "
					 "statically linked or setuid, holds signals back past "
					 "libc, %scould not write its log (disk full, ulimit -f, "
					 "no right to the case's directory), or its log was "
					 "damaged",
					 who, signal_name(signal),
					 view->signal != 0 ? ""
							   : "shares its parent's memory, was "
							     "started without LD_PRELOAD, ");
	}
}

static int show(const struct invocation *inv, struct err *err)
{
	const struct show_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_view_deinit) struct trial_view view = { 0 };
	AUTO(crash_report_deinit) struct crash_report report = { 0 };
	AUTO(strbuf_deinit) struct strbuf outcome = { 0 };
	struct trial_report trial;
	struct trial_number number;
	int stray = 0;
	int r = value_count(inv->args[0], 1, 0, &number.value, err);

	if (r < 0)
		return err_set_prefix(err, "TRIAL");
	r = case_open(options->common.case_dir, CASE_READ, &cs, err);
	if (r == 0)
		r = case_trial(cs, number, &view, err);
	if (r == 0)
		r = describe_outcome(cs, view.signatures, &outcome, &stray, err);
	if (r == 0 && view.kept)
		r = trial_crashes(cs, number, view.signal, &report, err);
	if (r < 0)
		return r;
	note_silence(&view, stray, &report);
	trial = (struct trial_report){
		.trial = number.value,
		.case_dir = options->common.case_dir,
		.outcome = strbuf_str(&outcome),
		.slot = view.slot,
		.seconds = (double)view.wall_ns / 1e9,
		.last_crumb = view.last_crumb,
		.kept = view.kept,
		.chaos = view.chaos.knobs != 0 ? &view.chaos : NULL,
		.report = &report,
	};
	if (options->common.json)
		report_trial_json(&trial, stdout);
	else
		report_trial_text(&trial, options->common.verbose, stdout);
	return view.signatures[0] != '\0' ? EXIT_FOUND : EXIT_AS_EXPECTED;
}

const struct command cmd_show = {
	.name = "show",
	.summary = "What died in this trial, where, and what did it touch",
	.usage = "[options] TRIAL",
	.description =
		"Tells what observers saw of one stored trial: every crash of its processes with the "
		"stack by file and line and the source where it is there; what kind of fault it was; "
		"and, with --observe ids, the life of every block that the crashed thread's registers "
		"lead to: who allocated it, who freed it, who has its place now. For a mapped file that "
		"has shrunk it names the process and the line that made it shorter.\n\n"
		"TRIAL is a number as repro and compare print it. -v adds registers and all blocks.",
	.examples = "  redhand show 17\n      what happened in trial 17?\n",
	COMMON_OPTIONS(struct show_options),
	.args_min = 1,
	.args_max = 1,
	.run = show,
};
