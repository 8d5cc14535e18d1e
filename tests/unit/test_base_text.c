/*
 * base/: sentences, strings, lists, values and messages.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/pack.h"
#include "base/percent.h"
#include "base/strbuf.h"
#include "base/value.h"
#include "base/vec.h"
#include "base/words.h"

#include <errno.h>

/* ---- err ---- */

static void err_carries_code_and_sentence(void **state)
{
	struct err err = { 0 };

	assert_int_equal(err_set(&err, -EINVAL, "no %s at %d", "fish", 7), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.message, "no fish at 7");
	assert_string_equal(err.remedy, "");
	assert_int_equal(err_set_errno(&err, -ENOENT, "cannot open '%s'", "x"), -ENOENT);
	assert_string_equal(err.message, "cannot open 'x': No such file or directory");
}

static void err_may_be_null(void **state)
{
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_set_errno(NULL, -EIO, "x"), -EIO);
	(void)err_set_remedy(NULL, "x");
	(void)err_set_prefix(NULL, "x");
}

static void err_keeps_the_first_remedy(void **state)
{
	struct err err = { 0 };

	(void)err_set(&err, -EBUSY, "busy");
	assert_int_equal(err_set_remedy(&err, "near %d", 1), -EBUSY);
	assert_int_equal(err_set_remedy(&err, "far"), -EBUSY);
	assert_string_equal(err.remedy, "near 1");
	/* A new failure starts without the old one's remedy. */
	(void)err_set(&err, -EIO, "other");
	assert_string_equal(err.remedy, "");
}

static void err_prefix_stands_before(void **state)
{
	struct err err = { 0 };

	(void)err_set(&err, -EINVAL, "wants a number");
	(void)err_set_remedy(&err, "try 5");
	assert_int_equal(err_set_prefix(&err, "--%s", "jobs"), -EINVAL);
	assert_string_equal(err.message, "--jobs: wants a number");
	assert_int_equal(err_set_prefix(&err, "repro"), -EINVAL);
	assert_string_equal(err.message, "repro: --jobs: wants a number");
	assert_string_equal(err.remedy, "try 5");
}

static void err_truncates_what_is_too_long(void **state)
{
	struct err err;
	char big[4096];

	memset(big, 'a', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	memset(&err, 'z', sizeof(err));
	(void)err_set(&err, -EIO, "%s", big);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	(void)err_set_remedy(&err, "%s", big);
	assert_int_equal(strlen(err.remedy), sizeof(err.remedy) - 1);
	(void)err_set_errno(&err, -EIO, "%s", big);
	assert_true(strlen(err.message) < sizeof(err.message));
	/* However long both are, the prefix and the beginning of the sentence are there. */
	(void)err_set(&err, -EIO, "sentence %s", big);
	(void)err_set_prefix(&err, "prefix %s", big);
	assert_true(strlen(err.message) < sizeof(err.message));
	assert_int_equal(strncmp(err.message, "prefix a", 8), 0);
	assert_non_null(strstr(err.message, ": sentence a"));
}

/* ---- strbuf ---- */

static void strbuf_holds_any_bytes(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	unsigned char all[256];

	assert_string_equal(strbuf_str(&sb), "");
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	strbuf_add(&sb, all, 0);
	strbuf_add(&sb, all, sizeof(all));
	assert_int_equal(sb.len, 256);
	assert_memory_equal(sb.data, all, 256);
	assert_int_equal(sb.data[256], 0);
	strbuf_clear(&sb);
	assert_int_equal(sb.len, 0);
	assert_string_equal(strbuf_str(&sb), "");
}

static void strbuf_grows(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(mem_freep) char *taken = NULL;

	for (unsigned int i = 0; i < 20000; i++) {
		strbuf_addf(&sb, "%05u", i);
		if (i % 1000 == 0)
			assert_int_equal(strlen(sb.data), sb.len);
	}
	assert_int_equal(sb.len, 100000);
	assert_memory_equal(sb.data + 5 * 12345, "12345", 5);
	memcpy(strbuf_reserve(&sb, 70000), "end", 3);
	sb.len += 3;
	assert_memory_equal(sb.data + 100000, "end", 3);
	taken = strbuf_take(&sb);
	assert_int_equal(sb.len, 0);
	assert_null(sb.data);
	assert_memory_equal(taken, "0000000001", 10);
}

static void strbuf_take_of_nothing_is_a_string(void **state)
{
	struct strbuf sb = { 0 };
	AUTO(mem_freep) char *taken = strbuf_take(&sb);

	assert_string_equal(taken, "");
	strbuf_addf(&sb, "%s", "");
	assert_string_equal(strbuf_str(&sb), "");
	strbuf_deinit(&sb);
}

static void printable_is(const char *bytes, size_t len, const char *want)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, bytes, len);
	assert_string_equal(strbuf_str(&sb), want);
	assert_int_equal(sb.len, strlen(want));
}

