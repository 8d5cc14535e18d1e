/*
 * case/: storing trials and finding them again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "case_fixture.h"

static int setup(void **state)
{
	static struct scratch s;

	scratch_make(&s);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(*state);
	return 0;
}

static struct case_store *opened(const struct scratch *s, enum case_mode mode)
{
	struct case_store *cs = NULL;
	struct err err = { 0 };

	if (case_open(scratch_path(s, "case"), mode, &cs, &err) < 0)
		fail_msg("%s", err.message);
	return cs;
}

static struct series_id series_of(struct case_store *cs, const char *settings)
{
	struct series_id id = { -1 };
	struct err err = { 0 };

	if (made_series(cs, settings, &id, &err) < 0)
		fail_msg("%s", err.message);
	return id;
}

static void add(struct case_store *cs, struct series_id series, struct made_trial made)
{
	struct err err = { 0 };

	if (add_made(cs, series, &made, &err) < 0)
		fail_msg("%s", err.message);
}

static struct series_progress progress_of(struct case_store *cs, struct series_id series)
{
	struct series_progress progress = { 0 };
	struct err err = { 0 };

	if (case_series_progress(cs, series, &progress, &err) < 0)
		fail_msg("%s", err.message);
	return progress;
}

static void created_reopened_resumed(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = opened(s, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	struct err err = { 0 };
	bool done;

	assert_string_equal(case_dir(cs), scratch_path(s, "case"));
	assert_int_equal(progress_of(cs, series).trials, 0);
	assert_int_equal(progress_of(cs, series).last_position, 0);
	add(cs, series, (struct made_trial){ .number = 1, .position = 1 });
	add(cs, series, (struct made_trial){ .number = 2, .position = 5, .signal = 11 });
	case_close(cs);
	assert_int_equal(access(scratch_path(s, "case/trials"), F_OK), 0);

	cs = opened(s, CASE_WRITE);
	assert_int_equal(series_of(cs, "a").value, series.value);
	assert_int_equal(progress_of(cs, series).trials, 2);
	assert_int_equal(progress_of(cs, series).last_position, 5);
	assert_int_equal(case_position_done(cs, series, 5, &done, &err), 0);
	assert_true(done);
	assert_int_equal(case_position_done(cs, series, 2, &done, &err), 0);
	assert_false(done);
	add(cs, series, (struct made_trial){ .number = 3, .position = 2 });
	case_close(cs);

	cs = opened(s, CASE_READ);
	assert_int_equal(progress_of(cs, series).trials, 3);
	case_close(cs);
	case_close(NULL);
}

/* Writes a trial and dies without closing anything. */
static int die_in_the_middle(void *arg)
{
	struct case_store *cs = NULL;
	struct series_id series;
	struct err err = { 0 };

	CHILD_WANTS(case_open(scratch_path(arg, "case"), CASE_WRITE, &cs, &err) == 0);
	CHILD_WANTS(made_series(cs, "a", &series, &err) == 0);
	for (uint64_t i = 1; i <= 3; i++)
		CHILD_WANTS(add_made(cs, series, &(struct made_trial){ .number = i, .position = i },
				     &err) == 0);
	(void)kill(getpid(), SIGKILL);
	return 0;
}

static void a_killed_writer_loses_nothing_stored(void **state)
{
	struct case_store *cs;
	struct series_id series;

	assert_int_equal(in_child(die_in_the_middle, *state), 1000 + SIGKILL);
	cs = opened(*state, CASE_WRITE);
	series = series_of(cs, "a");
	assert_int_equal(progress_of(cs, series).trials, 3);
	add(cs, series, (struct made_trial){ .number = 4, .position = 4 });
	case_close(cs);
}

static void a_reader_needs_a_case(void **state)
{
	struct case_store *cs = NULL;
	struct err err = { 0 };

	assert_int_equal(case_open(scratch_path(*state, "case"), CASE_READ, &cs, &err), -ENOENT);
	assert_null(cs);
	assert_non_null(strstr(err.message, "there is no case in"));
	/* And it makes none. */
	assert_int_equal(access(scratch_path(*state, "case"), F_OK), -1);
}

