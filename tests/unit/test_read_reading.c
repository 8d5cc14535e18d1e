/*
 * A reading: opened once, filled when asked, shared; what is not there or damaged is empty, and
 * never a crash of ours.
 */
#include "corpus.h"

#include <sys/stat.h>

#include "base/tree.h"
#include "read/sweeps.h"
#include "scratch.h"

#define SEED 20261117u

static void each_part_is_worked_out_once(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("chase-mask-watched");
	struct event_logs *logs = corpus_logs(reading), *again = NULL;

	(void)state;
	assert_int_equal(reading_logs(reading, &again, NULL), 0);
	assert_ptr_equal(logs, again);
	assert_ptr_equal(reading_crash(reading, CRASH_WHOLE), reading_crash(reading, CRASH_WHOLE));
	assert_ptr_not_equal(reading_crash(reading, CRASH_WHOLE),
			     reading_crash(reading, CRASH_SITE));
	assert_ptr_equal(reading_hits(reading)->hits.items, reading_hits(reading)->hits.items);
	assert_ptr_equal(reading_backtrack(reading, THROUGH_OBJECTS)->backtrack.steps.items,
			 reading_backtrack(reading, THROUGH_OBJECTS)->backtrack.steps.items);
	/* The parts are about the same log. */
	assert_ptr_equal(reading_backtrack(reading, THROUGH_OBJECTS)->record.log,
			 &logs->list.items[0]);
	assert_ptr_equal(reading_hits(reading)->hits.items[0].log, &logs->list.items[0]);
}

static void whoever_shares_it_keeps_it(void **state)
{
	struct reading *reading = corpus_read("chase-mask");
	struct reading *shared = reading_share(reading);
	const struct crash *crash = reading_crash(reading, CRASH_WHOLE);

	(void)state;
	reading_close(reading);
	assert_ptr_equal(reading_crash(shared, CRASH_WHOLE), crash);
	reading_close(shared);
	reading_close(NULL);
}

static void it_knows_whose_it_is(void **state)
{
	const struct corpus_trial *t = corpus_find("chase-mask");
	AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);
	struct reading_of of = { .trials = corpus.fd, .trial = t->number, .signal = t->signal };
	char name[24];

	(void)state;
	(void)snprintf(name, sizeof(name), "%llu", t->number);
	assert_string_equal(reading_name(reading), name);
	assert_int_equal(reading_trial(reading), t->number);
	assert_ptr_equal(reading_symbols(reading), corpus.symbols);
	assert_true(reading_is(reading, &of));
	of.signal = 0;
	assert_true(reading_is(reading, &of));
	of.signal = 6;
	assert_false(reading_is(reading, &of));
	of = (struct reading_of){ .trials = corpus.fd, .trial = t->number + 1 };
	assert_false(reading_is(reading, &of));
}

static void check_empty(struct reading *reading)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	uint64_t hash;

	assert_null(reading_crash(reading, CRASH_SITE));
	assert_int_equal(reading_crashes(reading, CRASH_WHOLE)->crashes.count, 0);
	assert_false(reading_backtrack(reading, THROUGH_OBJECTS)->has_record);
	assert_int_equal(reading_hits(reading)->hits.count, 0);
	assert_int_equal(reading_truncations(reading)->list.count, 0);
	assert_int_equal(reading_moments(reading)->list.count, 0);
	assert_int_equal(reading_damage(reading)->findings.count, 0);
	sweeps_read(reading, NULL, &report);
	assert_int_equal(report.dangling.count, 0);
	assert_int_equal(sweeps_contexts_of(reading, "main", &hash, 1), 0);
	reading_prune(reading);
}

static void a_trial_that_is_gone_is_empty(void **state)
{
	AUTO(reading_closep)
	struct reading *reading = reading_open(&(struct reading_of){
		.trials = corpus.fd, .trial = 1000000, .symbols = corpus.symbols });
	struct event_logs *logs = NULL;
	struct err err = { 0 };

	(void)state;
	assert_true(reading_logs(reading, &logs, &err) < 0);
	assert_string_equal(err.message, "there is no directory trials/1000000");
	assert_null(logs);
	/* The answer is the same when it is asked for again. */
	memset(&err, 0, sizeof(err));
	assert_true(reading_logs(reading, &logs, &err) < 0);
	assert_string_equal(err.message, "there is no directory trials/1000000");
	check_empty(reading);
}

