/*
 * Families of failures: which signatures are one failure, and how often it came.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/breadcrumb.h"
#include "studies/series/families.h"

static struct signature_summary made(const char *id, struct signature signature, uint64_t failed)
{
	struct signature_summary s = { .rate = { .trials = 100, .failed = failed },
				       .trial = failed };

	(void)snprintf(signature.id, sizeof(signature.id), "%s", id);
	signature_copy(&s.signature, &signature);
	return s;
}

#define CRASH(sig, function) \
	((struct signature){ .kind = FAILURE_SIGNAL, .signal = (sig), .site = (char *)(function) })
#define IN_TEST(name) \
	((struct signature){ .kind = FAILURE_SIGNAL, .signal = 11, .test = (char *)(name) })
#define EXIT(line) \
	((struct signature){ .kind = FAILURE_EXIT, .exit_status = 1, .crumb = (char *)(line) })

struct world {
	struct signature_summaries signatures;
	struct tally tally;
	struct failure_families families;
};

/* The signatures, and trials that showed each of them alone. */
static void group(struct world *w, const struct signature_summary *list, size_t count)
{
	*w = (struct world){ .tally = { .trials = 100 } };
	for (size_t i = 0; i < count; i++) {
		VEC_PUSH(&w->signatures.list, list[i]);
		VEC_PUSH(&w->tally.counts,
			 ((struct tally_count){ .signatures = mem_strdup(list[i].signature.id),
						.count = list[i].rate.failed }));
	}
	families_group(&w->signatures, &w->tally, &w->families);
}

static void end(struct world *w)
{
	signature_summaries_deinit(&w->signatures);
	tally_deinit(&w->tally);
	failure_families_deinit(&w->families);
}

static void one_test_is_one_family_however_it_dies(void **state)
{
	struct signature_summary list[] = {
		made("aaaaaaaaaa", IN_TEST("test_zreport"), 9),
		made("bbbbbbbbbb",
		     (struct signature){ .kind = FAILURE_TEST, .test = (char *)"test_zreport" }, 4),
	};
	struct world w;

	group(&w, list, 2);
	assert_int_equal(w.families.list.count, 1);
	assert_int_equal(w.families.list.items[0].rate.failed, 13);
	assert_string_equal(w.families.list.items[0].members.items[0].id, "aaaaaaaaaa");
	assert_ptr_equal(family_of(&w.families, "bbbbbbbbbb"), &w.families.list.items[0]);
	assert_null(family_of(&w.families, "cccccccccc"));
	end(&w);
}

static void two_frequent_ones_in_different_tests_are_two(void **state)
{
	struct signature_summary list[] = { made("aaaaaaaaaa", IN_TEST("test_a"), 9),
					    made("bbbbbbbbbb", IN_TEST("test_b"), 4) };
	struct signature_summary rare[] = { made("aaaaaaaaaa", IN_TEST("test_a"), 9),
					    made("bbbbbbbbbb", IN_TEST("test_b"), 2) };
	struct world w;

	group(&w, list, 2);
	assert_int_equal(w.families.list.count, 2);
	end(&w);
	/* Twice only: it may be the same corruption, met somewhere else. */
	group(&w, rare, 2);
	assert_int_equal(w.families.list.count, 1);
	assert_int_equal(w.families.list.items[0].rate.failed, 11);
	end(&w);
}

/* Two tests die of one and the same block. */
static struct signature_summary died_of(const char *id, const char *test, const char *key)
{
	struct signature_summary s = made(id, IN_TEST(test), 9);

	s.crash = mem_alloc(sizeof(*s.crash));
	*s.crash = (struct crash){ 0 };
	VEC_PUSH(&s.crash->blocks,
		 ((struct block_life){ .key = mem_strdup("eeee#1") /* looked at only */ }));
	VEC_PUSH(&s.crash->blocks,
		 ((struct block_life){ .key = mem_strdup(key), .telling = true }));
	return s;
}

static void the_same_block_is_one_family_in_any_test(void **state)
{
	struct signature_summary same[] = { died_of("aaaaaaaaaa", "test_a", "c0ffee#17"),
					    died_of("bbbbbbbbbb", "test_b", "c0ffee#2") };
	struct signature_summary others[] = { died_of("aaaaaaaaaa", "test_a", "c0ffee#17"),
					      died_of("bbbbbbbbbb", "test_b", "c0ffe#17") };
	struct world w;

	group(&w, same, 2);
	assert_int_equal(w.families.list.count, 1);
	assert_int_equal(w.families.list.items[0].rate.failed, 18);
	end(&w);
	group(&w, others, 2);
	assert_int_equal(w.families.list.count, 2);
	end(&w);
}

static void without_tests_crashes_cannot_be_told_apart(void **state)
{
	struct signature_summary list[] = { made("aaaaaaaaaa", CRASH(11, "node_next"), 9),
					    made("bbbbbbbbbb", CRASH(6, "abort"), 8) };
	struct world w;

	group(&w, list, 2);
	assert_int_equal(w.families.list.count, 1);
	end(&w);
}

