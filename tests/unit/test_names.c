/* Names that do not come from ELF or DWARF: demangling, perf maps, jitdump, source paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "debuginfo/demangle.h"
#include "debuginfo/jit_names.h"
#include "debuginfo/source_path.h"
#include "model/mappings.h"

static void test_demangle(void **state)
{
	static const struct {
		const char *symbol, *name;
	} rows[] = {
		{ "main", "main" },
		{ "_start", "_start" },
		{ "_Z", "_Z" },
		{ "_Znot_mangled", "_Znot_mangled" },
		{ "memcpy@@GLIBC_2.14", "memcpy" },
		{ "parse.constprop.0", "parse" },
		{ "parse.isra.0.cold", "parse" },
		{ "parse.part", "parse" },
		{ "v1.2", "v1.2" },
		{ "_ZN6shapes3boxIlE5totalERKi", "shapes::box<long>::total(int const&)" },
		{ "_ZN6shapes3boxIlE5totalERKi.cold", "shapes::box<long>::total(int const&)" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write" },
		{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
		  "17h930b740aa94f1d3aE",
		  "<Test + 'static as foo::Bar<Test>>::bar" },
		{ "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
		{ "_D4game5world6Player4moveMFiZv", "game.world.Player.move(int)" },
		{ "_D9not_mangled", "_D9not_mangled" },
		{ "_Dmain", "_Dmain" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO(mem_freep) char *name = demangle(rows[i].symbol);

		assert_string_equal(name, rows[i].name);
	}
}

static void test_source_path(void **state)
{
	static const struct {
		const char *directory, *file, *path;
	} rows[] = {
		{ "/nowhere/build", "../src/x.c", "/nowhere/src/x.c" },
		{ "/nowhere/build", "./x.c", "/nowhere/build/x.c" },
		{ "/nowhere", "/abs//x.c", "/abs/x.c" },
		{ NULL, "../../x.c", "../../x.c" },
		{ NULL, "a/../x.c", "x.c" },
		{ "/a", "../../../x.c", "/x.c" },
		{ "/a", "b/../../x.c", "/x.c" },
		{ "./stdlib", "./stdlib/x.c", "stdlib/x.c" },
		{ "./csu", "../sysdeps/x.c", "sysdeps/x.c" },
		{ "./csu", "csux.c", "csu/csux.c" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO(mem_freep) char *path = source_path(rows[i].directory, rows[i].file);

		assert_string_equal(path, rows[i].path);
	}
}

static void test_perf_map(void **state)
{
	static const char text[] = "1000 100 first\n"
				   "zzz\n"
				   "2000 0 empty\n"
				   "0x3000 0x10 with spaces and (parens)\r\n"
				   "1080 10 inner\n"
				   "1000 40 replaced\n"
				   "ffffffffffffffff 10 wraps\n"
				   "4000 10\n"
				   "5000 10 cut";
	struct jit_names *names = jit_names_new();
	struct jit_name name;

	(void)state;
	assert_int_equal(jit_names_add_perf_map(names, text, sizeof(text) - 1), 4);
	assert_true(jit_names_find(names, 0x1000, &name));
	assert_string_equal(name.function, "replaced");
	assert_true(jit_names_find(names, 0x1040, &name));
	assert_string_equal(name.function, "first");
	assert_true(jit_names_find(names, 0x1085, &name));
	assert_string_equal(name.function, "inner");
	assert_int_equal(name.start, 0x1080);
	assert_true(jit_names_find(names, 0x10ff, &name));
	assert_string_equal(name.function, "first");
	assert_false(jit_names_find(names, 0x1100, &name));
	assert_true(jit_names_find(names, 0x300f, &name));
	assert_string_equal(name.function, "with spaces and (parens)");
	assert_null(name.file);
	assert_false(jit_names_find(names, 0x5000, &name));
	assert_false(jit_names_find(names, 0, &name));
	jit_names_free(names);
}

static void put32(struct strbuf *sb, uint32_t value)
{
	strbuf_add(sb, &value, sizeof(value));
}

static void put64(struct strbuf *sb, uint64_t value)
{
	strbuf_add(sb, &value, sizeof(value));
}

/* A record with its prefix around a body. */
static void put_record(struct strbuf *sb, uint32_t id, const struct strbuf *body)
{
	put32(sb, id);
	put32(sb, (uint32_t)body->len + 16);
	put64(sb, 1234);
	strbuf_add(sb, body->data, body->len);
}

