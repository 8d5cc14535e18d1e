#include "debuginfo/types.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include "base/command.h"
#include "debuginfo/debugfile.h"
#include "debuginfo/demangle.h"
#include "debuginfo/types_inside.h"

/* Nesting of scopes that is still followed; compilers stay far below, damaged files may not. */
#define DEPTH_MAX 64
/* Names that a mistyped one is compared with. */
#define NAMES_MAX 200000

static void add_units(struct types *types, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, sub;
	uint8_t type;

	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &sub) == 0) {
		struct types_unit unit = { .die = die, .tree = die };

		if (type == DW_UT_skeleton) {
			if (dwarf_tag(&sub) != DW_TAG_compile_unit)
				continue; /* its .dwo file is not there */
			unit.tree = sub;
		}
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			unit.name = dwarf_diename(&unit.tree);
		VEC_PUSH(&types->units, unit);
	}
}

int types_open(const char *path, struct types **ret, struct err *err)
{
	AUTO(types_closep) struct types *types = mem_alloc(sizeof(*types));
	Dwarf_Addr dwarf_bias = 0;
	struct Dwfl_Module *mod;
	uint64_t bias;
	Dwarf *dwarf;
	int r = module_open(path, NULL, &types->module, err);

	if (r < 0)
		return r;
	types->path = mem_strdup(path);
	mod = module_dwfl(types->module, &bias);
	dwarf = dwfl_module_getdwarf(mod, &dwarf_bias);
	types->bias = dwarf_bias - bias;
	if (dwarf && debugfile_strings_end(dwarf))
		add_units(types, dwarf);
	*ret = TAKE(types);
	return 0;
}

void types_close(struct types *types)
{
	if (!types)
		return;
	VEC_DEINIT(&types->units);
	module_close(types->module);
	mem_free(types->path);
	mem_free(types);
}

int types_need_dwarf(const struct types *types, struct err *err)
{
	if (types->units.count > 0)
		return 0;
	(void)err_set(err, -ENODATA, "'%s' has no debug information", types->path);
	return err_set_remedy(err, "build it with -g, or install its debug package");
}

/* GCC writes "holder<long int>" where people, and demanglers, write "holder<long>". */
static char *plain_arguments(const char *name)
{
	static const char *const words[][2] = {
		{ "long long unsigned int", "unsigned long long" },
		{ "long unsigned int", "unsigned long" },
		{ "short unsigned int", "unsigned short" },
		{ "long long int", "long long" },
		{ "long int", "long" },
		{ "short int", "short" },
	};
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	while (*name != '\0') {
		size_t len = 0;

		for (size_t i = 0; i < ARRAY_SIZE(words) && len == 0; i++)
			if (strncmp(name, words[i][0], strlen(words[i][0])) == 0) {
				strbuf_adds(&sb, words[i][1]);
				len = strlen(words[i][0]);
			}
		/* "a<b, c<d> >" and "a<b,c<d>>" */
		if (len == 0 &&
		    (*name != ' ' || (name[1] != '>' && sb.len > 0 && sb.data[sb.len - 1] != ',')))
			strbuf_addc(&sb, *name);
		name += len ? len : 1;
	}
	return strbuf_take(&sb);
}

static bool plain_name_matches(const char *scope, const char *name, const char *wanted)
{
	size_t scope_len = strlen(scope), wanted_len = strlen(wanted), name_len = strlen(name);
	const char *tail;

	if (wanted_len < name_len || strcmp(wanted + wanted_len - name_len, name) != 0)
		return false;
	if (wanted_len == name_len)
		return true;
	/* What is left of the wanted one is "…::", and the scope ends in that. */
	wanted_len -= name_len;
	if (wanted_len < 3 || memcmp(wanted + wanted_len - 2, "::", 2) != 0)
		return false;
	wanted_len -= 2;
	if (wanted_len > scope_len)
		return false;
	tail = scope + scope_len - wanted_len;
	return memcmp(tail, wanted, wanted_len) == 0 &&
	       (tail == scope || (tail - scope >= 2 && memcmp(tail - 2, "::", 2) == 0));
}

