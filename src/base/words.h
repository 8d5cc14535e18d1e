#pragma once

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* Splits text into words as a shell would: white space separates, single and double quotes and
 * backslashes protect. Nothing is expanded. An open quote is an error. */
int words_split(const char *text, struct strv *ret, struct err *err);

/* Appends one word so that a shell reads it back as it is; plain words stay as they are. */
void words_quote(struct strbuf *sb, const char *word);

/* A list of them, that ends with NULL or is NULL, with spaces between. */
void words_join(struct strbuf *sb, char *const *words);
