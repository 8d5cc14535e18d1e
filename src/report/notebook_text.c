/*
 * Fixes that were tried, next steps and related cases, as text.
 */
#include "report/notebook_words.h"

#include <inttypes.h>
#include <string.h>

#include "base/percent.h"
#include "base/when.h"
#include "report/report_case.h"
#include "report/text_parts.h"

#define FILES_SHOWN 6

static void add_trials(const struct attempt_trials *t, struct strbuf *sb)
{
	strbuf_addf(sb, "%s: %" PRIu64 " of %" PRIu64 " failed", t->command, t->rate.failed,
		    t->rate.trials);
	if (t->rate.failed == 0)
		strbuf_addf(sb, " (95 %%: at most %s %%)", PERCENT(t->rate.high));
	if (t->same_build)
		strbuf_adds(sb, ", with the program's file as it was before the attempt");
}

void attempt_outcome(const struct attempt *attempt, struct strbuf *sb)
{
	bool failed = false, fresh = false;

	VEC_FOREACH (&attempt->trials, t) {
		failed |= t->rate.failed > 0 && !t->same_build;
		fresh |= !t->same_build;
	}
	if (attempt->trials.count == 0) {
		strbuf_adds(sb, "no trial has been run since");
		return;
	}
	strbuf_adds(sb, !fresh	 ? "the program has not been rebuilt since: "
			: failed ? "still fails: "
				 : "no failure since: ");
	VEC_FOREACH (&attempt->trials, t) {
		strbuf_adds(sb, t == attempt->trials.items ? "" : "; ");
		add_trials(t, sb);
	}
}

void attempt_change(const struct attempt *attempt, struct strbuf *sb)
{
	AUTO(strbuf_deinit) struct strbuf files = { 0 };
	size_t added = 0, removed = 0, count = 0;

	for (const char *line = attempt->diff; line && *line != '\0';) {
		size_t len = strcspn(line, "\n");

		if (strncmp(line, "+++ b/", 6) == 0 && count++ < FILES_SHOWN) {
			strbuf_adds(&files, files.len > 0 ? ", " : "");
			strbuf_add_printable(&files, line + 6, len - 6);
		}
		added += line[0] == '+' && strncmp(line, "+++ ", 4) != 0;
		removed += line[0] == '-' && strncmp(line, "--- ", 4) != 0;
		line += len + (line[len] == '\n');
	}
	if (count > 0)
		strbuf_addf(sb, "+%zu -%zu in %s%s", added, removed, strbuf_str(&files),
			    count > FILES_SHOWN ? ", …" : "");
}

void relation_words(const struct strv *common, struct strbuf *sb)
{
	static const char block[] = "block ", function[] = "function ";
	size_t functions = 0;

	for (size_t i = 0; i < common->count; i++)
		if (strncmp(common->items[i], block, strlen(block)) == 0)
			strbuf_addf(sb, "%sthe same code allocated the damaged block",
				    sb->len > 0 ? "; " : "");
	for (size_t i = 0; i < common->count; i++) {
		if (strncmp(common->items[i], function, strlen(function)) != 0)
			continue;
		strbuf_adds(sb, functions++ > 0 ? ", "
				: sb->len > 0	? "; both verdicts name "
						: "both verdicts name ");
		strbuf_add_printable(sb, common->items[i] + strlen(function),
				     strlen(common->items[i] + strlen(function)));
	}
	strbuf_adds(sb,
		    common->count > 0 ? ": perhaps one cause" : "nothing that both verdicts name");
}

void print_attempts(const struct notebook *notebook, FILE *out)
{
	char when[WHEN_MAX];

	if (notebook->attempts.count == 0)
		return;
	put(out, "\nAttempted fixes:\n");
	VEC_FOREACH (&notebook->attempts, a) {
		AUTO(strbuf_deinit) struct strbuf change = { 0 };
		AUTO(strbuf_deinit) struct strbuf outcome = { 0 };

		put(out, "  %3" PRIu64 "  %s  ", a->id, when_text(a->made_ms, when));
		text_print(a->text, out);
		attempt_change(a, &change);
		attempt_outcome(a, &outcome);
		put(out, "\n       %s%s%s\n", strbuf_str(&change), change.len > 0 ? "; " : "",
		    strbuf_str(&outcome));
	}
}

void print_steps(const struct notebook *notebook, FILE *out)
{
	if (notebook->steps.count == 0)
		return;
	put(out, "\nNext steps, yours:\n");
	VEC_FOREACH (&notebook->steps, step) {
		put(out, "  %3" PRIu64 "  [%c] ", step->id, step->done_ms != 0 ? 'x' : ' ');
		text_print(step->text, out);
		put(out, "\n");
	}
}

void print_relations(const struct notebook *notebook, FILE *out)
{
	if (notebook->relations.count == 0)
		return;
	put(out, "\nRelated cases:\n");
	VEC_FOREACH (&notebook->relations, relation) {
		put(out, "  ");
		report_relation_text(relation, out);
	}
}

void report_relation_text(const struct relation *relation, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	relation_words(&relation->common, &sb);
	text_print(relation->dir, out);
	put(out, ": %s\n", strbuf_str(&sb));
}
