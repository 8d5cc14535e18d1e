/*
 * report/page/html.h and report/draw/: nothing becomes markup, and pictures show what they are
 * given.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/draw/canvas.h"
#include "report/draw/draw.h"

/* What `code` writes into h. The caller's to free. */
#define WRITTEN(share, root, code)                            \
	({                                                    \
		char *text_ = NULL;                           \
		size_t len_ = 0;                              \
		FILE *out_ = open_memstream(&text_, &len_);   \
		struct html *h = html_new(out_, share, root); \
		code;                                         \
		html_free(h);                                 \
		(void)fclose(out_);                           \
		text_;                                        \
	})

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
		n++;
	return n;
}

static void nothing_becomes_markup(void **state)
{
	char *text = WRITTEN(NULL, NULL, {
		el(h, "p", "title", "\"><script>'&", "class", NULL, NULL);
		txt(h, "</p><script>alert('x')</script>&amp; \"q\"");
		el_end(h);
	});

	assert_string_equal(
		text, "<p title=\"&quot;&gt;&lt;script&gt;&#39;&amp;\">&lt;/p&gt;&lt;script&gt;"
		      "alert(&#39;x&#39;)&lt;/script&gt;&amp;amp; &quot;q&quot;</p>\n");
	free(text);
}

/* Controls, broken UTF-8, marks that turn the direction of reading around. */
static void nothing_fools_a_reader(void **state)
{
	char *text =
		WRITTEN(NULL, NULL, txt(h, "a\x1b[31m\x7f\xff b\xe2\x80\xae c\xe2\x81\xa6 ü\n\tx"));

	assert_string_equal(text, "a\\x1b[31m\\x7f\\xff b\\xe2\\x80\\xae c\\xe2\\x81\\xa6 ü\n\tx");
	free(text);
}

static void the_root_is_left_out_but_not_of_commands(void **state)
{
	char *text = WRITTEN(NULL, "/opt/app", {
		txt(h, "in f (/opt/app/src/a.c:3), /opt/app2/b.c, /x/opt/app/c.c; ");
		txt_exact(h, "cd /opt/app/src");
	});

	assert_string_equal(text,
			    "in f (src/a.c:3), /opt/app2/b.c, /x/opt/app/c.c; cd /opt/app/src");
	free(text);
}

static void what_is_shared_has_no_memory(void **state)
{
	struct share share = { .home = "/home/me" };
	char *text =
		WRITTEN(&share, NULL, txt(h, "0x7f0000001234 <in /home/me/x> +0x18 TOKEN='a b'"));

	assert_string_equal(text, "0x… &lt;in ~/x&gt; +0x18 TOKEN=…");
	free(text);
}

static void numbers_have_a_point(void **state)
{
	(void)setlocale(LC_ALL, "de_DE.UTF-8");
	assert_string_equal(NUM(1.25), "1.3");
	assert_string_equal(NUM(-0.5), "-0.5");
	assert_string_equal(NUM(3), "3");
	assert_string_equal(NUM(0.0 / 0.0), "0");
	(void)setlocale(LC_ALL, "C");
}

static void texts_are_cut_between_characters(void **state)
{
	AUTO(mem_freep) char *cut = shortened("üüüüüüüü", 4);
	AUTO(mem_freep) char *whole = shortened("abc", 4);

	assert_string_equal(cut, "üüü…");
	assert_string_equal(whole, "abc");
}

static void add_dots(struct investigation *inv, struct trial_dots *dots, size_t n, size_t each)
{
	VEC_PUSH(&inv->series, ((struct series_entry){ .id = 1, .command = mem_strdup("repro") }));
	for (size_t i = 0; i < n; i++)
		VEC_PUSH(&dots->list,
			 ((struct trial_dot){ .number = i + 1,
					      .slot = (unsigned int)(i % 2),
					      .family = each > 0 && i % each == 0 ? 0
										  : DOT_PASSED }));
}

static void every_trial_is_a_mark(void **state)
{
	AUTO(investigation_deinit) struct investigation inv = { 0 };
	AUTO(trial_dots_deinit) struct trial_dots dots = { 0 };
	char *text;

	add_dots(&inv, &dots, 40, 8);
	text = WRITTEN(NULL, NULL, draw_strip(h, &inv, &dots));
	/* Dots are "h0", diamonds end in "z". */
	assert_int_equal(count(text, "h0"), 35);
	assert_int_equal(count(text, "z"), 5);
	assert_non_null(strstr(text, "40 trials in the order of their numbers, 5 of them failed"));
	free(text);
}

static void machines_have_lanes_of_their_own(void **state)
{
	AUTO(investigation_deinit) struct investigation inv = { 0 };
	AUTO(trial_dots_deinit) struct trial_dots dots = { 0 };
	char *text;

	add_dots(&inv, &dots, 9, 3);
	strv_add(&dots.nodes, "");
	strv_add(&dots.nodes, "<n1>");
	strv_add(&dots.nodes, "a-very-long-name");
	for (size_t i = 0; i < dots.list.count; i++)
		dots.list.items[i].node = i % 3;
	text = WRITTEN(NULL, NULL, draw_strip(h, &inv, &dots));
	assert_int_equal(count(text, "class=\"rail\""), 3);
	assert_non_null(strstr(text, ">here<"));
	assert_non_null(strstr(text, ">&lt;n1&gt;<"));
	assert_non_null(strstr(text, ">a-very-l…<"));
	assert_null(strstr(text, "slot"));
	free(text);
}

