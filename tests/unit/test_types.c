/*
 * Fields, globals, functions and lines out of debug information, of programs that were built in
 * different ways. argv[1] is the folder of tests/victims.
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
#include <unistd.h>

#include <cmocka.h>

#include "../victims/types.h"
#include "base/fd.h"
#include "base/mem.h"
#include "debuginfo/code_layout.h"
#include "debuginfo/demangle.h"
#include "debuginfo/module.h"
#include "debuginfo/types.h"
#include "scratch.h"

static const char *victims;

static const char *victim(const char *name)
{
	static char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", victims, name);
	return path;
}

static struct types *open_types(const char *name)
{
	struct types *types = NULL;
	struct err err = { 0 };

	if (types_open(victim(name), &types, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	return types;
}

static const char *const builds[] = { "types-O0",    "types-O2",    "types-dwarf4",
				      "types-units", "types-fixed", "types-split" };

#define FOR_EACH_BUILD(name, types)                                         \
	for (size_t i_ = 0; i_ < sizeof(builds) / sizeof(builds[0]); i_++)  \
		for (const char *name = builds[i_]; name; name = NULL)      \
			for (struct types *types = open_types(name); types; \
			     types_close(types), types = NULL)

/* ---- fields ---- */

static void wants_field(struct types *types, const char *type, const char *path, uint64_t offset,
			uint64_t size)
{
	AUTO(type_field_deinit) struct type_field field = { 0 };
	struct err err = { 0 };

	if (types_field(types, type, path, &field, &err) < 0)
		fail_msg("%s.%s: %s", type, path, err.message);
	assert_int_equal(field.offset, offset);
	assert_int_equal(field.size, size);
	assert_int_equal(field.bit_size, 0);
}

#define WANTS(types, name, type, path) \
	wants_field(types, name, #path, offsetof(type, path), sizeof(((type *)0)->path))

static void test_fields(void **state)
{
	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		print_message("# %s\n", name);
		WANTS(types, "statement", struct statement, container);
		WANTS(types, "struct statement", struct statement, kind);
		WANTS(types, "statement", struct statement, inner);
		WANTS(types, "statement", struct statement, inner.x);
		WANTS(types, "statement", struct statement, inner.large);
		WANTS(types, "statement", struct statement, word);
		WANTS(types, "statement", struct statement, matrix);
		WANTS(types, "statement", struct statement, matrix[2]);
		WANTS(types, "statement", struct statement, matrix[2][3]);
		WANTS(types, "statement", struct statement, pairs[1].right);
		WANTS(types, "point_t", point_t, y);
		wants_field(types, "statement", "tail", offsetof(struct statement, tail), 0);
		wants_field(types, "statement", "tail[7]", offsetof(struct statement, tail) + 7, 1);
		wants_field(types, "statement", "", 0, sizeof(struct statement));
		wants_field(types, "struct opaque", "hidden", 12, 4);
	}
}

static void test_bit_fields(void **state)
{
	static const struct {
		const char *name;
		unsigned int low, bits;
	} rows[] = { { "flag", 0, 3 }, { "other", 3, 5 }, { "wide", 8, 20 } };

	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			AUTO(type_field_deinit) struct type_field field = { 0 };

			print_message("# %s %s\n", name, rows[i].name);
			assert_int_equal(
				types_field(types, "statement", rows[i].name, &field, NULL), 0);
			assert_int_equal(field.bit_size, rows[i].bits);
			assert_int_equal((field.offset - offsetof(struct statement, matrix) -
					  sizeof(int[3][4])) *
							 8 +
						 field.bit_offset,
					 rows[i].low);
			assert_int_equal(field.size, (rows[i].low % 8 + rows[i].bits + 7) / 8);
		}
	}
}

/* The result of a failed question: its code, what the sentence and the remedy contain. */
static void refuses(int r, int code, const struct err *err, const char *words, const char *remedy)
{
	assert_int_equal(r, code);
	if (!strstr(err->message, words))
		fail_msg("'%s' does not contain '%s'", err->message, words);
	if (remedy && !strstr(err->remedy, remedy))
		fail_msg("'%s' does not contain '%s'", err->remedy, remedy);
}

