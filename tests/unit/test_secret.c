/*
 * wire/secret.c: which names look secret, and that values are hidden wherever they stand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/secret.h"

static void names(void **state)
{
	static const char *const secret[] = {
		"AWS_SECRET_ACCESS_KEY",
		"API_KEY",
		"GITHUB_TOKEN",
		"--password",
		"MYSQL_PWD",
		"apiKey",
		"SSH_AUTH_SOCK",
		"npm_config__authToken",
		"KEY",
		"DB_PASS",
		"GITHUB_PAT",
		"key2",
	};
	static const char *const open[] = {
		"PWD",	      "OLDPWD",	  "KEYBOARD", "MONKEY", "PATH", "HOME", "COMPASS_HEADING",
		"XAUTHORITY", "PATIENCE", "",	      "--",
	};

	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		if (!secret_name(secret[i], strlen(secret[i])))
			fail_msg("%s", secret[i]);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (secret_name(open[i], strlen(open[i])))
			fail_msg("%s", open[i]);
}

static void is_found(const char *word, const char *before, const char *value)
{
	struct secret_span span = secret_find(word, before);

	assert_int_equal(span.len, strlen(value));
	assert_memory_equal(word + span.at, value, span.len);
}

static void words(void **state)
{
	is_found("TOKEN=abc", NULL, "abc");
	is_found("--api-key=abc", "x", "abc");
	is_found("abc", "--password", "abc");
	is_found("--other", "--password", "");
	is_found("abc", "password", "");
	is_found("https://me:abc@host/path", NULL, "abc");
	is_found("URL=redis://:a:b@host", NULL, "a:b");
	is_found("https://host/a:b@c", NULL, "");
	is_found("A=B", NULL, "");
}

static void hides(struct secrets *list, const char *from, uint64_t address, const char *to)
{
	char bytes[64];

	(void)strcpy(bytes, from);
	secrets_hide(list, bytes, strlen(from), address);
	assert_string_equal(bytes, to);
}

static void values(void **state)
{
	static struct secrets list;

	hides(&list, "nothing is known", 0, "nothing is known");
	secrets_add(&list, "sesame-open", 11, 0x1000);
	secrets_add(&list, "abc", 3, 0x2000);
	hides(&list, "a sesame-open b sesame-open", 0, "a *********** b ***********");
	/* Cut by either end. */
	hides(&list, "me-open and sesame", 0, "******* and ******");
	hides(&list, "-open and sesam", 0, "-open and sesam");
	/* Short ones only where they stand. */
	hides(&list, "abc abc", 0x1ffc, "abc ***");
	/* The place itself, whatever the target has written there meanwhile. */
	hides(&list, "0123456789", 0xffc, "0123******");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(words),
		cmocka_unit_test(values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
