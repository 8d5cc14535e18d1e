/*
 * What the user says to `watch`: --on and --when, with the places of mistakes, and what the agent
 * makes of a compiled expression.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/watch/predicate.h"
#include "base/strbuf.h"
#include "in_range.h"
#include "plan/watch/condition.h"
#include "plan/watch/spec.h"

#define SEED 20260714u
#define MODULE_AT 0x7f0000000000ull

/* The agent's, as far as its predicate needs it: one module. */
uint64_t module_place_sigsafe(uint64_t identity, uint64_t address);
uint64_t module_place_sigsafe(uint64_t identity, uint64_t address)
{
	return identity == 77 ? MODULE_AT + address : 0;
}

bool modules_grown_sigsafe(void);
bool modules_grown_sigsafe(void)
{
	return false;
}

void modules_refresh_sigsafe(void);
void modules_refresh_sigsafe(void)
{
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* ---- --on ------------------------------------------------------------------------------------ */

static struct spec parsed(const char *text)
{
	struct spec spec = { 0 };
	struct err err = { 0 };

	if (spec_parse(text, &spec, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return spec;
}

static void forms(void **state)
{
	static const struct {
		const char *text;
		enum spec_kind kind;
		const char *name, *field;
		int64_t offset;
		uint64_t len, size;
	} rows[] = {
		{ "global:counter", SPEC_GLOBAL, "counter", NULL, 0, 0, 0 },
		{ "global:state.head", SPEC_GLOBAL, "state", "head", 0, 0, 0 },
		{ "global:table+16:4", SPEC_GLOBAL, "table", NULL, 16, 4, 0 },
		{ "alloc:make_node", SPEC_ALLOC, "make_node", NULL, 0, 0, 0 },
		{ "alloc:make_node+8:4", SPEC_ALLOC, "make_node", NULL, 8, 4, 0 },
		{ "alloc:make_node,size=56", SPEC_ALLOC, "make_node", NULL, 0, 0, 56 },
		{ "alloc:make_node,size=0x38+0x18:8", SPEC_ALLOC, "make_node", NULL, 24, 8, 56 },
		{ "alloc:ns::pool<int, 4>::get+8", SPEC_ALLOC, "ns::pool<int, 4>::get", NULL, 8, 0,
		  0 },
		{ "alloc:node.c:120+8:4", SPEC_ALLOC_LINE, "node.c", NULL, 8, 4, 0 },
		{ "alloc:src/a.b/node.c:7,size=9", SPEC_ALLOC_LINE, "src/a.b/node.c", NULL, 0, 0,
		  9 },
		{ "ret:object_new+0x18:8", SPEC_RETURN, "object_new", NULL, 24, 8, 0 },
		{ "ret:statement_new.container", SPEC_RETURN, "statement_new", "container", 0, 0,
		  0 },
		{ "arg3:store.a.b", SPEC_ARGUMENT, "store", "a.b", 0, 0, 0 },
		{ "pytype:Tensor+16:8", SPEC_PYTHON_TYPE, "Tensor", NULL, 16, 8, 0 },
		{ "pytype:_NoGrad-0x18:1", SPEC_PYTHON_TYPE, "_NoGrad", NULL, -24, 1, 0 },
		{ "pytype:bench._NoGrad-24", SPEC_PYTHON_TYPE, "bench._NoGrad", NULL, -24, 0, 0 },
		{ "pytype:a.b.Cell.managed_dict", SPEC_PYTHON_TYPE, "a.b.Cell", "managed_dict", 0,
		  0, 0 },
		{ "pytype:Cell.values", SPEC_PYTHON_TYPE, "Cell", "values", 0, 0, 0 },
		{ "pytype:Cell.struct node.next", SPEC_PYTHON_TYPE, "Cell", "struct node.next", 0,
		  0, 0 },
		{ "ret:object_new-0x18:8", SPEC_RETURN, "object_new", NULL, -24, 8, 0 },
		{ "struct statement.container", SPEC_STRUCT, "statement", "container", 0, 0, 0 },
		{ "class ns::node.next", SPEC_STRUCT, "ns::node", "next", 0, 0, 0 },
		{ "ret:./lib/plug.so.1!plug_new.tag", SPEC_RETURN, "./lib/plug.so.1!plug_new",
		  "tag", 0, 0, 0 },
		{ "ret:plug.so!0x11f0+16:8", SPEC_RETURN, "plug.so!0x11f0", NULL, 16, 8, 0 },
		{ "alloc:f.struct node.next", SPEC_ALLOC, "f", "struct node.next", 0, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spec spec = parsed(rows[i].text);

		assert_int_equal(spec.kind, rows[i].kind);
		assert_string_equal(spec.name, rows[i].name);
		assert_string_equal(spec.field ? spec.field : "-",
				    rows[i].field ? rows[i].field : "-");
		assert_int_equal(spec.offset, rows[i].offset);
		assert_int_equal(spec.len, rows[i].len);
		assert_int_equal(spec.size, rows[i].size);
		assert_memory_equal(rows[i].text + spec.name_at, rows[i].name,
				    strlen(rows[i].name));
		spec_deinit(&spec);
	}
}

static void keys(void **state)
{
	struct spec spec = parsed("key:00c0ffee00c0ffee#12+8:8");

	assert_int_equal(spec.kind, SPEC_KEY);
	assert_int_equal(spec.hash, 0xc0ffee00c0ffeeull);
	assert_int_equal(spec.ordinal, 12);
	assert_false(spec.lane_given);
	assert_int_equal(spec.offset, 8);
	spec_deinit(&spec);
	spec = parsed("key:ffffffffffffffff@3#0");
	assert_int_equal(spec.hash, UINT64_MAX);
	assert_true(spec.lane_given);
	assert_int_equal(spec.lane, 3);
	spec_deinit(&spec);
	spec = parsed("addr:0x7ffff7a01234+4:2");
	assert_int_equal(spec.address, 0x7ffff7a01234);
	assert_int_equal(spec.offset, 4);
	assert_int_equal(spec.len, 2);
	spec_deinit(&spec);
	spec = parsed("arg5:f");
	assert_int_equal(spec.argument, 5);
	spec_deinit(&spec);
	spec = parsed("alloc:node.c:120");
	assert_int_equal(spec.line, 120);
	spec_deinit(&spec);
}

/* The caret stands under `at`, and the sentence says `saying`. */
static void mistake(const char *message, const char *text, size_t at, const char *saying)
{
	const char *caret = strrchr(message, '\n');

	assert_non_null(caret);
	if (strlen(caret + 1) != at + 3 || !strstr(message, saying))
		fail_msg("'%s': expected '%s' at %zu:\n%s", text, saying, at, message);
}

static void mistakes(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *saying;
	} rows[] = {
		{ "", 0, "begins with global:" },
		{ "nonsense", 0, "begins with global:" },
		{ "globl:x", 0, "did you mean global:" },
		{ "alocc:x", 0, "did you mean alloc:" },
		{ "rett:f", 0, "did you mean ret:" },
		{ "pytyp:T", 0, "did you mean pytype:" },
		{ "pytype:", 7, "class is missing" },
		{ "pytype:0x18", 7, "class is missing" },
		{ "pytype:_NoGrad:1", 14, "does not belong here" },
		{ "pytype:_NoGrad-", 15, "offset" },
		{ "pytype:_NoGrad-0x18:", 20, "1 to 32" },
		{ "pytype:a..refcnt.", 17, "field" },
		{ "pytype:No Grad", 9, "does not belong here" },
		{ "alloc:f-8", 7, "does not belong here" },
		{ "global:table-8", 12, "does not belong here" },
		{ "global:", 7, "name is missing" },
		{ "ret:+8", 4, "name is missing" },
		{ "addr:", 5, "address" },
		{ "addr:zero", 5, "address" },
		{ "addr:0", 6, "address" },
		{ "addr:0x1000:4", 11, "does not belong here" },
		{ "arg:f", 3, "0 to 5" },
		{ "arg6:f", 4, "0 to 5" },
		{ "arg1f", 4, "':'" },
		{ "key:", 4, "context" },
		{ "key:xyz#1", 4, "context" },
		{ "key:12", 6, "'#'" },
		{ "key:12#", 7, "number" },
		{ "key:12@#3", 7, "thread" },
		{ "key:12#4294967296", 17, "number" },
		{ "key:11112222333344445#1", 4, "context" },
		{ "alloc:f,sise=3", 8, "size=N" },
		{ "alloc:f,size=", 13, "size in bytes" },
		{ "alloc:f,size=0", 14, "size in bytes" },
		{ "ret:f,size=8", 6, "alloc: only" },
		{ "alloc:f.c:0", 11, "line number" },
		{ "ret:f+8:0", 9, "1 to 32" },
		{ "ret:f+8:33", 10, "1 to 32" },
		{ "ret:f+8:", 8, "1 to 32" },
		{ "ret:f+8:8x", 9, "does not belong here" },
		{ "ret:f+99999999999", 17, "offset" },
		{ "ret:f.", 6, "field" },
		{ "struct node", 11, "field" },
		{ "struct ", 7, "name is missing" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spec spec = { 0 };
		struct err err = { 0 };

		if (spec_parse(rows[i].text, &spec, &err) != -EINVAL)
			fail_msg("'%s' was taken", rows[i].text);
		mistake(err.message, rows[i].text, rows[i].at, rows[i].saying);
		spec_deinit(&spec);
	}
}

/* Any text is an answer or a spec, never a crash; what is taken is the same when taken again. */
static void any_text(void **state)
{
	static const char pieces[][9] = {
		"ret:", "alloc:", "arg1:",  "key:", "addr:",	"struct ", ".",
		"+",	":",	  ",size=", "0x18", "8",	"#",	   "@",
		"f",	"<",	  ">",	    "::",   "\xc3\xa4", "99999999"
	};
	uint64_t random = SEED;

	for (int round = 0; round < 200000; round++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		unsigned int count = next_random(&random) % 7;
		struct spec spec = { 0 };
		struct err err = { 0 };

		for (unsigned int i = 0; i < count; i++)
			strbuf_adds(&sb, pieces[next_random(&random) %
						(sizeof(pieces) / sizeof(pieces[0]))]);
		if (spec_parse(strbuf_str(&sb), &spec, &err) == 0) {
			assert_true(spec.len <= 32);
			assert_true(spec.kind == SPEC_KEY || spec.kind == SPEC_ADDRESS ||
				    spec.name[0] != '\0');
		} else {
			assert_non_null(strrchr(err.message, '^'));
		}
		spec_deinit(&spec);
	}
}

/* ---- --when ---------------------------------------------------------------------------------- */

static bool holds(const char *text, const struct predicate_input *input)
{
	struct plan_watch plan = { 0 };
	struct when when = { 0 };
	struct err err = { 0 };
	bool r;

	if (when_compile(text, &when, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	memcpy(plan.steps, when.steps, sizeof(plan.steps));
	plan.step_count = (uint32_t)when.count;
	r = predicate_holds_sigsafe(&plan, input);
	when_deinit(&when);
	return r;
}

static void expressions(void **state)
{
	struct predicate_input in = { .old_value = 0x1001,
				      .new_value = 0x1000,
				      .size = 32,
				      .tid = 42,
				      .age = 100,
				      .bytes = 8 };

	assert_true(holds("changes", &in));
	assert_true(holds("clears(0)", &in));
	assert_false(holds("sets(0)", &in));
	assert_false(holds("clears(12)", &in));
	assert_true(holds("old == new + 1", &in));
	assert_true(holds("new == (old & ~1)", &in));
	assert_true(holds("old & 1 && !(new & 1)", &in));
	assert_true(holds("size == 32 && tid==42 && age >= 100", &in));
	assert_false(holds("age < 100 || size > 32", &in));
	assert_true(holds("new == 0x1000 || new == 7", &in));
	assert_true(holds(" ( old ^ new ) == 1 ", &in));
	assert_true(holds("1 << 12 == new", &in));
	assert_false(holds("old - new > 1", &in));
	assert_true(holds("new - old > 1", &in)); /* unsigned */
	assert_true(holds("clears( 0x0 )", &in));
	in.bytes = 1;
	assert_true(holds("~0 == 255", &in)); /* as wide as the field */
	in.bytes = 4;
	assert_true(holds("~0 == 0xffffffff", &in));
}

static void writers(void **state)
{
	struct {
		struct plan_watch plan;
		struct plan_range ranges[2];
	} watch = { .ranges = { { .identity = 77, .address = 0x1000, .bytes = 0x100 },
				{ .identity = 99, .address = 0x1000, .bytes = 0x100 } } };
	struct predicate_input in = { .bytes = 8 };
	struct when when = { 0 };
	struct err err = { 0 };

	assert_int_equal(when_compile("writer == 'my func' && writer != libc.so.6", &when, &err),
			 0);
	assert_int_equal(when.names.count, 2);
	assert_string_equal(when.names.items[0].name, "my func");
	assert_int_equal(when.names.items[0].at, 10);
	assert_string_equal(when.names.items[1].name, "libc.so.6");
	assert_int_equal(when.steps[when.names.items[0].step].op, PLAN_STEP_WRITER);
	memcpy(watch.plan.steps, when.steps, sizeof(when.steps));
	watch.plan.step_count = (uint32_t)when.count;
	watch.plan.range_count = 2;
	watch.plan.steps[when.names.items[0].step].first = 0;
	watch.plan.steps[when.names.items[0].step].count = 1;
	watch.plan.steps[when.names.items[1].step].first = 1; /* not loaded */
	watch.plan.steps[when.names.items[1].step].count = 1;
	in.rip = MODULE_AT + 0x1000;
	assert_false(predicate_holds_sigsafe(&watch.plan, &in)); /* the one before wrote */
	in.rip = MODULE_AT + 0x1001;
	assert_true(predicate_holds_sigsafe(&watch.plan, &in));
	in.rip = MODULE_AT + 0x1100;
	assert_true(predicate_holds_sigsafe(&watch.plan, &in));
	in.rip = MODULE_AT + 0x1101;
	assert_false(predicate_holds_sigsafe(&watch.plan, &in));
	/* More ranges than there are. */
	watch.plan.steps[when.names.items[0].step].count = UINT32_MAX;
	assert_false(predicate_holds_sigsafe(&watch.plan, &in));
	when_deinit(&when);
}

static void when_mistakes(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *saying;
	} rows[] = {
		{ "", 0, "value is missing" },
		{ "old ==", 6, "value is missing" },
		{ "old new", 4, "does not belong here" },
		{ "(old", 4, "')' is missing" },
		{ "olt == 1", 0, "did you mean 'old'" },
		{ "clear(1)", 0, "did you mean 'clears'" },
		{ "clears", 6, "'('" },
		{ "clears(64)", 7, "0 to 63" },
		{ "clears(x)", 7, "0 to 63" },
		{ "clears(1", 8, "')'" },
		{ "writer", 6, "writer == NAME" },
		{ "writer == ", 10, "name is missing" },
		{ "writer == 'x", 10, "quote" },
		{ "new == 12ab", 7, "no number" },
		{ "new == 99999999999999999999", 7, "no number" },
		{ "old = 1", 4, "does not belong here" },
		{ "old * 2", 4, "does not belong here" },
		{ "writer == a b", 12, "does not belong here" },
		{ "xyzzyx", 0, "clears(BIT)" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct when when = { 0 };
		struct err err = { 0 };

		if (when_compile(rows[i].text, &when, &err) != -EINVAL)
			fail_msg("'%s' was taken", rows[i].text);
		mistake(err.message, rows[i].text, rows[i].at, rows[i].saying);
		assert_int_equal(when.names.count, 0);
	}
}

/* Too long and too deep are mistakes, too. */
static void limits(void **state)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct when when = { 0 };
	struct err err = { 0 };

	strbuf_adds(&sb, "old");
	for (int i = 0; i < 100; i++)
		strbuf_adds(&sb, " + 1");
	assert_int_equal(when_compile(strbuf_str(&sb), &when, &err), -EINVAL);
	assert_non_null(strstr(err.message, "too long"));
	when_deinit(&when);
	when = (struct when){ 0 };
	sb.len = 0;
	for (int i = 0; i < 100; i++)
		strbuf_adds(&sb, "(");
	assert_int_equal(when_compile(strbuf_str(&sb), &when, &err), -EINVAL);
	assert_non_null(strstr(err.message, "deeply"));
	when_deinit(&when);
}

/* ---- a random expression, and what C says about it ---------------------------------------------
 */

struct draw {
	uint64_t random;
	const struct predicate_input *in;
	struct strbuf *sb;
};

static uint64_t field_mask(const struct predicate_input *in)
{
	return in->bytes >= 8 ? UINT64_MAX : (1ull << in->bytes * 8) - 1;
}

static uint64_t draw_leaf(struct draw *d)
{
	unsigned int bit = next_random(&d->random) % 64;
	uint64_t value = next_random(&d->random) % 5 == 0 ? next_random(&d->random)
							  : next_random(&d->random) % 70;

	switch (next_random(&d->random) % 9) {
	case 0:
		strbuf_adds(d->sb, "old");
		return d->in->old_value;
	case 1:
		strbuf_adds(d->sb, "new");
		return d->in->new_value;
	case 2:
		strbuf_adds(d->sb, "size");
		return d->in->size;
	case 3:
		strbuf_adds(d->sb, "tid");
		return d->in->tid;
	case 4:
		strbuf_adds(d->sb, "age");
		return d->in->age;
	case 5:
		strbuf_adds(d->sb, "changes");
		return d->in->old_value != d->in->new_value;
	case 6:
		strbuf_addf(d->sb, "clears(%u)", bit);
		return (d->in->old_value >> bit & 1) && !(d->in->new_value >> bit & 1);
	case 7:
		strbuf_addf(d->sb, "sets(%u)", bit);
		return !(d->in->old_value >> bit & 1) && (d->in->new_value >> bit & 1);
	default:
		strbuf_addf(d->sb, "%llu", (unsigned long long)value);
		return value;
	}
}

static uint64_t apply(unsigned int op, uint64_t a, uint64_t b)
{
	switch (op) {
	case 0:
		return a || b;
	case 1:
		return a && b;
	case 2:
		return a | b;
	case 3:
		return a ^ b;
	case 4:
		return a & b;
	case 5:
		return a == b;
	case 6:
		return a != b;
	case 7:
		return a < b;
	case 8:
		return a <= b;
	case 9:
		return a > b;
	case 10:
		return a >= b;
	case 11:
		return b < 64 ? a << b : 0;
	case 12:
		return b < 64 ? a >> b : 0;
	case 13:
		return a + b;
	default:
		return a - b;
	}
}

/* How tightly C binds them, the loosest first. */
static const struct {
	const char *token;
	int level;
} operators[] = { { "||", 0 }, { "&&", 1 }, { "|", 2 },	 { "^", 3 },  { "&", 4 },
		  { "==", 5 }, { "!=", 5 }, { "<", 6 },	 { "<=", 6 }, { ">", 6 },
		  { ">=", 6 }, { "<<", 7 }, { ">>", 7 }, { "+", 8 },  { "-", 8 } };

/* What is drawn binds at least as tightly as `level`; else parentheses are put around it. */
static uint64_t draw_expression(struct draw *d, int level, int depth)
{
	unsigned int op, what = next_random(&d->random) % 10;
	uint64_t a, b;
	bool parentheses;

	if (depth == 0 || what < 2)
		return draw_leaf(d);
	if (what < 4) {
		strbuf_adds(d->sb, what == 2 ? "!" : "~");
		a = draw_expression(d, 9, depth - 1);
		return what == 2 ? !a : ~a & field_mask(d->in);
	}
	op = next_random(&d->random) % (sizeof(operators) / sizeof(operators[0]));
	parentheses = operators[op].level < level || next_random(&d->random) % 8 == 0;
	if (parentheses)
		strbuf_adds(d->sb, "(");
	a = draw_expression(d, operators[op].level, depth - 1);
	strbuf_addf(d->sb, next_random(&d->random) % 2 ? " %s " : "%s", operators[op].token);
	b = draw_expression(d, operators[op].level + 1, depth - 1);
	if (parentheses)
		strbuf_adds(d->sb, ")");
	return apply(op, a, b);
}

static void random_expressions(void **state)
{
	uint64_t random = SEED;
	unsigned int compiled = 0, held = 0;

	print_message("# seed %u\n", SEED);
	for (int round = 0; round < 100000; round++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		uint64_t old = next_random(&random) << 31 | next_random(&random);
		struct predicate_input in = { .old_value = old,
					      .new_value = old ^ 1ull << next_random(&random) % 64,
					      .size = next_random(&random) % 100,
					      .tid = next_random(&random) % 100,
					      .age = next_random(&random) % 1000,
					      .bytes = 1u << next_random(&random) % 4 };
		struct draw draw = { .random = random, .in = &in, .sb = &sb };
		struct plan_watch plan = { 0 };
		struct when when = { 0 };
		struct err err = { 0 };
		bool expected = draw_expression(&draw, 0, 4) != 0;

		random = draw.random;
		if (when_compile(strbuf_str(&sb), &when, &err) < 0) {
			if (!strstr(err.message, "too long"))
				fail_msg("%s", err.message);
			when_deinit(&when);
			continue;
		}
		memcpy(plan.steps, when.steps, sizeof(plan.steps));
		plan.step_count = (uint32_t)when.count;
		if (predicate_holds_sigsafe(&plan, &in) != expected)
			fail_msg("round %d: %s is %d", round, strbuf_str(&sb), expected);
		compiled++;
		held += expected;
		when_deinit(&when);
	}
	/* Both answers are common, and few are too long. */
	assert_uint_in_range(compiled, 80000, 100000);
	assert_uint_in_range(held, 20000, 90000);
}

/* A plan that was damaged: any steps end, and rather count a hit than lose it. */
static void random_steps(void **state)
{
	struct predicate_input in = { .bytes = 8 };
	uint64_t random = SEED;

	for (int round = 0; round < 100000; round++) {
		struct plan_watch plan = { .step_count = (uint32_t)(next_random(&random) %
								    (PLAN_STEPS_MAX + 1)) };

		for (uint32_t i = 0; i < plan.step_count; i++)
			plan.steps[i] = (struct plan_step){
				.op = (uint8_t)(next_random(&random) % (PLAN_STEPS + 3)),
				.first = (uint16_t)next_random(&random),
				.count = (uint32_t)next_random(&random),
				.value = next_random(&random),
			};
		(void)predicate_holds_sigsafe(&plan, &in);
	}
	assert_true(predicate_holds_sigsafe(&(struct plan_watch){ 0 }, &in));
	assert_true(predicate_holds_sigsafe(
		&(struct plan_watch){ .step_count = 1, .steps = { { .op = PLAN_STEP_ADD } } },
		&in));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(keys),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(any_text),
		cmocka_unit_test(expressions),
		cmocka_unit_test(writers),
		cmocka_unit_test(when_mistakes),
		cmocka_unit_test(limits),
		cmocka_unit_test(random_expressions),
		cmocka_unit_test(random_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
