/*
 * studies/sentinel/: how many trials it takes and what they prove, the sentinel's file, and the
 * settings of a series read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "in_range.h"
#include "says.h"
#include "search/stats/rate.h"
#include "studies/sentinel/certainty.h"
#include "studies/sentinel/sentinel.h"

static struct rate seen(uint64_t failed, uint64_t trials)
{
	return rate_wilson(trials, failed, RATE_CONFIDENCE);
}

static uint64_t needed(uint64_t failed, uint64_t trials, double confidence, bool careful)
{
	struct rate before = seen(failed, trials);

	return certificate_needed(&before, confidence, careful);
}

static void the_design_s_own_figure(void **state)
{
	assert_int_equal(needed(10, 50, 0.99, false), 21);
	assert_int_equal(needed(20, 100, 0.99, false), 21);
	assert_int_equal(needed(1, 2, 0.99, false), 7);
	assert_int_equal(needed(9, 50, 0.99, false), 24);
	assert_int_equal(needed(9, 50, 0.95, false), 16);
}

/* (41..50 product) / (41+n..50+n product) <= 0.01, by hand for 10 of 50. */
static void careful_counts_the_uncertainty_of_the_rate(void **state)
{
	assert_int_equal(needed(10, 50, 0.99, true), 27);
	/* 50 / (50 + n) <= 0.01 */
	assert_int_equal(needed(1, 50, 0.99, true), 4950);
	/* Known from many runs, a rate is as good as certain. */
	assert_uint_in_range(needed(200000, 1000000, 0.99, true), 21, 22);
}

static void a_rate_of_one_is_not_certain(void **state)
{
	/* 1 / C(20 + n, n) <= 0.01 */
	assert_int_equal(needed(20, 20, 0.99, false), 2);
	assert_int_equal(needed(1, 1, 0.99, false), 99);
	assert_int_equal(needed(0, 50, 0.99, false), UINT64_MAX);
}

static struct certificate concluded(struct certificate c)
{
	if (c.confidence == 0)
		c.confidence = 0.99;
	c.needed = certificate_needed(&c.before, c.confidence, c.careful);
	certificate_conclude(&c);
	return c;
}

static void clean_runs_are_certified_with_their_figures(void **state)
{
	struct certificate c = concluded(
		(struct certificate){ .expect = EXPECT_FIXED, .before = seen(9, 50), .clean = 42 });

	assert_true(c.met);
	assert_float_equal(c.bound, 0.0688, 0.0001);	/* 1 - 0.05^(1/42) */
	assert_float_equal(c.chance, 0.00024, 0.00001); /* 0.82^42 */
	assert_float_equal(c.p, 0.00289, 0.00001);	/* C(50,9) / C(92,9) */
	assert_string_equal(
		sentence_of(&c.sentence),
		"0 of 42 failed; before 9 of 50; the rate is now below 6.9 % with 95 % confidence. "
		"That nothing has changed and luck alone hid it is ruled out with 99.9760 % "
		"confidence at the recorded rate (18.0 %), with 99.7 % when the uncertainty of that "
		"rate is counted (Fisher's exact test)");
	certificate_deinit(&c);
}

static void too_few_clean_runs_are_not(void **state)
{
	struct certificate c = concluded((struct certificate){
		.expect = EXPECT_FIXED, .before = seen(10, 50), .clean = 20, .interrupted = true });

	assert_false(c.met);
	assert_string_equal(sentence_of(&c.sentence),
			    "Interrupted. Not certified: 0 of 20 failed; before 10 of "
			    "50, and it takes 21 clean trials");
	certificate_deinit(&c);
}

static void one_failure_is_enough_against_fixed(void **state)
{
	struct certificate c = concluded((struct certificate){
		.expect = EXPECT_FIXED, .before = seen(10, 50), .clean = 500, .shown = 1 });

	assert_false(c.met);
	assert_string_equal(sentence_of(&c.sentence),
			    "It still fails: 1 of 501 failed; before 10 of 50");
	certificate_deinit(&c);
}

