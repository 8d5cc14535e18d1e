/*
 * `case park` and `case resume`: a case that is set aside, and the gate on the way back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/talk.h"
#include "case/stored_notebook.h"
#include "cmd/case_commands.h"
#include "cmd/sentinel_check.h"
#include "report/report_case.h"
#include "report/wording.h"
#include "run/settings.h"
#include "studies/overview/surroundings.h"

#define GATE_CONFIDENCE 0.99

/* Where the program of the case runs, and which it is. */
struct subject {
	struct series_settings settings; /* of the newest series that can be read */
};

static int take_subject(void *ctx, const struct series_row *row, struct err *err)
{
	struct series_settings settings = { 0 };
	struct subject *subject = ctx;

	if (strcmp(row->command, "sentinel") == 0 ||
	    series_settings_read(row->settings, &settings, NULL) < 0)
		return 0;
	series_settings_deinit(&subject->settings);
	subject->settings = settings;
	return 0;
}

int case_subject_look(struct case_store *cs, char **ret_cwd, struct world *ret, struct err *err)
{
	struct subject subject = { 0 };
	int r = case_series_each(cs, take_subject, &subject, err);

	if (r == 0)
		surroundings_look(subject.settings.cwd,
				  subject.settings.program.count > 0
					  ? subject.settings.program.items[0]
					  : NULL,
				  REDHAND_VERSION, ret);
	*ret_cwd = r == 0 ? TAKE(subject.settings.cwd) : NULL;
	series_settings_deinit(&subject.settings);
	return r;
}

static int look(struct case_store *cs, struct world *ret, struct err *err)
{
	AUTO(mem_freep) char *cwd = NULL;

	return case_subject_look(cs, &cwd, ret, err);
}

static int park(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	struct parking parking = { .because = (char *)options->because,
				   .until = (char *)options->until };
	int r;

	if (!options->because || !options->until) {
		(void)err_set(err, -EINVAL, "case park wants both --because and --until");
		return err_set_remedy(err, "redhand case park --because 'only a contrived workload "
					   "shows it' --until 'the new allocator is in'");
	}
	r = common_open_case(&options->common, &cs, err);
	if (r == 0)
		r = look(cs, &parking.world, err);
	if (r == 0)
		r = case_park(cs, &parking, err);
	world_deinit(&parking.world);
	if (r == 0)
		r = case_notebook(cs, &notebook, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_case_change_json(
			case_dir(cs), "parked",
			notebook_parked(&notebook) ? notebook_parked(&notebook)->id : 0, stdout);
	else
		(void)printf(
			"Parked. redhand case resume goes on, after the sentinel has shown that "
			"it still fails.\n");
	if (!notebook_sentinel(&notebook))
		log_note("the case has no sentinel, so nothing will notice when it changes "
			 "meanwhile: redhand sentinel create");
	return EXIT_AS_EXPECTED;
}

static const struct option park_option_table[] = {
	OPTION(TEXT, "because", "TEXT", offsetof(struct case_options, because),
	       "Why it is set aside"),
	OPTION(TEXT, "until", "TEXT", offsetof(struct case_options, until),
	       "What has to happen before somebody goes on"),
	OPTIONS_END,
};

const struct command case_park_command = {
	.name = "case park",
	.summary = "Set the case aside, with the reason and what to wait for",
	.usage = "--because TEXT --until TEXT [options]",
	.description =
		"Remembers why and until when the case is set aside, and what the world looked like: the "
		"git commit, the program's build-id (or size and hash), kernel, machine, redhand's "
		"version, and the names of the environment variables with a short hash of each value, "
		"never the values.",
	MORE_OPTIONS(struct case_options, "Why", park_option_table),
	.run = park,
};

struct resuming {
	const struct case_options *options;
	struct notebook notebook;
	const struct parking *parking;
	struct said_list changes;
	struct sentinel_check check;
	bool checked; /* the sentinel has been run */
	char *reason; /* why the gate does not open; NULL: it does */
};

static void resuming_deinit(struct resuming *r)
{
	sentinel_check_deinit(&r->check);
	said_list_deinit(&r->changes);
	notebook_deinit(&r->notebook);
	mem_free(r->reason);
}

static int compare_worlds(struct resuming *r, struct err *err)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(world_deinit) struct world now = { 0 };
	int code = common_open_case(&r->options->common, &cs, err);

	if (code == 0)
		code = case_notebook(cs, &r->notebook, err);
	if (code < 0)
		return code;
	r->parking = notebook_parked(&r->notebook);
	if (!r->parking) {
		(void)err_set(err, -ENOENT, "the case '%s' is not parked", case_dir(cs));
		return err_set_remedy(err, "redhand case show tells how it stands");
	}
	code = look(cs, &now, err);
	if (code == 0)
		world_changes(&r->parking->world, &now, &r->changes);
	return code;
}

