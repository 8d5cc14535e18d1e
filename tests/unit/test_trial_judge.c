/*
 * run: from what was seen to signatures, and the messages between slots and redhand.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/job.h"
#include "run/outcome.h"

/* A string literal that may be pointed to as if it could be changed. */
#define TEXT(literal) ((char[]){ literal })

static const struct trial_settings plain = { 0 };

#define IGNORING(kind) (&(struct trial_settings){ .ignored = 1u << (kind) })

static void judge(const struct trial_settings *settings, const struct trial_end *end,
		  struct signatures *ret)
{
	judge_signatures(settings, end, NULL, ret);
	assert_int_equal(judge_failed(settings, end), ret->list.count > 0);
	for (size_t i = 1; i < ret->list.count; i++)
		assert_true(strcmp(ret->list.items[i - 1].id, ret->list.items[i].id) < 0);
	VEC_FOREACH (&ret->list, s) {
		assert_int_equal(strlen(s->id), SIGNATURE_ID_LEN);
		assert_int_equal(strspn(s->id, "0123456789abcdef"), SIGNATURE_ID_LEN);
		assert_true(s->summary[0] != '\0');
	}
}

static void passes(const struct trial_settings *settings, const struct trial_end *end)
{
	AUTO(signatures_deinit) struct signatures got = { 0 };

	judge(settings, end, &got);
	assert_int_equal(got.list.count, 0);
}

/* Exactly one signature; its id is returned in static storage. */
static const char *one(const struct trial_settings *settings, const struct trial_end *end,
		       enum failure_kind kind, const char *summary)
{
	static char ids[4][SIGNATURE_ID_LEN + 1];
	static unsigned int next;
	AUTO(signatures_deinit) struct signatures got = { 0 };
	char *id = ids[next++ % 4];

	judge(settings, end, &got);
	assert_int_equal(got.list.count, 1);
	assert_int_equal(got.list.items[0].kind, kind);
	assert_string_equal(got.list.items[0].summary, summary);
	memcpy(id, got.list.items[0].id, sizeof(ids[0]));
	return id;
}

static void a_clean_end_passes(void **state)
{
	AUTO(strv_deinit) struct strv failed = { 0 };

	passes(&plain, &(struct trial_end){ 0 });
	passes(&plain, &(struct trial_end){ .leftovers = 3, .last_crumb = TEXT("ERROR") });
	/* A test that was said to fail, but the command took it for success. */
	strv_add(&failed, "T");
	passes(&plain, &(struct trial_end){ .failed_tests = failed });
	/* What the observer itself ended is no failure of the target's. */
	passes(&plain,
	       &(struct trial_end){ .exit_status = -1, .signal = SIGSYS, .by_observer = true });
}

static void each_kind(void **state)
{
	one(&plain, &(struct trial_end){ .exit_status = -1, .signal = SIGSEGV }, FAILURE_SIGNAL,
	    "SIGSEGV");
	one(&plain, &(struct trial_end){ .stray = { 7, SIGABRT } }, FAILURE_SIGNAL,
	    "SIGABRT in a child process");
	one(&plain, &(struct trial_end){ .exit_status = -1, .timed_out = true }, FAILURE_TIMEOUT,
	    "timeout");
	one(&plain, &(struct trial_end){ .matched = TEXT("bad value 17") }, FAILURE_OUTPUT,
	    "output matches --fail-on after \"bad value *\"");
	one(&plain, &(struct trial_end){ .exit_status = 3 }, FAILURE_EXIT, "exit 3");
	one(&plain, &(struct trial_end){ .exit_status = 139 }, FAILURE_EXIT,
	    "exit 139 (a shell's word for SIGSEGV)");
	one(&plain, &(struct trial_end){ .exit_status = 130 }, FAILURE_EXIT, "exit 130");
	one(&plain,
	    &(struct trial_end){ .exit_status = -1,
				 .signal = SIGBUS,
				 .running_test = TEXT("A.b"),
				 .last_crumb = TEXT("line") },
	    FAILURE_SIGNAL, "SIGBUS in A.b");
	one(&plain,
	    &(struct trial_end){
		    .exit_status = -1, .signal = SIGBUS, .last_crumb = TEXT("line 5") },
	    FAILURE_SIGNAL, "SIGBUS after \"line *\"");
	{
		AUTO(strv_deinit) struct strv failed = { 0 };

		strv_add(&failed, "A.a");
		one(&plain,
		    &(struct trial_end){ .exit_status = 1,
					 .failed_tests = failed,
					 .last_crumb = TEXT("1 FAILED TEST") },
		    FAILURE_TEST, "test fails: A.a");
	}
}