static void test_field_mistakes(void **state)
{
	struct type_field field = { 0 };

	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		static const struct {
			const char *type, *path;
			int code;
			const char *words, *remedy;
		} rows[] = {
			{ "statment", "kind", -ENOENT, "no type 'statment'", "'statement'" },
			{ "statement", "contaner", -ENOENT, "struct statement", "'container'" },
			{ "statement", "inner.z", -ENOENT, "no field 'z'", NULL },
			{ "statement", "container.count", -EINVAL, "no fields", "another object" },
			{ "statement", "container->count", -EINVAL, "another object", NULL },
			{ "statement", "kind[1]", -EINVAL, "no array", NULL },
			{ "statement", "matrix[3]", -ERANGE, "3 elements", NULL },
			{ "statement", "matrix[1][4]", -ERANGE, "4 elements", NULL },
			{ "statement", "matrix[x]", -EINVAL, "no index", NULL },
			{ "statement", "inner..x", -EINVAL, "no field", NULL },
			{ "local", "value", -ENOTUNIQ, "types_b.c", NULL },
			{ "local", "value", -ENOTUNIQ, "types_a.c", NULL },
		};

		print_message("# %s\n", name);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct err err = { 0 };

			refuses(types_field(types, rows[i].type, rows[i].path, &field, &err),
				rows[i].code, &err, rows[i].words, rows[i].remedy);
		}
	}
	assert_null(field.type);
}

static void test_functions_types(void **state)
{
	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		AUTO(type_field_deinit) struct type_field field = { 0 };
		AUTO(type_field_deinit) struct type_field origin = { 0 };
		AUTO(type_field_deinit) struct type_field hidden = { 0 };
		AUTO(type_field_deinit) struct type_field y = { 0 };
		struct err err = { 0 };

		print_message("# %s\n", name);
		assert_int_equal(types_field_of_function(types, "statement_new", TYPES_RETURN,
							 "container", &field, &err),
				 0);
		assert_int_equal(field.offset, offsetof(struct statement, container));
		assert_string_equal(field.type, "struct container *");
		assert_int_equal(types_field_of_function(types, "statement_new", 0, "origin.y",
							 &origin, &err),
				 0);
		assert_int_equal(origin.offset, 20);
		/* Through a typedef of a pointer to const. */
		assert_int_equal(types_field_of_function(types, "statement_kind", 1, "y", &y, &err),
				 0);
		assert_int_equal(y.offset, 4);
		/* Declared here, defined in another unit. */
		assert_int_equal(types_field_of_function(types, "opaque_new", TYPES_RETURN,
							 "hidden", &hidden, &err),
				 0);
		assert_int_equal(hidden.offset, 12);
		refuses(types_field_of_function(types, "statement_new", 1, "x", &field, &err),
			-EINVAL, &err, "int, no pointer", "+OFFSET");
		refuses(types_field_of_function(types, "statement_new", 2, "x", &field, &err),
			-EINVAL, &err, "2 arguments", NULL);
		memset(&err, 0, sizeof(err));
		refuses(types_field_of_function(types, "statement_knew", 0, "x", &field, &err),
			-ENOENT, &err, "no function", "'statement_new'");
	}
}

/* ---- globals ---- */

static uint64_t symbol_address(const char *build, const char *symbol)
{
	AUTO(module_closep) struct module *module = NULL;
	uint64_t address = 0;

	assert_int_equal(module_open(victim(build), NULL, &module, NULL), 0);
	assert_true(module_symbol(module, symbol, &address));
	return address;
}

static uint64_t inside(struct types *types, const char *function)
{
	struct code_pieces code = { 0 };
	struct err err = { 0 };
	uint64_t address;

	assert_int_equal(types_function(types, function, &code, &err), 0);
	address = code.entry + 4;
	code_pieces_deinit(&code);
	return address;
}

/* Every byte by the name of its field; a block of another size has none. */
static void test_layout(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
	} wanted[] = { { "kind", offsetof(struct statement, kind) },
		       { "container", offsetof(struct statement, container) },
		       { "inner.x", offsetof(struct statement, inner.x) },
		       { "inner.small", offsetof(struct statement, inner.small) },
		       { "pointer", offsetof(struct statement, pointer) },
		       { "matrix", offsetof(struct statement, matrix) + 7 * sizeof(int) },
		       { "pairs", offsetof(struct statement, pairs) },
		       { "tail", sizeof(struct statement) + 40 } };

	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		AUTO(block_layout_deinit) struct block_layout layout = { 0 };
		struct err err = { 0 };
		struct type_place place = { .address = inside(types, "statement_new"),
					    .size = sizeof(struct statement) };

		assert_int_equal(types_layout_at(types, &place, &layout, &err), 0);
		assert_string_equal(layout.type, "struct statement");
		assert_int_equal(layout.size, sizeof(struct statement));
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
			const struct layout_field *field =
				block_layout_at(&layout, wanted[i].offset);

			assert_non_null(field);
			assert_string_equal(field->name, wanted[i].name);
		}
		block_layout_deinit(&layout);
		layout = (struct block_layout){ 0 };
		place.size++;
		assert_int_equal(types_layout_at(types, &place, &layout, &err), -ENOENT);
	}
}

