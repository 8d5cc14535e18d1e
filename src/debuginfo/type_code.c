/* The code of functions and lines: types_function() and types_line() of types.h. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "base/cstr.h"
#include "debuginfo/demangle.h"
#include "debuginfo/types_inside.h"

#define DEPTH_MAX 64

void code_pieces_deinit(struct code_pieces *pieces)
{
	VEC_FREE(&pieces->list, piece, mem_free(piece->into));
}

static int by_low(const void *a, const void *b)
{
	const struct code_piece *x = a, *y = b;

	return ORDER(x->low, y->low) ?: ORDER(x->high, y->high);
}

/* In order, and without doubles: several units may describe one function. */
static void tidy(struct code_pieces *pieces)
{
	size_t kept = 0;

	if (pieces->list.count == 0)
		return;
	VEC_SORT(&pieces->list, by_low);
	for (size_t i = 0; i < pieces->list.count; i++) {
		struct code_piece *piece = &pieces->list.items[i];

		if (kept > 0 && pieces->list.items[kept - 1].low == piece->low &&
		    pieces->list.items[kept - 1].high == piece->high)
			mem_free(piece->into);
		else
			pieces->list.items[kept++] = *piece;
	}
	pieces->list.count = kept;
}

struct function_search {
	struct types *types;
	const char *wanted;
	VEC(void *) abstract; /* DIEs that inlined copies refer to, by where they lie in memory */
	struct code_pieces *pieces;
	struct strv *names;
	bool found;
};

static bool add_ranges(struct function_search *search, Dwarf_Die *die, enum code_piece_kind kind,
		       const char *into)
{
	Dwarf_Addr base, low, high, entry = 0;
	ptrdiff_t offset = 0;
	bool any = false;

	if (kind == CODE_FUNCTION && dwarf_entrypc(die, &entry) != 0)
		entry = 0;
	while ((offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
		struct code_piece piece = { .kind = kind };

		/* Functions that the linker dropped stand at 0 with their old length. */
		if (low >= high || low == 0)
			continue;
		/* Where a function in several parts is entered is not always said; compilers list
		 * that part first. */
		if (kind == CODE_FUNCTION && entry == 0)
			entry = low;
		if (kind == CODE_FUNCTION && (entry < low || entry >= high))
			piece.kind = CODE_PART;
		piece.low = low + search->types->bias;
		piece.high = high + search->types->bias;
		piece.into = cstr_dup(into);
		VEC_PUSH(&search->pieces->list, piece);
		any = true;
	}
	if (any && kind == CODE_FUNCTION && search->pieces->entry == 0 && entry != 0)
		search->pieces->entry = entry + search->types->bias;
	return any;
}

static void look_at_function(void *ctx, const struct declared *declared)
{
	struct function_search *search = ctx;
	AUTO(mem_freep) char *name = NULL;

	if (dwarf_tag(declared->die) != DW_TAG_subprogram)
		return;
	types_note_name(search->names, dwarf_diename(declared->die));
	name = types_full_name(declared->die, declared->scope, search->wanted);
	if (!name || !demangled_matches(name, search->wanted))
		return;
	if (dwarf_hasattr(declared->die, DW_AT_inline))
		VEC_PUSH(&search->abstract, declared->die->addr);
	if (add_ranges(search, declared->die, CODE_FUNCTION, NULL) ||
	    !types_flagged(declared->die, DW_AT_declaration))
		search->found = true;
}

static bool is_wanted_copy(const struct function_search *search, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) || !dwarf_formref_die(&attr, &origin))
		return false;
	return VEC_ANY(&search->abstract, addr, *addr == origin.addr);
}