/* ---- on copies ---- */

static void copy_file(int from, int to)
{
	static char chunk[1 << 16];
	struct stat st;
	ssize_t n;

	assert_int_equal(fstat(from, &st), 0);
	assert_int_equal(ftruncate(to, st.st_size), 0);
	for (off_t at = 0; (at = lseek(from, at, SEEK_DATA)) >= 0; at += n) {
		n = pread(from, chunk, sizeof(chunk), at);
		if (n <= 0)
			break;
		assert_int_equal(pwrite(to, chunk, (size_t)n, at), n);
	}
}

/* The logs of a trial into 1/ of the scratch directory; returns how many. */
static unsigned int copy_trial(const struct corpus_trial *t, const struct scratch *to)
{
	AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);
	unsigned int count = 0;

	(void)mkdirat(to->fd, "1", 0755);
	VEC_FOREACH (&corpus_logs(reading)->list, log) {
		AUTO(mem_freep) char *from = mem_printf("%llu/%s", t->number, log->name);
		AUTO(mem_freep) char *name = mem_printf("1/%s", log->name);
		AUTO(fd_closep) int in = openat(corpus.fd, from, O_RDONLY | O_CLOEXEC);
		AUTO(fd_closep)
		int out = openat(to->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		copy_file(in, out);
		count++;
	}
	return count;
}

static struct reading *read_copy(const struct scratch *dir, int signal)
{
	return reading_open(&(struct reading_of){
		.trials = dir->fd, .trial = 1, .signal = signal, .symbols = corpus.symbols });
}

