/*
 * Hits of watched memory as the recorded trials have them: which instruction, how wide, which
 * values, by whom; with every way of watching. What is expected follows from
 * tests/victims/watched.c.
 */
#include "corpus.h"

#include "read/unexplained.h"

struct stored {
	const char *function;
	enum store_fit fit;
	unsigned int width;
	uint64_t old, new;
};

static void describe(const struct hit *hit, struct evidence *ret)
{
	*ret = evidence_new(EVIDENCE_WRITE, 1, false);
	hit_describe(hit, corpus.symbols, ret->write);
}

/* The innermost function that has a name in the program itself. */
static bool is_by(const struct write_seen *write, const char *function)
{
	const struct frame *site = stack_site(&write->writer);

	return site && site->function && strcmp(site->function, function) == 0;
}

static void check_stores(const char *name, const struct stored *stores, size_t count)
{
	AUTO(reading_closep) struct reading *reading = corpus_read(name);
	const struct trial_hits *hits = reading_hits(reading);

	if (hits->hits.count != count)
		fail_msg("%s: %zu hits", name, hits->hits.count);
	for (size_t i = 0; i < count; i++) {
		AUTO(evidence_deinit) struct evidence e;

		describe(&hits->hits.items[i], &e);
		if (!is_by(e.write, stores[i].function))
			fail_msg("%s: store %zu is not by %s", name, i, stores[i].function);
		assert_int_equal(e.write->fit, stores[i].fit);
		assert_int_equal(e.write->width, stores[i].width);
		assert_int_equal(e.write->old, stores[i].old);
		assert_int_equal(e.write->new, stores[i].new);
		assert_true(hit_covers(&hits->hits.items[i], corpus.symbols));
		if (i > 0)
			assert_true(hits->hits.items[i].hit->number >
				    hits->hits.items[i - 1].hit->number);
	}
}

/* nodes(): three tags, of which one loses a bit to a store of one byte, and one its lower half to
 * a store of eight bytes that begins four before it. */
static const struct stored tags[] = {
	{ "node_tag", FIT_EXACT, 8, 0x1001, 0x2001 },
	{ "node_tag", FIT_EXACT, 8, 0x1001, 0x3001 },
	{ "node_untag", FIT_NARROW, 1, 0x3001, 0x3000 },
	{ "node_wide", FIT_WIDE, 8, 0x1001, 0 },
};

static void every_way_of_watching_sees_the_same(void **state)
{
	static const char *const ways[] = { "watch-nodes", "watch-nodes-ptrace",
					    "watch-nodes-pages" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		check_stores(ways[i], tags, ARRAY_SIZE(tags));
}

static void blocks_of_hits_are_told(void **state)
{
	static const char *const ways[] = { "watch-nodes", "watch-nodes-ptrace",
					    "watch-nodes-pages" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(ways[i]);

		VEC_FOREACH (&reading_hits(reading)->hits, hit) {
			AUTO(evidence_deinit) struct evidence e;

			describe(hit, &e);
			/* struct node: the tag is its last word. */
			assert_int_equal(e.write->home.kind, HOME_BLOCK);
			assert_int_equal(e.write->home.offset, 24);
			assert_int_equal(e.write->home.len, 8);
			assert_non_null(e.write->victim);
			assert_int_equal(e.write->victim->size, 32);
			assert_true(stack_names(&e.write->victim->allocated, "node_new"));
		}
	}
}

static void the_same_instruction_has_one_name(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("watch-nodes");
	const struct trial_hits *hits = reading_hits(reading);
	char *key[ARRAY_SIZE(tags)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		AUTO(evidence_deinit) struct evidence e;
		struct writer writer;

		describe(&hits->hits.items[i], &e);
		assert_int_equal(hit_decode(&hits->hits.items[i], corpus.symbols, &writer), 0);
		key[i] = hit_key(&hits->hits.items[i], &writer, e.write);
	}
	assert_string_equal(key[0], key[1]);
	assert_string_not_equal(key[1], key[2]);
	assert_string_not_equal(key[2], key[3]);
	assert_non_null(strstr(key[0], "watched"));
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		mem_free(key[i]);
}

static void globals_are_counted_up(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("watch-globals");
	const struct trial_hits *hits = reading_hits(reading);
	uint64_t steps = 0, total = 0, address = 0;

	(void)state;
	assert_int_equal(hits->hits.count, 20);
	VEC_FOREACH (&hits->hits, hit) {
		AUTO(evidence_deinit) struct evidence e;

		describe(hit, &e);
		assert_true(is_by(e.write, "tally_step"));
		/* A variable is watched by its address; whoever asked for it knows its name. */
		assert_int_equal(e.write->home.kind, HOME_ADDRESS);
		assert_int_equal(e.write->fit, FIT_EXACT);
		if (hit->hit->watch == 0) {
			address = e.write->home.address;
			assert_int_equal(e.write->old, steps);
			assert_int_equal(e.write->new, ++steps);
		} else {
			assert_int_equal(e.write->home.address, address + 8);
			assert_int_equal(e.write->old, total);
			total += steps;
			assert_int_equal(e.write->new, total);
		}
	}
	assert_int_equal(steps, 10);
	assert_int_equal(total, 55);
}

static void pages_watch_any_number(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("watch-many-pages");
	const struct trial_hits *hits = reading_hits(reading);

	(void)state;
	assert_int_equal(hits->hits.count, 10);
	for (size_t i = 0; i < 10; i++) {
		AUTO(evidence_deinit) struct evidence e;

		describe(&hits->hits.items[i], &e);
		assert_int_equal(e.write->old, i);
		assert_int_equal(e.write->new, 100 + i);
		if (i > 0)
			assert_int_not_equal(hits->hits.items[i].hit->id,
					     hits->hits.items[i - 1].hit->id);
	}
}

/* twice(): two objects at one address, and nobody changes the tag. */
static void what_is_made_is_no_write(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("watch-twice");

	(void)state;
	assert_int_equal(reading_hits(reading)->hits.count, 0);
}

/* ---- changes that nobody was caught at ---- */

struct changes {
	VEC(struct log_watch_changed) list;
};

static void changes_of(struct event_log *log, struct changes *ret)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		struct log_watch_changed changed;

		if (item.head.type == LOG_WATCH_CHANGED &&
		    log_payload(&item, &changed, sizeof(changed)))
			VEC_PUSH(&ret->list, changed);
	}
}