/* Every inlined call below a DIE that has code; `function` is the one it all belongs to. */
static void find_copies(struct function_search *search, Dwarf_Die *parent, Dwarf_Die *function,
			unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			find_copies(search, &die, &die, depth + 1);
			break;
		case DW_TAG_inlined_subroutine:
			if (is_wanted_copy(search, &die)) {
				AUTO(mem_freep)
				char *into = function ? types_full_name(function, "", NULL) : NULL;

				(void)add_ranges(search, &die, CODE_INLINED, into);
			}
			__attribute__((fallthrough));
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_lexical_block:
			find_copies(search, &die, function, depth + 1);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* By the symbol table: assembly, programs without debug information, and the parts that compilers
 * give symbols of their own ("NAME.cold"). */
static void find_symbols(struct function_search *search)
{
	uint64_t bias;
	Dwfl_Module *mod = module_dwfl(search->types->module, &bias);
	int count = dwfl_module_getsymtab(mod);

	for (int i = 1; i < count; i++) {
		struct code_piece piece = { .kind = CODE_FUNCTION };
		AUTO(mem_freep) char *name = NULL;
		GElf_Addr address;
		const char *symbol;
		GElf_Word shndx;
		GElf_Sym sym;

		symbol = dwfl_module_getsym_info(mod, i, &sym, &address, &shndx, NULL, NULL);
		if (!symbol || shndx == SHN_UNDEF ||
		    (GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC))
			continue;
		name = demangle(symbol);
		types_note_name(search->names, name);
		if (!demangled_matches(name, search->wanted) && strcmp(symbol, search->wanted) != 0)
			continue;
		piece.low = address - bias;
		piece.high = piece.low + (sym.st_size > 0 ? sym.st_size : 1);
		if (strstr(symbol, ".cold"))
			piece.kind = CODE_PART;
		else if (search->pieces->entry == 0)
			search->pieces->entry = piece.low;
		VEC_PUSH(&search->pieces->list, piece);
		search->found = true;
	}
}

int types_function(struct types *types, const char *name, struct code_pieces *ret, struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
	struct function_search search = {
		.types = types, .wanted = name, .pieces = &pieces, .names = &names
	};

	types_walk(types, look_at_function, &search);
	if (search.abstract.count > 0)
		VEC_FOREACH (&types->units, unit)
			find_copies(&search, &unit->tree, NULL, 0);
	VEC_DEINIT(&search.abstract);
	if (pieces.list.count == 0)
		find_symbols(&search);
	if (!search.found)
		return types_unknown(types->path, "function", name, &names, err);
	if (pieces.list.count == 0)
		return err_set(err, -ENODATA, "'%s' has no code in '%s': nobody calls it there",
			       name, types->path);
	tidy(&pieces);
	*ret = pieces;
	pieces = (struct code_pieces){ 0 };
	return 0;
}

struct line_search {
	const char *file;
	uint32_t line;
	bool file_found;
	uint32_t next, before; /* the nearest lines that have code; 0 while there is none */
};

static bool path_ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), end_len = strlen(end);

	return end_len <= len && strcmp(path + len - end_len, end) == 0 &&
	       (end_len == len || path[len - end_len - 1] == '/');
}

/* The code of a row of the line table: up to the next row. */
static bool row_code(Dwarf_Line *line, Dwarf_Line *after, struct code_piece *ret)
{
	bool ended = true;

	return dwarf_lineendsequence(line, &ended) == 0 && !ended && after &&
	       dwarf_lineaddr(line, &ret->low) == 0 && dwarf_lineaddr(after, &ret->high) == 0 &&
	       ret->low != 0 && ret->low < ret->high;
}

static void look_at_line(struct line_search *search, Dwarf_Line *line, Dwarf_Line *after,
			 uint64_t bias, struct code_pieces *ret)
{
	struct code_piece piece = { .kind = CODE_PART };
	int number;

	if (dwarf_lineno(line, &number) != 0 || number <= 0)
		return;
	if ((uint32_t)number > search->line &&
	    (search->next == 0 || (uint32_t)number < search->next))
		search->next = (uint32_t)number;
	if ((uint32_t)number < search->line && (uint32_t)number > search->before)
		search->before = (uint32_t)number;
	if ((uint32_t)number != search->line || !row_code(line, after, &piece))
		return;
	piece.low += bias;
	piece.high += bias;
	if (ret->list.count > 0 && ret->list.items[ret->list.count - 1].high == piece.low)
		ret->list.items[ret->list.count - 1].high = piece.high;
	else
		VEC_PUSH(&ret->list, piece);
}

static void look_at_unit(struct line_search *search, struct types *types, Dwarf_Die *unit,
			 struct strv *names, struct code_pieces *ret)
{
	const char *last = NULL;
	Dwarf_Lines *lines;
	bool wanted = false;
	size_t count;

	if (dwarf_getsrclines(unit, &lines, &count) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;

		if (!file)
			continue;
		/* The same string, while the file is the same. */
		if (file != last) {
			const char *slash = strrchr(file, '/');

			wanted = path_ends_in(file, search->file);
			if (names->count < 10000)
				types_note_name(names, slash ? slash + 1 : file);
			last = file;
		}
		if (!wanted)
			continue;
		search->file_found = true;
		look_at_line(search, line, i + 1 < count ? dwarf_onesrcline(lines, i + 1) : NULL,
			     types->bias, ret);
	}
}

int types_line(struct types *types, const char *file, uint32_t line, struct code_pieces *ret,
	       struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
	struct line_search search = { .file = file, .line = line };
	int r = types_need_dwarf(types, err);

	if (r < 0)
		return r;
	VEC_FOREACH (&types->units, unit)
		look_at_unit(&search, types, &unit->die, &names, &pieces);
	if (!search.file_found)
		return types_unknown(types->path, "source file", file, &names, err);
	if (pieces.list.count == 0) {
		(void)err_set(err, -ENODATA, "there is no code at %s:%u", file, line);
		if (search.next > 0)
			(void)err_set_remedy(err, "%s:%u, the next line that has some", file,
					     search.next);
		else if (search.before > 0)
			(void)err_set_remedy(err, "%s:%u, the last line that has some", file,
					     search.before);
		return -ENODATA;
	}
	tidy(&pieces);
	*ret = pieces;
	pieces = (struct code_pieces){ 0 };
	return 0;
}
