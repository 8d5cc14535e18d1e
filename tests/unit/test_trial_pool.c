/*
 * run/pool.h: real processes in real slots.
 *
 * Nothing here waits for luck: a condition is waited for with a bound far above what it takes,
 * and processes that must be gone are looked for by the numbers they wrote down themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <time.h>

#include "base/fd.h"
#include "in_range.h"
#include "run/pool.h"
#include "scratch.h"

#define PATIENCE_MS 60000
#define NS_PER_MS 1000000ull

struct fixture {
	struct scratch scratch;
	struct trial_settings settings;
	struct pool *pool;
	char pids[128]; /* file that trials write process numbers to */
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	scratch_make(&f.scratch);
	if (mkdirat(f.scratch.fd, "trials", 0755) < 0 || mkdirat(f.scratch.fd, "tmps", 0711) < 0)
		return -1;
	f.settings = (struct trial_settings){
		.stdin_path = mem_strdup("/dev/null"),
		.trials.path = mem_strdup(scratch_path(&f.scratch, "trials")),
		.trials.tmp_dirs = mem_strdup(scratch_path(&f.scratch, "tmps")),
		.timeout_ns = PATIENCE_MS * NS_PER_MS,
		.linger_ns = 200 * NS_PER_MS,
		.output_limit = 65536,
	};
	(void)sigemptyset(&f.settings.signal_mask);
	(void)snprintf(f.pids, sizeof(f.pids), "%s", scratch_path(&f.scratch, "pids"));
	(void)setenv("PIDS", f.pids, 1);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pool_close(f->pool);
	trial_settings_deinit(&f->settings);
	scratch_remove(&f->scratch);
	return 0;
}

static void open_pool(struct fixture *f, unsigned int slots)
{
	struct err err = { 0 };

	if (pool_open(slots, &f->settings, -1, &f->pool, &err) < 0)
		fail_msg("%s", err.message);
}

static int start(struct pool *pool, uint64_t number, unsigned int slot, struct err *err, ...)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { number }, .slot = slot };
	const char *arg;
	va_list args;

	va_start(args, err);
	while ((arg = va_arg(args, const char *)) != NULL)
		strv_add(&job.argv, arg);
	va_end(args);
	strv_add(&job.env, "MARK=set");
	strv_add(&job.env, "HOME");
	return pool_start(pool, &job, err);
}

/* The next result, or the error. */
static int finish(struct pool *pool, struct trial_result *ret, struct err *err)
{
	int r = 0;

	for (int waited = 0; r == 0 && waited < PATIENCE_MS; waited += 100)
		r = pool_wait(pool, -1, 100, ret, err);
	return r;
}

#define RUN(f, number, result, ...)                                                         \
	do {                                                                                \
		struct err err_ = { 0 };                                                    \
		assert_int_equal(start((f)->pool, number, 0, &err_, __VA_ARGS__, NULL), 0); \
		if (finish((f)->pool, result, &err_) != 1)                                  \
			fail_msg("no result: %s", err_.message);                            \
		if ((result)->trouble)                                                      \
			fail_msg("trouble: %s", (result)->trouble);                         \
	} while (0)

