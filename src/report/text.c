#include "report/text.h"

#include <string.h>

#include "base/strbuf.h"
#include "base/words.h"

void text_program(char *const *program, FILE *out)
{
	for (size_t i = 0; program[i]; i++) {
		AUTO(strbuf_deinit) struct strbuf word = { 0 };
		AUTO(strbuf_deinit) struct strbuf shown = { 0 };

		words_quote(&word, program[i]);
		strbuf_add_printable(&shown, strbuf_str(&word), word.len);
		(void)fprintf(out, "%s%s", i > 0 ? " " : "", strbuf_str(&shown));
	}
}
