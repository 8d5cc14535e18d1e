/*
 * Evidence: the fit of stores, homes, and the way through the case and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "case_fixture.h"
#include "evidence_fixture.h"
#include "model/verdict.h"
#include "says.h"

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

static void a_store_lies_on_a_field(void **state)
{
	static const struct {
		uint64_t start, len, field, field_len;
		enum store_fit fit;
	} rows[] = {
		{ 24, 8, 24, 8, FIT_EXACT },
		{ 24, 1, 24, 8, FIT_NARROW },
		{ 31, 1, 24, 8, FIT_NARROW },
		{ 24, 9, 24, 8, FIT_WIDE },
		{ 23, 2, 24, 8, FIT_WIDE },
		{ 23, 9, 24, 8, FIT_WIDE },
		{ 28, 8, 24, 8, FIT_WIDE },
		{ 16, 32, 24, 8, FIT_WIDE },
		{ 24, 0, 24, 8, FIT_UNKNOWN },
		{ 24, 8, 24, 0, FIT_UNKNOWN },
		{ UINT64_MAX - 3, 8, UINT64_MAX - 7, 8, FIT_WIDE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(store_fit_of(rows[i].start, rows[i].len, rows[i].field,
					      rows[i].field_len),
				 rows[i].fit);
}

static void homes_are_the_same_in_another_run(void **state)
{
	struct home a = { 0 }, b = { 0 }, global = { .kind = HOME_GLOBAL, .name = (char *)"g" };

	struct home nameless = { .kind = HOME_GLOBAL, .module = (char *)"/m", .offset = 8 };
	struct home other = { .kind = HOME_GLOBAL, .module = (char *)"/n", .offset = 8 };

	assert_true(home_same(&nameless, &nameless));
	assert_false(home_same(&nameless, &other));
	other = nameless;
	other.name = (char *)"g";
	assert_false(home_same(&nameless, &other));
	made_home(&a, 1);
	made_home(&b, 2);
	assert_true(home_same(&a, &b)); /* another ordinal of the same context */
	b.offset = 16;
	assert_false(home_same(&a, &b));
	b.offset = 24;
	b.key[0] = 'X';
	assert_false(home_same(&a, &b));
	b.key[0] = a.key[0];
	*strchr(b.key, '#') = '\0'; /* of another run only the context is known */
	assert_true(home_same(&a, &b));
	assert_true(home_same(&b, &b));
	b.key[0] = 'X';
	assert_false(home_same(&a, &b));
	assert_false(home_same(&a, &global));
	assert_true(home_same(&global, &global));
	home_deinit(&a);
	assert_false(home_same(&a, &a)); /* nothing is known */
	home_deinit(&b);
}

/* Packing the copy gives the same bytes: nothing was lost on the way. */
static void every_kind_survives_packing(void **state)
{
	for (unsigned int kind = 0; kind < EVIDENCE_KINDS; kind++) {
		AUTO(strbuf_deinit) struct strbuf first = { 0 };
		AUTO(strbuf_deinit) struct strbuf second = { 0 };
		AUTO(strbuf_deinit) struct strbuf words = { 0 };
		AUTO(strbuf_deinit) struct strbuf words_again = { 0 };
		AUTO(evidence_deinit) struct evidence e = made_any(kind);
		AUTO(evidence_deinit) struct evidence copy = { 0 };
		struct err err = { 0 };

		said_as_text(&e.note, "a note");
		assert_int_equal(e.kind, kind);
		evidence_pack(&e, &first);
		assert_int_equal(evidence_unpack(first.data, first.len, &copy, &err), 0);
		evidence_pack(&copy, &second);
		assert_int_equal(first.len, second.len);
		assert_memory_equal(first.data, second.data, first.len);
		words_evidence(&e, &words);
		words_evidence(&copy, &words_again);
		assert_string_equal(strbuf_str(&words), strbuf_str(&words_again));
		assert_true(words.len > 20);
	}
}

