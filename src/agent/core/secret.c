#include "agent/core/secret.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"

/* Ours, not the environment's: the target may write over that, and keep copies elsewhere. Core
 * files leave it out, as all of our tables. */
static struct secrets known;

static bool is_file(const char *value)
{
	return !raw_syscall2(SYS_access, value, F_OK);
}

void secret_start(char *const *argv, char *const *envp)
{
	secrets_add_words(&known, envp, false, is_file);
	secrets_add_words(&known, argv, true, is_file);
}

void secret_hide_sigsafe(void *bytes, size_t len, uint64_t address)
{
	if (known.count)
		secrets_hide(&known, bytes, len, address);
}

void secret_hide_command(char *words, size_t bytes)
{
	struct secret_before before = { 0 };
	struct secret_span span;
	char *word, *end = words + bytes;

	for (word = words; word < end; word += strlen(word) + 1) {
		span = secret_find(word, &before, 0);
		for (; span.len; span = secret_find(word, &before, span.at + span.len))
			memset(word + span.at, '*', span.len);
		secret_before_move(&before, word);
	}
}

void secret_hide_registers_sigsafe(void *registers, size_t len, size_t each)
{
	size_t at;

	for (at = 0; known.count && at < len; at += each)
		secrets_hide(&known, (char *)registers + at, each, SECRET_SOMEWHERE);
}