#define PRINTABLE(bytes, want) printable_is(bytes, sizeof(bytes) - 1, want)

static void printable_keeps_text(void **state)
{
	PRINTABLE("", "");
	PRINTABLE("plain\ttext ~", "plain\ttext ~");
	PRINTABLE("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f",
		  "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f");
	PRINTABLE("\xc2\xa0", "\xc2\xa0");		   /* the first that is not C1 */
	PRINTABLE("\xed\x9f\xbf", "\xed\x9f\xbf");	   /* just below the surrogates */
	PRINTABLE("\xee\x80\x80", "\xee\x80\x80");	   /* just above them */
	PRINTABLE("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"); /* U+10FFFF */
}

static void printable_writes_out_control_characters(void **state)
{
	PRINTABLE("a\0b\rc\nd\x7f", "a\\x00b\\x0dc\\x0ad\\x7f");
	PRINTABLE("\033[31mred\033]0;title\007", "\\x1b[31mred\\x1b]0;title\\x07");
	PRINTABLE("\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m"); /* CSI as a C1 character */
	PRINTABLE("\xc2\x80\xc2\x9f", "\\xc2\\x80\\xc2\\x9f");
	PRINTABLE("\x9b", "\\x9b");
}

static void percentages_are_told_from_nothing(void **state)
{
	assert_string_equal(PERCENT(0), "0.0");
	assert_string_equal(PERCENT(0.2), "20.0");
	assert_string_equal(PERCENT(1), "100.0");
	assert_string_equal(PERCENT(0.01), "1.0");
	assert_string_equal(PERCENT(0.0026), "0.26");
	assert_string_equal(PERCENT(0.00019969), "0.020");
	assert_string_equal(PERCENT(1e-13), "0.000000000");
}

static void printable_writes_out_what_reorders_text(void **state)
{
	PRINTABLE("a\u202eb", "a\\xe2\\x80\\xaeb");
	PRINTABLE("\u2066\u2029", "\\xe2\\x81\\xa6\\xe2\\x80\\xa9");
	PRINTABLE("\u2027\u2030\u206a", "\u2027\u2030\u206a");
}

