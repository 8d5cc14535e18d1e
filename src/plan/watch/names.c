#include "plan/watch/names.h"

#include <errno.h>
#include <string.h>

#include "debuginfo/demangle.h"
#include "debuginfo/module.h"
#include "plan/hooks/libraries.h"

/* One file of the program. */
struct named_place {
	char *path;
	struct types *types; /* NULL until asked for */
	bool broken;	     /* cannot be opened */
	bool another;	     /* a program that the command starts */
	uint64_t identity;   /* 0 until asked for */
};

struct names {
	VEC(struct named_place) files; /* the program first */
};

int names_new(const struct libraries_request *request, struct names **ret, struct err *err)
{
	AUTO(libraries_deinit) struct libraries libraries = { 0 };
	int r = libraries_find(request, &libraries, err);
	struct names *names;

	if (r < 0)
		return r;
	names = mem_alloc(sizeof(*names));
	VEC_FOREACH (&libraries.files.list, file)
		VEC_PUSH(&names->files,
			 ((struct named_place){ .path = mem_strdup(file->path),
						.another = file->program && file->late }));
	*ret = names;
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	VEC_FOREACH (&names->files, file) {
		types_close(file->types);
		mem_free(file->path);
	}
	VEC_DEINIT(&names->files);
	mem_free(names);
}

static uint64_t identity(struct named_place *file)
{
	AUTO(module_closep) struct module *module = NULL;
	const uint8_t *id = NULL;
	size_t len = 0;

	if (file->identity != 0)
		return file->identity;
	if (module_open(file->path, NULL, &module, NULL) == 0)
		len = module_build_id(module, &id);
	file->identity = wire_module_identity(id, len, file->path);
	return file->identity;
}

/* What is asked of each file in turn, until one knows. */
struct question {
	int (*ask)(struct question *question, struct named_place *file, struct err *err);
	const char *name, *path;
	int argument;
	uint32_t line;
	struct ranges *ranges;
	struct type_field *field;
	struct type_global *global;
};

static bool file_open(struct named_place *file)
{
	if (!file->types && !file->broken && types_open(file->path, &file->types, NULL) < 0)
		file->broken = true;
	return !file->broken;
}

/* Tests of one project have much in common: what one of the programs that the command starts has,
 * is looked for in all of them. */
static void ask_others(struct names *names, const struct named_place *who,
		       const struct question *question)
{
	/* The caller's own answer stays the first one's: the others only add to the ranges. */
	struct type_global global = { 0 };
	struct question again = *question;

	if (!question->ranges || !who->another)
		return;
	if (question->global)
		again.global = &global;
	for (struct named_place *file = names->files.items;
	     file < names->files.items + names->files.count; file++)
		if (file > who && file->another && file_open(file)) {
			(void)again.ask(&again, file, NULL);
			type_global_deinit(&global);
			global = (struct type_global){ 0 };
		}
}

/* The program's own answer counts when nobody knows: its suggestions are the likeliest. One that
 * means several things is an answer. */
static int ask_all(struct names *names, const struct question *asked, struct err *err)
{
	AUTO(mem_freep) char *demangled = demangle(asked->name);
	struct question question = *asked;
	struct err first = { 0 };
	int r = -ENOENT;

	question.name = demangled;
	VEC_FOREACH (&names->files, file) {
		struct err here = { 0 };

		if (!file_open(file))
			continue;
		r = question.ask(&question, file, &here);
		if (r == 0) {
			ask_others(names, file, &question);
			return 0;
		}
		/* A near name is worth more than none. */
		if (first.message[0] == '\0' || (r != -ENOENT && r != -ENODATA) ||
		    (first.remedy[0] == '\0' && r == -ENOENT && here.remedy[0] != '\0'))
			first = here;
		if (r != -ENOENT && r != -ENODATA)
			break;
	}
	if (first.message[0] == '\0')
		return err_set(err, -ENOENT, "nothing is called '%s'", question.name);
	*err = first;
	return first.code < 0 ? first.code : -ENOENT;
}

static void add_pieces(struct named_place *file, const struct code_pieces *pieces,
		       struct ranges *ret)
{
	VEC_FOREACH (&pieces->list, piece)
		if (ret->list.count < PLAN_RANGES_MAX)
			VEC_PUSH(&ret->list,
				 ((struct plan_range){ .identity = identity(file),
						       .address = piece->low,
						       .bytes = piece->high - piece->low }));
}

