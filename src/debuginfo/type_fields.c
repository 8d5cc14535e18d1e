/* Where a field is in its type: types_field() and types_field_of_function() of types.h. */
#include <ctype.h>
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo/demangle.h"
#include "debuginfo/types_inside.h"

#define DEPTH_MAX 32
#define CANDIDATES_MAX 4096

void type_field_deinit(struct type_field *field)
{
	mem_free(field->type);
	field->type = NULL;
}

static bool die_number(Dwarf_Die *die, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, name, &attr) || dwarf_formudata(&attr, &value) != 0)
		return false;
	*ret = value;
	return true;
}

bool types_type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, ret);
}

/* With -fdebug-types-section the definition is in a unit of its own, and a stub leads there. */
static void follow_signature(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die definition;

	if (dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &definition))
		*die = definition;
}

/* ---- types as text ---- */

static const char *tag_word(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return "struct ";
	case DW_TAG_union_type:
		return "union ";
	case DW_TAG_enumeration_type:
		return "enum ";
	default:
		return "";
	}
}

static void add_ending(int tag, struct strbuf *sb)
{
	if (tag == DW_TAG_pointer_type)
		strbuf_adds(sb, sb->len > 0 && sb->data[sb->len - 1] == '*' ? "*" : " *");
	else if (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type)
		strbuf_adds(sb, " &");
	else if (tag == DW_TAG_array_type)
		strbuf_adds(sb, "[]");
}

static void add_text(Dwarf_Die *die, unsigned int depth, struct strbuf *sb)
{
	Dwarf_Die type = *die, inner;
	bool known = depth < DEPTH_MAX && types_type_of(die, &inner);
	int tag = dwarf_tag(die);
	const char *name;

	follow_signature(&type);
	name = dwarf_diename(&type);
	if (name) {
		strbuf_adds(sb, tag_word(tag));
		strbuf_add_printable(sb, name, strlen(name));
		return;
	}
	switch (tag) {
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
		strbuf_adds(sb, tag == DW_TAG_const_type ? "const " : "volatile ");
		break;
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_class_type:
		strbuf_addf(sb, "%s{…}", tag_word(tag));
		return;
	case DW_TAG_subroutine_type:
		strbuf_adds(sb, "function");
		return;
	default:
		break;
	}
	if (known)
		add_text(&inner, depth + 1, sb);
	else
		strbuf_adds(sb, "void");
	add_ending(tag, sb);
}

void types_add_text(Dwarf_Die *type, struct strbuf *sb)
{
	add_text(type, 0, sb);
}

/* ---- definitions ---- */

struct definition {
	Dwarf_Die die;
	const struct types_unit *unit;
};

struct definition_search {
	const char *wanted; /* without "struct " */
	bool tagged;	    /* no typedefs */
	size_t count;
	struct definition *found;
	struct strv *names; /* all there are, when they are needed */
};

static void look_at_type(void *ctx, const struct declared *declared)
{
	struct definition_search *search = ctx;
	int tag = dwarf_tag(declared->die);
	const char *name;

	if (!types_aggregate(tag) && (search->tagged || tag != DW_TAG_typedef))
		return;
	name = dwarf_diename(declared->die);
	if (!name || types_flagged(declared->die, DW_AT_declaration))
		return;
	if (search->names)
		types_note_name(search->names, name);
	if (!types_name_matches(declared->scope, name, search->wanted) ||
	    search->count == CANDIDATES_MAX)
		return;
	search->found = mem_resize(search->found, search->count + 1, sizeof(search->found[0]));
	search->found[search->count].die = *declared->die;
	search->found[search->count++].unit = declared->unit;
}

static void find_definitions(struct types *types, const char *wanted, struct strv *names,
			     struct definition_search *ret)
{
	static const char *const words[] = { "struct ", "union ", "class " };

	*ret = (struct definition_search){ .wanted = wanted, .names = names };
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(wanted, words[i], strlen(words[i])) == 0) {
			ret->wanted = wanted + strlen(words[i]);
			ret->tagged = true;
		}
	types_walk(types, look_at_type, ret);
}