bool types_name_matches(const char *scope, const char *name, const char *wanted)
{
	AUTO(mem_freep) char *plain_scope = NULL;
	AUTO(mem_freep) char *plain_name = NULL;
	AUTO(mem_freep) char *plain_wanted = NULL;

	if (!strchr(wanted, '<'))
		return plain_name_matches(scope, name, wanted);
	plain_scope = plain_arguments(scope);
	plain_name = plain_arguments(name);
	plain_wanted = plain_arguments(wanted);
	return plain_name_matches(plain_scope, plain_name, plain_wanted);
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

/* The last part of a name without its template arguments: what a mangled name has in plain text. */
static bool may_contain(const char *linkage, const char *wanted)
{
	const char *name = wanted, *at;
	size_t len;

	if (!wanted)
		return true;
	for (at = wanted; (at = strstr(at, "::")) != NULL; at += 2)
		if (!strchr(wanted, '<') || at < strchr(wanted, '<'))
			name = at + 2;
	len = strcspn(name, "<( ");
	/* Operators are abbreviated. */
	if (len == 0 || strncmp(name, "operator", 8) == 0 || name[0] == '~')
		return true;
	return memmem(linkage, strlen(linkage), name, len) != NULL;
}

/* A definition may stand outside of its scope and point to its declaration inside. */
static char *declared_name(Dwarf_Die *die)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	Dwarf_Die declaration, *scopes = NULL;
	Dwarf_Attribute attr;
	int count;

	if (!dwarf_attr(die, DW_AT_specification, &attr) || !dwarf_formref_die(&attr, &declaration))
		return NULL;
	count = dwarf_getscopes_die(&declaration, &scopes);
	for (int i = count - 1; i >= 0; i--) {
		const char *name = dwarf_diename(&scopes[i]);

		if (name && dwarf_tag(&scopes[i]) != DW_TAG_compile_unit &&
		    dwarf_tag(&scopes[i]) != DW_TAG_partial_unit)
			strbuf_addf(&sb, "%s%s", sb.len > 0 ? "::" : "", name);
	}
	free(scopes);
	return sb.len > 0 ? strbuf_take(&sb) : NULL;
}

char *types_full_name(Dwarf_Die *die, const char *scope, const char *wanted)
{
	const char *linkage = linkage_name(die), *name = dwarf_diename(die);
	char *declared;

	if (linkage && (strncmp(linkage, "_Z", 2) == 0 || strncmp(linkage, "_R", 2) == 0))
		return may_contain(linkage, wanted) ? demangle(linkage) : NULL;
	if (!name)
		return NULL;
	declared =
		scope[0] == '\0' && (!wanted || strstr(wanted, name)) ? declared_name(die) : NULL;
	if (declared)
		return declared;
	return scope[0] != '\0' ? mem_printf("%s::%s", scope, name) : mem_strdup(name);
}

void types_note_name(struct strv *names, const char *name)
{
	if (name && name[0] != '\0' && names->count < NAMES_MAX)
		strv_add(names, name);
}

int types_unknown(const char *where, const char *kind, const char *typed, const struct strv *names,
		  struct err *err)
{
	const char *near = nearest_name(typed, (const char *const *)names->items, names->count);

	(void)err_set(err, -ENOENT, "there is no %s '%s' in '%s'", kind, typed, where);
	if (near && strcmp(near, typed) != 0)
		(void)err_set_remedy(err, "'%s', which is there", near);
	return -ENOENT;
}

struct types_walk_state {
	declared_fn *fn;
	void *ctx;
	const struct types_unit *unit;
	struct strbuf scope;
};

static void walk_children(struct types_walk_state *walk, Dwarf_Die *parent, unsigned int depth);

static void walk_into(struct types_walk_state *walk, Dwarf_Die *die, unsigned int depth)
{
	const char *name = dwarf_diename(die);
	size_t len = walk->scope.len;

	/* Names in an unnamed struct or union are those of what it is a part of. */
	if (name || dwarf_tag(die) == DW_TAG_namespace)
		strbuf_addf(&walk->scope, "%s%s", len > 0 ? "::" : "",
			    name ? name : "(anonymous namespace)");
	walk_children(walk, die, depth + 1);
	walk->scope.len = len;
	if (walk->scope.data)
		walk->scope.data[len] = '\0';
}

static void walk_children(struct types_walk_state *walk, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		walk->fn(walk->ctx, &(struct declared){ .die = &die,
							.scope = strbuf_str(&walk->scope),
							.unit = walk->unit });
		switch (dwarf_tag(&die)) {
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			walk_into(walk, &die, depth);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

void types_walk(struct types *types, declared_fn *fn, void *ctx)
{
	struct types_walk_state walk = { .fn = fn, .ctx = ctx };

	VEC_FOREACH (&types->units, unit) {
		walk.unit = unit;
		walk_children(&walk, &unit->tree, 0);
	}
	strbuf_deinit(&walk.scope);
}