static void each_kind_can_be_ignored(void **state)
{
	AUTO(strv_deinit) struct strv failed = { 0 };

	strv_add(&failed, "T");
	passes(IGNORING(FAILURE_SIGNAL),
	       &(struct trial_end){ .exit_status = -1, .signal = SIGSEGV });
	passes(IGNORING(FAILURE_SIGNAL), &(struct trial_end){ .stray = { 7, SIGABRT } });
	passes(IGNORING(FAILURE_TIMEOUT),
	       &(struct trial_end){ .exit_status = -1, .timed_out = true });
	passes(IGNORING(FAILURE_EXIT), &(struct trial_end){ .exit_status = 3 });
	passes(IGNORING(FAILURE_EXIT),
	       &(struct trial_end){ .exit_status = 3, .failed_tests = failed });
	/* Ignoring one leaves the others. */
	one(IGNORING(FAILURE_EXIT), &(struct trial_end){ .exit_status = -1, .signal = SIGSEGV },
	    FAILURE_SIGNAL, "SIGSEGV");
	one(IGNORING(FAILURE_SIGNAL),
	    &(struct trial_end){ .exit_status = 1, .stray = { 7, SIGABRT } }, FAILURE_EXIT,
	    "exit 1");
	one(IGNORING(FAILURE_EXIT), &(struct trial_end){ .exit_status = 3, .matched = TEXT("bad") },
	    FAILURE_OUTPUT, "output matches --fail-on after \"bad\"");
}