static bool there(const struct fixture *f, const char *name)
{
	return faccessat(f->scratch.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void holds(const struct fixture *f, const char *name, const char *want)
{
	AUTO(mem_freep) char *text = NULL;
	struct err err = { 0 };

	if (file_read(scratch_path(&f->scratch, name), 1 << 20, &text, NULL, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(text, want);
}

/* How many processes of the file are there, and how many of these still live. */
static void look_for(const struct fixture *f, unsigned int *ret_written, unsigned int *ret_alive)
{
	FILE *file = fopen(f->pids, "r");
	int pid;

	*ret_written = *ret_alive = 0;
	while (file && fscanf(file, "%d", &pid) == 1) {
		++*ret_written;
		*ret_alive += kill(pid, 0) == 0;
	}
	if (file)
		(void)fclose(file);
}

static void all_gone(const struct fixture *f, unsigned int want)
{
	unsigned int written, alive;

	look_for(f, &written, &alive);
	assert_int_equal(written, want);
	assert_int_equal(alive, 0);
}

/* ---- one trial ---- */

static void a_passing_trial_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	open_pool(f, 1);
	RUN(f, 1, &result, "/bin/true");
	assert_int_equal(result.number.value, 1);
	assert_int_equal(result.end.exit_status, 0);
	assert_int_equal(result.end.signal, 0);
	assert_false(result.end.timed_out);
	assert_int_equal(result.end.leftovers, 0);
	assert_true(result.end.wall_ns > 0);
	assert_true(result.end.peak_kib > 0);
	assert_true(result.end.started_ms > 0);
	assert_false(result.left);
	assert_false(there(f, "trials/1"));
	assert_int_equal(pool_busy_count(f->pool), 0);
}

static void both_streams_are_kept(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	open_pool(f, 1);
	RUN(f, 5, &result, "sh", "-c", "echo out; echo err >&2; printf last; exit 7");
	assert_int_equal(result.end.exit_status, 7);
	assert_int_equal(result.end.stdout_bytes, 8);
	assert_int_equal(result.end.stderr_bytes, 4);
	assert_true(result.left);
	holds(f, "trials/5/stdout", "out\nlast");
	holds(f, "trials/5/stderr", "err\n");
	assert_false(there(f, "trials/5/.tmp")); /* it was empty */
}

static void a_crash_is_seen(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	open_pool(f, 1);
	RUN(f, 1, &result, "sh", "-c", "ulimit -c 0; echo before; kill -SEGV $$");
	assert_int_equal(result.end.signal, SIGSEGV);
	assert_int_equal(result.end.exit_status, -1);
	assert_string_equal(result.end.last_crumb, "before");
	assert_true(result.left);
}

static void a_crash_that_nobody_waits_for_is_seen(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	f->settings.linger_ns = PATIENCE_MS * NS_PER_MS;
	open_pool(f, 1);
	RUN(f, 1, &result, "sh", "-c",
	    "ulimit -c 0; setsid sh -c 'sleep 0.2; kill -ABRT $$' & exit 0");
	assert_int_equal(result.end.exit_status, 0);
	assert_int_equal(result.end.signal, 0);
	assert_int_equal(result.end.stray.signal, SIGABRT);
	assert_int_equal(result.end.leftovers, 0);
	assert_true(result.left);
}

static void surroundings_are_as_asked(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(strbuf_deinit) struct strbuf want = { 0 };

	f->settings.keep = KEEP_ALL;
	f->settings.cwd = mem_strdup("/");
	(void)setenv("HOME", "/somewhere", 1);
	open_pool(f, 1);
	RUN(f, 9, &result, "sh", "-c",
	    "echo $MARK ${HOME-none} $TMPDIR; pwd; cat; test -d $TMPDIR && touch $TMPDIR/left");
	assert_int_equal(result.end.exit_status, 0);
	strbuf_addf(&want, "set none %s/tmps/9\n/\n", f->scratch.path);
	holds(f, "trials/9/stdout", strbuf_str(&want));
	assert_true(there(f, "trials/9/.tmp/left"));
}

static void a_terminal_when_asked(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	f->settings.keep = KEEP_ALL;
	f->settings.flags = TRIAL_PTY | TRIAL_SHARE_TMP;
	open_pool(f, 1);
	RUN(f, 1, &result, "sh", "-c", "test -t 1 && test -t 2 && echo terminal; echo both >&2");
	holds(f, "trials/1/stdout", "terminal\nboth\n");
	assert_false(there(f, "trials/1/stderr"));
	assert_false(there(f, "trials/1/.tmp"));
}

static void what_was_left_by_a_killed_redhand_is_replaced(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	struct err err = { 0 };

	assert_int_equal(mkdirat(f->scratch.fd, "trials/3", 0755), 0);
	assert_int_equal(mkdirat(f->scratch.fd, "tmps/3", 0755), 0);
	assert_int_equal(file_write_at(f->scratch.fd, "tmps/3/old", "x", 1, &err), 0);
	open_pool(f, 1);
	RUN(f, 3, &result, "sh", "-c", "ls -A $TMPDIR; exit 1");
	holds(f, "trials/3/stdout", "");
	assert_false(there(f, "trials/3/.tmp"));
}

static void a_program_that_is_not_there_is_told(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(trial_result_deinit) struct trial_result next = { 0 };
	struct err err = { 0 };

	open_pool(f, 1);
	assert_int_equal(start(f->pool, 1, 0, &err, "/no/such/program", NULL), 0);
	assert_int_equal(finish(f->pool, &result, &err), 1);
	assert_non_null(result.trouble);
	assert_non_null(strstr(result.trouble, "cannot run '/no/such/program'"));
	assert_int_equal(result.trouble_code, -ENOENT);
	assert_false(there(f, "trials/1"));
	RUN(f, 2, &next, "/bin/true");
}

/* ---- ending what does not end ---- */

static void a_timeout_ends_the_whole_tree(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	/* Long enough for four echoes on a busy machine. */
	f->settings.timeout_ns = 5000 * NS_PER_MS;
	open_pool(f, 1);
	RUN(f, 1, &result, "sh", "-c",
	    "echo $$ >> $PIDS; "
	    "setsid sh -c 'echo $$ >> $PIDS; sleep 1000 & echo $! >> $PIDS; wait' & "
	    "( ( setsid sh -c 'trap \"\" TERM INT HUP; echo $$ >> $PIDS; exec sleep 1000' & ) & ) ; "
	    "echo started; wait; sleep 1000");
	assert_true(result.end.timed_out);
	assert_int_equal(result.end.exit_status, -1);
	assert_int_equal(result.end.signal, 0);
	assert_int_equal(result.end.stray.signal, 0);
	assert_true(result.end.wall_ns >= 5000 * NS_PER_MS);
	holds(f, "trials/1/stdout", "started\n");
	all_gone(f, 4);
}

static void a_flood_of_output_does_not_stop_the_clock(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };

	f->settings.timeout_ns = 500 * NS_PER_MS;
	open_pool(f, 1);
	/* Whole pages, so that there is always a full pipe to read. */
	RUN(f, 1, &result, "yes");
	assert_true(result.end.timed_out);
	assert_true(result.end.stdout_bytes > 0);
}

static void what_lingers_is_ended(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(trial_result_deinit) struct trial_result next = { 0 };

	open_pool(f, 1);
	RUN(f, 1, &result, "sh", "-c",
	    "setsid sleep 1000 & echo $! >> $PIDS; setsid sleep 1000 & echo $! >> $PIDS; exit 0");
	assert_int_equal(result.end.exit_status, 0);
	assert_false(result.end.timed_out);
	assert_int_equal(result.end.leftovers, 2);
	assert_int_equal(result.end.stray.signal, 0);
	assert_true(result.end.wall_ns >= 200 * NS_PER_MS);
	assert_true(result.end.wall_ns < PATIENCE_MS * NS_PER_MS);
	all_gone(f, 2);
	RUN(f, 2, &next, "/bin/true");
	assert_int_equal(next.end.leftovers, 0);
}

static void closing_ends_running_trials(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };
	unsigned int written = 0, alive;

	open_pool(f, 2);
	for (unsigned int slot = 0; slot < 2; slot++)
		assert_int_equal(
			start(f->pool, slot + 1, slot, &err, "sh", "-c",
			      "setsid sleep 1000 & echo $! >> $PIDS; echo $$ >> $PIDS; wait", NULL),
			0);
	for (int i = 0; written < 4 && i < PATIENCE_MS / 10; i++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		look_for(f, &written, &alive);
	}
	assert_int_equal(alive, 4);
	assert_int_equal(pool_busy_count(f->pool), 2);
	pool_close(f->pool);
	f->pool = NULL;
	all_gone(f, 4);
}

/* ---- many ---- */

static void a_slot_takes_two_jobs(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };

	open_pool(f, 1);
	assert_int_equal(start(f->pool, 1, 0, &err, "sh", "-c", "exit 1", NULL), 0);
	assert_int_equal(start(f->pool, 2, 0, &err, "sh", "-c", "exit 2", NULL), 0);
	assert_int_equal(pool_depth(f->pool, 0), POOL_DEPTH);
	for (uint64_t i = 1; i <= 2; i++) {
		AUTO(trial_result_deinit) struct trial_result result = { 0 };

		assert_int_equal(finish(f->pool, &result, &err), 1);
		assert_int_equal(result.number.value, i);
		assert_int_equal(result.end.exit_status, i);
	}
	assert_int_equal(pool_depth(f->pool, 0), 0);
}

