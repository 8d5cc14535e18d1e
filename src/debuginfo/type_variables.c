/* Where variables lie and how large they are: types_variables() of types.h. */
#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "debuginfo/types_inside.h"
#include "wire/ids.h"

#define DEPTH_MAX 32
#define VARIABLES_MAX 20000u
#define HEAD 16 /* of a frame that is counted from rbp: psABI, the stack frame */
#define RBP 6

struct variable_walk {
	struct types *types;
	struct type_variables *ret;
};

void type_variables_deinit(struct type_variables *variables)
{
	VEC_FREE(&variables->list, variable, mem_free(variable->name));
}

/* Sections that a program lays out itself are walked from one variable to the next on purpose. */
static bool in_plain_data(struct types *types, uint64_t address)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module_dwfl(types->module, &(uint64_t){ 0 }), &bias);
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    header.sh_flags & SHF_TLS || address < header.sh_addr ||
		    address - header.sh_addr >= header.sh_size)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		return name && (strcmp(name, ".data") == 0 || strcmp(name, ".bss") == 0);
	}
	return false;
}

/* What is added to an offset of the function's variables to count from the end of its frame. */
static bool frame_base(Dwarf_Die *function, int64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr(function, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation(&attr, &ops, &count) != 0 || count != 1)
		return false;
	*ret = ops[0].atom == DW_OP_call_frame_cfa ? 0 : -HEAD;
	return *ret == 0 || ops[0].atom == DW_OP_reg0 + RBP ||
	       (ops[0].atom == DW_OP_breg0 + RBP && ops[0].number == 0);
}

/* One that is in one place all the time. */
static bool location(struct variable_walk *walk, Dwarf_Die *die, Dwarf_Die *function,
		     struct type_variable *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Addr low;
	Dwarf_Op *ops;
	int64_t base;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attr) || dwarf_whatform(&attr) != DW_FORM_exprloc ||
	    dwarf_getlocation(&attr, &ops, &count) != 0 || count != 1)
		return false;
	if (ops[0].atom == DW_OP_addr) {
		ret->at = (int64_t)(ops[0].number + walk->types->bias);
		return in_plain_data(walk->types, (uint64_t)ret->at);
	}
	if (ops[0].atom != DW_OP_fbreg || !function || !frame_base(function, &base) ||
	    dwarf_entrypc(function, &low) != 0)
		return false;
	ret->function = low + walk->types->bias;
	ret->at = (int64_t)ops[0].number + base;
	return true;
}

static void add_variable(struct variable_walk *walk, Dwarf_Die *die, Dwarf_Die *function)
{
	struct type_variable variable = { 0 };
	const char *name = dwarf_diename(die);
	Dwarf_Die type;

	if (!name || walk->ret->list.count == VARIABLES_MAX || !types_type_of(die, &type) ||
	    dwarf_aggregate_size(&type, &variable.size) != 0 || variable.size == 0 ||
	    !location(walk, die, function, &variable))
		return;
	variable.name = mem_strdup(name);
	variable.parts =
		types_peel(walk->types, &type, &type) &&
		(dwarf_tag(&type) == DW_TAG_array_type || types_aggregate(dwarf_tag(&type)));
	VEC_PUSH(&walk->ret->list, variable);
}

static void walk_die(struct variable_walk *walk, Dwarf_Die *parent, Dwarf_Die *function,
		     unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_variable:
		case DW_TAG_formal_parameter:
			add_variable(walk, &die, function);
			break;
		case DW_TAG_subprogram:
			walk_die(walk, &die, &die, depth + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_namespace:
			walk_die(walk, &die, function, depth + 1);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int by_place(const void *a, const void *b)
{
	const struct type_variable *x = a, *y = b;

	return ORDER(x->function, y->function) ?: ORDER(x->at, y->at);
}

/* What keeps a frame together lies behind all of its variables. */
static void add_heads(struct type_variables *variables)
{
	size_t count = variables->list.count;

	for (size_t i = 0; i < count; i++) {
		const struct type_variable *v = &variables->list.items[i];
		bool last = i + 1 == count || v[1].function != v->function;
		struct type_variable head = { .function = v->function, .at = -HEAD, .size = HEAD };

		if (v->function == 0 || !last || v->at + (int64_t)v->size > -HEAD)
			continue;
		head.name = mem_strdup("");
		VEC_PUSH(&variables->list, head);
	}
}

void types_variables(struct types *types, struct type_variables *ret)
{
	struct variable_walk walk = { .types = types, .ret = ret };
	const uint8_t *id;
	size_t len = module_build_id(types->module, &id);

	ret->identity = wire_module_identity(id, len, types->path);
	VEC_FOREACH (&types->units, unit)
		walk_die(&walk, &unit->tree, NULL, 0);
	VEC_SORT(&ret->list, by_place);
	add_heads(ret);
	VEC_SORT(&ret->list, by_place);
}