static int open_second(void *arg)
{
	struct scratch *s = arg;
	struct case_store *cs = NULL;
	struct err err = { 0 };
	char want[64];

	CHILD_WANTS(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err) == -EBUSY);
	CHILD_WANTS(cs == NULL);
	(void)snprintf(want, sizeof(want), "another redhand (pid %d)", (int)getppid());
	CHILD_WANTS(strstr(err.message, want) != NULL);
	CHILD_WANTS(strstr(err.remedy, "--case") != NULL);
	return 0;
}

static void a_second_writer_is_refused(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series;

	/* In another process, so that it is another's lock; it waits its five seconds. */
	assert_int_equal(in_child(open_second, *state), 0);
	series = series_of(cs, "still ours");
	add(cs, series, (struct made_trial){ .number = 1, .position = 1 });
	case_close(cs);
	cs = opened(*state, CASE_WRITE);
	case_close(cs);
}

static void a_reader_sees_what_a_writer_commits(void **state)
{
	struct case_store *writer = opened(*state, CASE_WRITE), *reader;
	struct series_id series = series_of(writer, "a");
	struct err err = { 0 };

	reader = opened(*state, CASE_READ);
	for (uint64_t i = 1; i <= 20; i++) {
		add(writer, series, (struct made_trial){ .number = i, .position = i });
		assert_int_equal(progress_of(reader, series).trials, i);
	}
	/* It cannot write. */
	assert_true(add_made(reader, series, &(struct made_trial){ .number = 99, .position = 99 },
			     &err) < 0);
	assert_true(err.message[0] != '\0');
	case_close(reader);
	assert_int_equal(progress_of(writer, series).trials, 20);
	case_close(writer);
}

static void numbers_fill_gaps(void **state)
{
	static const uint64_t taken[] = { 1, 2, 4, 5, 9 };
	static const uint64_t free_after[][2] = {
		{ 0, 3 }, { 1, 3 }, { 3, 6 }, { 8, 10 }, { 20, 21 }
	};
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a"), other = series_of(cs, "b");
	struct trial_number number;
	struct err err = { 0 };

	assert_int_equal(case_free_number(cs, 0, &number, &err), 0);
	assert_int_equal(number.value, 1);
	/* Numbers are the case's, whichever series has them. */
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		add(cs, i % 2 ? series : other,
		    (struct made_trial){ .number = taken[i], .position = i + 1 });
	for (size_t i = 0; i < ARRAY_SIZE(free_after); i++) {
		assert_int_equal(case_free_number(cs, free_after[i][0], &number, &err), 0);
		assert_int_equal(number.value, free_after[i][1]);
	}
	case_close(cs);
}

static void a_trial_is_stored_once(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	struct err err = { 0 };
	struct signature signature = { 0 };
	struct made_trial twice = {
		.number = 1, .position = 2, .exit_status = 3, .test = "only here"
	};
	AUTO(signature_deinit) struct signature never = { 0 };

	add(cs, series, (struct made_trial){ .number = 1, .position = 1 });
	assert_true(add_made(cs, series, &twice, &err) < 0);
	assert_true(err.message[0] != '\0');
	twice = (struct made_trial){
		.number = 2, .position = 1, .exit_status = 3, .test = "only here"
	};
	assert_true(add_made(cs, series, &twice, &err) < 0);
	assert_int_equal(progress_of(cs, series).trials, 1);
	/* Nothing of the refused ones is left, not even their signature. */
	made_signature(&twice, &never);
	assert_int_equal(case_signature(cs, never.id, &signature, &err), -ENOENT);
	add(cs, series, (struct made_trial){ .number = 2, .position = 2 });
	case_close(cs);
}

static struct series_found found(struct case_store *cs, const char *settings, const char *program,
				 uint64_t seed)
{
	const struct series_identity identity = { .command = "compare",
						  .settings = settings,
						  .program = program };
	struct series_found found = { { -1 }, 0, false };
	struct err err = { 0 };

	if (case_series(cs, &identity, seed, &found, &err) < 0)
		fail_msg("%s", err.message);
	return found;
}

