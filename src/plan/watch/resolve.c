#include "plan/watch/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cstr.h"
#include "plan/hooks/planner.h"
#include "plan/watch/condition.h"
#include "plan/watch/names.h"
#include "plan/watch/spec.h"

#define WATCHED_DEFAULT 8u

/* All watches while they are being planned; what they look names up in is opened when needed. */
struct planning {
	const struct resolve_request *request;
	struct names *names;
	struct hook_planner *hooks;
	struct strbuf *items;
	struct watch_report *report; /* what is told about them */
	struct err *err;
	bool missing; /* what went wrong is that a name is not known */
};

/* One of them. */
struct resolving {
	struct planning *all;
	const char *text;
	uint32_t number;
	struct spec spec;
	struct plan_watch watch;
	struct ranges ranges;
	uint64_t field_bytes; /* of the field that was named; 0: none */
	struct said what;     /* it is, for the report */
};

static void resolve_deinit(struct resolving *one)
{
	spec_deinit(&one->spec);
	VEC_DEINIT(&one->ranges.list);
	said_deinit(&one->what);
}

static int names_open(struct planning *all)
{
	const struct resolve_request *request = all->request;

	return all->names ? 0 : names_new(&request->files, &all->names, all->err);
}

static int hooks_open(struct planning *all)
{
	const struct resolve_request *request = all->request;

	return all->hooks ? 0 : hook_planner_new(&request->files, &all->hooks, all->err);
}

static bool is_missing(int code)
{
	return code == -ENOENT || code == -ENODATA;
}

/* An error about a name gets its place in what the user wrote. */
static int name_mistake(const struct resolving *one, size_t at)
{
	struct err inner = *one->all->err;
	int r;

	one->all->missing = is_missing(inner.code);
	r = err_set_in_spec(one->text, at, one->all->err, "%s", inner.message);

	if (inner.remedy[0] != '\0')
		(void)err_set_remedy(one->all->err, "%s", inner.remedy);
	return r;
}

/* FILE!NAME says where a function is hooked; to the debug information it is NAME. */
static const char *bare_name(const struct resolving *one)
{
	const char *mark = strchr(one->spec.name, '!');

	return mark ? mark + 1 : one->spec.name;
}

/* "struct NAME.path": a type of its own; else the path in what the function gives. */
static int find_field(struct resolving *one, int argument, struct type_field *ret)
{
	const char *field = one->spec.field;
	const char *dot = strncmp(field, "struct ", 7) == 0 ? strchr(field, '.') : NULL;
	struct type_field whole = { 0 };

	if (dot) {
		AUTO(mem_freep) char *type = mem_strndup(field, (size_t)(dot - field));

		return names_field(one->all->names, type, dot + 1, ret, one->all->err);
	}
	if (one->spec.kind == SPEC_STRUCT)
		return names_field(one->all->names, one->spec.name, field, ret, one->all->err);
	if (one->spec.kind == SPEC_RETURN || one->spec.kind == SPEC_ARGUMENT)
		return names_field_of_function(one->all->names, bare_name(one), argument, field,
					       ret, one->all->err);
	/* A function that allocates often returns what it allocated. */
	if (one->spec.kind == SPEC_ALLOC &&
	    names_field_of_function(one->all->names, bare_name(one), TYPES_RETURN, "", &whole,
				    one->all->err) == 0) {
		type_field_deinit(&whole);
		return names_field_of_function(one->all->names, bare_name(one), TYPES_RETURN, field,
					       ret, one->all->err);
	}
	(void)err_set(one->all->err, -EINVAL, "of which type is '%s'?", field);
	return err_set_remedy(one->all->err, "name it: .struct TYPE.%s, or give +OFFSET:LEN",
			      field);
}

