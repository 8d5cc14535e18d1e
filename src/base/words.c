#include "base/words.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/strbuf.h"

/* Does a backslash protect `next`? Between double quotes only what would mean something there
 * (POSIX, Shell Command Language 2.2.3), so that "\d+" stays as it is. */
static bool escapes(char quote, char next)
{
	if (next == '\0' || quote == '\'')
		return false;
	return quote == '\0' || strchr("$`\"\\\n", next);
}

int words_split(const char *text, struct strv *ret, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf word = { 0 };
	bool in_word = false;
	char quote = '\0';

	for (const char *at = text; *at != '\0'; at++) {
		if (*at == '\\' && escapes(quote, at[1])) {
			strbuf_addc(&word, *++at);
			in_word = true;
		} else if (quote != '\0') {
			if (*at == quote)
				quote = '\0';
			else
				strbuf_addc(&word, *at);
		} else if (*at == '\'' || *at == '"') {
			quote = *at;
			in_word = true;
		} else if (!isspace((unsigned char)*at)) {
			strbuf_addc(&word, *at);
			in_word = true;
		} else if (in_word) {
			strv_take(ret, strbuf_take(&word));
			in_word = false;
		}
	}
	if (quote != '\0')
		return err_set(err, -EINVAL, "there is an open %c in '%s'", quote, text);
	if (in_word)
		strv_take(ret, strbuf_take(&word));
	return 0;
}

void words_quote(struct strbuf *sb, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_./:,+@%-=";

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		strbuf_adds(sb, word);
		return;
	}
	strbuf_addc(sb, '\'');
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			strbuf_adds(sb, "'\\''");
		else
			strbuf_addc(sb, *word);
	}
	strbuf_addc(sb, '\'');
}

void words_join(struct strbuf *sb, char *const *words)
{
	for (char *const *word = words; word && *word; word++) {
		strbuf_adds(sb, word > words ? " " : "");
		words_quote(sb, *word);
	}
}