static void make_dump(struct strbuf *sb)
{
	struct strbuf body = { 0 };

	put32(sb, 0x4a695444);
	put32(sb, 1);
	put32(sb, 40);
	put32(sb, 62);
	put32(sb, 0);
	put32(sb, 77);
	put64(sb, 0);
	put64(sb, 0);
	/* Lines of the code that follows: 0x1000 a.js:3, 0x1010 the same file:5, 0x1020 b.js:9. */
	put64(&body, 0x1000);
	put64(&body, 3);
	put64(&body, 0x1000);
	put32(&body, 3);
	put32(&body, 0);
	strbuf_add(&body, "a.js", 5);
	put64(&body, 0x1010);
	put32(&body, 5);
	put32(&body, 0);
	strbuf_add(&body, "\xff", 2);
	put64(&body, 0x1020);
	put32(&body, 9);
	put32(&body, 0);
	strbuf_add(&body, "b.js", 5);
	put_record(sb, 2, &body);
	strbuf_clear(&body);
	put32(&body, 77);
	put32(&body, 77);
	put64(&body, 0x1000);
	put64(&body, 0x1000);
	put64(&body, 0x40);
	put64(&body, 1);
	strbuf_add(&body, "compiled", 9);
	strbuf_add(&body, "CODECODE", 8);
	put_record(sb, 0, &body);
	strbuf_clear(&body);
	put32(&body, 77);
	put32(&body, 77);
	put64(&body, 0x9000);
	put64(&body, 0x1000);
	put64(&body, 0x9000);
	put64(&body, 0x40);
	put64(&body, 1);
	put_record(sb, 1, &body);
	strbuf_deinit(&body);
}

static void test_jitdump(void **state)
{
	struct jit_names *names = jit_names_new();
	struct strbuf dump = { 0 };
	struct jit_name name;

	(void)state;
	make_dump(&dump);
	assert_int_equal(jit_names_add_dump(names, (uint8_t *)dump.data, dump.len), 2);
	assert_true(jit_names_find(names, 0x1018, &name));
	assert_string_equal(name.function, "compiled");
	assert_string_equal(name.file, "a.js");
	assert_int_equal(name.line, 5);
	assert_true(jit_names_find(names, 0x9021, &name));
	assert_string_equal(name.function, "compiled");
	assert_string_equal(name.file, "b.js");
	assert_int_equal(name.line, 9);
	assert_false(jit_names_find(names, 0x1040, &name));
	jit_names_free(names);
	strbuf_deinit(&dump);
}

static uint64_t seed = 0x2545f4914f6cdd1du;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Both files are the target's: cut anywhere and changed anywhere, they only lose names. */
static void test_mutations(void **state)
{
	static const char map[] = "1000 100 first\n2000 40 second\n3000 10 third\n1000 40 x\n";
	struct strbuf dump = { 0 };

	(void)state;
	make_dump(&dump);
	for (unsigned int round = 0; round < 20000; round++) {
		struct jit_names *names = jit_names_new();
		bool is_map = round % 2;
		size_t whole = is_map ? sizeof(map) - 1 : dump.len;
		size_t len = next_random() % 4 == 0 ? next_random() % (whole + 1) : whole;
		AUTO(mem_freep) uint8_t *bytes = mem_alloc(len); /* exact, for the sanitizer */
		struct jit_name name;

		if (len > 0)
			memcpy(bytes, is_map ? map : dump.data, len);
		for (uint64_t n = next_random() % 6; n > 0 && len > 0; n--)
			bytes[next_random() % len] = (uint8_t)next_random();
		if (is_map)
			(void)jit_names_add_perf_map(names, (char *)bytes, len);
		else
			(void)jit_names_add_dump(names, bytes, len);
		for (unsigned int i = 0; i < 8; i++)
			if (jit_names_find(names, next_random() >> (i * 7), &name))
				assert_non_null(name.function);
		(void)jit_names_find(names, 0x1018, &name);
		jit_names_free(names);
	}
	strbuf_deinit(&dump);
}