static void several_in_one_trial(void **state)
{
	AUTO(signatures_deinit) struct signatures got = { 0 };
	AUTO(signatures_deinit) struct signatures again = { 0 };
	AUTO(strv_deinit) struct strv failed = { 0 };
	AUTO(strv_deinit) struct strv turned = { 0 };
	struct trial_end end = { .exit_status = -1,
				 .signal = SIGSEGV,
				 .stray = { 5, SIGBUS },
				 .matched = TEXT("bad"),
				 .running_test = TEXT("C.c") };
	unsigned int kinds[FAILURE_KINDS] = { 0 };

	strv_add(&failed, "A.a");
	strv_add(&failed, "B.b");
	strv_add(&failed, "A.a"); /* said twice is one */
	end.failed_tests = failed;
	judge(&plain, &end, &got);
	assert_int_equal(got.list.count, 5);
	VEC_FOREACH (&got.list, s)
		kinds[s->kind]++;
	assert_int_equal(kinds[FAILURE_SIGNAL], 2);
	assert_int_equal(kinds[FAILURE_OUTPUT], 1);
	assert_int_equal(kinds[FAILURE_TEST], 2);
	/* The order of events does not matter. */
	strv_add(&turned, "B.b");
	strv_add(&turned, "A.a");
	end.failed_tests = turned;
	judge(&plain, &end, &again);
	assert_int_equal(again.list.count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(got.list.items[i].id, again.list.items[i].id);
}

/* Ids are stored in cases and quoted in reports: a change of the hash is a change of contract. */
static void ids_are_stable(void **state)
{
	struct trial_end crash = { .exit_status = -1,
				   .signal = SIGSEGV,
				   .running_test = TEXT("A.b") };
	struct trial_end other = crash;
	const char *id = one(&plain, &crash, FAILURE_SIGNAL, "SIGSEGV in A.b");

	other.wall_ns = 12345;
	other.peak_kib = 99;
	other.stdout_bytes = 7;
	other.last_crumb = TEXT("something else");
	assert_string_equal(one(&plain, &other, FAILURE_SIGNAL, "SIGSEGV in A.b"), id);
	other.signal = SIGBUS;
	assert_string_not_equal(one(&plain, &other, FAILURE_SIGNAL, "SIGBUS in A.b"), id);
	other = crash;
	other.running_test = TEXT("A.c");
	assert_string_not_equal(one(&plain, &other, FAILURE_SIGNAL, "SIGSEGV in A.c"), id);
	/* FNV-1a of "exit\n0\n3\n0\n\n\n", mixed; worked out with Python. */
	assert_string_equal(one(&plain, &(struct trial_end){ .exit_status = 3 }, FAILURE_EXIT,
				"exit 3"),
			    "cf1d98e079");
}

static void breadcrumbs_and_identity(void **state)
{
	struct trial_settings chosen = { .breadcrumb.given = true };
	struct trial_end a = { .exit_status = -1,
			       .signal = SIGSEGV,
			       .last_crumb = TEXT("item 17") };
	struct trial_end b = a;
	const char *id;

	/* The line that happened to be last: its numbers say nothing. */
	b.last_crumb = TEXT("item 4");
	id = one(&plain, &a, FAILURE_SIGNAL, "SIGSEGV after \"item *\"");
	assert_string_equal(one(&plain, &b, FAILURE_SIGNAL, "SIGSEGV after \"item *\""), id);
	/* A breadcrumb that was asked for is a place. */
	id = one(&chosen, &a, FAILURE_SIGNAL, "SIGSEGV after \"item 17\"");
	assert_string_not_equal(one(&chosen, &b, FAILURE_SIGNAL, "SIGSEGV after \"item 4\""), id);
	/* With a test's name only the chosen one counts. */
	a.running_test = b.running_test = TEXT("T");
	b.last_crumb = TEXT("elsewhere");
	id = one(&plain, &a, FAILURE_SIGNAL, "SIGSEGV in T");
	assert_string_equal(one(&plain, &b, FAILURE_SIGNAL, "SIGSEGV in T"), id);
	id = one(&chosen, &a, FAILURE_SIGNAL, "SIGSEGV in T after \"item 17\"");
	assert_string_not_equal(
		one(&chosen, &b, FAILURE_SIGNAL, "SIGSEGV in T after \"elsewhere\""), id);
}

static void signals_have_names(void **state)
{
	assert_string_equal(signal_name(SIGSEGV), "SIGSEGV");
	assert_string_equal(signal_name(SIGKILL), "SIGKILL");
	assert_string_equal(signal_name(50), "signal 50");
	assert_string_equal(signal_name(-3), "signal -3");
	assert_string_equal(failure_kind_name(FAILURE_TIMEOUT), "timeout");
	assert_string_equal(failure_kind_name(FAILURE_KINDS), "unknown");
}

/* ---- messages ---- */

static void a_job_survives_the_journey(void **state)
{
	AUTO(trial_job_deinit)
	struct trial_job job = { .number = { 1ull << 40 }, .slot = 3, .learn = true };
	AUTO(trial_job_deinit) struct trial_job got = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strv_add(&job.argv, "prog");
	strv_add(&job.argv, "");
	strv_add(&job.argv, "a b\n");
	strv_add(&job.env, "A=1");
	strv_add(&job.env, "GONE");
	job.chaos = (struct chaos){ CHAOS_ALL, 1ull << 33, 2, 3, 4, -1, 6, 7 };
	trial_job_pack(&job, &sb);
	assert_true(trial_job_unpack(sb.data, sb.len, &got));
	assert_true(got.number.value == 1ull << 40);
	assert_int_equal(got.slot, 3);
	assert_true(got.learn);
	assert_int_equal(got.argv.count, 3);
	assert_string_equal(got.argv.items[2], "a b\n");
	assert_null(got.argv.items[3]);
	assert_int_equal(got.env.count, 2);
	assert_string_equal(got.env.items[1], "GONE");
	assert_memory_equal(&got.chaos, &job.chaos, sizeof(got.chaos));
	for (size_t len = 0; len < sb.len; len++) {
		AUTO(trial_job_deinit) struct trial_job part = { 0 };
		AUTO(mem_freep) char *copy = mem_alloc(len);

		memcpy(copy, sb.data, len);
		assert_false(trial_job_unpack(copy, len, &part));
	}
}

static void a_job_without_a_program_is_none(void **state)
{
	AUTO(trial_job_deinit) struct trial_job got = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	trial_job_pack(&(struct trial_job){ .number = { 1 } }, &sb);
	assert_false(trial_job_unpack(sb.data, sb.len, &got));
}

static void fill_result(struct trial_result *result)
{
	struct trial_end *end = &result->end;

	result->number.value = 77;
	result->slot = 2;
	result->left = true;
	*end = (struct trial_end){
		.exit_status = -1,
		.signal = SIGBUS,
		.timed_out = true,
		.stray = { 4242, SIGABRT },
		.leftovers = 5,
		.started_ms = -7,
		.wall_ns = UINT64_MAX,
		.user_ns = 1,
		.system_ns = 2,
		.peak_kib = 3,
		.stdout_bytes = 4,
		.stderr_bytes = 1ull << 50,
		.matched = mem_strdup("match"),
		.last_crumb = mem_strdup("crumb"),
	};
	strv_add(&end->failed_tests, "A");
	strv_add(&end->failed_tests, "B");
	VEC_PUSH(&end->pairs, ((struct crumb_pair){ mem_strdup("x"), mem_strdup("y") }));
	VEC_PUSH(&end->pairs, ((struct crumb_pair){ mem_strdup("y"), mem_strdup("") }));
}

static void a_result_survives_the_journey(void **state)
{
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(trial_result_deinit) struct trial_result got = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	fill_result(&result);
	trial_result_pack(&result, &sb);
	assert_true(trial_result_unpack(sb.data, sb.len, &got));
	assert_int_equal(got.number.value, 77);
	assert_int_equal(got.slot, 2);
	assert_true(got.left);
	assert_null(got.trouble);
	assert_int_equal(got.end.exit_status, -1);
	assert_int_equal(got.end.signal, SIGBUS);
	assert_true(got.end.timed_out);
	assert_int_equal(got.end.stray.pid, 4242);
	assert_int_equal(got.end.stray.signal, SIGABRT);
	assert_int_equal(got.end.leftovers, 5);
	assert_int_equal(got.end.started_ms, -7);
	assert_true(got.end.wall_ns == UINT64_MAX);
	assert_int_equal(got.end.user_ns, 1);
	assert_int_equal(got.end.system_ns, 2);
	assert_int_equal(got.end.peak_kib, 3);
	assert_int_equal(got.end.stdout_bytes, 4);
	assert_true(got.end.stderr_bytes == 1ull << 50);
	assert_string_equal(got.end.matched, "match");
	assert_null(got.end.running_test);
	assert_string_equal(got.end.last_crumb, "crumb");
	assert_int_equal(got.end.failed_tests.count, 2);
	assert_int_equal(got.end.pairs.count, 2);
	assert_string_equal(got.end.pairs.items[1].to, "");
}

static void trouble_survives_the_journey(void **state)
{
	AUTO(trial_result_deinit)
	struct trial_result result = { .trouble = mem_strdup("no space"), .trouble_code = -28 };
	AUTO(trial_result_deinit) struct trial_result got = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	trial_result_pack(&result, &sb);
	assert_true(trial_result_unpack(sb.data, sb.len, &got));
	assert_string_equal(got.trouble, "no space");
	assert_int_equal(got.trouble_code, -28);
}

static void a_cut_result_is_noticed(void **state)
{
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	fill_result(&result);
	trial_result_pack(&result, &sb);
	for (size_t len = 0; len < sb.len; len++) {
		AUTO(trial_result_deinit) struct trial_result part = { 0 };
		AUTO(mem_freep) char *copy = mem_alloc(len);

		memcpy(copy, sb.data, len);
		assert_false(trial_result_unpack(copy, len, &part));
	}
	/* Any eight bytes may be a hostile number. */
	for (size_t at = 0; at + 8 <= sb.len; at++) {
		AUTO(trial_result_deinit) struct trial_result odd = { 0 };
		AUTO(mem_freep) char *copy = mem_alloc(sb.len);

		memcpy(copy, sb.data, sb.len);
		memset(copy + at, 0xfe, 8);
		(void)trial_result_unpack(copy, sb.len, &odd);
	}
}

static void placeholders_are_replaced(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "{slot}", "3" },
		{ "{trial}", "12345678901" },
		{ "a{slot}{slot}b", "a33b" },
		{ "{slot", "{slot" },
		{ "{{slot}}", "{3}" },
		{ "{Slot}{other}", "{Slot}{other}" },
		{ "x={trial}/{slot}", "x=12345678901/3" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(mem_freep)
		char *got = trial_substitute(rows[i].text, 3, (struct trial_number){ 12345678901 });

		assert_string_equal(got, rows[i].want);
	}
}