static int ask_function(struct question *question, struct named_place *file, struct err *err)
{
	AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
	int r = types_function(file->types, question->name, &pieces, err);

	if (r == 0)
		add_pieces(file, &pieces, question->ranges);
	return r;
}

int names_function(struct names *names, const char *function, struct ranges *ret, struct err *err)
{
	struct question question = { .ask = ask_function, .name = function, .ranges = ret };

	return ask_all(names, &question, err);
}

static int ask_line(struct question *question, struct named_place *file, struct err *err)
{
	AUTO(code_pieces_deinit) struct code_pieces pieces = { 0 };
	int r = types_line(file->types, question->name, question->line, &pieces, err);

	if (r == 0)
		add_pieces(file, &pieces, question->ranges);
	return r;
}

int names_line(struct names *names, const char *file, uint32_t line, struct ranges *ret,
	       struct err *err)
{
	struct question question = { .ask = ask_line, .name = file, .line = line, .ranges = ret };

	return ask_all(names, &question, err);
}

static bool is_called(const char *path, const char *file)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(file);

	return strcmp(path, file) == 0 ||
	       (strncmp(base, file, len) == 0 && (base[len] == '\0' || base[len] == '.'));
}

bool names_module(struct names *names, const char *file, struct ranges *ret)
{
	VEC_FOREACH (&names->files, named) {
		if (!is_called(named->path, file))
			continue;
		VEC_PUSH(&ret->list,
			 ((struct plan_range){ .identity = identity(named), .bytes = UINT32_MAX }));
		return true;
	}
	return false;
}

/* A type without that field is an answer: others of the same name are not meant. */
static int ask_field(struct question *question, struct named_place *file, struct err *err)
{
	int r = types_field(file->types, question->name, question->path, question->field, err);
	struct type_field whole = { 0 };

	if (r != -ENOENT || types_field(file->types, question->name, "", &whole, NULL) < 0)
		return r;
	type_field_deinit(&whole);
	return -EINVAL;
}

int names_field(struct names *names, const char *type, const char *path, struct type_field *ret,
		struct err *err)
{
	struct question question = { .ask = ask_field, .name = type, .path = path, .field = ret };

	return ask_all(names, &question, err);
}

static int ask_function_field(struct question *question, struct named_place *file, struct err *err)
{
	int r = types_field_of_function(file->types, question->name, question->argument,
					question->path, question->field, err);
	struct type_field whole = { 0 };

	/* A function whose object has no such field is an answer, too. */
	if (r != -ENOENT || types_field_of_function(file->types, question->name, question->argument,
						    "", &whole, NULL) < 0)
		return r;
	type_field_deinit(&whole);
	return -EINVAL;
}

int names_field_of_function(struct names *names, const char *function, int argument,
			    const char *path, struct type_field *ret, struct err *err)
{
	struct question question = { .ask = ask_function_field,
				     .name = function,
				     .argument = argument,
				     .path = path,
				     .field = ret };

	return ask_all(names, &question, err);
}

static int ask_global(struct question *question, struct named_place *file, struct err *err)
{
	int r = types_global(file->types, question->name, question->path, question->global, err);

	if (r == 0 && question->ranges->list.count < PLAN_RANGES_MAX)
		VEC_PUSH(&question->ranges->list,
			 ((struct plan_range){ .identity = identity(file),
					       .address = question->global->address,
					       .bytes = question->global->field.size }));
	return r;
}

int names_global(struct names *names, const char *name, const char *path, struct type_global *ret,
		 struct ranges *ret_ranges, struct err *err)
{
	struct question question = {
		.ask = ask_global, .name = name, .path = path, .global = ret, .ranges = ret_ranges
	};

	return ask_all(names, &question, err);
}

unsigned int names_python_version(struct names *names)
{
	VEC_FOREACH (&names->files, file) {
		AUTO(module_closep) struct module *module = NULL;
		uint64_t at, version;

		if (module_open(file->path, NULL, &module, NULL) == 0 &&
		    module_symbol(module, "Py_Version", &at) &&
		    module_read(module, at, &version, sizeof(version)))
			return (unsigned int)(version >> 16 & 0xffff);
	}
	return 0;
}
