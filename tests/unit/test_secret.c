/*
 * wire/secret_words.c: which names look secret, and that values are hidden wherever they stand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/secret_words.h"

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
	struct secret_span span = secret_find(word, &(struct secret_before){ before, NULL }, 0);

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

/* A command as a list of words, and as a line for a shell: both hide the same. `open`: how it looks
 * afterwards. */
static void command(const char *line, const char *open)
{
	char words[256], bytes[256], *at = words, *word;
	struct secret_before before = { 0 };
	struct secret_span span;

	(void)strcpy(words, line);
	(void)strcpy(bytes, line);
	while ((word = strsep(&at, " ")) != NULL) {
		span = secret_find(word, &before, 0);
		memset(bytes + (word - words) + span.at, '*', span.len);
		secret_before_move(&before, word);
	}
	assert_string_equal(bytes, open);
	(void)strcpy(bytes, line);
	for (span = secret_find(line, NULL, 0); span.len;
	     span = secret_find(line, NULL, span.at + span.len))
		memset(bytes + span.at, '*', span.len);
	assert_string_equal(bytes, open);
}

static void tools(void **state)
{
	static const char *const commands[][2] = {
		{ "mysql -u root -phunter db", "mysql -u root -p****** db" },
		{ "/usr/bin/mysqldump -phunter db", "/usr/bin/mysqldump -p****** db" },
		{ "mariadb-admin -ps ping", "mariadb-admin -p* ping" },
		{ "timeout 5 mysql db -phunter", "timeout 5 mysql db -p******" },
		{ "mysql -p db", "mysql -p db" },
		{ "mysql -P 3306 db", "mysql -P 3306 db" },
		{ "sshpass -p hunter ssh -p 22 host", "sshpass -p ****** ssh -p 22 host" },
		{ "sshpass -phunter ssh host", "sshpass -p****** ssh host" },
		{ "docker login -u me -p hunter host", "docker login -u me -p ****** host" },
		{ "docker run -p 8080:80 -e TOKEN=abc image",
		  "docker run -p 8080:80 -e TOKEN=*** image" },
		{ "redis-cli -a hunter ping", "redis-cli -a ****** ping" },
		{ "ldapsearch -x -w hunter -b dc=x", "ldapsearch -x -w ****** -b dc=x" },
		{ "unzip -P hunter a.zip", "unzip -P ****** a.zip" },
		{ "7z x -phunter a.7z", "7z x -p****** a.7z" },
		{ "mongosh -p hunter db", "mongosh -p ****** db" },
		{ "twine upload -p hunter dist", "twine upload -p ****** dist" },
		{ "snmpwalk -v 3 -A hunter -X other host",
		  "snmpwalk -v 3 -A ****** -X ***** host" },
		{ "openssl enc -k hunter -in a", "openssl enc -k ****** -in a" },
		{ "openssl rsa -passin pass:hunter", "openssl rsa -passin pass:******" },
		{ "openssl req -keyout a.out", "openssl req -keyout a.out" },
		{ "curl -b sid=abc -u me:hunter host", "curl -b ******* -u me:****** host" },
		{ "curl --oauth2-bearer hunter host", "curl --oauth2-bearer ****** host" },
		{ "psql postgres://me:hunter@host/db", "psql postgres://me:******@host/db" },
		{ "kubectl --token=hunter get pods", "kubectl --token=****** get pods" },
		{ "kubectl create --from-literal=password=hunter",
		  "kubectl create --from-literal=password=******" },
		/* The same letters elsewhere. */
		{ "mkdir -p hunter", "mkdir -p hunter" },
		{ "cc -pthread -pedantic a.c", "cc -pthread -pedantic a.c" },
		{ "ssh -p 2222 host", "ssh -p 2222 host" },
		{ "pytest -p no:cacheprovider -k hunter", "pytest -p no:cacheprovider -k hunter" },
		{ "find . -path x -prune -print", "find . -path x -prune -print" },
		{ "mysql_test -p dir -a all", "mysql_test -p dir -a all" },
		{ "grep -w word -A 3 -b file", "grep -w word -A 3 -b file" },
		{ "rsync -a a b", "rsync -a a b" },
		{ "cp -a http2 there", "cp -a http2 there" },
		{ "serve http -a 127.0.0.1:80", "serve http -a 127.0.0.1:80" },
		{ "mysql db; mkdir -p dir", "mysql db; mkdir -p dir" },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		command(commands[i][0], commands[i][1]);
	is_found("run Bearer abcdefgh01234567", NULL, "Bearer abcdefgh01234567");
	is_found("npm_0123456789abcdefghij0123456789abcd", NULL,
		 "npm_0123456789abcdefghij0123456789abcd");
	is_found("xoxs-0123456789-abcdefghij", NULL, "xoxs-0123456789-abcdefghij");
	is_found("hvs.0123456789abcdefghijAB", NULL, "hvs.0123456789abcdefghijAB");
	is_found("Bearer of bad news", NULL, "");
	is_found("npm_config_cache", NULL, "");
	is_found("SG.test", NULL, "");
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
	/* In memory every piece of six bytes tells, at the ends of what was copied four. */
	hides(&list, "sesame-## ##ame-open", 0x9000, "*******## ##********");
	hides(&list, "#sesame-# #me-ope#", 0x9000, "#*******# #******#");
	hides(&list, "#same-o# #e-ope#", 0x9000, "#******# #e-ope#");
	hides(&list, "same# #me-o", 0x9000, "****# #****");
	hides(&list, "ame# #me-", 0x9000, "ame# #me-");
	hides(&list, "ame-", 0x9000, "****");
	hides(&list, "ame", 0x9000, "ame");
	hides(&list, "#sesame-# ##ame-open#", 0, "#sesame-# ##ame-open#");
	/* Short ones only where they stand. */
	hides(&list, "abc abc", 0x1ffc, "abc ***");
	/* The place itself, whatever the target has written there meanwhile. */
	hides(&list, "0123456789", 0xffc, "0123******");
}

/* Every window of memory over every copy, whole or with a byte of it written over: no six bytes of
 * it are left, nor four at an end. */
static void windows(void **state)
{
	static const char value[] = "k0-Zebra/Quartz+77=Jolt.Vex_Wax";
	const size_t len = sizeof(value) - 1;
	static struct secrets list;
	char memory[96], window[96], part[8] = { 0 };

	secrets_add(&list, value, len, 0x1000);
	for (size_t cut = 0; cut <= len; cut++)
		for (size_t from = 0; from < 64; from++)
			for (size_t bytes = 1; from + bytes <= sizeof(memory); bytes++) {
				memset(memory, '.', sizeof(memory));
				memcpy(memory + 32, value, len);
				memory[32 + cut] = '#';
				memcpy(window, memory + from, bytes);
				secrets_hide(&list, window, bytes, SECRET_SOMEWHERE);
				for (size_t i = 0; i + 6 <= len; i++) {
					memcpy(part, value + i, 6);
					assert_null(memmem(window, bytes, part, 6));
					assert_false(bytes >= 4 && !memcmp(window, part, 4));
					assert_false(bytes >= 4 &&
						     !memcmp(window + bytes - 4, part, 4));
				}
				for (size_t i = 0; i < bytes; i++)
					assert_true(window[i] == memory[from + i] ||
						    (window[i] == '*' &&
						     strchr(value, memory[from + i])));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),   cmocka_unit_test(words), cmocka_unit_test(shapes),
		cmocka_unit_test(tools),   cmocka_unit_test(texts), cmocka_unit_test(values),
		cmocka_unit_test(windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