static void what_tells_nothing_is_pruned(void **state)
{
	static const struct {
		const char *name;
		bool stays;
	} rows[] = {
		{ "chase-innocent-tagged-passes", false },
		{ "chase-mask", true },
		{ "heap-overflow", true },
		{ "watch-nodes", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct scratch dir;
		AUTO(reading_closep) struct reading *reading = NULL;
		AUTO(reading_closep) struct reading *after = NULL;
		unsigned int count;

		scratch_make(&dir);
		count = copy_trial(corpus_find(rows[i].name), &dir);
		assert_true(count > 0);
		reading = read_copy(&dir, 0);
		reading_prune(reading);
		/* The reading has them still. */
		assert_int_equal(corpus_logs(reading)->list.count, count);
		after = read_copy(&dir, 0);
		assert_int_equal(corpus_logs(after)->list.count, rows[i].stays ? count : 0);
		if (!rows[i].stays)
			check_empty(after);
		scratch_remove(&dir);
	}
}

static void a_directory_may_go_while_it_is_read(void **state)
{
	struct scratch dir;
	AUTO(reading_closep) struct reading *reading = NULL;

	(void)state;
	scratch_make(&dir);
	assert_int_equal(copy_trial(corpus_find("chase-memcpy"), &dir), 1);
	reading = read_copy(&dir, 11);
	(void)corpus_logs(reading);
	scratch_remove(&dir);
	assert_non_null(reading_crash(reading, CRASH_WHOLE));
	assert_int_equal(reading_backtrack(reading, THROUGH_OBJECTS)->backtrack.steps.count, 2);
}

static void glances_say_what_there_is(void **state)
{
	struct event_glance glance;
	char name[24];

	(void)state;
	(void)snprintf(name, sizeof(name), "%llu", corpus_find("fault-null")->number);
	event_logs_glance(corpus.fd, name, &glance);
	assert_int_equal(glance.signal, 11);
	assert_true(glance.pid > 0);
	assert_false(glance.cuts);
	(void)snprintf(name, sizeof(name), "%llu", corpus_find("fault-shrank-ids")->number);
	event_logs_glance(corpus.fd, name, &glance);
	assert_int_equal(glance.signal, 7);
	assert_true(glance.cuts);
	(void)snprintf(name, sizeof(name), "%llu", corpus_find("watch-nodes")->number);
	event_logs_glance(corpus.fd, name, &glance);
	assert_int_equal(glance.signal, 0);
	(void)snprintf(name, sizeof(name), "%llu", corpus_find("fault-handled")->number);
	event_logs_glance(corpus.fd, name, &glance);
	assert_int_equal(glance.handed_signal, 11);
}

/* ---- damaged logs ---- */

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static void read_everything(struct reading *reading)
{
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list told = { 0 };
	const struct crash_reading *crashed = reading_backtrack(reading, THROUGH_OBJECTS);
	unsigned int hits = 0;

	(void)reading_crashes(reading, CRASH_SITE);
	(void)reading_truncations(reading);
	(void)reading_damage(reading);
	crash_reading_tell(crashed, corpus.symbols, reading_crash(reading, CRASH_WHOLE), &told);
	sweeps_read(reading, reading_crash(reading, CRASH_WHOLE), &report);
	VEC_FOREACH (&reading_hits(reading)->hits, hit) {
		AUTO(evidence_deinit) struct evidence e = evidence_new(EVIDENCE_WRITE, 1, true);

		if (hits++ < 20)
			hit_describe(hit, corpus.symbols, e.write);
	}
}

/* The target scribbles on its memory, and its log is part of that. */
static void damaged_logs_are_read_as_far_as_they_go(void **state)
{
	static const char *const names[] = { "chase-mask-watched", "chase-dangling-global",
					     "fault-shrank-ids",   "heap-use-crash",
					     "heap-sweep",	   "chase-fork",
					     "watch-outside" };
	uint64_t random = SEED;

	(void)state;
	print_message("# seed %u\n", SEED);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (unsigned int round = 0; round < 12; round++) {
			const struct corpus_trial *t = corpus_find(names[i]);
			AUTO(reading_closep) struct reading *whole = corpus_read_trial(t, NULL);
			AUTO(reading_closep) struct reading *reading = NULL;
			struct scratch dir;

			scratch_make(&dir);
			(void)copy_trial(t, &dir);
			VEC_FOREACH (&corpus_logs(whole)->list, log) {
				AUTO(mem_freep) char *name = mem_printf("1/%s", log->name);
				AUTO(fd_closep)
				int fd = openat(dir.fd, name, O_RDWR | O_CLOEXEC);

				if (round == 0)
					assert_int_equal(ftruncate(fd, (off_t)log->len / 3), 0);
				for (unsigned int k = 0; k < 1u << round; k++) {
					uint64_t word = next_random(&random);
					off_t at = (off_t)(next_random(&random) %
							   (round % 2 ? log->len : 1u << 18));

					if (pwrite(fd, &word, sizeof(word) / 2, at) < 0)
						fail_msg("cannot write");
				}
			}
			reading = read_copy(&dir, t->signal);
			read_everything(reading);
			scratch_remove(&dir);
		}
}

static void every_trial_is_read_whole(void **state)
{
	(void)state;
	VEC_FOREACH (&corpus.trials, t) {
		AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);

		assert_true(corpus_logs(reading)->list.count > 0);
		read_everything(reading);
		VEC_FOREACH (&corpus_logs(reading)->list, log) {
			assert_int_equal(log->reader.header.retired, LOG_RETIRED_NO);
			assert_non_null(log->program);
			/* The crash observer writes a log only when there is a crash, and its maps
			 * are with that. */
			assert_true(log->modules.count > 0 || strcmp(t->observer, "crash") == 0);
		}
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_part_is_worked_out_once),
	cmocka_unit_test(whoever_shares_it_keeps_it),
	cmocka_unit_test(it_knows_whose_it_is),
	cmocka_unit_test(a_trial_that_is_gone_is_empty),
	cmocka_unit_test(what_tells_nothing_is_pruned),
	cmocka_unit_test(a_directory_may_go_while_it_is_read),
	cmocka_unit_test(glances_say_what_there_is),
	cmocka_unit_test(damaged_logs_are_read_as_far_as_they_go),
	cmocka_unit_test(every_trial_is_read_whole),
};

CORPUS_MAIN(tests)
