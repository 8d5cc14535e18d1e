/*
 * Looking for instructions in code: what matches, what does not, data between functions, and the
 * marks of what was seen to run. argv[1] is the folder of tests/victims.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../victims/types.h"
#include "arch/linear_sweep.h"
#include "arch/x86_64_cpu.h"
#include "base/strbuf.h"
#include "debuginfo/code_layout.h"
#include "debuginfo/module.h"
#include "studies/scan/code_scan.h"

static const char *victims;

/* The assembler writes the code; none of it runs. */
#define CODE(name, text)                                                                     \
	__asm__(".pushsection .rodata\n.intel_syntax noprefix\n" #name ":\n" text "\n" #name \
		"_end:\n.att_syntax prefix\n.popsection\n");                                 \
	extern const uint8_t name[], name##_end[]

#define AT 0x401000u

/* Every hit as "fit:instruction;", or "match:instruction;" for those that are no stores. */
static void note(void *ctx, const struct sweep_hit *hit)
{
	strbuf_addf(ctx, "%s:%s;",
		    hit->match == SCAN_STORE ? scan_fit_name(hit->fit)
					     : scan_match_name(hit->match),
		    hit->store.text);
}

static uint64_t wants(const uint8_t *code, const uint8_t *end, const struct scan_query *query,
		      const uint64_t *starts, size_t start_count, const char *expected)
{
	AUTO(strbuf_deinit) struct strbuf hits = { 0 };
	struct sweep sweep = { .query = query, .found = note, .ctx = &hits };

	sweep_code(&sweep, code, (size_t)(end - code), AT, starts, start_count);
	assert_string_equal(strbuf_str(&hits), expected);
	return sweep.stack_left_out;
}

/* clang-format off */
CODE(field,
     "mov rax, [rbx+0x18]\n"
     "mov [rbx+0x18], rax\n"
     "mov [rbx+0x1c], eax\n"
     "mov [rbx+0x14], rax\n"
     "mov [rbx+0x10], rax\n"
     "mov [rbx+0x1c], rax\n"
     "mov [rbx+0x20], rax\n"
     "movups [rcx+0x10], xmm0\n"
     "and byte ptr [rdx+0x18], 0xfe\n"
     "mov [rsp+0x18], rax\n"
     "mov fs:[0x18], rax\n"
     "mov [rip+0x18], rax\n"
     "mov [rdi+rcx*8+0x18], rax\n"
     "rep movsb\n"
     "stosb\n"
     "push rax\n");
/* clang-format on */

static void test_field(void **state)
{
	struct scan_query query = { .store = true, .offset = 0x18, .width = 8 };

	(void)state;
	assert_int_equal(wants(field, field_end, &query, NULL, 0,
			       "exact:mov [rbx+0x18], rax;"
			       "narrower:mov [rbx+0x1C], eax;"
			       "covers:mov [rbx+0x14], rax;"
			       "wider:mov [rbx+0x1C], rax;"
			       "covers:movups [rcx+0x10], xmm0;"
			       "narrower:and byte ptr [rdx+0x18], 0xFE;"
			       "exact:mov [rdi+rcx*8+0x18], rax;"
			       "any:rep movsb;"),
			 1);
	query.width = 0;
	(void)wants(field, field_end, &query, NULL, 0,
		    "begins:mov [rbx+0x18], rax;"
		    "covers:mov [rbx+0x14], rax;"
		    "covers:movups [rcx+0x10], xmm0;"
		    "begins:and byte ptr [rdx+0x18], 0xFE;"
		    "begins:mov [rdi+rcx*8+0x18], rax;"
		    "any:rep movsb;");
	query.width = 1;
	query.registers = 1u << X86_64_RDX;
	(void)wants(field, field_end, &query, NULL, 0, "exact:and byte ptr [rdx+0x18], 0xFE;");
	query.registers = 1u << X86_64_RSP;
	(void)wants(field, field_end, &query, NULL, 0, "wider:mov [rsp+0x18], rax;");
	query.registers = 1u << X86_64_FS_BASE;
	(void)wants(field, field_end, &query, NULL, 0, "wider:mov fs:[0x0000000000000018], rax;");
	query = (struct scan_query){ .store = true, .offset = 0, .width = 1, .stack = true };
	(void)wants(field, field_end, &query, NULL, 0, "any:rep movsb;exact:stosb;any:push rax;");
}