static void printable_writes_out_broken_utf8(void **state)
{
	PRINTABLE("\xc3", "\\xc3");
	PRINTABLE("\xc3(", "\\xc3(");
	PRINTABLE("\xe2\x82", "\\xe2\\x82");
	PRINTABLE("\xe2\x82"
		  "A",
		  "\\xe2\\x82A");
	PRINTABLE("\xf0\x9f\x90", "\\xf0\\x9f\\x90");
	PRINTABLE("\x80\xbf", "\\x80\\xbf");
	PRINTABLE("\xc0\xaf", "\\xc0\\xaf");		       /* overlong '/' */
	PRINTABLE("\xe0\x80\xaf", "\\xe0\\x80\\xaf");	       /* the same in three */
	PRINTABLE("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf"); /* and in four */
	PRINTABLE("\xed\xa0\x80", "\\xed\\xa0\\x80");	       /* a surrogate */
	PRINTABLE("\xed\xbf\xbf", "\\xed\\xbf\\xbf");
	PRINTABLE("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond U+10FFFF */
	PRINTABLE("\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80");
	PRINTABLE("\xfe\xff", "\\xfe\\xff");
	PRINTABLE("\xc3\xa9\xc3", "\xc3\xa9\\xc3");
}

/* ---- vec, strv ---- */

static void vec_grows_and_walks(void **state)
{
	VEC(uint64_t) vec = { 0 };
	uint64_t sum = 0, walked = 0;

	VEC_FOREACH (&vec, item)
		walked += *item;
	assert_int_equal(walked, 0);
	for (uint64_t i = 1; i <= 1000; i++)
		VEC_PUSH(&vec, i * i);
	assert_int_equal(vec.count, 1000);
	VEC_FOREACH (&vec, item) {
		sum += *item;
		walked++;
	}
	assert_int_equal(walked, 1000);
	assert_int_equal(sum, 333833500);
	VEC_DEINIT(&vec);
	assert_null(vec.items);
	assert_int_equal(vec.count, 0);
	VEC_PUSH(&vec, (uint64_t)5);
	assert_int_equal(vec.items[0], 5);
	VEC_DEINIT(&vec);
}

static void strv_ends_in_null(void **state)
{
	AUTO(strv_deinit) struct strv strv = { 0 };
	AUTO(strv_deinit) struct strv copy = { 0 };

	strv_add(&strv, "one");
	strv_take(&strv, mem_strdup("two"));
	assert_int_equal(strv.count, 2);
	assert_null(strv.items[2]);
	strv_copy(&copy, strv.items);
	assert_int_equal(copy.count, 2);
	assert_string_equal(copy.items[1], "two");
	assert_ptr_not_equal(copy.items[1], strv.items[1]);
}

static void strv_setenv_replaces_whole_names(void **state)
{
	AUTO(strv_deinit) struct strv env = { 0 };

	strv_setenv(&env, "GONE", NULL);
	assert_int_equal(env.count, 0);
	strv_add(&env, "PATH=/bin");
	strv_add(&env, "PATHS=keep");
	strv_add(&env, "PATH=/twice");
	strv_add(&env, "PAT=keep");
	strv_add(&env, "PATH"); /* not an assignment, so not that variable */
	strv_setenv(&env, "PATH", "a=b");
	assert_int_equal(env.count, 4);
	assert_string_equal(env.items[0], "PATHS=keep");
	assert_string_equal(env.items[1], "PAT=keep");
	assert_string_equal(env.items[2], "PATH");
	assert_string_equal(env.items[3], "PATH=a=b");
	assert_null(env.items[4]);
	strv_setenv(&env, "PATH", NULL);
	assert_int_equal(env.count, 3);
	assert_null(env.items[3]);
	strv_setenv(&env, "EMPTY", "");
	assert_string_equal(env.items[3], "EMPTY=");
}

/* ---- value ---- */

static void refuses(int r, const struct err *err, const char *text)
{
	if (r != -EINVAL)
		fail_msg("'%s' was taken", text);
	assert_non_null(strstr(err->message, "wants"));
	assert_non_null(strstr(err->message, text));
}

static void value_count_within_bounds(void **state)
{
	static const char *const bad[] = { "",
					   "-1",
					   " 5",
					   "5 ",
					   "+5",
					   "5x",
					   "0x5",
					   "1e3",
					   "nan",
					   "inf",
					   "1.5",
					   "0",
					   "11",
					   "18446744073709551616",
					   "99999999999999999999999" };
	struct err err = { 0 };
	uint64_t got = 77;

	assert_int_equal(value_count("1", 1, 10, &got, &err), 0);
	assert_int_equal(got, 1);
	assert_int_equal(value_count("10", 1, 10, &got, &err), 0);
	assert_int_equal(got, 10);
	assert_int_equal(value_count("010", 1, 10, &got, &err), 0);
	assert_int_equal(got, 10); /* decimal, whatever it looks like */
	assert_int_equal(value_count("18446744073709551615", 0, 0, &got, &err), 0);
	assert_true(got == UINT64_MAX);
	got = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuses(value_count(bad[i], 1, 10, &got, &err), &err, bad[i]);
	assert_non_null(strstr(err.message, "from 1 to 10"));
	refuses(value_count("4", 5, 0, &got, &err), &err, "4");
	assert_non_null(strstr(err.message, "at least 5"));
	assert_int_equal(got, 77);
}

static void value_share_between_0_and_1(void **state)
{
	static const char *const bad[] = { "",	   "0",	  "1",	 "0%",	 "100%", "-0.1",
					   "1.1",  "nan", "inf", "0x.8", "5",	 "1e99",
					   "0.5x", "%",	  ".",	 "0.5 %" };
	struct err err = { 0 };
	double got = 77;

	assert_int_equal(value_share("0.05", &got, &err), 0);
	assert_true(fabs(got - 0.05) < 1e-15);
	assert_int_equal(value_share("5%", &got, &err), 0);
	assert_true(fabs(got - 0.05) < 1e-15);
	assert_int_equal(value_share(".5", &got, &err), 0);
	assert_int_equal(value_share("99.9%", &got, &err), 0);
	got = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuses(value_share(bad[i], &got, &err), &err, bad[i]);
	assert_true(got == 77);
}

static void value_size_with_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "64K", 65536 },
		{ "64k", 65536 },
		{ "64KiB", 65536 },
		{ "1M", 1u << 20 },
		{ "1.5m", 1572864 },
		{ "2MiB", 2u << 20 },
		{ "2G", 2ull << 30 },
		{ "1gib", 1u << 30 },
		{ "1000000000000000", 1000000000000000 },
	};
	static const char *const bad[] = { "",	  "-1",	 "1T",	 "0x10",  "inf", "nan", "K",
					   "1 K", "1KB", "1e16", "1e999", "1K5", "--" };
	struct err err = { 0 };
	uint64_t got;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		got = 77;
		assert_int_equal(value_size(good[i].text, &got, &err), 0);
		assert_true(got == good[i].want);
	}
	got = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuses(value_size(bad[i], &got, &err), &err, bad[i]);
	assert_int_equal(got, 77);
}

