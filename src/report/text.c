#include "report/text.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/percent.h"
#include "base/strbuf.h"
#include "base/words.h"
#include "model/secret.h"
#include "report/wording.h"

void text_program(char *const *program, FILE *out)
{
	for (size_t i = 0; program[i]; i++) {
		AUTO(strbuf_deinit) struct strbuf word = { 0 };
		AUTO(strbuf_deinit) struct strbuf shown = { 0 };
		AUTO(mem_freep)
		char *open = secret_word(program[i], i > 0 ? program[i - 1] : NULL);

		words_quote(&word, open);
		strbuf_add_printable(&shown, strbuf_str(&word), word.len);
		(void)fprintf(out, "%s%s", i > 0 ? " " : "", strbuf_str(&shown));
	}
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
	(void)fprintf(out, "%" PRIu64 " of %" PRIu64 " failed, %s %% (95 %%: %s–%s %%)",
		      rate->failed, rate->trials, PERCENT(rate->rate), PERCENT(rate->low),
		      PERCENT(rate->high));
}

void text_notes(const struct said_list *notes, FILE *out)
{
	VEC_FOREACH (&notes->list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		(void)fprintf(out, "%snote: %s\n", note == notes->list.items ? "\n" : "", text);
	}
}