/* From a declaration to a definition of that name in any unit. */
static bool complete(struct types *types, Dwarf_Die *die)
{
	struct definition_search search;
	const char *name;
	bool found;

	follow_signature(die);
	name = dwarf_diename(die);
	if (!types_aggregate(dwarf_tag(die)) || !types_flagged(die, DW_AT_declaration))
		return true;
	if (!name)
		return false;
	search = (struct definition_search){ .wanted = name, .tagged = true };
	types_walk(types, look_at_type, &search);
	found = search.count > 0;
	if (found)
		*die = search.found[0].die;
	mem_free(search.found);
	return found;
}

bool types_peel(struct types *types, Dwarf_Die *type, Dwarf_Die *ret)
{
	Dwarf_Die peeled;

	if (dwarf_peel_type(type, &peeled) != 0 || !complete(types, &peeled))
		return false;
	*ret = peeled;
	return true;
}

/* ---- members ---- */

/* Where we are in an object, and what is there. */
struct path_cursor {
	struct types *types;
	Dwarf_Die type;		 /* peeled */
	unsigned int dimensions; /* of an array, those that have an index already */
	uint64_t bits;		 /* from the start of the object */
	uint64_t bit_size;	 /* of a bit-field; else 0 */
};

/* DW_AT_data_member_location as a number of bytes; DWARF 2 and 3 have an expression. */
static bool member_location(Dwarf_Die *member, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;

	*ret = 0;
	if (!dwarf_attr_integrate(member, DW_AT_data_member_location, &attr))
		return true; /* of a union */
	if (dwarf_formudata(&attr, ret) == 0)
		return true;
	if (dwarf_getlocation(&attr, &ops, &count) != 0 || count != 1 ||
	    ops[0].atom != DW_OP_plus_uconst)
		return false; /* a virtual base is somewhere else in every class */
	*ret = ops[0].number;
	return true;
}

/* In bits; and how many a bit-field has. DWARF 3 counted from the highest bit of the storage. */
bool types_member_bits(Dwarf_Die *member, uint64_t *ret, uint64_t *ret_size)
{
	uint64_t location, offset, storage;
	Dwarf_Die type;

	*ret_size = 0;
	if (!member_location(member, &location))
		return false;
	*ret = location * 8;
	if (!die_number(member, DW_AT_bit_size, ret_size))
		return true;
	if (die_number(member, DW_AT_data_bit_offset, &offset)) {
		*ret = offset;
	} else if (die_number(member, DW_AT_bit_offset, &offset)) {
		if (!die_number(member, DW_AT_byte_size, &storage) &&
		    (!types_type_of(member, &type) || dwarf_aggregate_size(&type, &storage) != 0))
			return false;
		*ret = location * 8 + storage * 8 - offset - *ret_size;
	}
	return true;
}