static void slots_work_side_by_side(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };
	bool seen[25] = { false };
	uint64_t next = 1, done = 0;

	f->settings.keep = KEEP_NONE;
	open_pool(f, 3);
	assert_int_equal(pool_slots(f->pool), 3);
	while (done < 24) {
		AUTO(trial_result_deinit) struct trial_result result = { 0 };

		for (unsigned int slot = 0; slot < 3; slot++)
			if (next <= 24 && pool_depth(f->pool, slot) == 0)
				assert_int_equal(start(f->pool, next++, slot, &err, "sh", "-c",
						       "exit 3", NULL),
						 0);
		assert_int_equal(finish(f->pool, &result, &err), 1);
		assert_int_equal(result.end.exit_status, 3);
		assert_uint_in_range(result.number.value, 1, 24);
		assert_false(seen[result.number.value]);
		seen[result.number.value] = true;
		assert_false(result.left);
		done++;
	}
	assert_int_equal(pool_wait(f->pool, -1, 0, &(struct trial_result){ 0 }, &err), 0);
}

static void a_readable_descriptor_wakes(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };
	int ends[2];

	open_pool(f, 1);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(start(f->pool, 1, 0, &err, "sleep", "1000", NULL), 0);
	assert_int_equal(
		pool_wait(f->pool, ends[0], PATIENCE_MS, &(struct trial_result){ 0 }, &err), 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void a_slot_that_dies_is_told(void **state)
{
	struct fixture *f = *state;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	struct err err = { 0 };

	open_pool(f, 1);
	/* The command's parent is its slot. */
	assert_int_equal(start(f->pool, 1, 0, &err, "sh", "-c", "kill -KILL $PPID", NULL), 0);
	assert_int_equal(finish(f->pool, &result, &err), -EPIPE);
	assert_non_null(strstr(err.message, "slot 0 has died"));
	assert_true(err.remedy[0] != '\0');
	err = (struct err){ 0 };
	assert_int_equal(start(f->pool, 2, 0, &err, "/bin/true", NULL), -EPIPE);
	assert_true(err.message[0] != '\0');
}

static int run_with_few_descriptors(void *arg)
{
	struct fixture *f = arg;
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	struct err err = { 0 };

	CHILD_WANTS(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }) == 0);
	CHILD_WANTS(pool_open(2, &f->settings, -1, &f->pool, &err) == 0);
	CHILD_WANTS(start(f->pool, 1, 1, &err, "sh", "-c", "exit 4", NULL) == 0);
	CHILD_WANTS(finish(f->pool, &result, &err) == 1);
	CHILD_WANTS(result.end.exit_status == 4);
	pool_close(f->pool);
	return 0;
}

