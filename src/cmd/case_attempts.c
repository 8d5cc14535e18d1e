/*
 * `case attempt`, `case step` and `case relate`: what people tried, mean to do, and suspect.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/stored_notebook.h"
#include "cmd/case_commands.h"
#include "model/relation.h"
#include "report/report_case.h"
#include "studies/overview/case_investigation.h"
#include "studies/overview/surroundings.h"

static int add_attempt(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err)
{
	struct attempt attempt = { .text = mem_strdup(text) };
	AUTO(mem_freep) char *cwd = NULL;
	int r = case_subject_look(cs, &cwd, &attempt.world, err);

	if (r == 0) {
		attempt.diff = surroundings_diff(cwd ? cwd : ".");
		r = case_add_attempt(cs, &attempt, ret_id, err);
	}
	attempt_deinit(&attempt);
	return r;
}

static int attempt(const struct invocation *inv, struct err *err)
{
	return case_add_text(inv, "attempt", add_attempt, err);
}

const struct command case_attempt_command = {
	.name = "case attempt",
	.summary = "Record a fix that is being tried",
	.usage = "[options] TEXT",
	.description =
		"Remembers what was tried, the git commit with the difference of the checkout from it (at "
		"most 64 KiB), and the program's build-id. The trials that repro, hunt, chase and sentinel "
		"run from now on, until the next attempt, are its outcome: case show and report tell how "
		"many of them failed, and whether the program's file had changed at all.",
	.examples =
		"  redhand case attempt 'do not swap parent_ in IrStorage::swap'\n"
		"      then build, redhand repro, and redhand case show tells what became of it\n",
	CASE_COMMAND(1),
	.run = attempt,
};

static int add_step(const struct invocation *inv, struct err *err)
{
	return case_add_text(inv, "step", case_add_step, err);
}

const struct command case_step_add_command = {
	.name = "case step add",
	.summary = "Write down what is to be done next",
	.usage = "[options] TEXT",
	.description = "Adds TEXT to the next steps, beside redhand's own.",
	CASE_COMMAND(1),
	.run = add_step,
};

static int end_step(const struct invocation *inv, struct err *err)
{
	return case_end_numbered(inv, "done", case_end_step, err);
}

const struct command case_step_done_command = {
	.name = "case step done",
	.summary = "Say that a step is done",
	.usage = "[options] N",
	.description = "N is the number that case show prints.",
	CASE_COMMAND(1),
	.run = end_step,
};

static int read_verdict(struct case_store *cs, struct verdict *ret, struct err *err)
{
	AUTO(evidence_list_deinit) struct evidence_list evidence = { 0 };
	bool judged;

	return judgement_read(cs, &evidence, ret, &judged, err);
}

/* What both verdicts name; a case that has none gives none. */
static int find_common(struct case_store *cs, const char *other, struct strv *ret, struct err *err)
{
	AUTO(case_closep) struct case_store *second = NULL;
	struct verdict here = { 0 }, there = { 0 };
	int r = case_open(other, CASE_READ, &second, err);

	if (r == 0)
		r = read_verdict(cs, &here, err);
	if (r == 0)
		r = read_verdict(second, &there, err);
	if (r == 0)
		verdicts_common(&here, &there, ret);
	verdict_deinit(&here);
	verdict_deinit(&there);
	return r;
}

static int relate(const struct invocation *inv, struct err *err)
{
	const struct case_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(mem_freep) char *other = realpath(inv->args[0], NULL);
	AUTO(mem_freep) char *own = realpath(options->common.case_dir, NULL);
	struct relation relation = { .dir = other };
	int r;

	if (!other)
		return err_set_errno(err, -errno, "cannot find '%s'", inv->args[0]);
	if (own && strcmp(own, other) == 0)
		return err_set(err, -EINVAL, "a case is not related to itself");
	r = common_open_case(&options->common, &cs, err);
	if (r == 0)
		r = find_common(cs, other, &relation.common, err);
	if (r == 0)
		r = case_add_relation(cs, other, &relation.common, err);
	if (r == 0 && options->common.json)
		report_relation_json(case_dir(cs), &relation, stdout);
	else if (r == 0)
		report_relation_text(&relation, stdout);
	strv_deinit(&relation.common);
	return r < 0 ? r : EXIT_AS_EXPECTED;
}

const struct command case_relate_command = {
	.name = "case relate",
	.summary = "Say that another case may have the same cause",
	.usage = "[options] DIR",
	.description =
		"Remembers the case in DIR beside this one, with what both verdicts name: the code that "
		"allocated the damaged block, and functions that write, free or fail. That suggests one "
		"cause; it proves none. case list says the same of the cases that it lists.",
	CASE_COMMAND(1),
	.run = relate,
};