static void series_is_its_identity(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_found a = found(cs, "x\ny", "build 1", UINT64_MAX - 5);
	struct series_found b = found(cs, "x\nz", "build 1", 7);
	struct series_found again = found(cs, "x\ny", "build 1", 8);
	struct series_found rebuilt = found(cs, "x\ny", "build 2", 9);

	assert_true(a.seed == UINT64_MAX - 5);
	assert_false(a.program_changed);
	assert_int_equal(b.seed, 7);
	assert_false(b.program_changed);
	assert_int_not_equal(a.id.value, b.id.value);
	/* The first one's seed stays. */
	assert_int_equal(again.id.value, a.id.value);
	assert_true(again.seed == UINT64_MAX - 5);
	assert_false(again.program_changed);
	/* Another build is another series, and that is said once. */
	assert_int_not_equal(rebuilt.id.value, a.id.value);
	assert_int_equal(rebuilt.seed, 9);
	assert_true(rebuilt.program_changed);
	assert_false(found(cs, "x\ny", "build 2", 9).program_changed);
	assert_int_equal(found(cs, "x\ny", "build 1", 9).id.value, a.id.value);
	case_close(cs);
}

static void clear_forgets_rows_and_directories(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a"), other = series_of(cs, "b");
	struct err err = { 0 };
	struct trial_number number;

	for (uint64_t i = 1; i <= 4; i++) {
		add(cs, i < 4 ? series : other,
		    (struct made_trial){
			    .number = i, .position = i, .exit_status = 1, .kept = i != 2 });
		make_trial_dir(cs, i);
	}
	assert_int_equal(case_series_clear(cs, series, &err), 0);
	assert_false(trial_dir_there(cs, 1));
	assert_true(trial_dir_there(cs, 2)); /* not the series': it was not kept */
	assert_false(trial_dir_there(cs, 3));
	assert_true(trial_dir_there(cs, 4));
	assert_int_equal(progress_of(cs, other).trials, 1);
	assert_int_equal(case_free_number(cs, 0, &number, &err), 0);
	assert_int_equal(number.value, 1);
	series = series_of(cs, "a");
	assert_int_equal(progress_of(cs, series).trials, 0);
	assert_int_equal(progress_of(cs, series).learnt, 0);
	case_close(cs);
}

/* ---- what a series shows ---- */

struct rows {
	struct tally_row tally[32];
	char *texts[32][2];
	struct window_row windows[32];
	struct run_row runs[32];
	size_t count;
};

static void rows_deinit(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		mem_free(rows->texts[i][0]);
		mem_free(rows->texts[i][1]);
	}
	*rows = (struct rows){ 0 };
}

static void take_tally(void *ctx, const struct tally_row *row)
{
	struct rows *rows = ctx;

	rows->tally[rows->count] = *row;
	rows->texts[rows->count++][0] = mem_strdup(row->signatures);
}

static void take_window(void *ctx, const struct window_row *row)
{
	struct rows *rows = ctx;

	rows->windows[rows->count] = *row;
	rows->texts[rows->count][0] = mem_strdup(row->last);
	rows->texts[rows->count++][1] = row->next ? mem_strdup(row->next) : NULL;
}

static void take_run(void *ctx, const struct run_row *row)
{
	struct rows *rows = ctx;

	rows->runs[rows->count] = *row;
	rows->texts[rows->count++][0] = mem_strdup(row->signatures);
}

