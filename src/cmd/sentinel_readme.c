#include "cmd/sentinel_readme.h"

#include "base/percent.h"
#include "base/words.h"
#include "model/chaos_knobs.h"
#include "search/stats/rate.h"
#include "studies/sentinel/certainty.h"

static const char run_sh[] =
	"#!/bin/sh\n"
	"# Is the known failure still there, or is it really fixed? README.md tells more.\n"
	"#\n"
	"#\trun.sh                   it must still fail as recorded\n"
	"#\trun.sh --expect fixed    it must be gone\n"
	"#\n"
	"# Exit status: 0 as expected, 1 not as expected, 2 it could not be told.\n"
	"here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 2\n"
	"redhand=${REDHAND:-redhand}\n"
	"if ! command -v \"$redhand\" >/dev/null 2>&1; then\n"
	"\techo \"$0: there is no '$redhand'; put redhand into PATH or set REDHAND\" >&2\n"
	"\texit 2\n"
	"fi\n"
	"exec \"$redhand\" sentinel run --yes \"$here\" \"$@\"\n";

static void add_command(const struct sentinel *s, struct strbuf *ret)
{
	const struct series_settings *trial = &s->trial;

	AUTO(strbuf_deinit) struct strbuf words = { 0 };

	words_join(&words, trial->env.items);
	strbuf_adds(&words, words.len > 0 ? " " : "");
	words_join(&words, trial->program.items);
	strbuf_adds(ret, "    ");
	/* Several lines would leave the block. */
	strbuf_add_printable(ret, strbuf_str(&words), words.len);
	strbuf_adds(ret, "\n\n");
}

static void add_chaos(const struct sentinel *s, struct strbuf *ret)
{
	if (s->trial.chaos == 0)
		return;
	strbuf_adds(ret, "Each run is disturbed on purpose, as when it was recorded (`--chaos ");
	chaos_list((unsigned int)s->trial.chaos, ret);
	strbuf_adds(ret, "`): that is what brings it out.\n\n");
}

static void add_files(const struct sentinel *s, struct strbuf *ret)
{
	if (s->files.count + s->own.count == 0)
		return;
	strbuf_adds(ret, "Files of the reproducer, kept verbatim in `" SENTINEL_FILES "/`:\n\n");
	for (size_t i = 0; i < s->own.count; i++)
		strbuf_addf(ret, "- `%s`: the copy is what runs\n", s->own.items[i]);
	for (size_t i = 0; i < s->files.count; i++)
		strbuf_addf(ret, "- `%s`: the project's own runs; the copy tells when it changes\n",
			    s->files.items[i]);
	strbuf_addc(ret, '\n');
}

static void add_readme(const struct sentinel *s, struct strbuf *ret)
{
	struct rate rate = rate_wilson(s->trials, s->failed, RATE_CONFIDENCE);
	uint64_t needed = certificate_needed(&rate, 0.99, false);

	strbuf_addf(ret,
		    "# A sentinel for a failure that comes and goes\n\n"
		    "This directory was written by `redhand sentinel create`. It guards one known "
		    "failure:\n\n    %s\n\n",
		    s->signature.summary);
	strbuf_addf(ret, "It was seen in %llu of %llu runs, %s %% (95 %%: %s–%s %%)%s%s.\n\n",
		    (unsigned long long)s->failed, (unsigned long long)s->trials,
		    PERCENT(rate.rate), PERCENT(rate.low), PERCENT(rate.high),
		    s->commit ? ", at commit " : "", s->commit ? s->commit : "");
	strbuf_addf(
		ret,
		"    sh run.sh                   # exit 0: it still fails as recorded\n"
		"    sh run.sh --expect fixed    # exit 0: it is gone\n\n"
		"The first stops at the first such failure. The second takes %llu clean runs, "
		"because fewer could be luck, and stops as soon as it fails. Exit status 1 means "
		"not as expected, 2 that it could not be told. `--junit FILE` writes the result "
		"for a CI. `redhand` must be in PATH, or REDHAND name it.\n\n",
		(unsigned long long)needed);
	strbuf_addf(
		ret,
		"A test that is skipped or expected to fail hides an open bug; this keeps it in "
		"sight. When the bug is fixed, delete this directory or let CI run it with "
		"`--expect fixed`.\n\nWhat runs, in `%s`, %llu at a time ({root} is the project, "
		"{sentinel} this directory):\n\n",
		s->trial.cwd ? s->trial.cwd : "{root}", (unsigned long long)s->trial.jobs);
	add_command(s, ret);
	add_chaos(s, ret);
	add_files(s, ret);
	if (s->tests.count > 0)
		strbuf_addf(ret,
			    "`tests.txt` has the smallest list of tests that brings it out (%zu); "
			    "the command above runs it.\n\n",
			    s->tests.count);
	strbuf_adds(ret,
		    "`" SENTINEL_FILE "` holds all of it as text, a keyword and its words on each "
		    "line. No variable of the environment is recorded but those above.\n");
}

const struct sentinel_words sentinel_words = { .redhand = REDHAND_VERSION,
					       .run_sh = run_sh,
					       .readme = add_readme };