/* The CPU watches bytes. */
static void note_bits(const struct resolving *one, const struct type_field *field)
{
	uint64_t bits = field->bit_size < 64 ? (UINT64_C(1) << field->bit_size) - 1 : UINT64_MAX;

	if (field->bit_size == 0)
		return;
	SAY_TOO(&one->all->report->notes, "note:bit-field", said_text(one->text),
		said_number(field->bit_size), said_number(field->bit_offset),
		said_number(bits << field->bit_offset));
}

static int resolve_field(struct resolving *one, int argument)
{
	struct type_field field = { 0 };
	int r;

	if (!one->spec.field)
		return 0;
	r = names_open(one->all);
	if (r < 0)
		return r;
	r = find_field(one, argument, &field);
	if (r < 0)
		return name_mistake(one, one->spec.field_at);
	one->watch.offset = (int64_t)field.offset;
	one->field_bytes = field.size;
	note_bits(one, &field);
	type_field_deinit(&field);
	return 0;
}

static int resolve_key(struct resolving *one)
{
	one->watch.kind = PLAN_WATCH_KEY;
	one->watch.policy = PLAN_WATCH_OLDEST;
	one->watch.key = (struct block_key){ .stack_hash = one->spec.hash,
					     .lane = one->spec.lane,
					     .ordinal = one->spec.ordinal };
	SAY(&one->what, "target:block",
	    said_take(mem_printf("%016" PRIx64 "#%u", one->spec.hash, one->spec.ordinal)));
	return 0;
}

static int resolve_address(struct resolving *one)
{
	one->watch.kind = PLAN_WATCH_ADDRESS;
	one->watch.address = one->spec.address;
	SAY(&one->what, "target:address", said_number(one->spec.address));
	return 0;
}

/* Then it is the field that is not there. */
static bool is_global(const struct resolving *one)
{
	struct type_global global = { 0 };
	struct ranges ranges = { 0 };
	struct err ignored = { 0 };
	bool found = one->spec.field && names_global(one->all->names, one->spec.name, NULL, &global,
						     &ranges, &ignored) == 0;

	type_global_deinit(&global);
	VEC_DEINIT(&ranges.list);
	return found;
}

static int resolve_global(struct resolving *one)
{
	struct type_global global = { 0 };
	int r = names_open(one->all);

	if (r < 0)
		return r;
	if (names_global(one->all->names, one->spec.name, one->spec.field, &global, &one->ranges,
			 one->all->err) < 0)
		return name_mistake(one, is_global(one) ? one->spec.field_at : one->spec.name_at);
	one->watch.kind = PLAN_WATCH_GLOBAL;
	one->watch.place_count = (uint32_t)one->ranges.list.count;
	one->watch.offset += (int64_t)global.field.offset;
	one->field_bytes = global.field.size;
	note_bits(one, &global.field);
	SAY(&one->what, "target:global", said_text(one->spec.name));
	type_global_deinit(&global);
	return 0;
}

static int resolve_alloc(struct resolving *one)
{
	int r = names_open(one->all);

	if (r < 0)
		return r;
	r = one->spec.kind == SPEC_ALLOC
		    ? names_function(one->all->names, bare_name(one), &one->ranges, one->all->err)
		    : names_line(one->all->names, one->spec.name, one->spec.line, &one->ranges,
				 one->all->err);
	if (r < 0)
		return name_mistake(one, one->spec.name_at);
	one->watch.kind = PLAN_WATCH_CONTEXT;
	one->watch.place_count = (uint32_t)one->ranges.list.count;
	one->watch.size_low = one->watch.size_high = one->spec.size;
	SAY(&one->what, "target:allocated", said_text(one->spec.name),
	    said_count(one->spec.kind == SPEC_ALLOC_LINE ? one->spec.line : 0),
	    said_count(one->spec.size));
	return resolve_field(one, 0);
}

/* What a function returns can be watched on pages if it allocates that itself, or what it calls
 * does: then it is placed there. */
static int resolve_placed(struct resolving *one)
{
	int r;

	if (!(one->all->request->flags & RESOLVE_PAGES))
		return 0;
	r = names_open(one->all);
	if (r == 0 &&
	    names_function(one->all->names, bare_name(one), &one->ranges, one->all->err) < 0)
		r = name_mistake(one, one->spec.name_at);
	one->watch.place_count = (uint32_t)one->ranges.list.count;
	return r;
}