static void tally_counts_equal_trials(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a"), other = series_of(cs, "b");
	AUTO(rows_deinit) struct rows rows = { 0 };
	AUTO(signature_deinit) struct signature crash = { 0 };
	struct err err = { 0 };
	uint64_t passed = 0, crashed = 0;

	made_signature(&(struct made_trial){ .signal = 11 }, &crash);
	add(cs, other, (struct made_trial){ .number = 50, .position = 1, .signal = 11 });
	for (uint64_t i = 1; i <= 12; i++)
		add(cs, series,
		    (struct made_trial){ .number = i,
					 .position = i,
					 .slot = i % 2,
					 .arm = i > 6,
					 .signal = i % 3 == 0 ? 11 : 0 });
	assert_int_equal(case_tally(cs, series, take_tally, &rows, &err), 0);
	assert_int_equal(rows.count, 8); /* 2 arms, 2 slots, 2 outcomes */
	for (size_t i = 0; i < rows.count; i++) {
		bool failed = rows.texts[i][0][0] != '\0';

		if (failed)
			assert_string_equal(rows.texts[i][0], crash.id);
		assert_int_equal(rows.tally[i].cut_short, failed);
		*(failed ? &crashed : &passed) += rows.tally[i].count;
		if (failed && rows.tally[i].arm == 0 && rows.tally[i].slot == 1) {
			assert_int_equal(rows.tally[i].count, 1);
			assert_int_equal(rows.tally[i].trial, 3);
		}
		if (!failed && rows.tally[i].arm == 1 && rows.tally[i].slot == 0) {
			assert_int_equal(rows.tally[i].count, 2); /* 8 and 10 */
			assert_int_equal(rows.tally[i].trial, 8);
		}
	}
	assert_int_equal(passed, 8);
	assert_int_equal(crashed, 4);
	case_close(cs);
}

static void runs_come_in_order(void **state)
{
	static const uint64_t positions[] = { 4, 2, 9, 1 };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	AUTO(rows_deinit) struct rows rows = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(positions); i++)
		add(cs, series,
		    (struct made_trial){ .number = i + 1,
					 .position = positions[i],
					 .arm = (unsigned int)i,
					 .exit_status = i == 2 });
	assert_int_equal(case_runs(cs, series, take_run, &rows, &err), 0);
	assert_int_equal(rows.count, 4);
	assert_int_equal(rows.runs[0].position, 1);
	assert_int_equal(rows.runs[0].arm, 3);
	assert_int_equal(rows.runs[1].position, 2);
	assert_int_equal(rows.runs[2].position, 4);
	assert_int_equal(rows.runs[3].position, 9);
	assert_string_equal(rows.texts[0][0], "");
	assert_int_equal(strlen(rows.texts[3][0]), SIGNATURE_ID_LEN);
	case_close(cs);
}

static void windows_have_successors(void **state)
{
	static const char *const full[] = { CRUMB_START, "load", "fuse", "run", CRUMB_END, NULL };
	static const char *const odd[] = { CRUMB_START, "load", "skip", CRUMB_END, NULL };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	AUTO(signature_deinit) struct signature crash = { 0 };
	AUTO(rows_deinit) struct rows rows = { 0 };
	AUTO(rows_deinit) struct rows all = { 0 };
	struct err err = { 0 };

	made_signature(&(struct made_trial){ .signal = 11, .test = "T" }, &crash);
	for (uint64_t i = 1; i <= 3; i++)
		add(cs, series,
		    (struct made_trial){ .number = i,
					 .position = i,
					 .last_crumb = "run",
					 .crumbs = i < 3 ? full : odd });
	assert_int_equal(progress_of(cs, series).learnt, 3);
	for (uint64_t i = 4; i <= 9; i++)
		add(cs, series,
		    (struct made_trial){ .number = i,
					 .position = i,
					 .signal = 11,
					 .test = "T",
					 .last_crumb = i < 7   ? "load"
						       : i < 9 ? "never seen in a full run"
							       : NULL });
	add(cs, series,
	    (struct made_trial){
		    .number = 10, .position = 10, .exit_status = 1, .last_crumb = "fuse" });
	assert_int_equal(case_windows(cs, series, crash.id, take_window, &rows, &err), 0);
	assert_int_equal(rows.count, 3);
	assert_string_equal(rows.texts[0][0], "load");
	assert_string_equal(rows.texts[0][1], "fuse"); /* twice, "skip" once */
	assert_int_equal(rows.windows[0].count, 3);
	assert_int_equal(rows.windows[0].trial, 4);
	assert_string_equal(rows.texts[1][0], "never seen in a full run");
	assert_null(rows.texts[1][1]);
	assert_int_equal(rows.windows[1].count, 2);
	assert_string_equal(rows.texts[2][0], CRUMB_START); /* it printed nothing */
	assert_string_equal(rows.texts[2][1], "load");
	/* All that were cut short: the plain failure is not among them. */
	assert_int_equal(case_windows(cs, series, "", take_window, &all, &err), 0);
	assert_int_equal(all.count, 3);
	case_close(cs);
}

