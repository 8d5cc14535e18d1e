#include "debuginfo/lines.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "base/vec.h"
#include "debuginfo/debugfile.h"
#include "debuginfo/scope_name.h"

/* Nesting of DIEs that is still followed; compilers stay far below, damaged files may not. */
#define DEPTH_MAX 64

struct line_function {
	Dwarf_Addr low, high;
	Dwarf_Die die;
};

struct line_unit {
	Dwarf_Die die;	/* has the line table */
	Dwarf_Die tree; /* has the functions: the same, or the unit in the .dwo file */
	bool indexed;	/* `functions` was filled */
	VEC(struct line_function) functions; /* ascending by low */
};

struct unit_range {
	Dwarf_Addr low, high;
	uint32_t unit;
};

struct scope {
	void *function; /* address of its DIE */
	char *name;	/* NULL: none */
};

struct lines {
	Dwarf_Addr bias; /* Dwfl_Module address = DWARF address + bias */
	VEC(struct line_unit) units;
	VEC(struct unit_range) ranges; /* ascending by low */
	VEC(struct scope) scopes;      /* that were asked for */
};

static void unit_ranges(struct lines *lines, Dwarf_Die *die, uint32_t unit)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0) {
		/* Functions that the linker dropped stand at 0 with their old length. */
		if (low >= high || low == 0)
			continue;
		VEC_PUSH(&lines->ranges, ((struct unit_range){ low, high, unit }));
	}
}

struct lines *lines_new(struct Dwfl_Module *mod)
{
	struct lines *lines;
	Dwarf_CU *cu = NULL;
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(mod, &bias);
	Dwarf_Die die, sub;
	uint8_t type;

	if (!dwarf || !debugfile_strings_end(dwarf))
		return NULL;
	lines = mem_alloc(sizeof(*lines));
	lines->bias = bias;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &sub) == 0) {
		struct line_unit unit = { .die = die, .tree = die };

		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (type == DW_UT_skeleton && dwarf_tag(&sub) == DW_TAG_compile_unit)
			unit.tree = sub;
		VEC_PUSH(&lines->units, unit);
		unit_ranges(lines, &die, (uint32_t)(lines->units.count - 1));
	}
	VEC_SORT_BY(&lines->ranges, low);
	return lines;
}

void lines_free(struct lines *lines)
{
	if (!lines)
		return;
	VEC_FREE(&lines->units, unit, VEC_DEINIT(&unit->functions));
	VEC_DEINIT(&lines->ranges);
	VEC_FREE(&lines->scopes, scope, mem_free(scope->name));
	mem_free(lines);
}

/* Adds every function with code below this DIE. They stand not only at the top: Rust and C++ put
 * them into namespaces, classes and other functions. */
