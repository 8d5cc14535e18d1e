/*
 * `sentinel` as text for a terminal, and as JUnit XML.
 */
#include "report/report_sentinel.h"

#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "report/text_parts.h"
#include "report/wording.h"

static void print_list(const char *head, const struct strv *list, FILE *out)
{
	for (size_t i = 0; i < list->count; i++) {
		put(out, "%s", head);
		text_print(list->items[i], out);
		put(out, "\n");
	}
}

static void print_notes(const struct said_list *notes, FILE *out)
{
	AUTO(strv_deinit) struct strv texts = { 0 };

	words_list(notes, &texts);
	print_list("Note: ", &texts, out);
}

static void print_certificate(const struct certificate *c, FILE *out)
{
	AUTO(mem_freep) char *sentence = words_of(&c->sentence);

	put(out, "%s (%s).\n%s.\n", c->met ? "As expected" : "NOT as expected",
	    expectation_names[c->expect], sentence);
	put(out, "\nRecorded: %s  ", c->signature);
	text_print(c->summary, out);
	put(out, "\n");
	if (c->shown_trial != 0)
		put(out, "Seen again in trial %" PRIu64 "\n", c->shown_trial);
	VEC_FOREACH (&c->other_failures, other) {
		put(out, "%s: %s  %" PRIu64 "  ",
		    other->known ? "Known, a separate issue" : "Another failure", other->id,
		    other->count);
		text_print(other->summary, out);
		put(out, "  (trial %" PRIu64 ")\n", other->trial);
	}
	print_notes(&c->notes, out);
}

void report_certificate_text(const struct certificate *c, FILE *out)
{
	print_certificate(c, out);
	put(out, "Command: ");
	text_program(c->program, out);
	put(out, "\n%g %% confidence takes %" PRIu64 " clean trials%s; this took %.1f s\n",
	    c->confidence * 100, c->needed,
	    c->careful ? ", the uncertainty of the recorded rate counted" : "", c->seconds);
}

/* Text for XML 1.0: markup escaped, characters that it does not allow made visible. */
static void xml_text(const char *text, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strlen(text));
	for (const char *at = strbuf_str(&sb); *at != '\0'; at++) {
		const char *entity = *at == '&'	   ? "&amp;"
				     : *at == '<'  ? "&lt;"
				     : *at == '>'  ? "&gt;"
				     : *at == '"'  ? "&quot;"
				     : *at == '\'' ? "&apos;"
						   : NULL;

		if (entity) {
			(void)fputs(entity, out);
		} else if (strncmp(at, "\xef\xbf\xbe", 3) == 0 ||
			   strncmp(at, "\xef\xbf\xbf", 3) == 0) {
			/* U+FFFE and U+FFFF are no characters (XML 1.0, section 2.2). */
			(void)fputc('?', out);
			at += 2;
		} else {
			(void)fputc(*at, out);
		}
	}
}

static void xml_property(const char *name, uint64_t value, FILE *out)
{
	put(out, "      <property name=\"%s\" value=\"%" PRIu64 "\"/>\n", name, value);
}

void report_certificate_junit(const struct certificate *c, FILE *out)
{
	AUTO(mem_freep) char *sentence = words_of(&c->sentence);
	put(out,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<testsuites tests=\"1\" failures=\"%d\" errors=\"0\" time=\"%.3f\">\n"
	    "  <testsuite name=\"redhand sentinel\" tests=\"1\" failures=\"%d\" "
	    "errors=\"0\" skipped=\"0\" time=\"%.3f\">\n    <properties>\n",
	    !c->met, c->seconds, !c->met, c->seconds);
	xml_property("trials", c->now.trials, out);
	xml_property("failed", c->shown, out);
	xml_property("before_trials", c->before.trials, out);
	xml_property("before_failed", c->before.failed, out);
	xml_property("needed", c->needed, out);
	xml_property("others", c->others, out);
	put(out,
	    "    </properties>\n    <testcase classname=\"redhand.sentinel.%s\" "
	    "name=\"",
	    expectation_names[c->expect]);
	xml_text(c->summary, out);
	put(out, "\" time=\"%.3f\">\n", c->seconds);
	if (!c->met) {
		put(out, "      <failure type=\"sentinel\" message=\"");
		xml_text(sentence, out);
		put(out, "\"/>\n");
	}
	put(out, "      <system-out>");
	xml_text(sentence, out);
	VEC_FOREACH (&c->other_failures, other) {
		put(out, "\n%s, %" PRIu64 " trials: ",
		    other->known ? "known, a separate issue" : "another failure", other->count);
		xml_text(other->summary, out);
	}
	VEC_FOREACH (&c->notes.list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		put(out, "\n");
		xml_text(text, out);
	}
	put(out, "</system-out>\n    </testcase>\n  </testsuite>\n</testsuites>\n");
}

void report_sentinel_text(const struct sentinel_report *r, FILE *out)
{
	AUTO(strv_deinit) struct strv copied = { 0 };

	put(out, "%s: a sentinel for %s  ", r->dir, r->signature);
	text_print(r->summary, out);
	put(out, "\nFrom series %lld of %s: ", (long long)r->series, r->case_dir);
	text_rate(&r->rate, out);
	put(out, "\nRuns: ");
	text_program(r->program, out);
	put(out, "\n");
	print_list("Environment: ", r->env, out);
	if (r->tests->count > 0)
		put(out, "Tests: the minimal list of %zu\n", r->tests->count);
	words_list(r->copied, &copied);
	print_list("Copied: ", &copied, out);
	print_notes(r->notes, out);
	put(out,
	    "\nCommit it next to the tests. Then:\n"
	    "  %s/run.sh                  is it still there?\n"
	    "  %s/run.sh --expect fixed   is it gone? (%" PRIu64 " clean runs)\n",
	    r->dir, r->dir, r->needed);
}