static void damaged_bytes_are_refused(void **state)
{
	uint64_t random = 12345; /* the seed */

	for (unsigned int kind = 0; kind < EVIDENCE_KINDS; kind++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		AUTO(evidence_deinit) struct evidence e = made_any(kind);
		struct evidence copy = { 0 };
		struct err err = { 0 };

		evidence_pack(&e, &sb);
		for (size_t len = 0; len < sb.len; len++)
			assert_int_equal(evidence_unpack(sb.data, len, &copy, &err), -EBADMSG);
		strbuf_addc(&sb, 'x');
		assert_int_equal(evidence_unpack(sb.data, sb.len, &copy, &err), -EBADMSG);
		sb.len--;
		for (unsigned int i = 0; i < 3000; i++) {
			size_t at;
			char was;

			random = random * 6364136223846793005ull + 1442695040888963407ull;
			at = (size_t)(random >> 33) % sb.len;
			was = sb.data[at];
			sb.data[at] = (char)(random >> 20);
			if (evidence_unpack(sb.data, sb.len, &copy, &err) == 0) {
				AUTO(strbuf_deinit) struct strbuf words = { 0 };

				words_evidence(&copy, &words);
				evidence_deinit(&copy);
			}
			sb.data[at] = was;
		}
		sb.data[0] = 99;
		assert_int_equal(evidence_unpack(sb.data, sb.len, &copy, &err), -EPROTO);
	}
}

static void text_from_a_changed_case_is_printable(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(evidence_deinit) struct evidence e = made_failure(true);
	AUTO(evidence_deinit) struct evidence copy = { 0 };
	struct err err = { 0 };

	e.failure->summary[0] = '\x1b';
	evidence_pack(&e, &sb);
	assert_int_equal(evidence_unpack(sb.data, sb.len, &copy, &err), 0);
	assert_null(strchr(copy.failure->summary, '\x1b'));
}

static struct case_store *opened(const struct scratch *s, enum case_mode mode)
{
	struct case_store *cs = NULL;
	struct err err = { 0 };

	if (case_open(scratch_path(s, "case"), mode, &cs, &err) < 0)
		fail_msg("%s", err.message);
	return cs;
}

static void evidence_survives_the_case(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct err err = { 0 };
	struct series_id series;

	assert_int_equal(made_series(cs, "a", &series, &err), 0);
	for (uint64_t n = 1; n <= 3; n++)
		assert_int_equal(add_made(cs, series,
					  &(struct made_trial){ .number = n,
								.position = n,
								.signal = n == 3 ? 11 : 0 },
					  &err),
				 0);
	for (unsigned int kind = 0; kind < EVIDENCE_KINDS; kind++) {
		AUTO(evidence_deinit) struct evidence e = made_any(kind);

		assert_int_equal(case_add_evidence(cs, &e, &err), 0);
		assert_int_equal(e.id, kind + 1);
	}
	case_close(cs);
	cs = opened(*state, CASE_READ);
	assert_int_equal(case_evidence(cs, &list, &err), 0);
	assert_int_equal(list.list.count, EVIDENCE_KINDS);
	assert_int_equal(list.trials, 3);
	assert_int_equal(list.failed, 1);
	VEC_FOREACH (&list.list, e) {
		AUTO(evidence_deinit) struct evidence made = made_any(e->kind);
		AUTO(strbuf_deinit) struct strbuf a = { 0 };
		AUTO(strbuf_deinit) struct strbuf b = { 0 };

		evidence_pack(e, &a);
		evidence_pack(&made, &b);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.data, b.data, a.len);
	}
	assert_ptr_equal(evidence_find(&list, 2), &list.list.items[1]);
	assert_null(evidence_find(&list, 99));
	case_close(cs);
}

static void clearing_a_series_takes_its_evidence(void **state)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(evidence_deinit) struct evidence gone = made_watch(1, 0);
	AUTO(evidence_deinit) struct evidence stays = made_watch(9, 0);
	AUTO(verdict_deinit) struct verdict verdict = { .sentence = { .text = mem_strdup("s") } };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct err err = { 0 };
	struct series_id series;

	assert_int_equal(made_series(cs, "a", &series, &err), 0);
	assert_int_equal(
		add_made(cs, series, &(struct made_trial){ .number = 1, .position = 1 }, &err), 0);
	assert_int_equal(case_add_evidence(cs, &stays, &err), 0);
	assert_int_equal(case_add_evidence(cs, &gone, &err), 0);
	assert_int_equal(case_add_verdict(cs, &verdict, &err), 0);
	assert_int_equal(case_series_clear(cs, series, &err), 0);
	assert_int_equal(case_evidence(cs, &list, &err), 0);
	assert_int_equal(list.list.count, 1);
	assert_int_equal(list.list.items[0].trial, 9);
	assert_int_equal(case_verdict(cs, &verdict, &err), -ENOENT);
	case_close(cs);
}