static void what_every_run_shows_is_a_matter_of_its_own(void **state)
{
	struct signature_summary list[] = { made("aaaaaaaaaa", CRASH(11, "f"), 9),
					    made("bbbbbbbbbb", EXIT("done"), 100) };
	struct world w;

	list[1].always = true;
	group(&w, list, 2);
	assert_int_equal(w.families.list.count, 1);
	assert_int_equal(w.families.list.items[0].members.count, 1);
	end(&w);
	/* … unless there is nothing else. */
	group(&w, (struct signature_summary[]){ made("bbbbbbbbbb", EXIT("done"), 100) }, 1);
	w.signatures.list.items[0].always = true;
	assert_int_equal(w.families.list.count, 1);
	end(&w);
}

static void akin(void **state)
{
	static const struct {
		struct signature a, b;
		bool same;
	} rows[] = {
		{ { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"f" },
		  { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"f" },
		  true },
		{ { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"f" },
		  { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"g" },
		  false },
		{ { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"f" },
		  { .kind = FAILURE_SIGNAL, .signal = 7, .site = (char *)"f" },
		  false },
		/* Nobody observed where one of them died. */
		{ { .kind = FAILURE_SIGNAL, .signal = 11, .site = (char *)"f" },
		  { .kind = FAILURE_SIGNAL, .signal = 11 },
		  true },
		{ { .kind = FAILURE_SIGNAL, .signal = 11, .test = (char *)"t" },
		  { .kind = FAILURE_SIGNAL, .signal = 11 },
		  false },
		{ { .kind = FAILURE_EXIT,
		    .exit_status = 1,
		    .crumb = (char *)"lookup: wrong name Qx" },
		  { .kind = FAILURE_EXIT,
		    .exit_status = 1,
		    .crumb = (char *)"lookup: wrong name P" },
		  true },
		{ { .kind = FAILURE_EXIT, .exit_status = 1, .crumb = (char *)"no such file" },
		  { .kind = FAILURE_EXIT, .exit_status = 1, .crumb = (char *)"disk is full" },
		  false },
		{ { .kind = FAILURE_EXIT, .exit_status = 1 },
		  { .kind = FAILURE_EXIT, .exit_status = 2 },
		  false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (signatures_akin(&rows[i].a, &rows[i].b) != rows[i].same ||
		    signatures_akin(&rows[i].b, &rows[i].a) != rows[i].same)
			fail_msg("row %zu", i);
}

/* A trial that shows two members is one failing trial. */
static void trials_are_counted_once(void **state)
{
	struct signature_summary list[] = { made("aaaaaaaaaa", IN_TEST("t"), 5),
					    made("bbbbbbbbbb", IN_TEST("t"), 5) };
	struct world w = { .tally = { .trials = 100 } };

	VEC_PUSH(&w.signatures.list, list[0]);
	VEC_PUSH(&w.signatures.list, list[1]);
	VEC_PUSH(&w.tally.counts,
		 ((struct tally_count){ .signatures = mem_strdup("aaaaaaaaaa bbbbbbbbbb"),
					.count = 5 }));
	families_group(&w.signatures, &w.tally, &w.families);
	assert_int_equal(w.families.list.items[0].rate.failed, 5);
	end(&w);
}

static void printed_memory_makes_no_line_of_its_own(void **state)
{
	static const char *const lines[] = { "lookup: wrong name \x90\x12P",
					     "lookup: wrong name \xb3",
					     "lookup: wrong name q\x01\xff\xfe" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		AUTO(mem_freep) char *crumb = crumb_from_line(lines[i], strlen(lines[i]));

		assert_string_equal(crumb, "lookup: wrong name *");
	}
	/* Letters of other languages are text, and so is what colours it. */
	for (size_t i = 0; i < 2; i++) {
		static const char *const text[] = { "na\303\257ve caf\303\251",
						    "\033[31mred\033[0m" };
		static const char *const kept[] = { "na\303\257ve caf\303\251", "red" };
		AUTO(mem_freep) char *crumb = crumb_from_line(text[i], strlen(text[i]));

		assert_string_equal(crumb, kept[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_test_is_one_family_however_it_dies),
		cmocka_unit_test(two_frequent_ones_in_different_tests_are_two),
		cmocka_unit_test(the_same_block_is_one_family_in_any_test),
		cmocka_unit_test(without_tests_crashes_cannot_be_told_apart),
		cmocka_unit_test(what_every_run_shows_is_a_matter_of_its_own),
		cmocka_unit_test(akin),
		cmocka_unit_test(trials_are_counted_once),
		cmocka_unit_test(printed_memory_makes_no_line_of_its_own),
	};

	return cmocka_run_group_tests_name("families", tests, NULL, NULL);
}