/* A string literal that may be pointed to as if it could be changed. */
#define TEXT(literal) ((char[]){ literal })

/* Trials that come faster than they are committed are one transaction: others see all or none. */
static void trials_are_committed_together(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = opened(s, CASE_WRITE), *reader;
	struct series_id series = series_of(cs, "a");
	struct err err = { 0 };
	AUTO(strv_deinit) struct strv names = { 0 };

	reader = opened(s, CASE_READ);
	for (uint64_t i = 1; i <= 3; i++)
		add(cs, series, (struct made_trial){ .number = i, .position = i, .more = true });
	assert_int_equal(progress_of(cs, series).trials, 3);
	assert_int_equal(progress_of(reader, series).trials, 0);
	add(cs, series, (struct made_trial){ .number = 4, .position = 4 });
	assert_int_equal(progress_of(reader, series).trials, 4);
	/* Another transaction does not take them along or away. */
	add(cs, series, (struct made_trial){ .number = 5, .position = 5, .more = true });
	strv_add(&names, "one");
	assert_int_equal(case_set_items(cs, series, &names, &err), 0);
	assert_int_equal(progress_of(reader, series).trials, 5);
	/* One that cannot be stored takes those along that waited with it: they are run again. */
	add(cs, series, (struct made_trial){ .number = 6, .position = 6, .more = true });
	assert_true(add_made(cs, series, &(struct made_trial){ .number = 7, .position = 6 }, &err) <
		    0);
	assert_int_equal(progress_of(cs, series).trials, 5);
	add(cs, series, (struct made_trial){ .number = 8, .position = 6 });
	/* No batch is endless, and the end is one, too. */
	for (uint64_t i = 1; i <= CASE_BATCH_MOST; i++)
		add(cs, series,
		    (struct made_trial){ .number = 8 + i, .position = 6 + i, .more = true });
	assert_int_equal(progress_of(reader, series).trials, 6 + CASE_BATCH_MOST);
	add(cs, series, (struct made_trial){ .number = 999, .position = 999, .more = true });
	assert_int_equal(case_flush(cs, &err), 0);
	assert_int_equal(progress_of(reader, series).trials, 7 + CASE_BATCH_MOST);
	add(cs, series, (struct made_trial){ .number = 1000, .position = 1000, .more = true });
	case_close(cs);
	assert_int_equal(progress_of(reader, series).trials, 8 + CASE_BATCH_MOST);
	case_close(reader);
}

