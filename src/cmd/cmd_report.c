/* `redhand report`: a case in any format. */
#include "cmd/commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/talk.h"
#include "case/case.h"
#include "cmd/common.h"
#include "report/report_investigation.h"
#include "report/report_page.h"
#include "report/share.h"
#include "studies/overview/case_investigation.h"

enum report_format {
	FORMAT_TEXT,
	FORMAT_MD,
	FORMAT_JSON,
	FORMAT_SARIF,
	FORMAT_GCC,
	FORMAT_HTML,
};

struct report_options {
	struct common_options common;
	unsigned int format; /* enum report_format */
	const char *output;
	const char *root;
	bool share;
};

static const char *const format_names[] = { "text", "md", "json", "sarif", "gcc", "html", NULL };

static const struct option report_option_table[] = {
	OPTION(CHOICE, "format", "FORMAT", offsetof(struct report_options, format),
	       "text (default: for a terminal), md (Markdown), json (the same as --json), sarif "
	       "(SARIF 2.1.0, for code hosts and editors), gcc (file:line: error: …, as editors "
	       "read it from compilers), html (a page for a browser, one file)",
	       .choices = format_names),
	OPTION(TEXT, "output", "FILE", offsetof(struct report_options, output),
	       "Write to FILE instead of stdout", .letter = 'o'),
	OPTION(FLAG, "share", NULL, offsetof(struct report_options, share),
	       "Leave out what is nobody else's concern: memory contents, values of variables, the "
	       "machine's name, the home directory, the place of the project"),
	OPTION(TEXT, "root", "DIR", offsetof(struct report_options, root),
	       "The project's root; files below it are named relative to it (default: the git "
	       "root above the directory where the trials were run, or that directory)"),
	OPTIONS_END,
};

/* What is printed. */
struct contents {
	struct investigation inv;
	struct trial_dots dots; /* FORMAT_HTML */
};

static void contents_deinit(struct contents *contents)
{
	trial_dots_deinit(&contents->dots);
	investigation_deinit(&contents->inv);
}

static void print(const struct contents *contents, enum report_format format,
		  const struct terminal *terminal, const struct share *share, FILE *out)
{
	const struct investigation *inv = &contents->inv;

	switch (format) {
	case FORMAT_HTML:
		report_investigation_html(
			inv, &contents->dots,
			&(struct page_options){ .version = REDHAND_VERSION, .share = share }, out);
		break;
	case FORMAT_MD:
		report_investigation_md(inv, out);
		break;
	case FORMAT_JSON:
		report_investigation_json(inv, out);
		break;
	case FORMAT_SARIF:
		report_investigation_sarif(inv, REDHAND_VERSION, out);
		break;
	case FORMAT_GCC:
		report_investigation_gcc(inv, out);
		break;
	default:
		report_investigation_text(inv, terminal, out);
	}
}

/* All of it, as it would be printed. */
static char *rendered(const struct contents *contents, enum report_format format, bool share)
{
	struct utsname name = { 0 };
	struct share without = { .root = contents->inv.root,
				 .home = getenv("HOME"),
				 .host = name.nodename };
	char *text = NULL, *shared;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	(void)uname(&name);
	print(contents, format, &(struct terminal){ .columns = COLUMNS_DEFAULT },
	      share ? &without : NULL, out);
	(void)fclose(out);
	/* A page leaves it out where it writes a text: afterwards it could not be told from markup.
	 */
	if (!share || format == FORMAT_HTML)
		return text;
	shared = format == FORMAT_JSON || format == FORMAT_SARIF
			 ? share_json(&without, text, format == FORMAT_JSON)
			 : share_text(&without, text);
	free(text);
	return shared;
}

static int print_to(FILE *out, const char *path, const char *text, struct err *err)
{
	(void)fputs(text, out);
	if (fflush(out) != 0 || ferror(out))
		return err_set_errno(err, errno > 0 ? -errno : -EIO, "cannot write '%s'", path);
	return 0;
}