#define LIBC "/usr/lib/libc.so.6"
#define PROGRAM "/home/me/program"

static const char *site_of(enum fault_class fault, const struct frame *frames, size_t count)
{
	static char name[64];
	struct crash crash = { .fault = fault };

	for (size_t i = 0; i < count; i++)
		(void)stack_push(&crash.stack, &frames[i]);
	(void)snprintf(name, sizeof(name), "%s", crash_site(&crash)->function);
	stack_deinit(&crash.stack);
	return name;
}

/* What a library does for whoever calls it says nothing about who that was. */
static void the_site_is_the_programs(void **state)
{
	const struct frame fortified[] = {
		{ .function = TEXT("__memcpy_avx"), .module = TEXT(LIBC) },
		{ .function = TEXT("memcpy"),
		  .module = TEXT(PROGRAM),
		  .file = TEXT("/usr/include/x86_64-linux-gnu/bits/string_fortified.h"),
		  .line = 29,
		  .kind = FRAME_INLINE },
		{ .function = TEXT("copy_all"),
		  .module = TEXT(PROGRAM),
		  .file = TEXT("/home/me/a.c") },
	};
	const struct frame panic[] = {
		{ .function = TEXT("abort"), .module = TEXT(LIBC) },
		{ .function = TEXT("std::process::abort"),
		  .module = TEXT(PROGRAM),
		  .file = TEXT("/rustc/5980761/library/std/src/process.rs") },
		{ .function = TEXT("core::fmt::write"), .module = TEXT(PROGRAM) },
		{ .function = TEXT("core::panicking::panic"),
		  .module = TEXT(PROGRAM),
		  .file = TEXT("/home/me/.rustup/lib/rustlib/src/rust/library/core/src/p.rs") },
		{ .function = TEXT("mine::parse"),
		  .module = TEXT(PROGRAM),
		  .file = TEXT("/home/me/library/src/parse.rs") },
	};

	(void)state;
	assert_string_equal(site_of(FAULT_NULL, fortified, 3), "copy_all");
	assert_string_equal(site_of(FAULT_ABORT, panic, 5), "mine::parse");
	assert_string_equal(site_of(FAULT_ABORT, panic, 4), "std::process::abort");
}

