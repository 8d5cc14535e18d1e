/*
 * Fuzzer of what is parsed from text: watch specs, predicates, lines of test programs, words of a
 * shell, settings of a series, names of secrets.
 */
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "model/chaos_knobs.h"
#include "model/known_secrets.h"
#include "plan/watch/condition.h"
#include "plan/watch/spec.h"
#include "run/settings.h"
#include "run/testline.h"
#include "wire/secret_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hide(const char *text, size_t len)
{
	static struct secrets secrets;
	char *copy = malloc(len + 1);
	size_t half = len / 2;

	memcpy(copy, text, len + 1);
	secrets.count = secrets.used = 0;
	memset(secrets.heads, 0, sizeof(secrets.heads));
	secrets_add(&secrets, text, half, 0);
	secrets_hide(&secrets, copy, len, 0);
	if (half >= SECRET_SHORTEST && half <= SECRET_BYTES && memcmp(copy, text, half) == 0 &&
	    strspn(text, "*") < half)
		abort(); /* it stands at the beginning, and was not hidden */
	free(copy);
}

/* In memory no six bytes in a row of it are left. */
static void hide_memory(const char *text, size_t len)
{
	static struct secrets secrets;
	size_t half = len / 2;
	char *copy = malloc(len);

	memcpy(copy, text, len);
	secrets.count = secrets.used = 0;
	memset(secrets.heads, 0, sizeof(secrets.heads));
	secrets_add(&secrets, text, half, 0);
	secrets_hide(&secrets, copy, len, SECRET_SOMEWHERE);
	for (size_t i = 0; i + SECRET_SHORTEST <= half && !memchr(text, '*', half); i++)
		if (memmem(copy, len, text + i, SECRET_SHORTEST))
			abort();
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct series_settings settings = { 0 };
	struct spec spec = { 0 };
	struct when when = { 0 };
	struct strv words = { 0 };
	unsigned int knobs = 0;
	char *name = NULL;
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (spec_parse(text, &spec, NULL) == 0)
		spec_deinit(&spec);
	if (when_compile(text, &when, NULL) == 0)
		when_deinit(&when);
	(void)testline_read(text, size, &name);
	free(name);
	if (series_settings_read(text, &settings, NULL) == 0)
		series_settings_deinit(&settings);
	(void)words_split(text, &words, NULL);
	strv_deinit(&words);
	(void)chaos_parse(text, &knobs, NULL);
	secret_words((char *[]){ "--password", text, "mysql", "-p", text, NULL }, &words);
	strv_deinit(&words);
	hide(text, strlen(text));
	if (size <= 256)
		hide_memory(text, strlen(text));
	free(text);
	return 0;
}