static void made_verdict(struct verdict *v)
{
	*v = (struct verdict){ .class = VERDICT_WIDE_WRITE,
			       .firm = true,
			       .sentence = { .text = mem_strdup("it was so") },
			       .caught = 3,
			       .watched = 4,
			       .trials = 41,
			       .instruction = mem_strdup("mov qword ptr [rbx+0x14], rax"),
			       .width = 8,
			       .fit = FIT_WIDE,
			       .values_known = true,
			       .old = 1,
			       .new = UINT64_MAX,
			       .value_len = 8,
			       .tid = -1,
			       .crash = 4,
			       .holder = 5,
			       .next = { .text = mem_strdup("run it again") } };
	(void)strcpy(v->signature, "0123456789");
	made_stack(&v->writer, "f", 1);
	made_stack(&v->freed_by, "g", 2);
	made_stack(&v->other, "h", 3);
	made_home(&v->home, 1);
	v->victim = made_block(1, MADE_BLOCK, 56, BLOCK_LIVE);
	v->base = made_block(2, 0x900000, 16, BLOCK_FREED);
	VEC_PUSH(&v->evidence, 7);
	VEC_PUSH(&v->steps, ((struct verdict_step){ .what = { .text = mem_strdup("allocated") },
						    .trial = 3 }));
	made_stack(&v->steps.items[0].stack, "object_new", 40);
	VEC_PUSH(&v->alternatives,
		 ((struct verdict_alternative){ .class = VERDICT_RACE,
						.sentence = { .text = mem_strdup("a") },
						.tell_apart = { .text = mem_strdup("b") } }));
	VEC_PUSH(&v->ledger, ((struct ledger_entry){ .id = mem_strdup("wide"),
						     .text = { .text = mem_strdup("t") },
						     .status = LEDGER_CONFIRMED,
						     .by = EXPERIMENT_WATCH,
						     .telling = 3,
						     .missed = 0.125,
						     .because = { .text = mem_strdup("c") } }));
	VEC_PUSH(&v->ledger.items[0].evidence, 9);
	SAY_TOO(&v->doubts, "seen-once", said_number(7), said_real(0.5), said_site(&v->writer),
		said_home(&v->home), said_word("step:freed"), said_signed(-3), said_none());
	said_as_text(said_new(&v->open), "an open end");
}