/* A jump table whose last byte swallows the first instruction after it, unless its place is known.
 */
/* clang-format off */
CODE(mixed,
     "ret\n"
     ".byte 0x10, 0x20, 0x48\n" /* 0x48 before `mov byte` would only be a prefix … */
     ".byte 0xb8\n"             /* … but this is mov rax, imm64, and takes eight bytes more */
     ".globl mixed_function\nmixed_function:\n"
     "mov byte ptr [rbx+0x18], 1\n"
     "mov byte ptr [rbx+0x19], 2\n"
     ".zero 64\n"
     "mov byte ptr [rbx+0x1a], 3\n");
/* clang-format on */
extern const uint8_t mixed_function[];

static void test_data_between(void **state)
{
	const struct scan_query query = { .store = true, .offset = 0x18, .width = 8 };
	const struct scan_query zero = { .store = true, .offset = 0 };
	uint64_t start = AT + (uint64_t)(mixed_function - mixed);
	const char *all = "narrower:mov byte ptr [rbx+0x18], 0x01;"
			  "narrower:mov byte ptr [rbx+0x19], 0x02;"
			  "narrower:mov byte ptr [rbx+0x1A], 0x03;";
	AUTO(strbuf_deinit) struct strbuf hits = { 0 };
	struct sweep sweep = { .query = &query, .found = note, .ctx = &hits };

	(void)state;
	(void)wants(mixed, mixed_end, &query, &start, 1, all);
	/* Without its start the first instruction is lost. */
	sweep_code(&sweep, mixed, (size_t)(mixed_end - mixed), AT, NULL, 0);
	assert_null(strstr(strbuf_str(&hits), "[rbx+0x18]"));
	/* Zeros would be `add [rax], al`. */
	(void)wants(mixed_function, mixed_end, &zero, NULL, 0, "");
}

/* clang-format off */
CODE(mentions,
     "mov rax, [rip+0x1f9]\n"            /* 0x401200 */
     "mov [rip+0x1f2], rax\n"            /* 0x401200 */
     "lea rsi, [rip+0x1ef]\n"            /* 0x401204 */
     "mov edi, 0x401200\n"
     "mov rdx, 0x1122334455667788\n"
     "and byte ptr [rbx], 0xfe\n"
     "and rax, -2\n"
     "cmp dword ptr [rax], 0xfe\n"
     ".byte 0xe8\n.long mentions + 0x200 - (. + 4)\n" /* call */
     "mov [rcx*8+0x401200], eax\n");
/* clang-format on */

static void test_mentions(void **state)
{
	struct scan_query query = { .low = 0x401200, .high = 0x401208 };

	(void)state;
	(void)wants(mentions, mentions_end, &query, NULL, 0,
		    "reference:mov rax, [0x0000000000401200];"
		    "exact:mov [0x0000000000401200], rax;"
		    "reference:lea rsi, [0x0000000000401204];"
		    "reference:mov edi, 0x401200;"
		    "reference:call 0x0000000000401200;"
		    "any:mov [rcx*8+0x401200], eax;");
	query = (struct scan_query){ .has_value = true, .value = 0x1122334455667788 };
	(void)wants(mentions, mentions_end, &query, NULL, 0,
		    "immediate:mov rdx, 0x1122334455667788;");
	query.value = 0xfe;
	(void)wants(mentions, mentions_end, &query, NULL, 0,
		    "immediate:and byte ptr [rbx], 0xFE;immediate:cmp dword ptr [rax], 0xFE;");
	query.value = (uint64_t)-2;
	(void)wants(mentions, mentions_end, &query, NULL, 0,
		    "immediate:and byte ptr [rbx], 0xFE;immediate:and rax, 0xFFFFFFFFFFFFFFFE;");
}