static void signatures_come_back(void **state)
{
	struct signature made[] = {
		{ .kind = FAILURE_SIGNAL, .signal = 7, .exit_status = -1, .stray = true },
		{ .kind = FAILURE_TIMEOUT, .exit_status = -1, .test = TEXT("Suite.Case/3") },
		{ .kind = FAILURE_OUTPUT,
		  .exit_status = 0,
		  .crumb = TEXT("it's \"quoted\"; DROP TABLE trial") },
		{ .kind = FAILURE_TEST, .exit_status = 1, .test = TEXT("caf\xc3\xa9") },
		{ .kind = FAILURE_EXIT, .exit_status = 139, .crumb = TEXT("") },
	};
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	struct signature none = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		struct signatures one = { 0 };
		struct trial_end end = { .exit_status = 1 };
		AUTO(signature_deinit) struct signature got = { 0 };

		signature_seal(&made[i]);
		VEC_PUSH(&one.list, made[i]);
		assert_int_equal(case_add_trial(cs,
						&(struct trial_record){ .number = { i + 1 },
									.series = series,
									.position = i + 1,
									.end = &end,
									.signatures = &one },
						&err),
				 0);
		VEC_DEINIT(&one.list);
		assert_int_equal(case_signature(cs, made[i].id, &got, &err), 0);
		assert_string_equal(got.id, made[i].id);
		assert_int_equal(got.kind, made[i].kind);
		assert_int_equal(got.signal, made[i].signal);
		assert_int_equal(got.exit_status, made[i].exit_status);
		assert_int_equal(got.stray, made[i].stray);
		assert_string_equal(got.summary, made[i].summary);
		assert_int_equal(got.test == NULL, made[i].test == NULL);
		assert_int_equal(got.crumb == NULL, made[i].crumb == NULL);
		if (got.test)
			assert_string_equal(got.test, made[i].test);
		if (got.crumb)
			assert_string_equal(got.crumb, made[i].crumb);
		mem_free(made[i].summary);
	}
	assert_int_equal(case_signature(cs, "0123456789", &none, &err), -ENOENT);
	assert_non_null(strstr(err.message, "0123456789"));
	case_close(cs);
}

/* Who made a file shorter is told as it was seen: what was guessed stays a guess. */
static void cuts_come_back(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct file_cut cut = { .pid = 7,
				.program = TEXT("cp"),
				.how = TEXT("truncate"),
				.old_size = 100,
				.new_size = 3 };
	struct frame frames[] = {
		{ .function = TEXT("copy"), .file = TEXT("a.py"), .line = 3, .kind = FRAME_PYTHON },
		{ .module = TEXT("/bin/cp"), .offset = 0x1234, .flags = FRAME_GUESSED },
	};
	AUTO(stack_deinit) struct stack stack = { 0 };
	struct file_cut *got;
	struct err err = { 0 };

	add(cs, series_of(cs, "a"), (struct made_trial){ .number = 1, .position = 1 });
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		(void)stack_push(&stack, &frames[i]);
	stack.end = STACK_TRUNCATED;
	cut.stack = stack;
	assert_int_equal(case_add_cut(cs,
				      &(struct cut_record){ .trial = { 1 },
							    .path = "f",
							    .device = 1,
							    .inode = 2,
							    .realtime_ns = 5,
							    .cut = &cut },
				      &err),
			 0);
	assert_int_equal(case_find_cut(cs, 1, 2, 6, &got, &err), 0);
	assert_non_null(got);
	assert_int_equal(got->stack.count, 2);
	assert_int_equal(got->stack.end, STACK_TRUNCATED);
	assert_int_equal(got->stack.frames[0].kind, FRAME_PYTHON);
	assert_string_equal(got->stack.frames[0].file, "a.py");
	assert_int_equal(got->stack.frames[1].flags, FRAME_GUESSED);
	assert_int_equal(got->stack.frames[1].offset, 0x1234);
	file_cut_free(got);
	case_close(cs);
}

static void use_is_summed_up(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	struct use_row use = { 0 };
	struct err err = { 0 };

	assert_int_equal(case_use(cs, series, &use, &err), 0);
	assert_int_equal(use.peak_kib, 0);
	for (uint64_t i = 1; i <= 4; i++)
		add(cs, series,
		    (struct made_trial){ .number = i, .position = i, .signal = i == 4 ? 6 : 0 });
	assert_int_equal(case_use(cs, series, &use, &err), 0);
	assert_true(use.wall_mean_ns == 2500 && use.wall_max_ns == 4000);
	assert_true(use.user_mean_ns == 500 && use.system_mean_ns == 200);
	assert_int_equal(use.peak_kib, 104);
	assert_int_equal(use.cut_short, 1);
	assert_int_equal(use.cut_full_buffer, 0);
	assert_int_equal(use.full_with_output, 3);
	assert_int_equal(use.leftovers, 0);
	case_close(cs);
}

/* ---- faults ---- */