/* The field at an offset of a block that a function allocated; NULL: none may be told. */
static void wants_name(struct types *types, const char *function, const struct type_place *where,
		       const char *name)
{
	struct type_place place = *where;
	char *found = NULL;
	struct err err = { 0 };
	int r;

	place.address = inside(types, function);
	r = types_field_at(types, &place, &found, &err);
	if (name && r < 0)
		fail_msg("%s+%lu: %s", function, (unsigned long)place.offset, err.message);
	if (name)
		assert_string_equal(found, name);
	else
		assert_int_equal(r, -ENOENT);
	mem_free(found);
}

#define NAMED(types, path, name)                                                         \
	wants_name(types, "statement_new",                                               \
		   &(struct type_place){ .size = sizeof(struct statement),               \
					 .offset = offsetof(struct statement, path),     \
					 .len = sizeof(((struct statement *)0)->path) }, \
		   name)

static void test_field_of_a_block(void **state)
{
	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		print_message("# %s\n", name);
		NAMED(types, container, "struct statement.container");
		NAMED(types, kind, "struct statement.kind");
		NAMED(types, inner.x, "struct statement.inner.x");
		NAMED(types, pairs[1].right, "struct statement.pairs[1].right");
		NAMED(types, matrix[2][3], "struct statement.matrix");
		/* Two members of a union without a name lie there. */
		NAMED(types, word, NULL);
		/* Padding, what is no block of that type, and what lies behind it. */
		wants_name(types, "statement_new",
			   &(struct type_place){ .size = sizeof(struct statement),
						 .offset =
							 offsetof(struct statement, container) - 4,
						 .len = 4 },
			   NULL);
		wants_name(types, "statement_new",
			   &(struct type_place){ .size = sizeof(struct statement) + 8, .len = 4 },
			   NULL);
		wants_name(types, "statement_new",
			   &(struct type_place){ .size = sizeof(struct statement),
						 .offset = sizeof(struct statement) },
			   NULL);
		/* A function that has no pointer to anything of that size. */
		wants_name(types, "divide",
			   &(struct type_place){ .size = sizeof(struct statement), .len = 4 },
			   NULL);
	}
}

static void test_globals(void **state)
{
	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		AUTO(type_global_deinit) struct type_global whole = { 0 };
		AUTO(type_global_deinit) struct type_global first = { 0 };
		AUTO(type_global_deinit) struct type_global element = { 0 };
		AUTO(type_global_deinit) struct type_global own = { 0 };
		struct type_global none;
		struct err err = { 0 };

		print_message("# %s\n", name);
		assert_int_equal(types_global(types, "the_container", NULL, &whole, &err), 0);
		assert_int_equal(whole.address, symbol_address(name, "the_container"));
		assert_int_equal(whole.field.size, 24);
		assert_false(whole.from_symbol);
		assert_int_equal(types_global(types, "the_container", "first", &first, &err), 0);
		assert_int_equal(first.address, whole.address);
		assert_int_equal(first.field.offset, 8);
		assert_int_equal(types_global(types, "shared_table", "[3]", &element, &err), 0);
		assert_int_equal(element.field.offset, 12);
		assert_int_equal(element.field.size, 4);
		refuses(types_global(types, "counter", NULL, &none, &err), -ENOTUNIQ, &err,
			"2 variables", "types_b.c:counter");
		assert_int_equal(types_global(types, "types_b.c:counter", NULL, &own, &err), 0);
		assert_int_equal(own.field.size, 8);
		memset(&err, 0, sizeof(err));
		refuses(types_global(types, "shared_tabel", NULL, &none, &err), -ENOENT, &err,
			"no global variable", "'shared_table'");
		refuses(types_global(types, "per_thread", NULL, &none, &err), -EOPNOTSUPP, &err,
			"thread-local", NULL);
	}
}