/* The gate: what was known must still be true here and now. */
static void pass_gate(struct resuming *r)
{
	const struct sentinel_note *note = notebook_sentinel(&r->notebook);
	AUTO(mem_freep) char *dir = NULL;
	struct err err = { 0 };

	if (!note) {
		r->reason = mem_strdup("the case has no sentinel that could tell whether it still "
				       "fails (redhand sentinel create)");
		return;
	}
	dir = path_join(r->options->common.case_dir, note->dir);
	if (sentinel_check_run(
		    &r->check,
		    &(struct sentinel_check_options){ .dir = dir,
						      .case_dir = r->options->common.case_dir,
						      .expect = EXPECT_FAILS,
						      .confidence = GATE_CONFIDENCE },
		    &err) < 0) {
		r->reason = mem_printf("the sentinel could not be run: %s", err.message);
		return;
	}
	r->checked = true;
	r->check.certificate.dir = note->dir;
	if (!r->check.certificate.met)
		r->reason =
			mem_strdup("the sentinel does not behave as recorded: what the case says "
				   "may no longer hold here");
}

static int store(struct resuming *r, struct err *err)
{
	AUTO(case_closep) struct case_store *opened = NULL;
	AUTO(mem_freep) char *gate = NULL;
	struct case_store *cs = r->check.cs;
	int code = 0;

	gate = r->reason ? mem_printf("forced, although %s", r->reason)
			 : words_of(&r->check.certificate.sentence);
	if (!cs)
		code = common_open_case(&r->options->common, &opened, err);
	return code < 0 ? code : case_resume(cs ? cs : opened, gate, err);
}

static int resume(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(resuming_deinit) struct resuming r = { .options = options };
	struct resumption report = { .case_dir = options->common.case_dir, .changes = &r.changes };
	int code = compare_worlds(&r, err);

	if (code < 0)
		return code;
	pass_gate(&r);
	if (r.checked && r.check.certificate.interrupted)
		return EXIT_INTERRUPTED;
	report.parking = r.parking;
	report.gate = r.checked ? &r.check.certificate : NULL;
	report.reason = r.reason;
	report.resumed = !r.reason || options->force;
	if (report.resumed)
		code = store(&r, err);
	if (code < 0)
		return code;
	if (options->common.json)
		report_resumption_json(&report, stdout);
	else
		report_resumption_text(&report, stdout);
	if (!report.resumed)
		log_note("--force resumes it all the same");
	return report.resumed ? EXIT_AS_EXPECTED : EXIT_FOUND;
}

static const struct option resume_option_table[] = {
	OPTION(FLAG, "force", NULL, offsetof(struct case_options, force),
	       "Resume it even when the gate does not open; the case remembers that"),
	OPTIONS_END,
};

const struct command case_resume_command = {
	.name = "case resume",
	.summary = "Go on with a parked case, if what it knows still holds",
	.usage = "[options]",
	.description =
		"Tells what has changed since the case was parked (commit, program, kernel, machine, "
		"environment) and passes the resumption gate: the sentinel must still fail as recorded, on "
		"this checkout and machine. When it does not, the case stays parked (exit status 1), with "
		"the reason.",
	MORE_OPTIONS(struct case_options, "The gate", resume_option_table),
	.run = resume,
};
