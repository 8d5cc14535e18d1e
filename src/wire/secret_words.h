/*
 * What looks like a secret, and how its value is hidden. The one list of names stands in
 * secret_words.c.
 *
 * Both sides use it: the agent, so that no value gets into an event log, and the tool, for
 * commands, variables and output. All of it is async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does a variable or an option with this name hold a secret? Dashes in front do not count. */
bool secret_name(const char *name, size_t len);

struct secret_span {
	size_t at, len; /* len 0: there is none */
};

/* What came before a word in its command: the word, and the last tool whose options of one letter
 * are known. A zeroed struct: nothing. */
struct secret_before {
	const char *word, *tool;
};

void secret_before_move(struct secret_before *before, const char *word);

/* The first secret at or behind `from` in an argument or an entry of the environment: the value of
 * NAME=VALUE, of --NAME=VALUE, the word behind such an option, the password in a URL. In a longer
 * text, such as a line for a shell, a header or JSON, likewise: --NAME VALUE, NAME: VALUE. */
struct secret_span secret_find(const char *word, const struct secret_before *before, size_t from);

#define SECRETS_MAX 256u
#define SECRETS_BYTES (64u << 10)
#define SECRET_BYTES 4096u /* kept of one value; its place in memory is known whole */
#define SECRETS_GRAM_BITS 12
#define SECRET_SHORTEST 6u /* shorter values are hidden in their own places only */

/* Values that must not be shown. A zeroed struct is an empty list. */
struct secrets {
	uint32_t count, used;
	struct secret_value {
		uint64_t address; /* of the value in the process that writes; 0: not looked for */
		uint64_t bytes;	  /* of it */
		uint32_t at, len; /* the beginning of it, in text[] */
	} values[SECRETS_MAX];
	char text[SECRETS_BYTES];
	/* Four bytes of text each: where the first of a chain begins, plus one, and the next. */
	uint16_t heads[1u << SECRETS_GRAM_BITS], next[SECRETS_BYTES];
};

/* What does not fit is left out; `address` 0 when only the text counts. */
void secrets_add(struct secrets *secrets, const char *value, size_t len, uint64_t address);

/* The secrets of a list of arguments, or of an environment, that ends with NULL. is_file: is there
 * such a file? Its name is no secret, and may be the beginning of a module's. */
void secrets_add_words(struct secrets *secrets, char *const *words, bool arguments,
		       bool (*is_file)(const char *value));

/* Puts asterisks over every secret in bytes that were copied from `address` (0: from nowhere, a
 * text). Of a text, what it holds only the beginning or the end of is hidden as well; in memory (an
 * address) every piece of six bytes, and of four where the bytes begin or end. */
#define SECRET_SOMEWHERE 1u /* in memory, where is not known */
void secrets_hide(const struct secrets *secrets, char *bytes, size_t len, uint64_t address);
