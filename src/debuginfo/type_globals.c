/* Global variables by name: types_global() of types.h. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "debuginfo/demangle.h"
#include "debuginfo/types_inside.h"

#define FOUND_MAX 64

void type_global_deinit(struct type_global *global)
{
	type_field_deinit(&global->field);
	mem_free(global->name);
	global->name = NULL;
}

/* One variable; several declarations of the same one count once. */
struct variable {
	uint64_t address;
	bool thread_local;
	Dwarf_Die die;
	char *name;
	const char *unit;
};

struct variable_search {
	struct types *types;
	const char *wanted; /* without the file */
	const char *unit;   /* before the colon; NULL for any */
	size_t unit_len;
	VEC(struct variable) found;
	struct strv *names;
};

/* Is `unit` the end of a path, by whole parts? */
static bool unit_matches(const char *path, const char *unit, size_t len)
{
	size_t path_len = path ? strlen(path) : 0;

	return len <= path_len && memcmp(path + path_len - len, unit, len) == 0 &&
	       (path_len == len || path[path_len - len - 1] == '/');
}

/* Where it is: a fixed address, or a place of its own in every thread. */
static bool location(Dwarf_Die *die, uint64_t *ret, bool *ret_thread_local)
{
	Dwarf_Attribute attr, address;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attr) ||
	    dwarf_getlocation(&attr, &ops, &count) != 0 || count == 0)
		return false;
	*ret_thread_local = ops[count - 1].atom == DW_OP_form_tls_address ||
			    ops[count - 1].atom == DW_OP_GNU_push_tls_address;
	if (*ret_thread_local)
		return true;
	if (count != 1)
		return false;
	if (ops[0].atom == DW_OP_addr) {
		*ret = ops[0].number;
		return true;
	}
	return (ops[0].atom == DW_OP_addrx || ops[0].atom == DW_OP_GNU_addr_index) &&
	       dwarf_getlocation_attr(&attr, ops, &address) == 0 &&
	       dwarf_formaddr(&address, ret) == 0;
}

static void add_variable(struct variable_search *search, const struct declared *declared,
			 char *name)
{
	struct variable variable = { .die = *declared->die,
				     .name = name,
				     .unit = declared->unit->name };

	if (search->found.count == FOUND_MAX ||
	    !location(declared->die, &variable.address, &variable.thread_local)) {
		mem_free(name);
		return;
	}
	variable.address += search->types->bias;
	VEC_FOREACH (&search->found, known)
		if (known->thread_local == variable.thread_local &&
		    known->address == variable.address) {
			mem_free(name);
			return;
		}
	VEC_PUSH(&search->found, variable);
}

static void look_at_variable(void *ctx, const struct declared *declared)
{
	struct variable_search *search = ctx;
	char *name;

	if (dwarf_tag(declared->die) != DW_TAG_variable)
		return;
	types_note_name(search->names, dwarf_diename(declared->die));
	if (search->unit && !unit_matches(declared->unit->name, search->unit, search->unit_len))
		return;
	name = types_full_name(declared->die, declared->scope, search->wanted);
	if (name && demangled_matches(name, search->wanted))
		add_variable(search, declared, name);
	else
		mem_free(name);
}

static void search_deinit(struct variable_search *search)
{
	VEC_FREE(&search->found, variable, mem_free(variable->name));
}

static int several(const struct variable_search *search, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf list = { 0 };

	VEC_FOREACH (&search->found, variable) {
		const char *unit = variable->unit ? variable->unit : "?";
		const char *slash = strrchr(unit, '/');

		/* The file's name alone is enough, unless another one has it, too. */
		VEC_FOREACH (&search->found, other)
			if (slash && other != variable &&
			    unit_matches(other->unit, slash + 1, strlen(slash + 1)))
				slash = NULL;
		strbuf_addf(&list, "%s%s:%s", list.len > 0 ? " or " : "", slash ? slash + 1 : unit,
			    variable->name);
	}
	(void)err_set(err, -ENOTUNIQ, "'%s' is the name of %zu variables", search->wanted,
		      search->found.count);
	return err_set_remedy(err, "%s", strbuf_str(&list));
}