/* The one change of the trial that no hit explains: into `ret`, an evidence. */
static void unexplained_of(const char *name, struct evidence *ret)
{
	AUTO(reading_closep) struct reading *reading = corpus_read(name);
	const struct trial_hits *hits = reading_hits(reading);
	unsigned int found = 0;

	*ret = (struct evidence){ .kind = EVIDENCE_OUTSIDE };
	VEC_FOREACH (&corpus_logs(reading)->list, log) {
		struct changes changes = { 0 };

		changes_of(log, &changes);
		VEC_FOREACH (&changes.list, changed) {
			AUTO(evidence_deinit) struct evidence same = { .kind = EVIDENCE_OUTSIDE };
			uint64_t value = watched_word(changed->found, changed->bytes);

			if (change_explained(hits, log, changed, corpus.symbols))
				continue;
			if (found++ == 0)
				ret->outside = unexplained_tell(log, changed, corpus.symbols);
			/* Found by what it left there as well, and by nothing else. */
			same.outside = unexplained_find(hits, log, changed->watched, value,
							changed->bytes, corpus.symbols);
			assert_non_null(same.outside);
			assert_int_equal(same.outside->new, value);
			assert_null(unexplained_find(hits, log, changed->watched, ~value,
						     changed->bytes, corpus.symbols));
		}
		VEC_DEINIT(&changes.list);
	}
	if (found == 0)
		fail_msg("%s: every change is explained", name);
}

/* outside(): dd writes XYZ to the file that is mapped. */
static void another_process_is_told(void **state)
{
	AUTO(evidence_deinit) struct evidence e;

	(void)state;
	unexplained_of("watch-outside", &e);
	assert_int_equal(e.outside->old, 1);
	assert_int_equal(e.outside->new & 0xffffff, 0x5a5958);
}

/* again(): the same page is mapped twice, and written through the other mapping. */
static void another_mapping_is_told(void **state)
{
	AUTO(evidence_deinit) struct evidence e;

	(void)state;
	unexplained_of("watch-again", &e);
	/* Each of the two is written through the other: 0 to 1, 1 to 2. */
	assert_int_equal(e.outside->new, e.outside->old + 1);
}

/* poked(): through /proc/self/mem. */
static void a_write_as_debuggers_make_it_is_told(void **state)
{
	AUTO(evidence_deinit) struct evidence e;

	(void)state;
	unexplained_of("watch-poked", &e);
	assert_int_equal(e.outside->new, 0x1230);
}

