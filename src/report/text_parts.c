#include "report/text_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/percent.h"
#include "base/source_file.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "model/known_secrets.h"
#include "report/wording.h"

void put(FILE *out, const char *fmt, ...)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 }, shown = { 0 };
	const char *line, *end;
	va_list args;

	va_start(args, fmt);
	strbuf_vaddf(&sb, fmt, args);
	va_end(args);
	for (line = strbuf_str(&sb); (end = strchr(line, '\n')) != NULL; line = end + 1) {
		strbuf_add_printable(&shown, line, (size_t)(end - line));
		strbuf_addc(&shown, '\n');
	}
	strbuf_add_printable(&shown, line, strlen(line));
	(void)fputs(strbuf_str(&shown), out);
}

void text_print(const char *text, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strlen(text));
	(void)fputs(strbuf_str(&sb), out);
}

void text_said(const struct said *said, FILE *out)
{
	AUTO(mem_freep) char *text = words_of(said);

	text_print(text ? text : "", out);
}

void text_words(char *const *words, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	words_join(&sb, words);
	text_print(strbuf_str(&sb), out);
}

void text_program(char *const *program, FILE *out)
{
	AUTO(strv_deinit) struct strv open = { 0 };

	secret_words(program, &open);
	text_words(open.items, out);
}

char *text_clean_runs(const struct series_summary *summary)
{
	return mem_printf("%" PRIu64 " clean run%s in a row would show with 99 %% confidence that "
			  "it is fixed, at this rate; %" PRIu64 " at the low end of its interval",
			  summary->clean_runs_for_99, summary->clean_runs_for_99 == 1 ? "" : "s",
			  summary->clean_runs_at_low);
}

void text_rate(const struct rate *rate, FILE *out)
{
	put(out, "%" PRIu64 " of %" PRIu64 " failed, %s %% (95 %%: %s–%s %%)", rate->failed,
	    rate->trials, PERCENT(rate->rate), PERCENT(rate->low), PERCENT(rate->high));
}

void text_notes(const struct said_list *notes, FILE *out)
{
	VEC_FOREACH (&notes->list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		put(out, "%snote: %s\n", note == notes->list.items ? "\n" : "", text);
	}
}

char *text_source_line(const struct frame *frame)
{
	struct strbuf sb = { 0 };
	char *line = NULL;
	size_t room = 0;
	FILE *source;
	bool found = false;

	if (!frame->file || frame->line == 0)
		return NULL;
	source = source_open(frame->file, frame->module);
	if (!source)
		return NULL;
	for (uint32_t n = 1; n <= frame->line && !found && getline(&line, &room, source) >= 0; n++)
		found = n == frame->line;
	(void)fclose(source);
	if (found) {
		const char *text = line + strspn(line, " \t");

		strbuf_add_printable(&sb, text, strcspn(text, "\r\n"));
	}
	free(line);
	return found ? strbuf_take(&sb) : NULL;
}

/* One that came once among several says nothing by itself: heap addresses differ in every run. */
char *text_fault_addresses(const struct series_summary *summary)
{
	struct strbuf sb = { 0 };
	uint64_t crashes = 0, others = 0;

	VEC_FOREACH (&summary->faults, f)
		crashes += f->count;
	if (crashes == 0)
		return NULL;
	VEC_FOREACH (&summary->faults, f) {
		if (f->count == 1 && f->fault != FAULT_NULL && summary->faults.count > 1) {
			others++;
			continue;
		}
		strbuf_addf(&sb, "%s%s0x%" PRIx64 " in %" PRIu64 " of %" PRIu64 " crash%s",
			    sb.len > 0 ? ", " : "", f->fault == FAULT_NULL ? "NULL+" : "",
			    f->address, f->count, crashes, crashes == 1 ? "" : "es");
	}
	if (others > 0)
		strbuf_addf(&sb, "%s%" PRIu64 "%s address%s, each in one crash",
			    sb.len > 0 ? "; " : "", others, sb.len > 0 ? " other" : " different",
			    others == 1 ? "" : "es");
	return strbuf_take(&sb);
}