static int describe(struct types *types, const struct variable *variable, const char *path,
		    struct type_global *ret, struct err *err)
{
	struct type_global global = { .address = variable->address };
	Dwarf_Die type, die = variable->die;
	int r;

	if (variable->thread_local) {
		(void)err_set(err, -EOPNOTSUPP,
			      "'%s' is thread-local: it has another address in every thread",
			      variable->name);
		return -EOPNOTSUPP;
	}
	if (!types_type_of(&die, &type))
		return err_set(err, -EBADMSG, "the type of '%s' is not known", variable->name);
	r = types_field_of_die(types, &type, path, &global.field, err);
	if (r < 0)
		return r;
	global.name = mem_strdup(variable->name);
	*ret = global;
	return 0;
}

struct symbol_search {
	uint64_t address, size;
	size_t count;
	char *name;
};

static void look_at_symbols(struct types *types, const char *wanted, struct symbol_search *ret,
			    struct strv *names)
{
	uint64_t bias;
	Dwfl_Module *mod = module_dwfl(types->module, &bias);
	int count = dwfl_module_getsymtab(mod);

	for (int i = 1; i < count; i++) {
		AUTO(mem_freep) char *name = NULL;
		GElf_Addr address;
		const char *symbol;
		GElf_Word shndx;
		GElf_Sym sym;

		symbol = dwfl_module_getsym_info(mod, i, &sym, &address, &shndx, NULL, NULL);
		if (!symbol || shndx == SHN_UNDEF || GELF_ST_TYPE(sym.st_info) != STT_OBJECT)
			continue;
		name = demangle(symbol);
		types_note_name(names, name);
		if (!demangled_matches(name, wanted) ||
		    (ret->count > 0 && ret->address == address - bias))
			continue;
		if (ret->count++ > 0)
			continue;
		ret->address = address - bias;
		ret->size = sym.st_size;
		ret->name = TAKE(name);
	}
}

static int by_symbol(struct types *types, const char *wanted, const char *path, struct strv *names,
		     struct type_global *ret, struct err *err)
{
	struct symbol_search search = { 0 };

	look_at_symbols(types, wanted, &search, names);
	if (search.count == 1 && (!path || path[0] == '\0')) {
		*ret = (struct type_global){ .address = search.address,
					     .field = { .size = search.size },
					     .name = search.name,
					     .from_symbol = true };
		return 0;
	}
	mem_free(search.name);
	if (search.count > 1)
		return err_set(err, -ENOTUNIQ,
			       "'%s' is the name of %zu variables, and there is no debug "
			       "information to tell them apart",
			       wanted, search.count);
	if (search.count == 1 && types->units.count > 0)
		return err_set(err, -ENODATA, "the debug information does not describe '%s'",
			       wanted);
	if (search.count == 1)
		return types_need_dwarf(types, err);
	return types_unknown(types->path, "global variable", wanted, names, err);
}

int types_global(struct types *types, const char *name, const char *path, struct type_global *ret,
		 struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	AUTO(search_deinit)
	struct variable_search search = { .types = types, .wanted = name, .names = &names };
	const char *colon = name;

	/* "unit.c:NAME", but not "scope::NAME" */
	while ((colon = strchr(colon, ':')) != NULL && colon[1] == ':')
		colon += 2;
	if (colon && colon != name) {
		search.unit = name;
		search.unit_len = (size_t)(colon - name);
		search.wanted = colon + 1;
	}
	types_walk(types, look_at_variable, &search);
	if (search.found.count == 0)
		return by_symbol(types, search.wanted, path, &names, ret, err);
	if (search.found.count > 1)
		return several(&search, err);
	return describe(types, &search.found.items[0], path, ret, err);
}