/* Whoever passes it on should know what is in it. */
static void say_what_is_in_it(bool share)
{
	if (share)
		log_note("the report publishes commands, names and places of source code, without "
			 "memory contents, environment, host names");
	else
		log_note(
			"the report publishes commands and variables given to redhand, file names, "
			"values from memory; --share leaves out memory contents, environment, host "
			"names");
}

static int print_all(const struct contents *contents, const struct report_options *options,
		     enum report_format format, struct err *err)
{
	AUTO(mem_freep) char *text = NULL;
	FILE *out = stdout;
	int r;

	if (!options->share && !options->output) {
		print(contents, format, &(struct terminal){ common_colour(), common_columns() },
		      NULL, stdout);
		return 0;
	}
	text = rendered(contents, format, options->share);
	if (!text)
		return err_set(err, -ENOMEM, "the report cannot be made");
	if (options->output)
		out = fopen(options->output, "we");
	if (!out)
		return err_set_errno(err, -errno, "cannot write '%s'", options->output);
	r = print_to(out, options->output ? options->output : "stdout", text, err);
	if (options->output && fclose(out) != 0 && r == 0)
		r = err_set_errno(err, -errno, "cannot write '%s'", options->output);
	return r;
}

static int take_root(const char *root, struct investigation *inv, struct err *err)
{
	char *path;

	if (!root)
		return 0;
	path = realpath(root, NULL);
	if (!path)
		return err_set_errno(err, -errno, "--root '%s'", root);
	mem_free(inv->root);
	inv->root = path;
	return 0;
}

static int check(const struct report_options *options, enum report_format *ret, struct err *err)
{
	*ret = options->format;
	if (!options->common.json)
		return 0;
	if (options->format != FORMAT_TEXT && options->format != FORMAT_JSON)
		return err_set(err, -EINVAL, "--json does not go together with --format %s",
			       format_names[options->format]);
	*ret = FORMAT_JSON;
	return 0;
}

static int report(const struct invocation *inv, struct err *err)
{
	const struct report_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(contents_deinit) struct contents contents = { 0 };
	enum report_format format;
	int r = check(options, &format, err);

	if (r == 0)
		r = case_open(options->common.case_dir, CASE_READ, &cs, err);
	if (r == 0)
		r = investigation_read(cs, NULL, &contents.inv, err);
	if (r == 0 && (format == FORMAT_HTML || format == FORMAT_JSON))
		layout_read(&contents.inv);
	if (r == 0 && format == FORMAT_HTML)
		r = dots_read(cs, &contents.inv, &contents.dots, err);
	if (r == 0)
		r = take_root(options->root, &contents.inv, err);
	if (r < 0)
		return r;
	say_what_is_in_it(options->share);
	return print_all(&contents, options, format, err);
}

const struct command cmd_report = {
	.name = "report",
	.summary = "The case as a report: text, a page, Markdown, JSON, SARIF, lines for an editor",
	.usage = "[options]",
	.description =
		"Writes down what a case holds, and runs nothing: the verdict, how to reproduce it and how "
		"often it fails, where it crashes, the shortest list of tests that brings it out, what "
		"was done in which order, the hypotheses with the evidence that decided them, the root "
		"cause, and what to do next. What the case does not hold yet is left out: trials of repro "
		"or minimize alone make a report, too.\n\n"
		"A line on stderr says what it publishes.\n\n"
		"It can be used while trials are running. Exit status 0 whenever there was something to "
		"write.",
	.examples = "  redhand report --format html --output report.html\n"
		    "      to look at\n\n"
		    "  redhand report --format md --output INVESTIGATION.md\n"
		    "      for the issue tracker\n\n"
		    "  redhand report --share --format md --output INVESTIGATION.md\n"
		    "      for one that everybody reads\n\n"
		    "  redhand report --format sarif --output redhand.sarif\n"
		    "      for the code host\n\n"
		    "  :cexpr system('redhand report --format gcc')\n"
		    "      jump from place to place in vim\n",
	OWN_OPTIONS(struct report_options, "The report", report_option_table),
	.run = report,
};
