#pragma once

#include "base/strbuf.h"
#include "base/vec.h"

/*
 * Secrets that the tool knows: values in its own environment, in the commands that it was given and
 * in --slot-env. What counts as one: wire/secret_words.h.
 */

#define SECRET_MARK "***" /* stands where a value stood */

/* One word of a command or NAME=VALUE, without its secret. The caller's to free. */
char *secret_word(const char *word);

/* A whole command, or variables, likewise. */
void secret_words(char *const *words, struct strv *ret);

/* Is the mark in one of them? Such a command cannot be run. */
bool secret_is_marked(const struct strv *words);

/* Does it stand where a value should: was the command copied from what redhand had printed? */
bool secret_is_lost(char *const *words);

/* Sixteen bits of all secrets in these words: enough to tell two commands apart, too few to find a
 * value by trying. 0: there is none. */
unsigned int secret_print(char *const *words);

/* From now on the values in these words are hidden, too. */
void secret_learn(char *const *words);

/* Puts asterisks over all values that are known. */
void secret_hide(char *bytes, size_t len);