/* Two checks that stop the program by one function are two failures. */
static void a_panic_is_its_callers(void **state)
{
	static const struct {
		const char *stops;
		const char *caller;
		bool callers;
	} cases[] = {
		{ "panic", "check_header", true },
		{ "my_fatal", "check_header", true },
		{ "Table::reportError(char const*)", "check_header", true },
		{ "panic", "main", false },
		{ "test_on_error", "run_one", false },
		{ "open_failover", "check_header", false },
		{ "debug", "check_header", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct frame stack[] = {
			{ .function = TEXT("abort"), .module = TEXT(LIBC) },
			{ .function = (char *)cases[i].stops, .module = TEXT(PROGRAM) },
			{ .function = (char *)cases[i].caller, .module = TEXT(PROGRAM) },
		};

		assert_string_equal(site_of(FAULT_ABORT, stack, 3),
				    cases[i].callers ? cases[i].caller : cases[i].stops);
		assert_string_equal(site_of(FAULT_NULL, stack, 3), cases[i].stops);
	}
}

/* Whichever of them the stack ends in. */
static void a_recursion_has_one_site(void **state)
{
	const struct frame leaf = { .function = TEXT("leaf"), .module = TEXT(PROGRAM) };
	const struct frame a = { .function = TEXT("visit_a"), .module = TEXT(PROGRAM) };
	const struct frame b = { .function = TEXT("visit_b"), .module = TEXT(PROGRAM) };
	const struct frame first[] = { leaf, a, b, a, b, a, b, a, b, a };
	const struct frame second[] = { b, a, b, a, b, a, b, a, b, a };

	(void)state;
	assert_string_equal(site_of(FAULT_STACK_OVERFLOW, first, 10), "visit_a");
	assert_string_equal(site_of(FAULT_STACK_OVERFLOW, second, 10), "visit_a");
	assert_string_equal(site_of(FAULT_STACK_OVERFLOW, first, 3), "leaf");
	assert_string_equal(site_of(FAULT_NULL, second, 10), "visit_b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clean_end_passes),
		cmocka_unit_test(each_kind),
		cmocka_unit_test(each_kind_can_be_ignored),
		cmocka_unit_test(several_in_one_trial),
		cmocka_unit_test(ids_are_stable),
		cmocka_unit_test(breadcrumbs_and_identity),
		cmocka_unit_test(signals_have_names),
		cmocka_unit_test(a_job_survives_the_journey),
		cmocka_unit_test(a_job_without_a_program_is_none),
		cmocka_unit_test(a_result_survives_the_journey),
		cmocka_unit_test(trouble_survives_the_journey),
		cmocka_unit_test(a_cut_result_is_noticed),
		cmocka_unit_test(placeholders_are_replaced),
		cmocka_unit_test(the_site_is_the_programs),
		cmocka_unit_test(a_panic_is_its_callers),
		cmocka_unit_test(a_recursion_has_one_site),
	};

	return cmocka_run_group_tests_name("trial_judge", tests, NULL, NULL);
}
