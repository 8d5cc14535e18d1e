/* `redhand sentinel`: makes sentinels, and runs them. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/talk.h"
#include "base/value.h"
#include "cmd/sentinel_check.h"
#include "cmd/sentinel_readme.h"
#include "report/report_sentinel.h"
#include "search/stats/rate.h"
#include "studies/sentinel/certainty.h"
#include "studies/sentinel/make.h"

struct create_options {
	struct common_options common;
	const char *dir;
	uint64_t series;
	const char *signature;
	struct option_list files, env;
	bool replace;
};

static const struct option create_option_table[] = {
	OPTION(TEXT, "dir", "DIR", offsetof(struct create_options, dir),
	       "Where to write it: a new directory inside the project (default " SENTINEL_DIR_DEFAULT
	       ")"),
	OPTION(COUNT, "from-series", "N", offsetof(struct create_options, series),
	       "What to make it from, by the number that case show prints (default: the newest "
	       "list that minimize found, else the newest series with a failure that comes and "
	       "goes, of repro or hunt before one of chase or watch, which stop at failures)",
	       .min = 1),
	OPTION(TEXT, "signature", "ID", offsetof(struct create_options, signature),
	       "The failure to guard, by the id that repro prints (default: the crash that the "
	       "series shows most often)"),
	OPTION(LIST, "file", "FILE", offsetof(struct create_options, files),
	       "Copy FILE verbatim, and where the command names it, have it use the copy. Scripts "
	       "of the project that the command names are copied without being asked, but used "
	       "where they lie. May be given more than once"),
	OPTION(LIST, "env", "NAME[=VALUE]", offsetof(struct create_options, env),
	       "Record this environment variable, too, with its present value or the one given; "
	       "without it those of --slot-env are, and known ones such as PYTHONPATH and "
	       "LD_LIBRARY_PATH. May be given more than once"),
	OPTION(FLAG, "replace", NULL, offsetof(struct create_options, replace),
	       "Replace a sentinel that is there already"),
	OPTIONS_END,
};

static void create_defaults(void *ptr)
{
	struct create_options *options = ptr;

	options->dir = SENTINEL_DIR_DEFAULT;
}

static void report_created(const struct create_options *options,
			   const struct sentinel_source *source, const struct sentinel_made *made)
{
	struct rate rate = rate_wilson(source->trials, source->failed, RATE_CONFIDENCE);
	struct sentinel_report report = {
		.dir = options->dir,
		.case_dir = options->common.case_dir,
		.series = source->series.value,
		.signature = made->sentinel.signature.id,
		.summary = made->sentinel.signature.summary,
		.rate = rate,
		.needed = certificate_needed(&rate, 0.99, false),
		.program = made->sentinel.trial.program.items,
		.env = &made->sentinel.trial.env,
		.tests = &made->sentinel.tests,
		.copied = &made->copied,
		.notes = &made->notes,
	};

	if (options->common.json)
		report_sentinel_json(&report, stdout);
	else
		report_sentinel_text(&report, stdout);
}

static int create(const struct invocation *inv, struct err *err)
{
	const struct create_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(sentinel_source_deinit) struct sentinel_source source = { 0 };
	AUTO(sentinel_made_deinit) struct sentinel_made made = { 0 };
	struct sentinel_request request = { .dir = options->dir,
					    .files = options->files.items,
					    .file_count = options->files.count,
					    .env = options->env.items,
					    .env_count = options->env.count,
					    .words = &sentinel_words,
					    .replace = options->replace };
	int r = common_open_case(&options->common, &cs, err);

	if (r == 0)
		r = sentinel_source_init(&source, cs,
					 (struct series_id){ (int64_t)options->series },
					 options->signature, err);
	if (r == 0)
		r = sentinel_make(cs, &source, &request, &made, err);
	if (r == 0)
		r = sentinel_remember(cs, options->dir, &source, err);
	if (r < 0)
		return r;
	report_created(options, &source, &made);
	return EXIT_AS_EXPECTED;
}

static const struct command sentinel_create = {
	.name = "sentinel create",
	.summary = "Write a sentinel for a failure of the case",
	.usage = "[options]",
	.description =
		"Writes a small directory to commit next to the project's tests: the exact command, the "
		"environment that redhand was told to set, how it was disturbed (--chaos), the minimal "
		"list of tests when minimize found "
		"one, the reproducer's own files, the expected failure and how often it came, run.sh for "
		"any CI, and a README.md for people. Paths in it are relative to the project (its git "
		"checkout, or the directory where the program ran), so that it works in any other "
		"checkout and on other machines.",
	.examples = "  redhand sentinel create --dir tests/sentinels/tagflip\n"
		    "      guard what the case found last\n\n"
		    "  redhand sentinel create --file /tmp/repro.py --env PYTHONPATH\n"
		    "      take a reproducer along that lies outside the project\n",
	MORE_OPTIONS(struct create_options, "What to write", create_option_table),
	.defaults = create_defaults,
	.run = create,
};

struct run_options {
	struct common_options common;
	unsigned int expect;
	const char *confidence; /* text: 0.99, 99 and 99% are all said */
	const char *junit, *root;
	bool careful, allow_others, yes;
};

