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
		"STRIPE_PRIVATE",
		"SIGNING_PEM",
		"PASSWORD_SALT",
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
	struct secret_span span = secret_find(word, before, 0);

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
	is_found("https://abc@host/path", NULL, "abc");
	is_found("http://abc@host:8080/path", NULL, "abc");
	is_found("https://host:8080/path", NULL, "");
	is_found("ssh://git@host/path", NULL, "");
	is_found("A=B", NULL, "");
}

/* Options of one letter, NAME:PASSWORD, tokens that any name may have. */
static void shapes(void **state)
{
	is_found("-pHunter-2", "mysql", "Hunter-2");
	is_found("mysql -uroot -pHunter2x db", NULL, "Hunter2x");
	is_found("-PHunter2x", "unzip", "Hunter2x");
	is_found("me:abc", "-u", "abc");
	is_found("--user=me:abc", NULL, "abc");
	is_found("-ume:abc", "curl", "abc");
	is_found("curl --proxy-user 'me:a b' http://x", NULL, "a b");
	is_found("curl -u me:abc http://x", NULL, "abc");
	is_found("pass:abc", "-passin", "abc");
	is_found("https://host/a?sv=1&sig=abc%3D&x=1", NULL, "abc%3D");
	is_found("https://host/a?X-Amz-Signature=abc", NULL, "abc");
	is_found("kill --sig=abc", NULL, "");
	is_found("password:abc", NULL, "abc");
	is_found("{\"apiToken\" : \"abc\"}", NULL, "abc");
	is_found("PHPSESSID=abc", NULL, "abc");
	is_found("x", "ghp_0123456789abcdefghijABCDEFGHIJ", "");
	is_found("ghp_0123456789abcdefghijABCDEFGHIJ", NULL, "ghp_0123456789abcdefghijABCDEFGHIJ");
	is_found("run=AKIA0123456789ABCDEF;", NULL, "AKIA0123456789ABCDEF");
	/* What looks like them. */
	is_found("-pthread", "cc", "");
	is_found("-p8080:80", "docker", "");
	is_found("-pno:cacheprovider", "pytest", "");
	is_found("-path=a1b2c3", NULL, "");
	is_found("-p/tmp/a1b2c3", NULL, "");
	is_found("-print0", "find", "");
	is_found("dir1234", "-p", "");
	is_found("1000:1000", "-u", "");
	is_found("node:node", "--user", "");
	is_found("tests/test_a.py::test_b", "-u", "");
	is_found("test_a.py::test_b", "-u", "");
	is_found("https://host/path", "-u", "");
	is_found("test_token.c:12", NULL, "");
	is_found("task-0123456789abcdef0123", NULL, "");
	is_found("ghp_short1", NULL, "");
}

/* Lines for a shell, headers, JSON. */
static void texts(void **state)
{
	const char *two = "A=1 TOKEN=abc --mode=fast --password 'd e' x";
	struct secret_span span = secret_find(two, NULL, 0);

	assert_memory_equal(two + span.at, "abc ", span.len + 1);
	span = secret_find(two, NULL, span.at + span.len);
	assert_int_equal(span.len, 3);
	assert_memory_equal(two + span.at, "d e'", span.len + 1);
	assert_int_equal(secret_find(two, NULL, span.at + span.len).len, 0);
	is_found("TOKEN=a b", NULL, "a b");
	is_found("export TOKEN=a; run", NULL, "a");
	is_found("curl -H 'X-Api-Key: abc' host", NULL, "abc");
	is_found("Authorization: Bearer abc", "-H", "Bearer abc");
	is_found("{\"n\":1,\"password\":\"abc\"}", NULL, "abc");
	is_found("{'password': 'abc'}", NULL, "abc");
	is_found("https://host/?a=1&token=abc&b=2", NULL, "abc");
	is_found("run a:b https://me:abc@host/", NULL, "abc");
	/* Names of tests, variables, comparisons. */
	is_found("tests/test_token.py::test_key", NULL, "");
	is_found("--gtest_filter=Token.*:Key.*", NULL, "");
	is_found("n=1; pass=$((pass+1)); [ $pass = 3 ]", NULL, "");
	is_found("the key is here", NULL, "");
	is_found("run --password --other", NULL, "");
	is_found("--password ", NULL, "");
	is_found("PATH=/bin:/usr/bin", NULL, "");
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
	/* In memory a copy may be overwritten in part. */
	hides(&list, "sesame-## ##ame-open", 0x9000, "*******## ##********");
	hides(&list, "#sesame-# ##ame-open#", 0, "#sesame-# ##ame-open#");
	hides(&list, "sesa##e-open", 0x9000, "sesa##******");
	hides(&list, "sesam##-open", 0x9000, "sesam##-open");
	/* Short ones only where they stand. */
	hides(&list, "abc abc", 0x1ffc, "abc ***");
	/* The place itself, whatever the target has written there meanwhile. */
	hides(&list, "0123456789", 0xffc, "0123******");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names), cmocka_unit_test(words),  cmocka_unit_test(shapes),
		cmocka_unit_test(texts), cmocka_unit_test(values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