static void many_trials_share_marks(void **state)
{
	AUTO(investigation_deinit) struct investigation inv = { 0 };
	AUTO(trial_dots_deinit) struct trial_dots dots = { 0 };
	char *text;

	add_dots(&inv, &dots, 100000, 3);
	text = WRITTEN(NULL, NULL, draw_strip(h, &inv, &dots));
	/* 844 pixels, 1.5 apart, two lanes, two kinds: at most 2,252 marks of some 30 bytes. */
	assert_true(strlen(text) < 80000);
	assert_true(count(text, "z") > 400);
	free(text);
}

static void changed_bits_are_marked(void **state)
{
	struct byte_picture picture = { .values = true };
	struct byte_row row = { .offset = 24 };
	char *text;

	row.cells[0] = (struct byte_cell){
		.known = true, .was = true, .field = true, .before = 0x97, .after = 0x96
	};
	row.cells[1] = (struct byte_cell){
		.known = true, .was = true, .field = true, .before = 1, .after = 1
	};
	/* Written, and what was there before is not known: no change is claimed. */
	row.cells[2] = (struct byte_cell){ .known = true, .written = true, .after = 0xcd };
	VEC_PUSH(&picture.rows, row);
	text = WRITTEN(NULL, NULL, draw_bytes(h, &picture));
	/* Once in the picture, once among the meanings below it; what is not there has none. */
	assert_int_equal(count(text, "byte damaged"), 2);
	assert_int_equal(count(text, "byte written"), 2);
	assert_int_equal(count(text, "byte guard"), 0);
	assert_int_equal(count(text, ">cd<"), 1);
	assert_int_equal(count(text, "\"bit flipped\""), 1);
	assert_int_equal(count(text, "\"bit\""), 7);
	assert_non_null(strstr(text, ">97<"));
	assert_non_null(strstr(text, ">96<"));
	assert_non_null(strstr(text, ">+24<"));
	free(text);
	VEC_DEINIT(&picture.rows);
}

static void a_stale_pointer_is_an_arrow(void **state)
{
	struct lane_picture picture = { .moments = 4, .failure = 3, .arrow = { true, 1, 0, 3 } };
	char *text;

	VEC_PUSH(&picture.lanes, ((struct life_lane){ (char *)"<block>", 0, 2, LANE_VICTIM }));
	VEC_PUSH(&picture.lanes, ((struct life_lane){ (char *)"holder", 1, 4, LANE_HOLDER }));
	text = WRITTEN(NULL, NULL, draw_lanes(h, &picture));
	assert_int_equal(count(text, "class=\"stale\""), 1);
	assert_int_equal(count(text, "class=\"freed\""), 1);
	assert_int_equal(count(text, "still live"), 1);
	assert_non_null(strstr(text, "&lt;block&gt;"));
	free(text);
	VEC_DEINIT(&picture.lanes);
}

static void amounts_are_drawn_to_scale(void **state)
{
	struct mapping_cut cut = { .mapped = 400, .present = 100 };
	struct mapping_cut grown = { .mapped = 400, .present = 500 };
	struct growth_seen growth = { .tests = 2 };
	char *text = WRITTEN(NULL, NULL, draw_file(h, &cut));

	/* A quarter of 780, and the rest. */
	assert_non_null(strstr(text, "class=\"left\" x=\"70\" y=\"26\" width=\"195\""));
	assert_non_null(strstr(text, "class=\"gone\" x=\"265\" y=\"26\" width=\"585\""));
	assert_non_null(strstr(text, "100 of 400 mapped bytes are left in the file"));
	free(text);
	/* It may have grown again since: nothing lies outside of the picture. */
	text = WRITTEN(NULL, NULL, draw_file(h, &grown));
	assert_non_null(strstr(text, "class=\"gone\" x=\"850\" y=\"26\" width=\"0\""));
	free(text);
	text = WRITTEN(NULL, NULL, draw_growth(h, &growth));
	assert_string_equal(text, "");
	free(text);
	for (uint64_t level = 10; level <= 40; level += 15)
		VEC_PUSH(&growth.levels, level);
	text = WRITTEN(NULL, NULL, draw_growth(h, &growth));
	assert_non_null(strstr(text, "\"M70 116L460 71L850 26\""));
	assert_non_null(strstr(text, "10 live blocks before the first test, 40 after test 2"));
	free(text);
	VEC_DEINIT(&growth.levels);
}

static void pictures_can_be_heard(void **state)
{
	char *text = WRITTEN(NULL, NULL, {
		svg_open(h, "x", 10, 10, "A title", "What it shows");
		svg_close(h);
	});

	assert_non_null(strstr(text, "role=\"img\" aria-labelledby=\"x-title x-text\""));
	assert_non_null(strstr(text, "<title id=\"x-title\">A title</title>"));
	assert_non_null(strstr(text, "<desc id=\"x-text\">What it shows</desc>"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_becomes_markup),
		cmocka_unit_test(nothing_fools_a_reader),
		cmocka_unit_test(the_root_is_left_out_but_not_of_commands),
		cmocka_unit_test(what_is_shared_has_no_memory),
		cmocka_unit_test(numbers_have_a_point),
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(every_trial_is_a_mark),
		cmocka_unit_test(machines_have_lanes_of_their_own),
		cmocka_unit_test(many_trials_share_marks),
		cmocka_unit_test(changed_bits_are_marked),
		cmocka_unit_test(a_stale_pointer_is_an_arrow),
		cmocka_unit_test(amounts_are_drawn_to_scale),
		cmocka_unit_test(pictures_can_be_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
