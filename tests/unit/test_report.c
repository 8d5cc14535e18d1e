/*
 * report/: what `hunt` prints as JSON, and hostile text in Markdown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "evidence_fixture.h"
#include "judge/judge.h"
#include "model/crash.h"
#include "report/markdown.h"
#include "report/report_investigation.h"
#include "wire/ids.h"

static void add(struct evidence_list *list, struct evidence e)
{
	e.id = list->list.count + 1;
	VEC_PUSH(&list->list, e);
}

static json_t *hunt_document(const struct investigation *inv)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	json_t *document;

	assert_non_null(out);
	report_hunt_json(inv, out);
	(void)fclose(out);
	document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	free(text);
	return document;
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "(none)";
}

/* Every field of the contract is there, null or not. */
static void check_keys(json_t *object, const char *const *keys)
{
	for (; *keys; keys++)
		if (!json_object_get(object, *keys))
			fail_msg("there is no '%s'", *keys);
}

static void hunt_json_keeps_the_contract(void **state)
{
	static const char *const keys[] = { "schema",	  "verdict",   "tests",	    "observers",
					    "hypotheses", "reproduce", "prove_fix", "case",
					    "program",	  "decisions", "seconds",   "interrupted",
					    NULL };
	static const char *const verdict_keys[] = { "class",  "sentence", "caught",	 "watched",
						    "trials", "writer",	  "instruction", "width",
						    "old",    "new",	  "victim",	 "offset",
						    "holder", "freed_by", NULL };
	AUTO(investigation_deinit) struct investigation inv = { .case_dir = mem_strdup("c") };
	json_t *document, *verdict, *hypothesis;

	for (uint64_t i = 1; i <= 2; i++) {
		add(&inv.evidence, made_freed_use(i, false));
		add(&inv.evidence, made_holder(i, true));
	}
	judge_evidence(&inv.evidence, &inv.verdict);
	inv.judged = true;
	document = hunt_document(&inv);
	assert_string_equal(text_of(document, "schema"), "redhand/hunt/2");
	check_keys(document, keys);
	verdict = json_object_get(document, "verdict");
	check_keys(verdict, verdict_keys);
	assert_string_equal(text_of(verdict, "class"), "dangling-holder");
	assert_string_equal(text_of(json_object_get(verdict, "writer"), "function"),
			    "container_swap");
	assert_string_equal(text_of(json_object_get(verdict, "freed_by"), "function"),
			    "object_free");
	assert_string_equal(text_of(json_object_get(verdict, "victim"), "state"), "freed");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(verdict, "holder"), "offset")),
		24);
	hypothesis = json_array_get(json_object_get(document, "hypotheses"), 0);
	assert_string_equal(text_of(hypothesis, "status"), "excluded");
	assert_true(json_is_null(json_object_get(document, "tests")));
	json_decref(document);
}

/* A writer in memcpy is its caller. */
static void a_library_routine_is_not_accused(void **state)
{
	AUTO(investigation_deinit) struct investigation inv = { .case_dir = mem_strdup("c") };
	json_t *document, *writer;

	for (uint64_t i = 1; i <= 2; i++) {
		struct evidence e =
			made_write((struct made_write){ .trial = i, .writer = "copy_name" });

		(void)stack_insert(&e.write->writer, 0,
				   &(struct frame){ .function = (char *)"__memmove_avx_unaligned",
						    .module = (char *)"/lib/libc.so.6",
						    .kind = FRAME_NATIVE });
		add(&inv.evidence, e);
	}
	judge_evidence(&inv.evidence, &inv.verdict);
	inv.judged = true;
	document = hunt_document(&inv);
	writer = json_object_get(json_object_get(document, "verdict"), "writer");
	assert_string_equal(text_of(writer, "function"), "copy_name");
	assert_int_equal(json_array_size(json_object_get(writer, "stack")), 3);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(document, "verdict"), "caught")),
		2);
	json_decref(document);
}

static void hostile_text_is_escaped(void **state)
{
	static const struct {
		void (*put)(const char *text, FILE *out);
		const char *text, *want;
	} rows[] = {
		{ md_text, "plain test_name here", "plain test_name here" },
		{ md_text, "_start_ *b* `c`", "\\_start\\_ \\*b\\* \\`c\\`" },
		{ md_text, "a|b <i> [x](y) @you #1", "a\\|b &lt;i&gt; \\[x\\](y) &#64;you \\#1" },
		{ md_text, "http://evil a:b", "http&#58;//evil a:b" },
		{ md_text, "a\nb\x1b[1m", "a\\\\x0ab\\\\x1b\\[1m" },
		{ md_code, "f<int>(a|b)", "`f<int>(a|b)`" },
		{ md_cell_code, "a|b", "`a\\|b`" },
		{ md_code, "a`b``c", "``` a`b``c ```" },
		{ md_code, "`", "`` ` ``" },
		{ md_fenced, "```", ".```\n" },
		{ md_fenced, "int main", "int main\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *text = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		rows[i].put(rows[i].text, out);
		(void)fclose(out);
		assert_string_equal(text, rows[i].want);
		free(text);
	}
}

static void a_block_has_a_name(void **state)
{
	char name[BLOCK_NAME_BYTES];

	(void)state;
	assert_string_equal(block_name(17, name), "#17");
	assert_string_equal(block_name(ALLOC_ID_PAIR | 5000ull << 32 | 17, name), "#5000.17");
	/* What a damaged log may say fits, too. */
	assert_string_equal(block_name(UINT64_MAX & ~ALLOC_ID_PAIR, name), "#18442240474082181119");
	assert_string_equal(block_name(UINT64_MAX, name), "#4293918719.4294967295");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hunt_json_keeps_the_contract),
		cmocka_unit_test(a_library_routine_is_not_accused),
		cmocka_unit_test(hostile_text_is_escaped),
		cmocka_unit_test(a_block_has_a_name),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