/* Each in its place, with its size; no thread's own. */
static void test_variables(void **state)
{
	AUTO(types_closep) struct types *types = open_types("types-O0");
	AUTO(type_variables_deinit) struct type_variables variables = { 0 };
	const struct type_variable *container, *before = NULL;

	(void)state;
	types_variables(types, &variables);
	container = VEC_FIND(&variables.list, v, strcmp(v->name, "the_container") == 0);
	assert_non_null(container);
	assert_int_equal(container->function, 0);
	assert_int_equal(container->at, symbol_address("types-O0", "the_container"));
	assert_int_equal(container->size, 24);
	assert_true(container->parts);
	assert_null(VEC_FIND(&variables.list, v, strcmp(v->name, "per_thread") == 0));
	VEC_FOREACH (&variables.list, v) {
		assert_true(!before || v->function > before->function ||
			    (v->function == before->function && v->at >= before->at));
		assert_true(v->size > 0);
		before = v;
	}
}

/* Zeroed variables belong to a file although no byte of it is theirs; what lies behind does not. */
static void test_what_a_file_covers(void **state)
{
	uint64_t zeroed = symbol_address("types-bare", "the_container");
	struct module *module;

	assert_int_equal(module_open(victim("types-bare"), NULL, &module, NULL), 0);
	assert_true(module_covers(module, zeroed));
	assert_false(module_covers(module, zeroed + (1u << 20)));
	module_close(module);
}

/* The symbol table alone. */
static void test_without_debug_information(void **state)
{
	AUTO(types_closep) struct types *types = open_types("types-bare");
	AUTO(type_global_deinit) struct type_global global = { 0 };
	AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
	struct type_global none;
	struct type_field field;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(types_global(types, "the_container", NULL, &global, &err), 0);
	assert_true(global.from_symbol);
	assert_int_equal(global.field.size, 24);
	assert_int_equal(global.address, symbol_address("types-bare", "the_container"));
	refuses(types_global(types, "the_container", "first", &none, &err), -ENODATA, &err,
		"no debug information", "-g");
	refuses(types_global(types, "counter", NULL, &none, &err), -ENOTUNIQ, &err, "2 variables",
		NULL);
	refuses(types_field(types, "statement", "kind", &field, &err), -ENODATA, &err,
		"no debug information", "-g");
	assert_int_equal(types_function(types, "divide", &pieces, &err), 0);
	assert_int_equal(pieces.entry, symbol_address("types-bare", "divide"));
	assert_int_equal(types_line(types, "types_a.c", 3, &pieces, &err), -ENODATA);
}

/* ---- code ---- */

static size_t count_kind(const struct code_pieces *pieces, enum code_piece_kind kind)
{
	size_t count = 0;

	VEC_FOREACH (&pieces->list, piece)
		count += piece->kind == kind;
	return count;
}

static void test_functions(void **state)
{
	(void)state;
	FOR_EACH_BUILD(name, types)
	{
		AUTO(code_pieces_deinit) struct code_pieces own = { 0 };
		AUTO(code_pieces_deinit) struct code_pieces copies = { 0 };
		AUTO(code_pieces_deinit) struct code_pieces divide = { 0 };
		bool into_new = false, into_kind = false;
		struct code_pieces none;
		struct err err = { 0 };

		print_message("# %s\n", name);
		assert_int_equal(types_function(types, "statement_new", &own, &err), 0);
		assert_int_equal(own.entry, symbol_address(name, "statement_new"));
		assert_int_equal(count_kind(&own, CODE_FUNCTION), 1);
		assert_int_equal(count_kind(&own, CODE_INLINED), 0);

		assert_int_equal(types_function(types, "bump", &copies, &err), 0);
		assert_int_equal(copies.entry, 0);
		assert_int_equal(count_kind(&copies, CODE_FUNCTION), 0);
		VEC_FOREACH (&copies.list, piece) {
			assert_int_equal(piece->kind, CODE_INLINED);
			assert_true(piece->low < piece->high);
			into_new |= strcmp(piece->into, "statement_new") == 0;
			into_kind |= strcmp(piece->into, "statement_kind") == 0;
		}
		assert_true(into_new && into_kind);

		assert_int_equal(types_function(types, "divide", &divide, &err), 0);
		assert_int_equal(count_kind(&divide, CODE_FUNCTION), 1);
		if (strcmp(name, "types-O2") == 0)
			assert_int_equal(count_kind(&divide, CODE_PART), 1);

		refuses(types_function(types, "devide", &none, &err), -ENOENT, &err, "no function",
			"'divide'");
	}
}