static int resolve_function(struct resolving *one)
{
	int argument = one->spec.kind == SPEC_RETURN ? -1 : (int)one->spec.argument;
	int r = resolve_placed(one);

	if (r == 0)
		r = hooks_open(one->all);
	if (r < 0)
		return r;
	one->watch.kind = PLAN_WATCH_HOOK;
	if (hook_plan_watch(one->all->hooks, one->spec.name, argument, one->number, one->all->items,
			    one->all->err) < 0)
		return name_mistake(one, one->spec.name_at);
	if (argument < 0)
		SAY(&one->what, "target:returned", said_text(one->spec.name));
	else
		SAY(&one->what, "target:argument", said_signed(argument),
		    said_text(one->spec.name));
	return resolve_field(one, argument < 0 ? TYPES_RETURN : argument);
}

/* Objects of nearly all classes come from this function, with their type already in them; or from
 * the second, where the compiler made copies of the first in those who call it (Debian's 3.13). */
#define PYTHON_ALLOCATOR "PyType_GenericAlloc"
#define PYTHON_ALLOCATOR_INNER "_PyType_AllocNoTrack"
/* Its tp_new calls what tp_alloc says. Extensions are built with this layout. */
#define PYTHON_OBJECT "PyBaseObject_Type"
#define PYTHON_NEW_AT 312

/* Words that CPython keeps of an object, from its address on, by the first version that has them so
 * (Include/cpython/object.h, Include/internal/pycore_object.h). Bytes 0: it has none. */
static const struct python_word {
	enum spec_python_word word;
	unsigned int since; /* as Py_Version begins: 0x030b is 3.11 */
	int64_t offset;
	uint64_t bytes;
} python_words[] = {
	{ SPEC_REFCNT, 0x0300, 0, 8 },	 { SPEC_REFCNT, 0x030c, 0, 4 },
	{ SPEC_TYPE, 0x0300, 8, 8 },	 { SPEC_MANAGED_DICT, 0x030b, -24, 8 },
	{ SPEC_VALUES, 0x030b, -32, 8 }, { SPEC_VALUES, 0x030c, -24, 8 },
	{ SPEC_VALUES, 0x030d, 0, 0 },
};

static int resolve_python_word(struct resolving *one, enum spec_python_word word)
{
	const struct python_word *found = NULL;
	unsigned int version;
	int r = names_open(one->all);

	if (r < 0)
		return r;
	version = names_python_version(one->all->names);
	if (version == 0) {
		one->all->missing = true;
		return err_set_in_spec(
			one->text, one->spec.field_at, one->all->err,
			"where it is goes by Python's version, and no Python that tells "
			"its version (3.11 and later do) is among the files");
	}
	for (size_t i = 0; i < ARRAY_SIZE(python_words); i++)
		if (python_words[i].word == word && python_words[i].since <= version)
			found = &python_words[i];
	if (!found || found->bytes == 0)
		return err_set_in_spec(
			one->text, one->spec.field_at, one->all->err,
			"objects of Python %u.%u have no such word: attributes stand in "
			"the object itself, from its class's __basicsize__ on",
			version >> 8, version & 0xff);
	one->watch.offset = found->offset;
	one->field_bytes = found->bytes;
	return 0;
}

static int resolve_python_field(struct resolving *one)
{
	enum spec_python_word word =
		one->spec.field ? spec_python_word(one->spec.field) : SPEC_PYTHON_WORDS;

	return word < SPEC_PYTHON_WORDS ? resolve_python_word(one, word) : resolve_field(one, 0);
}