static void other_failures_stand_against_fixed_unless_allowed(void **state)
{
	struct certificate c = concluded((struct certificate){
		.expect = EXPECT_FIXED, .before = seen(10, 50), .clean = 21, .others = 2 });

	assert_false(c.met);
	assert_true(says(&c.sentence, "2 trials failed in another way than recorded"));
	assert_true(says(&c.sentence, "0 of 21 failed as recorded"));
	certificate_deinit(&c);
	c = concluded((struct certificate){ .expect = EXPECT_FIXED,
					    .before = seen(10, 50),
					    .clean = 21,
					    .others = 2,
					    .allow_others = true });
	assert_true(c.met);
	certificate_deinit(&c);
}

static void still_failing_is_told_from_no_longer_and_from_not_yet(void **state)
{
	struct certificate c = concluded((struct certificate){
		.expect = EXPECT_FAILS, .before = seen(10, 50), .clean = 2, .shown = 1 });

	assert_true(c.met);
	assert_string_equal(sentence_of(&c.sentence),
			    "It still fails as recorded: 1 of 3 failed; before 10 of 50");
	certificate_deinit(&c);
	c = concluded((struct certificate){
		.expect = EXPECT_FAILS, .before = seen(10, 50), .clean = 21 });
	assert_false(c.met);
	assert_true(says(&c.sentence, "It no longer fails as recorded: 0 of 21"));
	assert_true(says(&c.sentence, "ruled out with 99.1 % confidence"));
	assert_true(says(&c.sentence, "with 97.8 % when"));
	assert_true(says(&c.sentence, "--careful takes 27 trials"));
	certificate_deinit(&c);
	c = concluded((struct certificate){
		.expect = EXPECT_FAILS, .before = seen(10, 50), .clean = 3, .others = 90 });
	assert_false(c.met);
	assert_true(says(&c.sentence, "It has not failed as recorded: 0 of 3"));
	assert_true(says(&c.sentence, "90 trials failed in another way"));
	certificate_deinit(&c);
}

/* ---- the file ---- */

static const char *const odd_words[] = { "bash", "-c",	  "echo 'a'\nexit \"$1\" \\",
					 "",	 "\xff#", "{root}/x y" };

static void a_sentinel_is_read_as_it_was_written(void **state)
{
	AUTO(sentinel_deinit) struct sentinel s = { .failed = 9, .trials = 50 };
	AUTO(sentinel_deinit) struct sentinel t = { 0 };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(odd_words); i++) {
		strv_add(&s.trial.program, odd_words[i]);
		strv_add(&s.known, odd_words[i]);
	}
	strv_add(&s.trial.env, "A=b\nc");
	strv_add(&s.files, "tests/x.sh");
	strv_add(&s.tests, "t1");
	s.trial.cwd = mem_strdup("{root}");
	s.trial.jobs = 3;
	s.trial.timeout_ns = 5000000000;
	s.trial.pty = true;
	s.trial.chaos = CHAOS_PAD | CHAOS_STARVE;
	s.trial.chaos_seed = mem_strdup("0");
	s.trial.observer = OBSERVE_IDS;
	s.root = mem_strdup("../..");
	s.signature.kind = FAILURE_SIGNAL;
	s.signature.signal = 11;
	s.signature.exit_status = -1;
	s.signature.test = mem_strdup("Suite.One");
	s.signature.site = mem_strdup("f(int, char*)");
	signature_seal(&s.signature);

	sentinel_write(&s, &text);
	assert_int_equal(sentinel_read(strbuf_str(&text), &t, &err), 0);
	assert_int_equal(t.trial.program.count, ARRAY_SIZE(odd_words));
	assert_int_equal(t.known.count, ARRAY_SIZE(odd_words));
	for (size_t i = 0; i < ARRAY_SIZE(odd_words); i++) {
		assert_string_equal(t.trial.program.items[i], odd_words[i]);
		assert_string_equal(t.known.items[i], odd_words[i]);
	}
	assert_string_equal(t.trial.env.items[0], "A=b\nc");
	assert_string_equal(t.trial.cwd, "{root}");
	assert_string_equal(t.root, "../..");
	assert_int_equal(t.trial.jobs, 3);
	assert_int_equal(t.trial.timeout_ns, 5000000000);
	assert_true(t.trial.pty);
	assert_int_equal(t.trial.chaos, CHAOS_PAD | CHAOS_STARVE);
	assert_string_equal(t.trial.chaos_seed, "0");
	assert_false(t.trial.share_tmp);
	assert_int_equal(t.trial.observer, OBSERVE_IDS);
	assert_int_equal(t.failed, 9);
	assert_int_equal(t.trials, 50);
	assert_string_equal(t.signature.id, s.signature.id);
	assert_string_equal(t.signature.summary, s.signature.summary);
	assert_null(t.commit);
}