/* fills(): a system call puts it there, and with perf that is a hit like any other. */
static void a_system_call_is_a_hit(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("watch-fills");
	const struct trial_hits *hits = reading_hits(reading);
	AUTO(evidence_deinit) struct evidence e;

	(void)state;
	assert_true(hits->hits.count >= 1);
	describe(&hits->hits.items[hits->hits.count - 1], &e);
	assert_memory_equal(&e.write->new, "ABCDEFGH", 8);
	assert_true(is_by(e.write, "fills"));
}

/* ---- what a chase watched: the last store is the one that broke it ---- */

static const struct {
	const char *name, *writer;
	enum store_fit fit;
	unsigned int width;
} culprits[] = {
	{ "chase-mask-watched", "node_unmark", FIT_EXACT, 8 },
	{ "chase-wide-write-watched", "meter_read", FIT_WIDE, 8 },
	{ "chase-thread-watched", "recent_put", FIT_NARROW, 4 },
};

static void the_last_store_before_the_crash_is_the_culprits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(culprits); i++) {
		AUTO(reading_closep) struct reading *reading = corpus_read(culprits[i].name);
		const struct backtrack_step *step =
			&reading_backtrack(reading, THROUGH_OBJECTS)->backtrack.steps.items[0];
		const struct hit *last = NULL;
		AUTO(evidence_deinit) struct evidence e;

		VEC_FOREACH (&reading_hits(reading)->hits, hit)
			if (hit->hit->address == step->home.address)
				last = hit;
		if (!last)
			fail_msg("%s: nobody wrote there", culprits[i].name);
		describe(last, &e);
		if (!is_by(e.write, culprits[i].writer))
			fail_msg("%s: not by %s", culprits[i].name, culprits[i].writer);
		assert_int_equal(e.write->fit, culprits[i].fit);
		assert_int_equal(e.write->width, culprits[i].width);
		/* What it left is what the crash found. */
		assert_int_equal(e.write->new, step->value);
	}
}

/* A copy by the C library: its caller is the one. */
static void a_copy_is_its_callers(void **state)
{
	AUTO(reading_closep) struct reading *reading = corpus_read("chase-memcpy-watched");
	const struct backtrack_step *step =
		&reading_backtrack(reading, THROUGH_OBJECTS)->backtrack.steps.items[0];
	unsigned int found = 0;

	(void)state;
	VEC_FOREACH (&reading_hits(reading)->hits, hit) {
		AUTO(evidence_deinit) struct evidence e;

		describe(hit, &e);
		if (hit->hit->address != step->home.address || e.write->new != step->value)
			continue;
		assert_true(is_by(e.write, "packet_pack"));
		assert_int_equal(e.write->fit, FIT_WIDE);
		found++;
	}
	assert_int_equal(found, 1);
}

static void every_hit_can_be_told(void **state)
{
	unsigned int seen = 0, decoded = 0;

	(void)state;
	VEC_FOREACH (&corpus.trials, t) {
		AUTO(reading_closep) struct reading *reading = corpus_read_trial(t, NULL);

		VEC_FOREACH (&reading_hits(reading)->hits, hit) {
			AUTO(evidence_deinit) struct evidence e;

			describe(hit, &e);
			seen++;
			decoded += e.write->instruction != NULL;
			assert_true(e.write->writer.count > 0);
			assert_true(e.write->value_len >= 1 && e.write->value_len <= 8);
		}
	}
	/* Few cannot be: a counter that an atomic instruction changed, say. */
	assert_true(seen > 300);
	assert_true(decoded > seen / 2);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_way_of_watching_sees_the_same),
	cmocka_unit_test(blocks_of_hits_are_told),
	cmocka_unit_test(the_same_instruction_has_one_name),
	cmocka_unit_test(globals_are_counted_up),
	cmocka_unit_test(pages_watch_any_number),
	cmocka_unit_test(what_is_made_is_no_write),
	cmocka_unit_test(another_process_is_told),
	cmocka_unit_test(another_mapping_is_told),
	cmocka_unit_test(a_write_as_debuggers_make_it_is_told),
	cmocka_unit_test(a_system_call_is_a_hit),
	cmocka_unit_test(the_last_store_before_the_crash_is_the_culprits),
	cmocka_unit_test(a_copy_is_its_callers),
	cmocka_unit_test(every_hit_can_be_told),
};

CORPUS_MAIN(tests)