#ifdef REDHAND_FAULTS
struct fault_case {
	struct scratch *scratch;
	const char *fault;
	int code;
	const char *sentence;
};

static int open_with_fault(void *arg)
{
	struct fault_case *f = arg;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", f->fault, 1);
	CHILD_WANTS(case_open(scratch_path(f->scratch, "case"), CASE_WRITE, &cs, &err) == f->code);
	CHILD_WANTS(cs == NULL);
	CHILD_WANTS(strstr(err.message, f->sentence) != NULL);
	return 0;
}

static void an_open_that_fails_keeps_the_case(void **state)
{
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct series_id series = series_of(cs, "a");
	struct fault_case faults[] = {
		{ *state, "mkdir:1:ENOSPC", -ENOSPC, "cannot create" },
		{ *state, "mkdir:1:EACCES", -EACCES, "cannot create" },
		{ *state, "db_open:1:EIO", -EIO, "cannot open" },
		{ *state, "db_open:1:EMFILE", -EMFILE, "cannot open" },
	};

	add(cs, series, (struct made_trial){ .number = 1, .position = 1 });
	case_close(cs);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		assert_int_equal(in_child(open_with_fault, &faults[i]), 0);
	cs = opened(*state, CASE_WRITE);
	assert_int_equal(progress_of(cs, series).trials, 1);
	case_close(cs);
}

static int commit_with_fault(void *arg)
{
	struct fault_case *f = arg;
	struct case_store *cs = NULL;
	struct series_id series;
	struct series_progress progress;
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", f->fault, 1);
	CHILD_WANTS(case_open(scratch_path(f->scratch, "case"), CASE_WRITE, &cs, &err) == 0);
	CHILD_WANTS(made_series(cs, f->fault, &series, &err) == 0);
	for (uint64_t i = 1; i <= 4; i++) {
		struct made_trial made = { .number = 100 * (uint64_t)series.value + i,
					   .position = i,
					   .exit_status = 1 };
		int r = add_made(cs, series, &made, &err);

		CHILD_WANTS(r == (i == 3 ? f->code : 0));
	}
	CHILD_WANTS(strstr(err.message, f->sentence) != NULL);
	/* The one is missing as a whole, and can be stored again. */
	CHILD_WANTS(case_series_progress(cs, series, &progress, &err) == 0);
	CHILD_WANTS(progress.trials == 3);
	CHILD_WANTS(add_made(cs, series,
			     &(struct made_trial){ .number = 100 * (uint64_t)series.value + 3,
						   .position = 3 },
			     &err) == 0);
	case_close(cs);
	return 0;
}

static void a_commit_that_fails_loses_one_trial(void **state)
{
	struct fault_case faults[] = {
		{ *state, "commit:3:ENOSPC", -ENOSPC, "no space left for" },
		{ *state, "commit:3:EIO", -EIO, "case.db" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct case_store *cs;

		assert_int_equal(in_child(commit_with_fault, &faults[i]), 0);
		cs = opened(*state, CASE_WRITE);
		assert_int_equal(progress_of(cs, series_of(cs, faults[i].fault)).trials, 4);
		case_close(cs);
	}
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(created_reopened_resumed),
		TEST(a_killed_writer_loses_nothing_stored),
		TEST(a_reader_needs_a_case),
		TEST(a_second_writer_is_refused),
		TEST(a_reader_sees_what_a_writer_commits),
		TEST(numbers_fill_gaps),
		TEST(a_trial_is_stored_once),
		TEST(series_is_its_identity),
		TEST(clear_forgets_rows_and_directories),
		TEST(tally_counts_equal_trials),
		TEST(runs_come_in_order),
		TEST(windows_have_successors),
		TEST(trials_are_committed_together),
		TEST(signatures_come_back),
		TEST(cuts_come_back),
		TEST(use_is_summed_up),
#ifdef REDHAND_FAULTS
		TEST(an_open_that_fails_keeps_the_case),
		TEST(a_commit_that_fails_loses_one_trial),
#endif
	};

	return cmocka_run_group_tests_name("case_store", tests, NULL, NULL);
}