static void unit_index(struct line_unit *unit, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		Dwarf_Addr base, low, high;
		ptrdiff_t offset = 0;

		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			while ((offset = dwarf_ranges(&die, offset, &base, &low, &high)) > 0)
				if (low < high && low != 0)
					VEC_PUSH(&unit->functions,
						 ((struct line_function){ low, high, die }));
			unit_index(unit, &die, depth + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_lexical_block:
			unit_index(unit, &die, depth + 1);
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

static struct line_unit *find_unit(struct lines *lines, Dwarf_Addr address)
{
	size_t low = VEC_HOLDS_FOR(&lines->ranges, range, range->low <= address);

	/* Ranges of different units do not overlap in sound files; a few steps back forgive
	 * some that do. */
	for (size_t i = low; i-- > 0 && low - i <= 8;)
		if (address < lines->ranges.items[i].high)
			return &lines->units.items[lines->ranges.items[i].unit];
	return NULL;
}

static Dwarf_Die *find_function(struct line_unit *unit, Dwarf_Addr address)
{
	size_t low;

	if (!unit->indexed) {
		unit->indexed = true;
		unit_index(unit, &unit->tree, 0);
		VEC_SORT_BY(&unit->functions, low);
	}
	low = VEC_HOLDS_FOR(&unit->functions, function, function->low <= address);
	for (size_t i = low; i-- > 0 && low - i <= 8;)
		if (address < unit->functions.items[i].high)
			return &unit->functions.items[i].die;
	return NULL;
}

/* Follows the blocks and inlined calls that hold the address, outermost first. Returns how many
 * inlined calls were put into `ret`. */
static size_t find_inlines(Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die *ret, size_t room)
{
	Dwarf_Die parent = *function, die;
	unsigned int depth = 0;
	size_t count = 0;

again:
	if (depth++ > DEPTH_MAX || dwarf_child(&parent, &die) != 0)
		return count;
	do {
		int tag = dwarf_tag(&die);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block)
			continue;
		if (dwarf_haspc(&die, address) != 1)
			continue;
		if (tag == DW_TAG_inlined_subroutine) {
			if (count == room)
				return count;
			ret[count++] = die;
		}
		parent = die;
		goto again;
	} while (dwarf_siblingof(&die, &die) == 0);
	return count;
}

/* Finding one goes through the whole unit: it is kept. */
static const char *scope_of(struct lines *lines, Dwarf_Die *die)
{
	Dwarf_Die function = *die, origin;
	Dwarf_Attribute attr;

	if (dwarf_attr(die, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin))
		function = origin;
	VEC_FOREACH (&lines->scopes, scope)
		if (scope->function == function.addr)
			return scope->name;
	VEC_PUSH(&lines->scopes, ((struct scope){ function.addr, scope_name(&function) }));
	return lines->scopes.items[lines->scopes.count - 1].name;
}

static void name_function(struct lines *lines, Dwarf_Die *die, struct line_frame *frame)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		frame->linkage_name = dwarf_formstring(&attr);
	frame->name = dwarf_diename(die);
	if (!frame->linkage_name && frame->name)
		frame->scope = scope_of(lines, die);
}

static uint32_t die_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) != 0)
		return 0;
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

static void line_of_address(struct line_unit *unit, Dwarf_Addr address, struct line_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number;

	if (!line || dwarf_lineno(line, &number) != 0 || number <= 0)
		return;
	frame->line = (uint32_t)number;
	frame->file = dwarf_linesrc(line, NULL, NULL);
}

/* Where the inlined function `die` was called: that is the line of the frame around it. */
static void line_of_call(struct line_unit *unit, Dwarf_Die *die, struct line_frame *frame)
{
	uint32_t file = die_number(die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	frame->line = die_number(die, DW_AT_call_line);
	if (dwarf_getsrcfiles(&unit->tree, &files, &count) == 0 && file < count)
		frame->file = dwarf_filesrc(files, file, NULL, NULL);
}

size_t lines_find(struct lines *lines, uint64_t address, struct line_frame ret[LINE_FRAMES_MAX])
{
	Dwarf_Die inlines[LINE_FRAMES_MAX - 1];
	size_t count = 0, inlined = 0;
	Dwarf_Attribute attr;
	const char *directory;
	Dwarf_Die *function;
	struct line_unit *unit;

	address -= lines->bias;
	unit = find_unit(lines, address);
	if (!unit)
		return 0;
	directory = dwarf_formstring(dwarf_attr_integrate(&unit->die, DW_AT_comp_dir, &attr));
	function = find_function(unit, address);
	if (function)
		inlined = find_inlines(function, address, inlines, LINE_FRAMES_MAX - 1);

	memset(ret, 0, (inlined + 1) * sizeof(*ret));
	line_of_address(unit, address, &ret[0]);
	for (size_t i = inlined; i-- > 0;) {
		/* DWARF 2 does not say where it was called: then its line is all that is known. */
		if (!dwarf_hasattr(&inlines[i], DW_AT_call_line))
			continue;
		name_function(lines, &inlines[i], &ret[count++]);
		line_of_call(unit, &inlines[i], &ret[count]);
	}
	if (function)
		name_function(lines, function, &ret[count]);
	count++;
	for (size_t i = 0; i < count; i++)
		ret[i].directory = directory;
	if (count == 1 && !ret[0].name && ret[0].line == 0)
		return 0;
	return count;
}

size_t lines_ranges(struct lines *lines, uint64_t address, struct line_range *ret, size_t room)
{
	struct line_unit *unit = find_unit(lines, address - lines->bias);
	Dwarf_Die *function = unit ? find_function(unit, address - lines->bias) : NULL;
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;
	size_t count = 0;

	if (!function)
		return 0;
	while (count < room && (offset = dwarf_ranges(function, offset, &base, &low, &high)) > 0)
		if (low < high && low != 0)
			ret[count++] = (struct line_range){ low + lines->bias, high + lines->bias };
	return count;
}

/* psABI 3.2.3: structures of more than two words, and long double, go by the stack. */
#define ARGUMENT_WORDS 2
#define INTEGER_REGISTERS 6
#define VECTOR_REGISTERS 8

/* Adds the registers that an argument of this type takes; false when it may go by the stack. */
static bool count_registers(Dwarf_Die *type, unsigned int *integers, unsigned int *vectors)
{
	Dwarf_Attribute attr;
	Dwarf_Word size, encoding = 0;

	if (dwarf_peel_type(type, type) != 0)
		return false;
	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_enumeration_type:
		(*integers)++;
		return true;
	case DW_TAG_base_type:
		if (dwarf_aggregate_size(type, &size) != 0 || size > 8 * ARGUMENT_WORDS)
			return false;
		if (!dwarf_attr(type, DW_AT_encoding, &attr) ||
		    dwarf_formudata(&attr, &encoding) != 0)
			return false;
		if (encoding == DW_ATE_float || encoding == DW_ATE_complex_float) {
			(*vectors)++;
			return size <= 8;
		}
		*integers += size > 8 ? 2 : 1;
		return true;
	default:
		return false;
	}
}