static void test_mappings(void **state)
{
	static const char text[] =
		"55d0c0a00000-55d0c0a01000 r-xp 00001000 08:01 131 /usr/bin/a b (deleted)\n"
		"55d0c0a02000-55d0c0a03000 rw-s 00000000 00:00 0 \n"
		"7ffd000-7ffe000 rw-p 00000000 00:00 0                          [stack]\n"
		"1000-2000 r--p 0 00:00 7 /x\\012y\n"
		"2000-1000 r--p 0 00:00 7 /backwards\n"
		"not a line\n"
		"3000-4000 r?-p 0 00:00 7 /perms\n"
		"5000-6000 r--p 0 00:0";
	struct mappings maps = { 0 };

	(void)state;
	assert_int_equal(mappings_parse(&maps, text, sizeof(text) - 1), 4);
	assert_int_equal(maps.count, 4);
	assert_int_equal(maps.items[0].start, 0x55d0c0a00000);
	assert_int_equal(maps.items[0].end, 0x55d0c0a01000);
	assert_int_equal(maps.items[0].file_offset, 0x1000);
	assert_int_equal(maps.items[0].perms, MAPPING_READ | MAPPING_EXEC);
	assert_string_equal(maps.items[0].path, "/usr/bin/a b (deleted)");
	assert_int_equal(maps.items[1].perms, MAPPING_READ | MAPPING_WRITE | MAPPING_SHARED);
	assert_null(maps.items[1].path);
	assert_string_equal(maps.items[2].path, "[stack]");
	assert_string_equal(maps.items[3].path, "/x\ny");
	for (size_t len = 0; len < sizeof(text); len++) {
		AUTO(mem_freep) char *cut = mem_alloc(len); /* exact, for the sanitizer */

		memcpy(cut, text, len);
		(void)mappings_parse(&maps, cut, len);
	}
	mappings_deinit(&maps);
}

/* The files of a process, found by name and by mapping; a pipe in their place is left alone. */
static void test_load(void **state)
{
	char dir[] = "/tmp/redhand-names-XXXXXX";
	AUTO(mem_freep) char *dump_path = NULL;
	AUTO(mem_freep) char *map_path = NULL;
	struct mapping mappings[2] = { { 0 } };
	struct snapshot snapshot = { .pid = 77, .mappings = mappings, .mapping_count = 2 };
	struct strbuf dump = { 0 };
	struct jit_names *names;
	struct jit_name name;
	struct timespec now;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dump_path = mem_printf("%s/jit-77.dump", dir);
	map_path = mem_printf("%s/perf-77.map", dir);
	make_dump(&dump);
	file = fopen(dump_path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(dump.data, 1, dump.len, file), dump.len);
	assert_int_equal(fclose(file), 0);
	mappings[1].path = dump_path;

	assert_int_equal(mkfifo(map_path, 0600), 0);
	names = jit_names_load(&snapshot, dir);
	assert_true(jit_names_find(names, 0x1000, &name));
	assert_string_equal(name.function, "compiled");
	jit_names_free(names);
	assert_int_equal(unlink(map_path), 0);

	file = fopen(map_path, "we");
	assert_non_null(file);
	assert_true(fputs("7000 10 mapped\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	mappings[1].path = "/nowhere/jit-77.dump";
	names = jit_names_load(&snapshot, dir);
	assert_true(jit_names_find(names, 0x7001, &name));
	assert_string_equal(name.function, "mapped");
	assert_false(jit_names_find(names, 0x1000, &name));
	jit_names_free(names);

	/* Left by an earlier process with this number, or by a later one. */
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	snapshot.since_ns = ((uint64_t)now.tv_sec + 2) * 1000000000u;
	names = jit_names_load(&snapshot, dir);
	assert_false(jit_names_find(names, 0x7001, &name));
	jit_names_free(names);
	snapshot.since_ns = ((uint64_t)now.tv_sec - 20) * 1000000000u;
	snapshot.until_ns = ((uint64_t)now.tv_sec - 10) * 1000000000u;
	names = jit_names_load(&snapshot, dir);
	assert_false(jit_names_find(names, 0x7001, &name));
	jit_names_free(names);
	snapshot.until_ns = ((uint64_t)now.tv_sec + 10) * 1000000000u;
	names = jit_names_load(&snapshot, dir);
	assert_true(jit_names_find(names, 0x7001, &name));
	jit_names_free(names);

	assert_int_equal(unlink(map_path), 0);
	assert_int_equal(unlink(dump_path), 0);
	assert_int_equal(rmdir(dir), 0);
	strbuf_deinit(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangle),  cmocka_unit_test(test_source_path),
		cmocka_unit_test(test_perf_map),  cmocka_unit_test(test_jitdump),
		cmocka_unit_test(test_mutations), cmocka_unit_test(test_load),
		cmocka_unit_test(test_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