static void bad_sentinels_are_told(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *saying;
	} bad[] = {
		{ "", -EINVAL, "no command" },
		{ "sentinel 2\n", -EPROTO, "version 2" },
		{ "command\n", -EINVAL, "nothing follows" },
		{ "command 'true\n", -EINVAL, "open '" },
		{ "comand true\n", -EINVAL, "no keyword 'comand'" },
		{ "command true\njobs 0\n", -EINVAL, "jobs" },
		{ "command true\njobs -1\n", -EINVAL, "number" },
		{ "command true\njobs 1\nfailed 2\ntrials 1\n", -EINVAL, "no rate" },
		{ "command true\njobs 1\nfailed 0\ntrials 1\n", -EINVAL, "no rate" },
		{ "command true\nkind strange\n", -EINVAL, "kind" },
		{ "command true\nobserve deeply\n", -EINVAL, "observer" },
		{ "command true\nchaos pad,storm\n", -EINVAL, "storm" },
		{ "cwd a b\n", -EINVAL, "one word" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct sentinel s = { 0 };
		struct err err = { 0 };

		assert_int_equal(sentinel_read(bad[i].text, &s, &err), bad[i].code);
		assert_non_null(strstr(err.message, bad[i].saying));
	}
}

/* ---- settings ---- */

static void settings_are_read_back(void **state)
{
	AUTO(series_settings_deinit) struct series_settings s = { 0 };
	struct err err = { 0 };

	assert_int_equal(
		series_settings_read("command 5:repro\narg 4:bash\narg 3:a\nb\narg 0:\ncwd 4:/tmp\n"
				     "slot-env 7:A=1\njob\nstdin 0:\nignore 4:exit\n"
				     "breadcrumb 0:\nobserve 3:ids\njobs 4\ntimeout 7\nlinger 8\n"
				     "share-tmp 1\npty 0\nframework pytest\nitems 3 abc\n"
				     "victim 1:v\narm 6:x:A=1,\n",
				     &s, &err),
		0);
	assert_int_equal(s.program.count, 3);
	assert_string_equal(s.program.items[1], "a\nb");
	assert_string_equal(s.program.items[2], "");
	assert_string_equal(s.cwd, "/tmp");
	assert_string_equal(s.env.items[0], "A=1\njob");
	assert_null(s.stdin_path);
	assert_null(s.breadcrumb);
	assert_string_equal(s.ignore.items[0], "exit");
	assert_int_equal(s.observer, OBSERVE_IDS);
	assert_int_equal(s.jobs, 4);
	assert_int_equal(s.timeout_ns, 7);
	assert_true(s.share_tmp);
	assert_false(s.pty);
	assert_int_equal(s.arms.count, 1);
}

static void damaged_settings_are_refused(void **state)
{
	static const char *const bad[] = { "",
					   "x",
					   "arg",
					   "arg 5:abc\n",
					   "arg 3:abc",
					   "arg 99999999999999999999:abc\n",
					   "arg :abc\n",
					   "arg 3:abc\njobs 0\n",
					   "arg 3:abc\njobs 5000\n",
					   "arg 3:abc\nobserve 3:xyz\njobs 1\n" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct series_settings s = { 0 };
		struct err err = { 0 };

		assert_true(series_settings_read(bad[i], &s, &err) < 0);
		assert_null(s.program.items);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_design_s_own_figure),
		cmocka_unit_test(careful_counts_the_uncertainty_of_the_rate),
		cmocka_unit_test(a_rate_of_one_is_not_certain),
		cmocka_unit_test(clean_runs_are_certified_with_their_figures),
		cmocka_unit_test(too_few_clean_runs_are_not),
		cmocka_unit_test(one_failure_is_enough_against_fixed),
		cmocka_unit_test(other_failures_stand_against_fixed_unless_allowed),
		cmocka_unit_test(still_failing_is_told_from_no_longer_and_from_not_yet),
		cmocka_unit_test(a_sentinel_is_read_as_it_was_written),
		cmocka_unit_test(bad_sentinels_are_told),
		cmocka_unit_test(settings_are_read_back),
		cmocka_unit_test(damaged_settings_are_refused),
	};

	return cmocka_run_group_tests_name("sentinel", tests, NULL, NULL);
}