static void test_fit(void **state)
{
	static const struct {
		int64_t offset;
		uint64_t width;
		int64_t store;
		uint64_t store_width;
		int fit; /* -1: they do not meet */
	} rows[] = {
		{ 8, 8, 8, 8, SCAN_FIT_EXACT },
		{ 8, 8, 8, 4, SCAN_FIT_NARROWER },
		{ 8, 8, 15, 1, SCAN_FIT_NARROWER },
		{ 8, 8, 16, 1, -1 },
		{ 8, 8, 7, 1, -1 },
		{ 8, 8, 7, 2, SCAN_FIT_COVERS },
		{ 8, 8, 0, 32, SCAN_FIT_COVERS },
		{ 8, 8, 8, 16, SCAN_FIT_WIDER },
		{ 8, 8, 15, 2, SCAN_FIT_WIDER },
		{ 8, 0, 8, 16, SCAN_FIT_BEGINS },
		{ 8, 0, 9, 1, -1 },
		{ 8, 0, 4, 8, SCAN_FIT_COVERS },
		{ 8, 8, 0, 0, SCAN_FIT_ANY },
		{ -8, 8, 0, 0, -1 },
		{ -8, 4, -8, 4, SCAN_FIT_EXACT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum scan_fit fit;
		bool meets = store_fit(rows[i].offset, rows[i].width, rows[i].store,
				       rows[i].store_width, &fit);

		assert_int_equal(meets, rows[i].fit >= 0);
		if (meets)
			assert_int_equal(fit, rows[i].fit);
	}
}

static const char *victim(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", victims, name);
	return path;
}

static void scan_victim(const char *name, const struct scan_request *request,
			struct scan_report *ret)
{
	struct err err = { 0 };

	if (scan_file(victim(name), request, ret, &err) < 0)
		fail_msg("%s", err.message);
}

static const struct scan_hit *hit_in(const struct scan_report *report, const char *function)
{
	VEC_FOREACH (&report->hits, hit)
		if (hit->frames.count > 0 && hit->frames.frames[hit->frames.count - 1].function &&
		    strcmp(hit->frames.frames[hit->frames.count - 1].function, function) == 0)
			return hit;
	return NULL;
}

/* What watch has seen to run is marked, by module and offset. */
static void test_seen(void **state)
{
	AUTO(scan_report_deinit) struct scan_report plain = { 0 };
	AUTO(scan_report_deinit) struct scan_report marked = { 0 };
	struct scan_request request = {
		.query = { .store = true,
			   .offset = offsetof(struct statement, container),
			   .width = 8 },
	};
	struct seen_code seen[] = { { "/nowhere/else", 0 }, { NULL, 0 }, { NULL, 0x123456 } };
	const struct scan_hit *hit;
	char real[PATH_MAX];

	(void)state;
	scan_victim("types-O2", &request, &plain);
	hit = hit_in(&plain, "statement_new");
	assert_non_null(hit);
	assert_int_equal(hit->fit, SCAN_FIT_EXACT);
	assert_int_equal(hit->width, 8);
	assert_false(plain.seen_known);
	seen[0].offset = hit->frames.frames[0].offset;
	seen[1].module = realpath(victim("types-O2"), real);
	seen[1].offset = hit->frames.frames[0].offset;
	request.seen = seen;
	request.seen_count = 3;
	scan_victim("types-O2", &request, &marked);
	assert_true(marked.seen_known);
	assert_int_equal(marked.hits.count, plain.hits.count);
	VEC_FOREACH (&marked.hits, other)
		assert_int_equal(other->executed, other->address == hit->address);
	/* The same offset in another file is another instruction. */
	request.seen_count = 1;
	scan_report_deinit(&marked);
	marked = (struct scan_report){ 0 };
	scan_victim("types-O2", &request, &marked);
	VEC_FOREACH (&marked.hits, other)
		assert_false(other->executed);
}

static void test_filters(void **state)
{
	struct scan_request request = { .query = { .store = true, .offset = 0, .width = 4 },
					.function = "bump" };
	AUTO(scan_report_deinit) struct scan_report inlined = { 0 };
	AUTO(scan_report_deinit) struct scan_report limited = { 0 };

	(void)state;
	/* In every function that it was inlined to, and nowhere else. */
	scan_victim("types-O0", &request, &inlined);
	assert_true(inlined.hits.count >= 2);
	assert_non_null(hit_in(&inlined, "statement_new"));
	assert_non_null(hit_in(&inlined, "statement_kind"));
	assert_null(hit_in(&inlined, "divide"));
	request.limit = 1;
	scan_victim("types-O0", &request, &limited);
	assert_int_equal(limited.hits.count, 1);
	assert_int_equal(limited.limited, inlined.hits.count - 1);
}

/* Stripped: no names, but the same instructions. */
static void test_stripped(void **state)
{
	AUTO(scan_report_deinit) struct scan_report whole = { 0 };
	AUTO(scan_report_deinit) struct scan_report stripped = { 0 };
	struct scan_request request = { .query = { .store = true, .offset = 8 } };

	(void)state;
	scan_victim("types-O2", &request, &whole);
	scan_victim("types-stripped", &request, &stripped);
	assert_true(whole.hits.count > 0);
	assert_int_equal(whole.hits.count, stripped.hits.count);
	for (size_t i = 0; i < whole.hits.count; i++)
		assert_int_equal(whole.hits.items[i].address, stripped.hits.items[i].address);
}

/* ---- the instruction before a trap, for all stores of a real program ---- */

struct judging {
	const uint8_t *bytes;
	uint64_t low, high;
	unsigned int seed;
	size_t stores, wrong, sure_and_wrong;
};

/* As if it had just run, with any registers: is it found from the bytes before its end? */
static void judge_store(void *ctx, const struct sweep_hit *hit)
{
	struct judging *j = ctx;
	struct registers registers = { .known = (1u << X86_64_REGISTERS) - 1 };
	uint64_t rip = hit->store.at + hit->store.length, low, high;
	uint64_t from = rip - j->low > 96 ? rip - 96 : j->low;
	struct trap trap = { .code = j->bytes + (from - j->low),
			     .code_len = j->high - from < 192 ? j->high - from : 192,
			     .code_address = from,
			     .rip = rip,
			     .registers = &registers };
	struct writer writer = { 0 };

	for (unsigned int i = 0; i < X86_64_REGISTERS; i++)
		registers.value[i] = UINT64_C(0x100000000000) + ((uint64_t)rand_r(&j->seed) << 12);
	registers.value[X86_64_RFLAGS] = 0x246;
	if (hit->store.kind == STORE_PUSH || hit->store.width == 0 ||
	    !store_range_after(&hit->store, &registers, &low, &high))
		return;
	trap.low = low;
	trap.high = low + (high - low < 8 ? high - low : 8);
	j->stores++;
	if (arch_decode_before(&trap, &writer) == 0 && writer.store.at == hit->store.at)
		return;
	j->wrong++;
	j->sure_and_wrong += writer.certain || writer.share >= 90;
}

static void test_every_store(void **state)
{
	AUTO(module_closep) struct module *module = NULL;
	AUTO(code_layout_deinit) struct code_layout layout = { 0 };
	struct scan_query query = { .store = true, .offset = 0, .width = 4096, .stack = true };
	struct judging judging = { .seed = 11 };

	(void)state;
	print_message("# seed %u\n", judging.seed);
	assert_int_equal(module_open("/proc/self/exe", NULL, &module, NULL), 0);
	code_layout_of_module(module, &layout);
	VEC_FOREACH (&layout.ranges, range) {
		AUTO(mem_freep) uint8_t *bytes = mem_alloc(range->high - range->low);
		struct sweep sweep = { .query = &query, .found = judge_store, .ctx = &judging };

		assert_true(module_read(module, range->low, bytes, range->high - range->low));
		judging.bytes = bytes;
		judging.low = range->low;
		judging.high = range->high;
		sweep_code(&sweep, bytes, range->high - range->low, range->low, layout.starts.items,
			   layout.starts.count);
	}
	print_message("# %zu stores, %zu not found\n", judging.stores, judging.wrong);
	assert_true(judging.stores > 1000);
	assert_true(judging.wrong * 500 < judging.stores);
	assert_int_equal(judging.sure_and_wrong, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_field),	 cmocka_unit_test(test_data_between),
		cmocka_unit_test(test_mentions), cmocka_unit_test(test_fit),
		cmocka_unit_test(test_seen),	 cmocka_unit_test(test_filters),
		cmocka_unit_test(test_stripped), cmocka_unit_test(test_every_store),
	};

	if (argc < 2)
		return 2;
	victims = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
