#include "plan/watch/resolve.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "plan/hooks/planner.h"
#include "plan/watch/names.h"
#include "plan/watch/spec.h"
#include "plan/watch/when.h"

#define WATCHED_DEFAULT 8u

/* All watches while they are being planned; what they look names up in is opened when needed. */
struct planning {
	const struct aim_request *request;
	struct names *names;
	struct hook_planner *hooks;
	struct strbuf *items;
	struct watch_report *report; /* what is told about them */
	struct err *err;
	bool missing; /* what went wrong is that a name is not known */
};

/* One of them. */
struct aim {
	struct planning *all;
	const char *text;
	uint32_t number;
	struct spec spec;
	struct plan_watch watch;
	struct ranges ranges;
	uint64_t field_bytes; /* of the field that was named; 0: none */
	struct strbuf words;  /* what it is, for the report */
};

static void aim_deinit(struct aim *aim)
{
	spec_deinit(&aim->spec);
	VEC_DEINIT(&aim->ranges.list);
	strbuf_deinit(&aim->words);
}

static int names_open(struct planning *all)
{
	const struct aim_request *request = all->request;

	return all->names ? 0 : names_new(&request->files, &all->names, all->err);
}

static int hooks_open(struct planning *all)
{
	const struct aim_request *request = all->request;

	return all->hooks ? 0 : hook_planner_new(&request->files, &all->hooks, all->err);
}

static bool is_missing(int code)
{
	return code == -ENOENT || code == -ENODATA;
}

/* An error about a name gets its place in what the user wrote. */
static int name_mistake(const struct aim *aim, size_t at)
{
	struct err inner = *aim->all->err;
	int r;

	aim->all->missing = is_missing(inner.code);
	r = spec_mistake(aim->text, at, aim->all->err, "%s", inner.message);

	if (inner.remedy[0] != '\0')
		(void)err_remedy(aim->all->err, "%s", inner.remedy);
	return r;
}

/* FILE!NAME says where a function is hooked; to the debug information it is NAME. */
static const char *bare_name(const struct aim *aim)
{
	const char *mark = strchr(aim->spec.name, '!');

	return mark ? mark + 1 : aim->spec.name;
}

/* ---- fields -----------------------------------------------------------------------------------
 */

/* "struct NAME.path": a type of its own; else the path in what the function gives. */
static int find_field(struct aim *aim, int argument, struct type_field *ret)
{
	const char *field = aim->spec.field;
	const char *dot = strncmp(field, "struct ", 7) == 0 ? strchr(field, '.') : NULL;
	struct type_field whole = { 0 };

	if (dot) {
		AUTO(mem_freep) char *type = mem_strndup(field, (size_t)(dot - field));

		return names_field(aim->all->names, type, dot + 1, ret, aim->all->err);
	}
	if (aim->spec.kind == SPEC_STRUCT)
		return names_field(aim->all->names, aim->spec.name, field, ret, aim->all->err);
	if (aim->spec.kind == SPEC_RETURN || aim->spec.kind == SPEC_ARGUMENT)
		return names_field_of_function(aim->all->names, bare_name(aim), argument, field,
					       ret, aim->all->err);
	/* A function that allocates often returns what it allocated. */
	if (aim->spec.kind == SPEC_ALLOC &&
	    names_field_of_function(aim->all->names, bare_name(aim), TYPES_RETURN, "", &whole,
				    aim->all->err) == 0) {
		type_field_deinit(&whole);
		return names_field_of_function(aim->all->names, bare_name(aim), TYPES_RETURN, field,
					       ret, aim->all->err);
	}
	(void)err_set(aim->all->err, -EINVAL, "of which type is '%s'?", field);
	return err_remedy(aim->all->err, "name it: .struct TYPE.%s, or give +OFFSET:LEN", field);
}