static int resolve_python(struct resolving *one)
{
	struct hook_use use = { .role = HOOK_PLACE_PYTHON,
				.number = one->number,
				.pointer = 0,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT,
				.inner = PYTHON_ALLOCATOR_INNER,
				.caller_in = PYTHON_OBJECT,
				.caller_at = PYTHON_NEW_AT };
	int r = hooks_open(one->all);

	if (r < 0)
		return r;
	if (strlen(one->spec.name) >= sizeof(one->watch.python_type))
		return err_set_in_spec(one->text, one->spec.name_at, one->all->err,
				       "the name is too long");
	one->watch.kind = PLAN_WATCH_HOOK;
	memcpy(one->watch.python_type, one->spec.name, strlen(one->spec.name));
	if (one->all->request->flags & RESOLVE_PAGES)
		r = hook_plan(one->all->hooks, PYTHON_ALLOCATOR, &use, one->all->items,
			      one->all->err);
	use.role = HOOK_WATCH_RESULT;
	use.pointer = HOOK_NO_ARGUMENT;
	if (r == 0)
		r = hook_plan(one->all->hooks, PYTHON_ALLOCATOR, &use, one->all->items,
			      one->all->err);
	one->all->missing = r < 0 && is_missing(r);
	if (r < 0)
		return err_set_prefix(one->all->err,
				      "--on pytype: is for programs that run Python");
	SAY(&one->what, "target:python", said_text(one->spec.name));
	return resolve_python_field(one);
}

static int resolve_struct(struct resolving *one)
{
	struct type_field whole = { 0 };
	int r = names_open(one->all);

	if (r < 0)
		return r;
	if (names_field(one->all->names, one->spec.name, "", &whole, one->all->err) < 0)
		return name_mistake(one, one->spec.name_at);
	one->watch.kind = PLAN_WATCH_CONTEXT;
	one->watch.size_low = one->watch.size_high = whole.size;
	SAY(&one->what, "target:struct", said_number(whole.size),
	    said_take(mem_printf("%.*s%s", (int)one->spec.name_at, one->text, one->spec.name)));
	type_field_deinit(&whole);
	return resolve_field(one, 0);
}

static int (*const resolve_by_kind[])(struct resolving *one) = {
	[SPEC_GLOBAL] = resolve_global,	    [SPEC_ADDRESS] = resolve_address,
	[SPEC_ALLOC] = resolve_alloc,	    [SPEC_ALLOC_LINE] = resolve_alloc,
	[SPEC_KEY] = resolve_key,	    [SPEC_RETURN] = resolve_function,
	[SPEC_ARGUMENT] = resolve_function, [SPEC_PYTHON_TYPE] = resolve_python,
	[SPEC_STRUCT] = resolve_struct,
};

/* As name_mistake(), of the other text. */
static int when_mistake(const struct resolving *one, size_t at)
{
	struct err inner = *one->all->err;
	const char *text = one->all->request->when;

	one->all->missing = is_missing(inner.code);
	(void)err_set(one->all->err, -EINVAL, "--when '%s': %s\n  %s\n  %*s^", text, inner.message,
		      text, (int)at, "");
	return inner.remedy[0] != '\0' ? err_set_remedy(one->all->err, "%s", inner.remedy)
				       : -EINVAL;
}

static int resolve_when(struct resolving *one)
{
	struct when when = { 0 };
	int r = when_compile(one->all->request->when, &when, one->all->err);

	for (size_t i = 0; r == 0 && i < when.names.count; i++) {
		struct when_name *name = &when.names.items[i];
		struct plan_step *step = &when.steps[name->step];

		step->first = (uint16_t)one->ranges.list.count;
		r = names_open(one->all);
		if (r == 0 && !names_module(one->all->names, name->name, &one->ranges))
			r = names_function(one->all->names, name->name, &one->ranges,
					   one->all->err);
		if (r < 0)
			r = when_mistake(one, name->at);
		step->count = (uint32_t)(one->ranges.list.count - step->first);
	}
	memcpy(one->watch.steps, when.steps, sizeof(when.steps));
	one->watch.step_count = (uint32_t)when.count;
	when_deinit(&when);
	return r;
}