static void value_duration_with_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {
		{ "30", 30000000000 },	{ "250ms", 250000000 },	   { "30s", 30000000000 },
		{ "5m", 300000000000 }, { "5min", 300000000000 },  { "1h", 3600000000000 },
		{ "0.5s", 500000000 },	{ "1.5H", 5400000000000 }, { "0", 0 },
	};
	static const char *const bad[] = { "",	  "-5", "5d", "5 s",   "0x1", "inf",   "infinity",
					   "nan", "s",	"ms", "1e10h", "5ss", "1e400", "\t5" };
	struct err err = { 0 };
	uint64_t got;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		got = 77;
		assert_int_equal(value_duration(good[i].text, &got, &err), 0);
		assert_true(got == good[i].want);
	}
	got = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		refuses(value_duration(bad[i], &got, &err), &err, bad[i]);
	assert_int_equal(got, 77);
}

/* ---- words ---- */

static void words_are(const char *text, size_t count, ...)
{
	AUTO(strv_deinit) struct strv got = { 0 };
	struct err err = { 0 };
	va_list args;

	assert_int_equal(words_split(text, &got, &err), 0);
	assert_int_equal(got.count, count);
	va_start(args, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(got.items[i], va_arg(args, const char *));
	va_end(args);
}

static void words_split_as_a_shell_does(void **state)
{
	words_are("", 0);
	words_are(" \t\n ", 0);
	words_are("one", 1, "one");
	words_are("  one\ttwo \n three ", 3, "one", "two", "three");
	words_are("'a b' \"c d\"", 2, "a b", "c d");
	words_are("a'b c'd", 1, "ab cd");
	words_are("'' \"\"", 2, "", "");
	words_are("a\\ b \\'c \\\\", 3, "a b", "'c", "\\");
	words_are("'a\\b' \"say \\\"hi\\\"\"", 2, "a\\b", "say \"hi\"");
	words_are("\"it's\" 'say \"hi\"'", 2, "it's", "say \"hi\"");
	words_are("$HOME *.c `x`", 3, "$HOME", "*.c", "`x`");
	words_are("--re=\"\\d+\\.x\" \"\\$HOME \\\\ \\`\"", 2, "--re=\\d+\\.x", "$HOME \\ `");
	words_are("tail\\", 1, "tail\\");
}

static void words_refuse_an_open_quote(void **state)
{
	static const char *const open[] = { "'", "a 'b", "\"a b", "a\"'b'", "\"\\\"" };

	for (size_t i = 0; i < ARRAY_SIZE(open); i++) {
		AUTO(strv_deinit) struct strv got = { 0 };
		struct err err = { 0 };

		assert_int_equal(words_split(open[i], &got, &err), -EINVAL);
		assert_non_null(strstr(err.message, open[i]));
	}
}

/* ---- pack ---- */

static void pack_example(struct strbuf *sb)
{
	AUTO(strv_deinit) struct strv strv = { 0 };

	strv_add(&strv, "one");
	strv_add(&strv, "");
	strv_add(&strv, "three\n");
	pack_u64(sb, 0);
	pack_u64(sb, UINT64_MAX);
	pack_str(sb, "text");
	pack_str(sb, "");
	pack_str(sb, NULL);
	pack_strv(sb, &strv);
	pack_strv(sb, &(struct strv){ 0 });
	pack_u64(sb, 42);
}

/* Reads all of it; false when it was broken. Checks the values when `check`. */
static bool unpack_example(const char *bytes, size_t len, bool check)
{
	struct unpacker u = { .at = bytes, .left = len };
	AUTO(strv_deinit) struct strv strv = { 0 };
	AUTO(strv_deinit) struct strv none = { 0 };
	uint64_t zero = unpack_u64(&u), most = unpack_u64(&u), last;
	AUTO(mem_freep) char *text = unpack_str(&u);
	AUTO(mem_freep) char *empty = unpack_str(&u);
	AUTO(mem_freep) char *null = unpack_str(&u);

	unpack_strv(&u, &strv);
	unpack_strv(&u, &none);
	last = unpack_u64(&u);
	if (check) {
		assert_int_equal(zero, 0);
		assert_true(most == UINT64_MAX);
		assert_string_equal(text, "text");
		assert_string_equal(empty, "");
		assert_null(null);
		assert_int_equal(strv.count, 3);
		assert_string_equal(strv.items[1], "");
		assert_string_equal(strv.items[2], "three\n");
		assert_int_equal(none.count, 0);
		assert_int_equal(last, 42);
		assert_int_equal(u.left, 0);
	}
	return !u.broken;
}

static void pack_survives_the_journey(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	pack_example(&sb);
	assert_true(unpack_example(sb.data, sb.len, true));
}

static void every_truncation_is_noticed(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	pack_example(&sb);
	for (size_t len = 0; len < sb.len; len++) {
		/* An exact copy, so that a sanitizer sees a read past its end. */
		AUTO(mem_freep) char *part = mem_alloc(len);

		memcpy(part, sb.data, len);
		if (unpack_example(part, len, false))
			fail_msg("%zu of %zu bytes were taken for all", len, sb.len);
	}
}

static void hostile_lengths_are_refused(void **state)
{
	static const uint64_t lengths[] = { 5, 1u << 20, INT64_MAX, UINT64_MAX - 1,
					    UINT64_MAX - 8 };

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		AUTO(strv_deinit) struct strv strv = { 0 };
		struct unpacker u, v;

		pack_u64(&sb, lengths[i]);
		strbuf_adds(&sb, "four");
		u = v = (struct unpacker){ .at = sb.data, .left = sb.len };
		assert_null(unpack_str(&u));
		assert_true(u.broken);
		assert_int_equal(unpack_u64(&u), 0);
		assert_null(unpack_str(&u));
		unpack_strv(&v, &strv);
		assert_true(v.broken);
		assert_int_equal(strv.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_carries_code_and_sentence),
		cmocka_unit_test(err_may_be_null),
		cmocka_unit_test(err_keeps_the_first_remedy),
		cmocka_unit_test(err_prefix_stands_before),
		cmocka_unit_test(err_truncates_what_is_too_long),
		cmocka_unit_test(strbuf_holds_any_bytes),
		cmocka_unit_test(strbuf_grows),
		cmocka_unit_test(strbuf_take_of_nothing_is_a_string),
		cmocka_unit_test(printable_keeps_text),
		cmocka_unit_test(printable_writes_out_control_characters),
		cmocka_unit_test(percentages_are_told_from_nothing),
		cmocka_unit_test(printable_writes_out_what_reorders_text),
		cmocka_unit_test(printable_writes_out_broken_utf8),
		cmocka_unit_test(vec_grows_and_walks),
		cmocka_unit_test(strv_ends_in_null),
		cmocka_unit_test(strv_setenv_replaces_whole_names),
		cmocka_unit_test(value_count_within_bounds),
		cmocka_unit_test(value_share_between_0_and_1),
		cmocka_unit_test(value_size_with_units),
		cmocka_unit_test(value_duration_with_units),
		cmocka_unit_test(words_split_as_a_shell_does),
		cmocka_unit_test(words_refuse_an_open_quote),
		cmocka_unit_test(pack_survives_the_journey),
		cmocka_unit_test(every_truncation_is_noticed),
		cmocka_unit_test(hostile_lengths_are_refused),
	};

	return cmocka_run_group_tests_name("base_text", tests, NULL, NULL);
}