static void test_lines(void **state)
{
	uint32_t line = 0;
	char text[256];
	FILE *source = fopen(TYPES_SOURCE, "r");

	(void)state;
	assert_non_null(source);
	for (uint32_t n = 1; fgets(text, sizeof(text), source); n++)
		if (strstr(text, "line of bump"))
			line = n;
	(void)fclose(source);
	assert_true(line > 0);
	FOR_EACH_BUILD(name, types)
	{
		AUTO(module_closep) struct module *module = NULL;
		AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
		struct code_pieces none;
		struct err err = { 0 };

		print_message("# %s\n", name);
		assert_int_equal(module_open(victim(name), NULL, &module, NULL), 0);
		assert_int_equal(types_line(types, "types_a.c", line, &pieces, &err), 0);
		assert_true(pieces.list.count >= 2); /* two copies */
		VEC_FOREACH (&pieces.list, piece) {
			size_t count;
			const struct frame *frames = module_name(module, piece->low, &count);

			assert_int_equal(frames[0].line, line);
		}
		refuses(types_line(types, "types_a.c", 1, &none, &err), -ENODATA, &err, "no code",
			"types_a.c:");
		memset(&err, 0, sizeof(err));
		refuses(types_line(types, "typse_a.c", 1, &none, &err), -ENOENT, &err,
			"no source file", "'types_a.c'");
		/* Only by whole parts of the path. */
		assert_int_equal(types_line(types, "es_a.c", line, &none, &err), -ENOENT);
	}
}

/* ---- C++ ---- */

static void test_scopes(void **state)
{
	static const char *const cxx[] = { "types-cxx", "types-cxx-O2" };

	(void)state;
	if (access(victim(cxx[0]), R_OK) != 0)
		skip_because("there is no C++ compiler");
	for (size_t i = 0; i < sizeof(cxx) / sizeof(cxx[0]); i++) {
		AUTO(types_closep) struct types *types = open_types(cxx[i]);
		AUTO(type_global_deinit) struct type_global made = { 0 };
		AUTO(type_global_deinit) struct type_global hidden = { 0 };
		AUTO(type_field_deinit) struct type_field width = { 0 };
		AUTO(type_field_deinit) struct type_field self = { 0 };
		AUTO(type_field_deinit) struct type_field by = { 0 };
		AUTO(code_pieces_deinit) struct code_pieces total = { 0 };
		AUTO(code_pieces_deinit) struct code_pieces get = { 0 };
		struct type_field none;
		struct err err = { 0 };

		print_message("# %s\n", cxx[i]);
		wants_field(types, "shapes::box", "width", 16, 8);
		wants_field(types, "shapes::box", "base_field", 8, 4);
		wants_field(types, "other::box", "width", 3, 1);
		wants_field(types, "holder<long>", "value", 8, 8);
		wants_field(types, "shapes::holder<long>", "value", 8, 8);
		/* Two types have that name, and they differ. */
		assert_int_equal(types_field(types, "box", "width", &none, &err), -ENOTUNIQ);
		wants_field(types, "box", "lid", 0, 3); /* only one of them has this */

		assert_int_equal(types_field_of_function(types, "shapes::box::make", TYPES_RETURN,
							 "width", &width, &err),
				 0);
		assert_int_equal(width.offset, 16);
		assert_int_equal(
			types_field_of_function(types, "box::total", 0, "width", &self, &err), 0);
		assert_int_equal(self.offset, 16);
		assert_int_equal(types_field_of_function(types, "total", 1, "", &by, &err), 0);
		assert_int_equal(by.size, 4); /* a reference to int */

		assert_int_equal(types_global(types, "shapes::box::made", NULL, &made, &err), 0);
		assert_int_equal(made.address, symbol_address(cxx[i], "_ZN6shapes3box4madeE"));
		assert_int_equal(types_global(types, "hidden_count", NULL, &hidden, &err), 0);

		assert_int_equal(types_function(types, "shapes::box::total", &total, &err), 0);
		assert_true(total.entry != 0);
		if (i == 0) /* optimised, the symbol has other endings */
			assert_int_equal(total.entry,
					 symbol_address(cxx[i], "_ZN6shapes3box5totalERKi"));
		assert_int_equal(types_function(types, "holder<long>::get", &get, &err), 0);
		assert_true(get.entry != 0);
	}
}