/* Watched pages hold what is placed there when it is allocated, nothing that is somewhere already.
 */
static int resolve_pages_check(const struct resolving *one)
{
	if (!(one->all->request->flags & RESOLVE_PAGES) ||
	    (one->spec.kind != SPEC_GLOBAL && one->spec.kind != SPEC_ADDRESS &&
	     one->spec.kind != SPEC_ARGUMENT))
		return 0;
	(void)err_set_in_spec(
		one->text, 0, one->all->err,
		"--mode pages watches blocks that are placed on such pages when they are "
		"allocated, and %s",
		one->spec.kind == SPEC_GLOBAL	 ? "a global lies where its module was loaded"
		: one->spec.kind == SPEC_ADDRESS ? "an address is where it is"
						 : "an argument was allocated before the function "
						   "is called");
	return err_set_remedy(
		one->all->err,
		one->spec.kind == SPEC_ARGUMENT
			? "--mode hw for this one, or alloc:FUNC with the function that "
			  "allocates such objects"
			: "--mode hw for this one: alloc:, key:, ret:, pytype: and struct "
			  "can be watched on pages");
}

static int resolve_one(struct resolving *one)
{
	const struct resolve_request *request = one->all->request;
	uint64_t bytes;
	int r;
	struct said what = { 0 };

	one->watch.offset = one->spec.offset;
	one->watch.policy = request->policy;
	one->watch.flags = (request->flags & RESOLVE_AFTER_FREE ? PLAN_WATCH_AFTER_FREE : 0) |
			   (request->flags & RESOLVE_STOP ? PLAN_WATCH_STOP : 0);
	r = resolve_by_kind[one->spec.kind](one);
	if (r < 0)
		return r;
	bytes = one->spec.len > 0
			? one->spec.len
			: (one->field_bytes > 0 && !one->spec.offset_given ? one->field_bytes
									   : WATCHED_DEFAULT);
	one->watch.bytes = bytes < PLAN_WATCH_BYTES_MAX ? (uint32_t)bytes : PLAN_WATCH_BYTES_MAX;
	said_move(&what, &one->what);
	SAY(&one->what, "target", said_part(&what), said_number(one->watch.bytes),
	    said_take(mem_printf("%+" PRId64, one->watch.offset)),
	    said_count(bytes > PLAN_WATCH_BYTES_MAX ? bytes : 0),
	    said_flag(request->flags & RESOLVE_PAGES));
	return request->when ? resolve_when(one) : 0;
}

static void resolve_write(struct resolving *one)
{
	size_t ranges = one->ranges.list.count * sizeof(one->ranges.list.items[0]);

	one->watch.item = (struct plan_item){ .type = PLAN_ITEM_WATCH,
					      .bytes = (uint32_t)(sizeof(one->watch) + ranges) };
	one->watch.range_count = (uint32_t)one->ranges.list.count;
	strbuf_add(one->all->items, &one->watch, sizeof(one->watch));
	if (ranges > 0)
		strbuf_add(one->all->items, one->ranges.list.items, ranges);
}

static int resolve_parse(struct resolving *one)
{
	int r = spec_parse(one->text, &one->spec, one->all->err);

	return r < 0 ? r : resolve_pages_check(one);
}

/* What can be told without any file, and whether that is all there is to know. */
static int resolve_check(const struct resolve_request *request, bool *ret_names, struct err *err)
{
	struct planning all = { .request = request, .err = err };
	struct when when = { 0 };
	int r = request->when ? when_compile(request->when, &when, err) : 0;

	*ret_names = when.names.count > 0;
	when_deinit(&when);
	for (size_t i = 0; r == 0 && i < request->count; i++) {
		AUTO(resolve_deinit) struct resolving one = { .all = &all, .text = request->on[i] };

		r = resolve_parse(&one);
		*ret_names |= one.spec.kind != SPEC_ADDRESS && one.spec.kind != SPEC_KEY;
	}
	return r;
}