bool lines_arguments_in_registers(struct lines *lines, uint64_t address)
{
	struct line_unit *unit = find_unit(lines, address - lines->bias);
	Dwarf_Die *found = unit ? find_function(unit, address - lines->bias) : NULL;
	unsigned int integers = 1, vectors = 0; /* one for a result that is a structure */
	Dwarf_Die function, child, origin;
	Dwarf_Attribute attr;

	if (!found)
		return false;
	function = *found;
	/* Parameters that the compiler removed stand in the abstract function only. */
	if (dwarf_attr(&function, DW_AT_abstract_origin, &attr) &&
	    dwarf_formref_die(&attr, &origin))
		function = origin;
	if (dwarf_child(&function, &child) != 0)
		return dwarf_hasattr_integrate(&function, DW_AT_prototyped) ||
		       dwarf_hasattr_integrate(&function, DW_AT_linkage_name);
	do {
		Dwarf_Die type;

		if (dwarf_tag(&child) == DW_TAG_unspecified_parameters)
			return false;
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		if (!dwarf_attr_integrate(&child, DW_AT_type, &attr) ||
		    !dwarf_formref_die(&attr, &type) ||
		    !count_registers(&type, &integers, &vectors))
			return false;
	} while (dwarf_siblingof(&child, &child) == 0);
	return integers <= INTEGER_REGISTERS && vectors <= VECTOR_REGISTERS;
}

struct inlining {
	const char *name;
	size_t count;
	bool any;
};

static int count_instance(Dwarf_Die *instance, void *arg)
{
	struct inlining *inlining = arg;

	(void)instance;
	inlining->count++;
	return DWARF_CB_OK;
}

static int look_for_inlined(Dwarf_Die *function, void *arg)
{
	struct inlining *inlining = arg;
	const char *name = dwarf_diename(function);

	if (!name || strcmp(name, inlining->name) != 0)
		return DWARF_CB_OK;
	inlining->any = true;
	if (dwarf_func_inline(function))
		(void)dwarf_func_inline_instances(function, count_instance, inlining);
	return DWARF_CB_OK;
}

size_t lines_inlined(struct lines *lines, const char *name, bool *ret_any)
{
	struct inlining inlining = { .name = name };

	VEC_FOREACH (&lines->units, unit)
		(void)dwarf_getfuncs(&unit->tree, look_for_inlined, &inlining, 0);
	*ret_any = inlining.any;
	return inlining.count;
}
