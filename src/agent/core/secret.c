#include "agent/core/secret.h"

#include "wire/secret.h"

/* Ours, not the environment's: the target may write over that, and keep copies elsewhere. Core
 * files leave it out, as all of our tables. */
static struct secrets known;

void secret_start(char *const *argv, char *const *envp)
{
	secrets_add_words(&known, envp, false);
	secrets_add_words(&known, argv, true);
}

void secret_hide_sigsafe(void *bytes, size_t len, uint64_t address)
{
	if (known.count)
		secrets_hide(&known, bytes, len, address);
}