static int resolve_all(struct planning *all)
{
	const struct resolve_request *request = all->request;

	for (size_t i = 0; i < request->count; i++) {
		AUTO(resolve_deinit)
		struct resolving one = { .all = all,
					 .text = request->on[i],
					 .number = (uint32_t)i };
		int r = resolve_parse(&one);

		if (r == 0)
			r = resolve_one(&one);
		if (r < 0)
			return r;
		resolve_write(&one);
		VEC_PUSH(&all->report->targets,
			 ((struct watch_target){ .text = mem_strdup(request->on[i]),
						 .global = one.spec.kind == SPEC_GLOBAL
								   ? mem_strdup(one.spec.name)
								   : NULL,
						 .field = cstr_dup(one.spec.field),
						 .offset = one.watch.offset }));
		said_move(&all->report->targets.items[all->report->targets.count - 1].what,
			  &one.what);
	}
	return 0;
}

/* All of it or, with an error, nothing; `ret_missing`: the error is a name that nobody knows. */
static int resolve_try(const struct resolve_request *request, struct strbuf *items,
		       struct watch_report *report, bool *ret_missing, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	AUTO(watch_report_deinit) struct watch_report told = { 0 };
	struct planning all = {
		.request = request, .items = &planned, .report = &told, .err = err
	};
	int r = resolve_all(&all);

	if (r == 0 && all.hooks)
		said_list_copy(&told.notes, hook_planner_notes(all.hooks));
	names_free(all.names);
	hook_planner_free(all.hooks);
	*ret_missing = r < 0 && all.missing;
	if (r < 0)
		return r;
	strbuf_add(items, planned.data, planned.len);
	VEC_FOREACH (&told.targets, target) {
		VEC_PUSH(&report->targets, *target);
		*target = (struct watch_target){ 0 };
	}
	said_list_copy(&report->notes, &told.notes);
	return 0;
}

static bool is_enough(void *ctx, const struct library_list *seen)
{
	struct resolve_request request = *(const struct resolve_request *)ctx;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	AUTO(watch_report_deinit) struct watch_report report = { 0 };
	struct err err = { 0 };
	bool missing;

	request.files.seen = seen;
	return resolve_try(&request, &items, &report, &missing, &err) == 0;
}

/* Once more, with what the command is seen to load. */
static int resolve_look(const struct resolve_request *request, struct strbuf *items,
			struct watch_report *report, struct err *err)
{
	AUTO(library_list_deinit) struct library_list seen = { 0 };
	struct resolve_request again = *request;
	size_t programs = 0;
	bool missing;
	int r;

	if (request->say)
		request->say("note:run-once");
	r = request->look(request->look_ctx, is_enough, &again, &seen, err);
	if (r < 0)
		return r;
	again.files.seen = &seen;
	r = resolve_try(&again, items, report, &missing, err);
	/* It may be in what could not be looked into: likelier than a slip of the pen. */
	if (r < 0 && missing && library_list_unseen(&seen)) {
		err->remedy[0] = '\0';
		return err_set_remedy(err, "'%s' ran unobserved; what is in it cannot be watched",
				      library_list_unseen(&seen));
	}
	if (r < 0)
		return r;
	VEC_FOREACH (&seen.list, file)
		programs += file->program;
	SAY_TOO(&report->notes, "note:run-before", said_number(programs),
		said_number(seen.list.count - programs));
	return 0;
}

int resolve_plan(const struct resolve_request *request, struct strbuf *items,
		 struct watch_report *report, struct err *err)
{
	bool may_look = request->look && !request->files.seen, names, missing;
	int r = resolve_check(request, &names, err);

	if (r < 0)
		return r;
	if (names && may_look && libraries_launches(&request->files))
		return resolve_look(request, items, report, err);
	r = resolve_try(request, items, report, &missing, err);
	/* A mistyped name is answered without running anything, where there can be nothing else. */
	if (r < 0 && missing && may_look && libraries_load_more(&request->files))
		return resolve_look(request, items, report, err);
	return r;
}