/* The CPU watches bytes. */
static void note_bits(const struct aim *aim, const struct type_field *field)
{
	uint64_t bits = field->bit_size < 64 ? (UINT64_C(1) << field->bit_size) - 1 : UINT64_MAX;

	if (field->bit_size == 0)
		return;
	strv_take(&aim->all->report->notes,
		  mem_printf("--on '%s' is a bit-field of %u bit%s, from bit %u on of what is "
			     "watched; writes to the bits beside it are seen, too. --when "
			     "'(old ^ new) & 0x%" PRIx64 "' counts those that change it",
			     aim->text, field->bit_size, field->bit_size == 1 ? "" : "s",
			     field->bit_offset, bits << field->bit_offset));
}

static int aim_field(struct aim *aim, int argument)
{
	struct type_field field = { 0 };
	int r;

	if (!aim->spec.field)
		return 0;
	r = names_open(aim->all);
	if (r < 0)
		return r;
	r = find_field(aim, argument, &field);
	if (r < 0)
		return name_mistake(aim, aim->spec.field_at);
	aim->watch.offset = (int64_t)field.offset;
	aim->field_bytes = field.size;
	note_bits(aim, &field);
	type_field_deinit(&field);
	return 0;
}

/* ---- one function per kind --------------------------------------------------------------------
 */

static int aim_key(struct aim *aim)
{
	aim->watch.kind = PLAN_WATCH_KEY;
	aim->watch.policy = PLAN_WATCH_OLDEST;
	aim->watch.key = (struct block_key){ .stack_hash = aim->spec.hash,
					     .lane = aim->spec.lane,
					     .ordinal = aim->spec.ordinal };
	strbuf_addf(&aim->words, "block %016" PRIx64 "#%u", aim->spec.hash, aim->spec.ordinal);
	return 0;
}

static int aim_address(struct aim *aim)
{
	aim->watch.kind = PLAN_WATCH_ADDRESS;
	aim->watch.address = aim->spec.address;
	strbuf_addf(&aim->words, "address 0x%" PRIx64, aim->spec.address);
	return 0;
}

/* Then it is the field that is not there. */
static bool is_global(const struct aim *aim)
{
	struct type_global global = { 0 };
	struct ranges ranges = { 0 };
	struct err ignored = { 0 };
	bool found = aim->spec.field && names_global(aim->all->names, aim->spec.name, NULL, &global,
						     &ranges, &ignored) == 0;

	type_global_deinit(&global);
	VEC_DEINIT(&ranges.list);
	return found;
}

static int aim_global(struct aim *aim)
{
	struct type_global global = { 0 };
	int r = names_open(aim->all);

	if (r < 0)
		return r;
	if (names_global(aim->all->names, aim->spec.name, aim->spec.field, &global, &aim->ranges,
			 aim->all->err) < 0)
		return name_mistake(aim, is_global(aim) ? aim->spec.field_at : aim->spec.name_at);
	aim->watch.kind = PLAN_WATCH_GLOBAL;
	aim->watch.place_count = (uint32_t)aim->ranges.list.count;
	aim->watch.offset += (int64_t)global.field.offset;
	aim->field_bytes = global.field.size;
	note_bits(aim, &global.field);
	strbuf_addf(&aim->words, "the global %s", aim->spec.name);
	type_global_deinit(&global);
	return 0;
}

static int aim_alloc(struct aim *aim)
{
	int r = names_open(aim->all);

	if (r < 0)
		return r;
	r = aim->spec.kind == SPEC_ALLOC
		    ? names_function(aim->all->names, bare_name(aim), &aim->ranges, aim->all->err)
		    : names_line(aim->all->names, aim->spec.name, aim->spec.line, &aim->ranges,
				 aim->all->err);
	if (r < 0)
		return name_mistake(aim, aim->spec.name_at);
	aim->watch.kind = PLAN_WATCH_CONTEXT;
	aim->watch.place_count = (uint32_t)aim->ranges.list.count;
	aim->watch.size_low = aim->watch.size_high = aim->spec.size;
	strbuf_addf(&aim->words, "blocks allocated in %s", aim->spec.name);
	if (aim->spec.kind == SPEC_ALLOC_LINE)
		strbuf_addf(&aim->words, ":%u", aim->spec.line);
	else
		strbuf_adds(&aim->words, " or in what it calls");
	if (aim->spec.size > 0)
		strbuf_addf(&aim->words, ", of %" PRIu64 " bytes", aim->spec.size);
	return aim_field(aim, 0);
}