/* Looks in the type, its unnamed members and its bases. */
static bool find_member(struct path_cursor *cursor, Dwarf_Die *type, const char *name, size_t len,
			unsigned int depth, struct strv *names, Dwarf_Die *ret, uint64_t *ret_bits,
			uint64_t *ret_size)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(type, &die) != 0)
		return false;
	do {
		const char *own = dwarf_diename(&die);
		uint64_t bits, size;
		Dwarf_Die inner;

		if ((dwarf_tag(&die) != DW_TAG_member && dwarf_tag(&die) != DW_TAG_inheritance) ||
		    types_flagged(&die, DW_AT_external) || !types_member_bits(&die, &bits, &size))
			continue;
		if (own && dwarf_tag(&die) == DW_TAG_member) {
			types_note_name(names, own);
			if (strlen(own) != len || memcmp(own, name, len) != 0)
				continue;
			*ret = die;
			*ret_bits = bits;
			*ret_size = size;
			return true;
		}
		if (types_type_of(&die, &inner) && types_peel(cursor->types, &inner, &inner) &&
		    find_member(cursor, &inner, name, len, depth + 1, names, ret, ret_bits,
				ret_size)) {
			*ret_bits += bits;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

static int no_field(struct path_cursor *cursor, const char *name, size_t len,
		    const struct strv *names, struct err *err)
{
	AUTO(mem_freep) char *field = mem_strndup(name, len);
	AUTO(strbuf_deinit) struct strbuf text = { 0 };

	types_add_text(&cursor->type, &text);
	return types_unknown(strbuf_str(&text), "field", field, names, err);
}

static int step_member(struct path_cursor *cursor, const char *name, size_t len, struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	uint64_t bits, size;
	Dwarf_Die member, type;

	if (!types_aggregate(dwarf_tag(&cursor->type))) {
		AUTO(strbuf_deinit) struct strbuf text = { 0 };

		types_add_text(&cursor->type, &text);
		(void)err_set(err, -EINVAL, "'%.*s': %s has no fields", (int)len, name,
			      strbuf_str(&text));
		if (dwarf_tag(&cursor->type) == DW_TAG_pointer_type)
			(void)err_set_remedy(err, "what it points to, which is another object");
		return -EINVAL;
	}
	if (!find_member(cursor, &cursor->type, name, len, 0, &names, &member, &bits, &size))
		return no_field(cursor, name, len, &names, err);
	if (!types_type_of(&member, &type) || !types_peel(cursor->types, &type, &cursor->type))
		return err_set(err, -EBADMSG, "the type of '%.*s' is not known", (int)len, name);
	cursor->bits += bits;
	cursor->bit_size = size;
	cursor->dimensions = 0;
	return 0;
}

/* How many elements dimension `n` has; 0 when that is not told. False when there is none. */
static bool dimension(Dwarf_Die *array, unsigned int n, uint64_t *ret)
{
	uint64_t upper;
	Dwarf_Die die;

	if (dwarf_child(array, &die) != 0)
		return false;
	do {
		if (dwarf_tag(&die) != DW_TAG_subrange_type || n-- > 0)
			continue;
		*ret = 0;
		if (!die_number(&die, DW_AT_count, ret) &&
		    die_number(&die, DW_AT_upper_bound, &upper) && upper < UINT64_MAX)
			*ret = upper + 1;
		return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* The bytes of one element behind `used` indices. */
static bool element_size(Dwarf_Die *array, unsigned int used, uint64_t *ret)
{
	uint64_t size, count;
	Dwarf_Die type;

	if (!types_type_of(array, &type) || dwarf_aggregate_size(&type, &size) != 0)
		return false;
	for (unsigned int n = used; dimension(array, n, &count); n++)
		if (__builtin_mul_overflow(size, count, &size))
			return false;
	*ret = size;
	return true;
}

static int step_index(struct path_cursor *cursor, uint64_t index, struct err *err)
{
	uint64_t count, size, bits, more;
	Dwarf_Die type;

	if (dwarf_tag(&cursor->type) != DW_TAG_array_type ||
	    !dimension(&cursor->type, cursor->dimensions, &count))
		return err_set(err, -EINVAL, "[%llu]: that is no array", (unsigned long long)index);
	if (count > 0 && index >= count)
		return err_set(err, -ERANGE, "[%llu]: the array has %llu elements",
			       (unsigned long long)index, (unsigned long long)count);
	if (!element_size(&cursor->type, cursor->dimensions + 1, &size) ||
	    __builtin_mul_overflow(size * 8, index, &bits) || bits > (UINT64_C(1) << 40))
		return err_set(err, -ERANGE, "[%llu]: how large an element is is not known",
			       (unsigned long long)index);
	cursor->bits += bits;
	cursor->dimensions++;
	if (dimension(&cursor->type, cursor->dimensions, &more))
		return 0;
	if (!types_type_of(&cursor->type, &type) ||
	    !types_peel(cursor->types, &type, &cursor->type))
		return err_set(err, -EBADMSG, "the type of the elements is not known");
	cursor->dimensions = 0;
	return 0;
}

static int walk_path(struct path_cursor *cursor, const char *path, struct err *err)
{
	const char *at = path;
	int r = 0;

	while (r == 0 && *at != '\0') {
		if (*at == '[') {
			char *end;
			unsigned long long index = strtoull(at + 1, &end, 0);

			if (!isdigit((unsigned char)at[1]) || *end != ']')
				return err_set(err, -EINVAL, "'%s' is no index", at);
			r = step_index(cursor, index, err);
			at = end + 1;
		} else {
			size_t len;

			at += *at == '.' && at != path;
			len = strcspn(at, ".[");
			if (len == 0)
				return err_set(err, -EINVAL, "'%s' is no field", path);
			if (strncmp(at, "->", 2) == 0 || memmem(at, len, "->", 2))
				return err_set(err, -EINVAL,
					       "'%s': what a pointer leads to is another object",
					       path);
			r = step_member(cursor, at, len, err);
			at += len;
		}
	}
	return r;
}

int types_field_of_die(struct types *types, Dwarf_Die *type, const char *path,
		       struct type_field *ret, struct err *err)
{
	struct path_cursor cursor = { .types = types };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	struct type_field field = { 0 };
	Dwarf_Word size;
	int r;

	if (!types_peel(types, type, &cursor.type))
		return err_set(err, -ENODATA, "its type is nowhere defined in '%s'", types->path);
	r = walk_path(&cursor, path ? path : "", err);
	if (r < 0)
		return r;
	field.offset = cursor.bits / 8;
	if (cursor.bit_size > 0) {
		field.bit_offset = (unsigned int)(cursor.bits % 8);
		field.bit_size = (unsigned int)cursor.bit_size;
		size = (field.bit_offset + cursor.bit_size + 7) / 8;
	} else if (cursor.dimensions > 0) {
		if (!element_size(&cursor.type, cursor.dimensions, &size))
			size = 0;
	} else if (dwarf_aggregate_size(&cursor.type, &size) != 0) {
		size = 0; /* a flexible array member */
	}
	field.size = size;
	types_add_text(&cursor.type, &text);
	field.type = strbuf_take(&text);
	*ret = field;
	return 0;
}

/* ---- by the name of the type ---- */

static bool same_place(const struct type_field *a, const struct type_field *b)
{
	return a->offset == b->offset && a->size == b->size && a->bit_offset == b->bit_offset &&
	       a->bit_size == b->bit_size;
}

/* Parts that units share have no name, but what is in them has a place. */
static const char *unit_name(struct definition *definition)
{
	const char *name = definition->unit->name;

	if (!name)
		name = dwarf_decl_file(&definition->die);
	return name ? name : "(a part that units share)";
}

static int differ(const char *type, const char *path, struct definition *a,
		  const struct type_field *x, struct definition *b, const struct type_field *y,
		  struct err *err)
{
	return err_set(err, -ENOTUNIQ,
		       "'%s' means different types: %s is at offset %llu (%llu bytes) in %s, at "
		       "%llu (%llu bytes) in %s",
		       type, path && path[0] != '\0' ? path : "it", (unsigned long long)x->offset,
		       (unsigned long long)x->size, unit_name(a), (unsigned long long)y->offset,
		       (unsigned long long)y->size, unit_name(b));
}

int types_field(struct types *types, const char *type, const char *path, struct type_field *ret,
		struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	AUTO(type_field_deinit) struct type_field first = { 0 };
	struct definition *first_definition = NULL;
	struct definition_search search;
	struct err trouble = { 0 };
	int r = types_need_dwarf(types, err);

	if (r < 0)
		return r;
	find_definitions(types, type, &names, &search);
	if (search.count == 0)
		r = types_unknown(types->path, "type", type, &names, err);
	for (size_t i = 0; i < search.count && r == 0; i++) {
		AUTO(type_field_deinit) struct type_field field = { 0 };

		/* Another type of that name, perhaps, which has no such field. */
		if (types_field_of_die(types, &search.found[i].die, path, &field,
				       trouble.code < 0 ? NULL : &trouble) < 0)
			continue;
		if (!first_definition) {
			first = field;
			field.type = NULL;
			first_definition = &search.found[i];
		} else if (!same_place(&first, &field)) {
			r = differ(type, path, first_definition, &first, &search.found[i], &field,
				   err);
		}
	}
	mem_free(search.found);
	if (r == 0 && !first_definition) {
		if (err)
			*err = trouble;
		r = trouble.code;
	}
	if (r < 0)
		return r;
	*ret = first;
	first.type = NULL;
	return 0;
}

/* ---- by a function's result or argument ---- */

struct signature_search {
	struct types *types;
	const char *wanted;
	int argument;
	bool function_found;
	bool found;
	Dwarf_Die type; /* of the result or argument */
	unsigned int arguments;
	struct strv *names;
};

static bool argument_type(Dwarf_Die *function, int argument, unsigned int *ret_count,
			  Dwarf_Die *ret)
{
	Dwarf_Die die;
	bool found = false;

	*ret_count = 0;
	if (dwarf_child(function, &die) != 0)
		return false;
	do {
		if (dwarf_tag(&die) == DW_TAG_formal_parameter && (int)(*ret_count)++ == argument)
			found = types_type_of(&die, ret);
	} while (dwarf_siblingof(&die, &die) == 0);
	return found;
}

static void look_at_signature(void *ctx, const struct declared *declared)
{
	struct signature_search *search = ctx;
	AUTO(mem_freep) char *name = NULL;

	if (search->found || dwarf_tag(declared->die) != DW_TAG_subprogram)
		return;
	types_note_name(search->names, dwarf_diename(declared->die));
	name = types_full_name(declared->die, declared->scope, search->wanted);
	if (!name || !demangled_matches(name, search->wanted))
		return;
	search->function_found = true;
	search->found = search->argument == TYPES_RETURN
				? types_type_of(declared->die, &search->type)
				: argument_type(declared->die, search->argument, &search->arguments,
						&search->type);
}

static int no_signature(const struct signature_search *search, struct err *err)
{
	const struct types *types = search->types;

	if (!search->function_found)
		return types_unknown(types->path, "function", search->wanted, search->names, err);
	if (search->argument == TYPES_RETURN)
		return err_set(err, -EINVAL, "'%s' returns nothing", search->wanted);
	return err_set(err, -EINVAL, "'%s' has %u argument%s, counted from 0: there is no %d",
		       search->wanted, search->arguments, search->arguments == 1 ? "" : "s",
		       search->argument);
}

static int object_of_function(struct types *types, const char *function, int argument,
			      Dwarf_Die *ret, struct err *err)
{
	AUTO(strv_deinit) struct strv names = { 0 };
	struct signature_search search = {
		.types = types, .wanted = function, .argument = argument, .names = &names
	};
	int tag, r = types_need_dwarf(types, err);

	if (r < 0)
		return r;
	types_walk(types, look_at_signature, &search);
	if (!search.found)
		return no_signature(&search, err);
	if (!types_peel(types, &search.type, &search.type))
		return err_set(err, -EBADMSG, "the type that '%s' has there is not known",
			       function);
	tag = dwarf_tag(&search.type);
	if ((tag != DW_TAG_pointer_type && tag != DW_TAG_reference_type &&
	     tag != DW_TAG_rvalue_reference_type) ||
	    !types_type_of(&search.type, ret)) {
		AUTO(strbuf_deinit) struct strbuf text = { 0 };

		types_add_text(&search.type, &text);
		(void)err_set(err, -EINVAL, "what '%s' %s is %s, no pointer to an object", function,
			      argument == TYPES_RETURN ? "returns" : "takes there",
			      strbuf_str(&text));
		return err_set_remedy(err, "give the place as +OFFSET:LEN");
	}
	return 0;
}

int types_field_of_function(struct types *types, const char *function, int argument,
			    const char *path, struct type_field *ret, struct err *err)
{
	Dwarf_Die object;
	int r = object_of_function(types, function, argument, &object, err);

	return r < 0 ? r : types_field_of_die(types, &object, path, ret, err);
}