static void test_demangled_matches(void **state)
{
	static const struct {
		const char *name, *wanted;
		bool matches;
	} rows[] = {
		{ "main", "main", true },
		{ "main", "ain", false },
		{ "shapes::box::total(int const&)", "total", true },
		{ "shapes::box::total(int const&)", "box::total", true },
		{ "shapes::box::total(int const&)", "shapes::box::total", true },
		{ "shapes::box::total(int const&)", "shapes::box::total(int const&)", true },
		{ "shapes::box::total(int const&)", "x::total", false },
		{ "shapes::subtotal(int)", "total", false },
		{ "f::operator()(int)", "operator()", true },
		{ "(anonymous namespace)::count", "count", true },
		{ "int twice<int>(int)", "twice<int>", true },
		{ "g(std::function<int (long)>)", "g", true },
		{ "apply<int (*)(long)>(int)", "apply<int (*)(long)>", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("# %s %s\n", rows[i].name, rows[i].wanted);
		assert_int_equal(demangled_matches(rows[i].name, rows[i].wanted), rows[i].matches);
	}
}

static void test_code_layout(void **state)
{
	AUTO(module_closep) struct module *module = NULL;
	AUTO(code_layout_deinit) struct code_layout layout = { 0 };
	uint64_t divide = symbol_address("types-O2", "divide");
	bool inside = false, start = false;

	(void)state;
	/* Stripped: only the unwind information tells where functions begin. */
	assert_int_equal(module_open(victim("types-stripped"), NULL, &module, NULL), 0);
	code_layout_of_module(module, &layout);
	VEC_FOREACH (&layout.ranges, range)
		inside |= divide >= range->low && divide < range->high;
	for (size_t i = 0; i < layout.starts.count; i++) {
		start |= layout.starts.items[i] == divide;
		if (i > 0)
			assert_true(layout.starts.items[i - 1] < layout.starts.items[i]);
	}
	assert_true(inside && start);
}

/* Damaged files are answered, somehow, and soon. */
#define MUTATIONS 200u
#define SEED 5u

static int ask_everything(void *arg)
{
	AUTO(types_closep) struct types *types = NULL;
	struct code_pieces pieces = { 0 };
	struct type_global global;
	struct type_field field;
	struct err err = { 0 };

	(void)alarm(20);
	if (types_open(arg, &types, &err) < 0)
		return 0;
	(void)types_field(types, "statement", "pairs[1].right", &field, &err);
	(void)types_field(types, "point_t", "y", &field, &err);
	(void)types_field_of_function(types, "opaque_new", TYPES_RETURN, "hidden", &field, &err);
	(void)types_field_of_function(types, "statement_kind", 1, "y", &field, &err);
	(void)types_global(types, "the_container", "first", &global, &err);
	(void)types_function(types, "bump", &pieces, &err);
	(void)types_line(types, "types_a.c", 30, &pieces, &err);
	return 0;
}

static void test_damaged(void **state)
{
	AUTO(mem_freep) char *whole = NULL;
	AUTO(mem_freep) char *bytes = NULL;
	struct scratch scratch;
	unsigned int seed = SEED;
	size_t len;

	(void)state;
	print_message("# seed %u\n", seed);
	assert_int_equal(file_read(victim("types-O0"), 1 << 20, &whole, &len, NULL), 0);
	bytes = mem_alloc(len);
	scratch_make(&scratch);
	for (unsigned int round = 0; round < MUTATIONS; round++) {
		size_t kept = rand_r(&seed) % 10 ? len : (size_t)rand_r(&seed) % len;

		memcpy(bytes, whole, len);
		for (unsigned int i = (unsigned int)rand_r(&seed) % 20 + 1; i > 0; i--)
			bytes[(size_t)rand_r(&seed) % len] = (char)rand_r(&seed);
		assert_int_equal(file_write_at(scratch.fd, "damaged", bytes, kept, NULL), 0);
		assert_int_equal(
			in_child(ask_everything, (void *)scratch_path(&scratch, "damaged")), 0);
	}
	scratch_remove(&scratch);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_bit_fields),
		cmocka_unit_test(test_field_mistakes),
		cmocka_unit_test(test_functions_types),
		cmocka_unit_test(test_field_of_a_block),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_globals),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_what_a_file_covers),
		cmocka_unit_test(test_without_debug_information),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_demangled_matches),
		cmocka_unit_test(test_code_layout),
		cmocka_unit_test(test_damaged),
	};

	if (argc < 2)
		return 2;
	victims = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