static void few_descriptors_are_enough(void **state)
{
	assert_int_equal(in_child(run_with_few_descriptors, *state), 0);
}

/* ---- faults ---- */

#ifdef REDHAND_FAULTS
struct fault {
	struct fixture *fixture;
	const char *spec;
	int code;
	const char *sentence;
};

static int open_with_fault(void *arg)
{
	struct fault *fault = arg;
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", fault->spec, 1);
	CHILD_WANTS(pool_open(3, &fault->fixture->settings, -1, &fault->fixture->pool, &err) ==
		    fault->code);
	CHILD_WANTS(fault->fixture->pool == NULL);
	CHILD_WANTS(strstr(err.message, fault->sentence) != NULL);
	CHILD_WANTS(strstr(err.remedy, "-j") != NULL);
	/* The slots that had started are gone. */
	CHILD_WANTS(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return 0;
}

static void a_slot_that_cannot_start_is_told(void **state)
{
	struct fault faults[] = {
		{ *state, "fork:1:EAGAIN", -EAGAIN, "slot 0" },
		{ *state, "fork:3:ENOMEM", -ENOMEM, "slot 2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		assert_int_equal(in_child(open_with_fault, &faults[i]), 0);
}

static int run_with_fault(void *arg)
{
	struct fault *fault = arg;
	struct fixture *f = fault->fixture;
	AUTO(trial_result_deinit) struct trial_result before = { 0 };
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	AUTO(trial_result_deinit) struct trial_result after = { 0 };
	struct err err = { 0 };

	(void)setenv("REDHAND_FAULT", fault->spec, 1);
	CHILD_WANTS(pool_open(1, &f->settings, -1, &f->pool, &err) == 0);
	CHILD_WANTS(start(f->pool, 1, 0, &err, "sh", "-c", "echo one; exit 1", NULL) == 0);
	CHILD_WANTS(finish(f->pool, &before, &err) == 1 && !before.trouble && before.left);
	CHILD_WANTS(start(f->pool, 2, 0, &err, "sh", "-c", "echo two; exit 1", NULL) == 0);
	CHILD_WANTS(finish(f->pool, &result, &err) == 1);
	CHILD_WANTS(result.trouble != NULL);
	if (result.trouble_code != fault->code)
		(void)fprintf(stderr, "%s: %d, %s\n", fault->spec, result.trouble_code,
			      result.trouble);
	CHILD_WANTS(result.trouble_code == fault->code);
	CHILD_WANTS(strstr(result.trouble, fault->sentence) != NULL);
	/* Nothing of it is left, unless it ran: then what was saved of its output is. */
	CHILD_WANTS(there(f, "trials/2") == (strncmp(fault->spec, "write", 5) == 0));
	/* The slot goes on, and the first trial's output is untouched. */
	CHILD_WANTS(start(f->pool, 3, 0, &err, "sh", "-c", "exit 3", NULL) == 0);
	CHILD_WANTS(finish(f->pool, &after, &err) == 1 && !after.trouble);
	CHILD_WANTS(after.end.exit_status == 3);
	CHILD_WANTS(there(f, "trials/1/stdout"));
	pool_close(f->pool);
	return 0;
}

static void trouble_in_a_slot_is_told(void **state)
{
	/* An empty stream takes no write, so each of these trials takes one. */
	struct fault faults[] = {
		{ *state, "spawn:2:ENOMEM", -ENOMEM, "cannot run 'sh': Cannot allocate memory" },
		{ *state, "spawn:2:EAGAIN", -EAGAIN, "cannot run 'sh'" },
		{ *state, "pipe:2:EMFILE", -EMFILE, "cannot make a pipe" },
		{ *state, "trial_dir:2:ENOSPC", -ENOSPC, "cannot create trials/2: No space left" },
		{ *state, "trial_dir:2:EACCES", -EACCES, "cannot create trials/2" },
		{ *state, "write:2:ENOSPC", -ENOSPC, "No space left" },
		{ *state, "write:2:EIO", -EIO, "cannot write 'stdout'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (in_child(run_with_fault, &faults[i]) != 0)
			fail_msg("%s", faults[i].spec);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_passing_trial_leaves_nothing),
		TEST(both_streams_are_kept),
		TEST(a_crash_is_seen),
		TEST(a_crash_that_nobody_waits_for_is_seen),
		TEST(surroundings_are_as_asked),
		TEST(a_terminal_when_asked),
		TEST(what_was_left_by_a_killed_redhand_is_replaced),
		TEST(a_program_that_is_not_there_is_told),
		TEST(a_timeout_ends_the_whole_tree),
		TEST(a_flood_of_output_does_not_stop_the_clock),
		TEST(what_lingers_is_ended),
		TEST(closing_ends_running_trials),
		TEST(a_slot_takes_two_jobs),
		TEST(slots_work_side_by_side),
		TEST(a_readable_descriptor_wakes),
		TEST(a_slot_that_dies_is_told),
		TEST(few_descriptors_are_enough),
#ifdef REDHAND_FAULTS
		TEST(a_slot_that_cannot_start_is_told),
		TEST(trouble_in_a_slot_is_told),
#endif
	};

	return cmocka_run_group_tests_name("trial_pool", tests, NULL, NULL);
}