static void a_verdict_survives_the_case(void **state)
{
	AUTO(verdict_deinit) struct verdict made = { 0 };
	AUTO(verdict_deinit) struct verdict read = { 0 };
	AUTO(strbuf_deinit) struct strbuf a = { 0 };
	AUTO(strbuf_deinit) struct strbuf b = { 0 };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct verdict damaged = { 0 };
	struct err err = { 0 };

	assert_int_equal(case_verdict(cs, &read, &err), -ENOENT);
	assert_int_equal(
		case_add_verdict(cs, &(struct verdict){ .sentence = { .text = (char *)"old" } },
				 &err),
		0);
	made_verdict(&made);
	assert_int_equal(case_add_verdict(cs, &made, &err), 0);
	assert_int_equal(case_verdict(cs, &read, &err), 0);
	verdict_pack(&made, &a);
	verdict_pack(&read, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	for (size_t len = 0; len < a.len; len++)
		assert_int_equal(verdict_unpack(a.data, len, &damaged, &err), -EBADMSG);
	case_close(cs);
}

static void decisions_keep_their_order(void **state)
{
	AUTO(decision_list_deinit) struct decision_list list = { 0 };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct err err = { 0 };

	AUTO(said_deinit) struct said first = { 0 }, second = { 0 };

	SAY(&first, "rate:all", said_number(9), said_number(50));
	said_as_text(&second, "\x1b[31m4 candidates");
	assert_int_equal(case_add_decision(cs, "rate", &first, &err), 0);
	assert_int_equal(case_add_decision(cs, "chase", &second, &err), 0);
	assert_int_equal(case_decisions(cs, &list, &err), 0);
	assert_int_equal(list.list.count, 2);
	assert_string_equal(list.list.items[0].stage, "rate");
	assert_true(said_same(&list.list.items[0].said, &first));
	assert_string_equal(list.list.items[1].said.text, "\\x1b[31m4 candidates");
	assert_true(list.list.items[0].time_ms <= list.list.items[1].time_ms);
	assert_int_equal(case_clear_evidence(cs, &err), 0);
	decision_list_deinit(&list);
	assert_int_equal(case_decisions(cs, &list, &err), 0);
	assert_int_equal(list.list.count, 0);
	case_close(cs);
}

static void choices_are_stored_before_they_have_ended(void **state)
{
	AUTO(choice_list_deinit) struct choice_list list = { 0 };
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct choice_record made = { .question = (char *)"chase",
				      .experiment = (char *)"homes",
				      .why.text = (char *)"\x1b[31m9 are open",
				      .expected_trials = 11.5,
				      .expected_failures = 2,
				      .expected_s = 90 };
	struct choice_record ended = {
		.trials = 13, .failures = 3, .seconds = 60.5, .brought.text = (char *)"a race"
	};
	struct err err = { 0 };
	uint64_t first, second;

	assert_int_equal(case_add_choice(cs, &made, &first, &err), 0);
	assert_int_equal(case_add_choice(cs, &made, &second, &err), 0);
	assert_int_equal(case_end_choice(cs, first, &ended, &err), 0);
	assert_int_equal(case_choices(cs, &list, &err), 0);
	assert_int_equal(list.list.count, 2);
	assert_true(list.list.items[0].ended && !list.list.items[1].ended);
	assert_int_equal(list.list.items[0].trials, 13);
	assert_float_equal(list.list.items[0].expected_trials, 11.5, 0);
	assert_float_equal(list.list.items[0].seconds, 60.5, 0);
	assert_string_equal(list.list.items[0].brought.text, "a race");
	assert_string_equal(list.list.items[1].why.text, "\\x1b[31m9 are open");
	assert_false(said_anything(&list.list.items[1].brought));
	assert_int_equal(case_clear_evidence(cs, &err), 0);
	choice_list_deinit(&list);
	assert_int_equal(case_choices(cs, &list, &err), 0);
	assert_int_equal(list.list.count, 0);
	case_close(cs);
}

static void change(const struct scratch *s, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(scratch_path(s, "case/case.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

static void damaged_rows_are_told_by_number(void **state)
{
	static const char *const changes[] = {
		"UPDATE evidence SET detail = x'00'",
		"UPDATE evidence SET detail = ''",
		"UPDATE evidence SET detail = zeroblob(100000)",
		"UPDATE evidence SET detail = 'text' || char(0) || 'more'",
		"UPDATE evidence SET detail = substr(detail, 1, length(detail) - 9)",
		"UPDATE evidence SET detail = detail || x'00'",
	};
	AUTO(evidence_deinit) struct evidence e = made_crash(3, FAULT_NULL);
	struct case_store *cs = opened(*state, CASE_WRITE);
	struct err err = { 0 };

	assert_int_equal(case_add_evidence(cs, &e, &err), 0);
	case_close(cs);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct evidence_list list = { 0 };

		change(*state, changes[i]);
		cs = opened(*state, CASE_READ);
		assert_int_equal(case_evidence(cs, &list, &err), -EUCLEAN);
		assert_non_null(strstr(err.message, "evidence 1 in"));
		assert_non_null(strstr(err.message, "damaged"));
		assert_int_equal(list.list.count, 0);
		case_close(cs);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_lies_on_a_field),
		cmocka_unit_test(homes_are_the_same_in_another_run),
		cmocka_unit_test(every_kind_survives_packing),
		cmocka_unit_test(damaged_bytes_are_refused),
		cmocka_unit_test(text_from_a_changed_case_is_printable),
		TEST(evidence_survives_the_case),
		TEST(clearing_a_series_takes_its_evidence),
		TEST(a_verdict_survives_the_case),
		TEST(decisions_keep_their_order),
		TEST(choices_are_stored_before_they_have_ended),
		TEST(damaged_rows_are_told_by_number),
	};

	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