/* What a function returns can be watched on pages if it allocates that itself, or what it calls
 * does: then it is placed there. */
static int aim_placed(struct aim *aim)
{
	int r;

	if (!(aim->all->request->flags & AIM_PAGES))
		return 0;
	r = names_open(aim->all);
	if (r == 0 &&
	    names_function(aim->all->names, bare_name(aim), &aim->ranges, aim->all->err) < 0)
		r = name_mistake(aim, aim->spec.name_at);
	aim->watch.place_count = (uint32_t)aim->ranges.list.count;
	return r;
}

static int aim_function(struct aim *aim)
{
	int argument = aim->spec.kind == SPEC_RETURN ? -1 : (int)aim->spec.argument;
	int r = aim_placed(aim);

	if (r == 0)
		r = hooks_open(aim->all);
	if (r < 0)
		return r;
	aim->watch.kind = PLAN_WATCH_HOOK;
	if (hook_plan_watch(aim->all->hooks, aim->spec.name, argument, aim->number, aim->all->items,
			    aim->all->err) < 0)
		return name_mistake(aim, aim->spec.name_at);
	if (argument < 0)
		strbuf_addf(&aim->words, "what %s returns", aim->spec.name);
	else
		strbuf_addf(&aim->words, "argument %d of %s", argument, aim->spec.name);
	return aim_field(aim, argument < 0 ? TYPES_RETURN : argument);
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

static int aim_python_word(struct aim *aim, enum spec_python_word word)
{
	const struct python_word *found = NULL;
	unsigned int version;
	int r = names_open(aim->all);

	if (r < 0)
		return r;
	version = names_python_version(aim->all->names);
	if (version == 0) {
		aim->all->missing = true;
		return spec_mistake(
			aim->text, aim->spec.field_at, aim->all->err,
			"where it is goes by Python's version, and no Python that tells "
			"its version (3.11 and later do) is among the files");
	}
	for (size_t i = 0; i < ARRAY_SIZE(python_words); i++)
		if (python_words[i].word == word && python_words[i].since <= version)
			found = &python_words[i];
	if (!found || found->bytes == 0)
		return spec_mistake(
			aim->text, aim->spec.field_at, aim->all->err,
			"objects of Python %u.%u have no such word: attributes stand in "
			"the object itself, from its class's __basicsize__ on",
			version >> 8, version & 0xff);
	aim->watch.offset = found->offset;
	aim->field_bytes = found->bytes;
	return 0;
}

static int aim_python_field(struct aim *aim)
{
	enum spec_python_word word =
		aim->spec.field ? spec_python_word(aim->spec.field) : SPEC_PYTHON_WORDS;

	return word < SPEC_PYTHON_WORDS ? aim_python_word(aim, word) : aim_field(aim, 0);
}

static int aim_python(struct aim *aim)
{
	int r = hooks_open(aim->all);

	if (r < 0)
		return r;
	if (strlen(aim->spec.name) >= sizeof(aim->watch.python_type))
		return spec_mistake(aim->text, aim->spec.name_at, aim->all->err,
				    "the name is too long");
	aim->watch.kind = PLAN_WATCH_HOOK;
	memcpy(aim->watch.python_type, aim->spec.name, strlen(aim->spec.name));
	if (aim->all->request->flags & AIM_PAGES)
		r = hook_plan(aim->all->hooks, PYTHON_ALLOCATOR,
			      &(struct hook_use){ .role = HOOK_PLACE_PYTHON,
						  .number = aim->number,
						  .pointer = 0,
						  .size = HOOK_NO_ARGUMENT,
						  .count = HOOK_NO_ARGUMENT,
						  .inner = PYTHON_ALLOCATOR_INNER,
						  .caller_in = PYTHON_OBJECT,
						  .caller_at = PYTHON_NEW_AT },
			      aim->all->items, aim->all->err);
	if (r == 0)
		r = hook_plan(aim->all->hooks, PYTHON_ALLOCATOR,
			      &(struct hook_use){ .role = HOOK_WATCH_RESULT,
						  .number = aim->number,
						  .pointer = HOOK_NO_ARGUMENT,
						  .size = HOOK_NO_ARGUMENT,
						  .count = HOOK_NO_ARGUMENT,
						  .inner = PYTHON_ALLOCATOR_INNER,
						  .caller_in = PYTHON_OBJECT,
						  .caller_at = PYTHON_NEW_AT },
			      aim->all->items, aim->all->err);
	aim->all->missing = r < 0 && is_missing(r);
	if (r < 0)
		return err_prefix(aim->all->err, "--on pytype: is for programs that run Python");
	strbuf_addf(&aim->words, "instances of the Python class %s", aim->spec.name);
	return aim_python_field(aim);
}

static int aim_struct(struct aim *aim)
{
	struct type_field whole = { 0 };
	int r = names_open(aim->all);

	if (r < 0)
		return r;
	if (names_field(aim->all->names, aim->spec.name, "", &whole, aim->all->err) < 0)
		return name_mistake(aim, aim->spec.name_at);
	aim->watch.kind = PLAN_WATCH_CONTEXT;
	aim->watch.size_low = aim->watch.size_high = whole.size;
	strbuf_addf(&aim->words, "blocks of %" PRIu64 " bytes, as large as %.*s%s", whole.size,
		    (int)aim->spec.name_at, aim->text, aim->spec.name);
	type_field_deinit(&whole);
	return aim_field(aim, 0);
}

static int (*const aim_by_kind[])(struct aim *aim) = {
	[SPEC_GLOBAL] = aim_global,	[SPEC_ADDRESS] = aim_address,
	[SPEC_ALLOC] = aim_alloc,	[SPEC_ALLOC_LINE] = aim_alloc,
	[SPEC_KEY] = aim_key,		[SPEC_RETURN] = aim_function,
	[SPEC_ARGUMENT] = aim_function, [SPEC_PYTHON_TYPE] = aim_python,
	[SPEC_STRUCT] = aim_struct,
};

/* ---- the rest -----------------------------------------------------------------------------------
 */

/* As name_mistake(), of the other text. */
static int when_mistake(const struct aim *aim, size_t at)
{
	struct err inner = *aim->all->err;
	const char *text = aim->all->request->when;

	aim->all->missing = is_missing(inner.code);
	(void)err_set(aim->all->err, -EINVAL, "--when '%s': %s\n  %s\n  %*s^", text, inner.message,
		      text, (int)at, "");
	return inner.remedy[0] != '\0' ? err_remedy(aim->all->err, "%s", inner.remedy) : -EINVAL;
}

static int aim_when(struct aim *aim)
{
	struct when when = { 0 };
	int r = when_compile(aim->all->request->when, &when, aim->all->err);

	for (size_t i = 0; r == 0 && i < when.names.count; i++) {
		struct when_name *name = &when.names.items[i];
		struct plan_step *step = &when.steps[name->step];

		step->first = (uint16_t)aim->ranges.list.count;
		r = names_open(aim->all);
		if (r == 0 && !names_module(aim->all->names, name->name, &aim->ranges))
			r = names_function(aim->all->names, name->name, &aim->ranges,
					   aim->all->err);
		if (r < 0)
			r = when_mistake(aim, name->at);
		step->count = (uint32_t)(aim->ranges.list.count - step->first);
	}
	memcpy(aim->watch.steps, when.steps, sizeof(when.steps));
	aim->watch.step_count = (uint32_t)when.count;
	when_deinit(&when);
	return r;
}

/* Watched pages hold what is placed there when it is allocated, nothing that is somewhere already.
 */
static int aim_pages_check(const struct aim *aim)
{
	static const char *const where[] = {
		[SPEC_GLOBAL] = "a global lies where its module was loaded",
		[SPEC_ADDRESS] = "an address is where it is",
		[SPEC_ARGUMENT] = "an argument was allocated before the function is called",
	};
	const char *why = (size_t)aim->spec.kind < ARRAY_SIZE(where) ? where[aim->spec.kind] : NULL;

	if (!(aim->all->request->flags & AIM_PAGES) || !why)
		return 0;
	(void)spec_mistake(
		aim->text, 0, aim->all->err,
		"--mode pages watches blocks that are placed on such pages when they are "
		"allocated, and %s",
		why);
	return err_remedy(
		aim->all->err,
		aim->spec.kind == SPEC_ARGUMENT
			? "--mode hw for this one; or alloc:FUNC with the function that "
			  "allocates such objects"
			: "--mode hw for this one; alloc:, key:, ret:, pytype: and struct "
			  "can be watched on pages");
}

static int aim_one(struct aim *aim)
{
	const struct aim_request *request = aim->all->request;
	uint64_t bytes;
	int r;

	aim->watch.offset = aim->spec.offset;
	aim->watch.policy = request->policy;
	aim->watch.flags = (request->flags & AIM_AFTER_FREE ? PLAN_WATCH_AFTER_FREE : 0) |
			   (request->flags & AIM_STOP ? PLAN_WATCH_STOP : 0);
	r = aim_by_kind[aim->spec.kind](aim);
	if (r < 0)
		return r;
	bytes = aim->spec.len > 0
			? aim->spec.len
			: (aim->field_bytes > 0 && !aim->spec.offset_given ? aim->field_bytes
									   : WATCHED_DEFAULT);
	aim->watch.bytes = bytes < PLAN_WATCH_BYTES_MAX ? (uint32_t)bytes : PLAN_WATCH_BYTES_MAX;
	strbuf_addf(&aim->words, ", %u byte%s at %+" PRId64, aim->watch.bytes,
		    aim->watch.bytes == 1 ? "" : "s", aim->watch.offset);
	if (bytes > PLAN_WATCH_BYTES_MAX)
		strbuf_addf(&aim->words, " (of %" PRIu64 ": %s)", bytes,
			    request->flags & AIM_PAGES ? "more are not kept of a value"
						       : "more do not fit the CPU's registers");
	return request->when ? aim_when(aim) : 0;
}

static void aim_write(struct aim *aim)
{
	size_t ranges = aim->ranges.list.count * sizeof(aim->ranges.list.items[0]);

	aim->watch.item = (struct plan_item){ .type = PLAN_ITEM_WATCH,
					      .bytes = (uint32_t)(sizeof(aim->watch) + ranges) };
	aim->watch.range_count = (uint32_t)aim->ranges.list.count;
	strbuf_add(aim->all->items, &aim->watch, sizeof(aim->watch));
	if (ranges > 0)
		strbuf_add(aim->all->items, aim->ranges.list.items, ranges);
}

static int aim_parse(struct aim *aim)
{
	int r = spec_parse(aim->text, &aim->spec, aim->all->err);

	return r < 0 ? r : aim_pages_check(aim);
}

/* What can be told without any file, and whether that is all there is to know. */
static int aim_check(const struct aim_request *request, bool *ret_names, struct err *err)
{
	struct planning all = { .request = request, .err = err };
	struct when when = { 0 };
	int r = request->when ? when_compile(request->when, &when, err) : 0;

	*ret_names = when.names.count > 0;
	when_deinit(&when);
	for (size_t i = 0; r == 0 && i < request->count; i++) {
		AUTO(aim_deinit) struct aim aim = { .all = &all, .text = request->on[i] };

		r = aim_parse(&aim);
		*ret_names |= aim.spec.kind != SPEC_ADDRESS && aim.spec.kind != SPEC_KEY;
	}
	return r;
}

static int aim_all(struct planning *all)
{
	const struct aim_request *request = all->request;

	for (size_t i = 0; i < request->count; i++) {
		AUTO(aim_deinit)
		struct aim aim = { .all = all, .text = request->on[i], .number = (uint32_t)i };
		int r = aim_parse(&aim);

		if (r == 0)
			r = aim_one(&aim);
		if (r < 0)
			return r;
		aim_write(&aim);
		VEC_PUSH(&all->report->targets,
			 ((struct watch_target){
				 .text = mem_strdup(request->on[i]),
				 .described = strbuf_take(&aim.words),
				 .global = aim.spec.kind == SPEC_GLOBAL ? mem_strdup(aim.spec.name)
									: NULL,
				 .field = aim.spec.field ? mem_strdup(aim.spec.field) : NULL,
				 .offset = aim.watch.offset }));
	}
	return 0;
}

/* All of it or, with an error, nothing; `ret_missing`: the error is a name that nobody knows. */
static int aim_try(const struct aim_request *request, struct strbuf *items,
		   struct watch_report *report, bool *ret_missing, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	AUTO(watch_report_deinit) struct watch_report told = { 0 };
	struct planning all = {
		.request = request, .items = &planned, .report = &told, .err = err
	};
	int r = aim_all(&all);

	for (size_t i = 0; r == 0 && all.hooks && i < hook_planner_notes(all.hooks)->count; i++)
		strv_add(&told.notes, hook_planner_notes(all.hooks)->items[i]);
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
	for (size_t i = 0; i < told.notes.count; i++)
		strv_add(&report->notes, told.notes.items[i]);
	return 0;
}

static bool is_enough(void *ctx, const struct library_list *seen)
{
	struct aim_request request = *(const struct aim_request *)ctx;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	AUTO(watch_report_deinit) struct watch_report report = { 0 };
	struct err err = { 0 };
	bool missing;

	request.files.seen = seen;
	return aim_try(&request, &items, &report, &missing, &err) == 0;
}

/* Once more, with what the command is seen to load. */
static int aim_look(const struct aim_request *request, struct strbuf *items,
		    struct watch_report *report, struct err *err)
{
	AUTO(library_list_deinit) struct library_list seen = { 0 };
	struct aim_request again = *request;
	size_t programs = 0;
	bool missing;
	int r;

	if (request->say)
		request->say("the command is run once, to see which programs and libraries it "
			     "loads");
	r = request->look(request->look_ctx, is_enough, &again, &seen, err);
	if (r < 0)
		return r;
	again.files.seen = &seen;
	r = aim_try(&again, items, report, &missing, err);
	/* It may be in what could not be looked into: likelier than a slip of the pen. */
	if (r < 0 && missing && seen.notes.count > 0) {
		err->remedy[0] = '\0';
		return err_remedy(err, "%s; what is in it cannot be watched", seen.notes.items[0]);
	}
	if (r < 0)
		return r;
	VEC_FOREACH (&seen.list, file)
		programs += file->program;
	strv_take(
		&report->notes,
		mem_printf("the command was run once before, to see what it loads (%zu program%s, "
			   "%zu libraries); names were looked up in all of them",
			   programs, programs == 1 ? "" : "s", seen.list.count - programs));
	return 0;
}

int aim_plan(const struct aim_request *request, struct strbuf *items, struct watch_report *report,
	     struct err *err)
{
	bool may_look = request->look && !request->files.seen, names, missing;
	int r = aim_check(request, &names, err);

	if (r < 0)
		return r;
	if (names && may_look && libraries_launches(&request->files))
		return aim_look(request, items, report, err);
	r = aim_try(request, items, report, &missing, err);
	/* A mistyped name is answered without running anything, where there can be nothing else. */
	if (r < 0 && missing && may_look && libraries_load_more(&request->files))
		return aim_look(request, items, report, err);
	return r;
}