static const struct option run_option_table[] = {
	OPTION(CHOICE, "expect", "WHAT", offsetof(struct run_options, expect),
	       "fails (default): the known failure must still be there; fixed: it must be gone",
	       .choices = expectation_names),
	OPTION(TEXT, "confidence", "P", offsetof(struct run_options, confidence),
	       "How sure to be before calling it gone (default 99 %): as many clean trials are run "
	       "as rule out with that probability that the recorded rate has not changed; a "
	       "failure one time in five takes 21"),
	OPTION(FLAG, "careful", NULL, offsetof(struct run_options, careful),
	       "Also count that the recorded rate is itself an estimate from so many runs: more "
	       "trials, until Fisher's exact test says it"),
	OPTION(FLAG, "allow-others", NULL, offsetof(struct run_options, allow_others),
	       "With --expect fixed: failures of other kinds do not stand against it. Without this "
	       "they do, because damaged memory fails in more than one place; those that every "
	       "run showed when the sentinel was made never do"),
	OPTION(TEXT, "root", "DIR", offsetof(struct run_options, root),
	       "The project's directory (default: found from where the sentinel lies)"),
	OPTION(FLAG, "yes", NULL, offsetof(struct run_options, yes),
	       "Run it without a question. Without this, a sentinel that this user did not make "
	       "is shown and asked about first"),
	OPTION(TEXT, "junit", "FILE", offsetof(struct run_options, junit),
	       "Write the result as JUnit XML, too"),
	OPTIONS_END,
};

/* As a share, or as a percentage with or without its sign. */
static int parse_confidence(const char *text, double *ret, struct err *err)
{
	AUTO(mem_freep) char *percent = mem_printf("%s%%", text);
	char *end;
	double number = strtod(text, &end);
	int r = value_share(*end == '\0' && number > 1 ? percent : text, ret, err);

	return r < 0 ? err_set_prefix(err, "--confidence") : 0;
}

static bool has_sentinel(const char *dir)
{
	AUTO(mem_freep) char *path = mem_printf("%s/" SENTINEL_FILE, dir);

	return access(path, F_OK) == 0;
}

static int write_junit(const char *path, const struct certificate *certificate, struct err *err)
{
	FILE *out = fopen(path, "we");
	bool failed;

	if (!out)
		return err_set_errno(err, -errno, "--junit '%s'", path);
	report_certificate_junit(certificate, out);
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed)
		return err_set_errno(err, -errno, "--junit '%s'", path);
	return 0;
}

static int check(const struct invocation *inv, struct err *err)
{
	const struct run_options *options = inv->options;
	AUTO(sentinel_check_deinit) struct sentinel_check run = { 0 };
	struct sentinel_check_options how = {
		.dir = inv->arg_count > 0		    ? inv->args[0]
		       : has_sentinel(SENTINEL_DIR_DEFAULT) ? SENTINEL_DIR_DEFAULT
							    : ".",
		.root = options->root,
		.case_dir = options->common.case_dir,
		.expect = options->expect,
		.careful = options->careful,
		.allow_others = options->allow_others,
		.yes = options->yes,
	};
	int r = parse_confidence(options->confidence, &how.confidence, err);

	if (r == 0)
		r = sentinel_check_run(&run, &how, err);
	if (r == 0 && options->junit)
		r = write_junit(options->junit, &run.certificate, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_certificate_json(&run.certificate, stdout);
	else
		report_certificate_text(&run.certificate, stdout);
	if (run.temporary && !run.certificate.met)
		log_note("the trials' output was not kept; --case DIR keeps it");
	return common_exit(run.certificate.interrupted, !run.certificate.met);
}

static void run_defaults(void *ptr)
{
	struct run_options *options = ptr;

	options->common.case_dir = NULL; /* a temporary one */
	options->confidence = "0.99";
}

static const struct command sentinel_run = {
	.name = "sentinel run",
	.summary = "Does it still fail, or is it really gone, and how sure is that",
	.usage = "[options] [DIR]",
	.description =
		"Runs the sentinel in DIR (default " SENTINEL_DIR_DEFAULT
		", else the current directory) and prints a certificate. Exit status 0: as expected.\n\n"
		"With --expect fails it stops at the first failure that is the recorded one. With "
		"--expect fixed it stops as soon as anything fails, and otherwise runs as many trials as "
		"the confidence takes at the recorded rate. Failures of other kinds are counted apart and "
		"told; a run that ended in one says nothing about this one and is made up for.\n\n"
		"Unless --case names one, the case of the run is a temporary one.",
	.examples =
		"  redhand sentinel run tests/sentinels/tagflip --expect fixed --junit out.xml\n"
		"      prove a fix\n",
	MORE_OPTIONS(struct run_options, "What to expect", run_option_table),
	.args_max = 1,
	.defaults = run_defaults,
	.run = check,
};

static const struct command *const subcommands[] = { &sentinel_create, &sentinel_run, NULL };

const struct command cmd_sentinel = {
	.name = "sentinel",
	.summary = "Is it really gone, or does it still fail as recorded",
	.usage = "create|run [options]",
	.description =
		"A sentinel is a small directory in the project that guards one known failure: CI runs it "
		"and hears whether the bug is still there, as a test that is expected to fail would tell "
		"for a failure of every run, or that it is gone, with so many clean runs that it "
		"cannot be luck.",
	COMMON_OPTIONS(struct common_only),
	.subcommands = subcommands,
};
