#include "plan/hooks/planner.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cstr.h"
#include "debuginfo/program.h"
#include "plan/hooks/cfg.h"
#include "plan/hooks/leaf_functions.h"
#include "plan/hooks/patches.h"
#include "wire/checksum.h"
#include "wire/plan.h"

#define FUNCTIONS_MAX 16 /* of one name */
#define LOADER_NOTICE "_dl_debug_state"

_Static_assert(HOOK_NO_ARGUMENT == PLAN_NO_ARGUMENT, "passed on");

struct file {
	char *path;
	struct module *module; /* NULL when it could not be opened */
	bool tried;
	bool main;  /* a program */
	bool late;  /* not what is there when the command starts */
	bool named; /* by its path: names alone are not looked up there */
};

struct hook_planner {
	struct libraries libraries;
	char *cwd;
	VEC(struct file) files; /* the program first; of a launcher, what it starts */
	struct said_list notes;
	uint32_t pairs;	     /* allocators so far: entry and exit of one have the same number */
	bool loader_planned; /* libraries that come later are noticed */
	bool scoped;	     /* names are looked for in any scope */
	char *unseen;	     /* a program that could not be looked into; or NULL */
};

int hook_planner_new(const struct libraries_request *request, struct hook_planner **ret,
		     struct err *err)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = mem_alloc(sizeof(*planner));
	int r = libraries_find(request, &planner->libraries, err);

	if (r < 0)
		return r;
	planner->cwd = cstr_dup(request->cwd);
	if (request->seen)
		planner->unseen = cstr_dup(library_list_unseen(request->seen));
	VEC_FOREACH (&planner->libraries.files.list, library)
		VEC_PUSH(&planner->files, ((struct file){ .path = mem_strdup(library->path),
							  .main = library->program,
							  .late = library->late }));
	*ret = TAKE(planner);
	return 0;
}

void hook_planner_free(struct hook_planner *planner)
{
	if (!planner)
		return;
	VEC_FOREACH (&planner->files, file) {
		mem_free(file->path);
		module_close(file->module);
	}
	VEC_DEINIT(&planner->files);
	libraries_deinit(&planner->libraries);
	said_list_deinit(&planner->notes);
	mem_free(planner->cwd);
	mem_free(planner->unseen);
	mem_free(planner);
}

const struct said_list *hook_planner_notes(const struct hook_planner *planner)
{
	return &planner->notes;
}

#define NOTE(planner, id, ...)                          \
	do {                                            \
		struct said said_ = { 0 };              \
		SAY(&said_, id, ##__VA_ARGS__);         \
		said_add_once(&planner->notes, &said_); \
	} while (0)

static struct module *open_file(struct file *file, struct err *err)
{
	if (!file->tried) {
		file->tried = true;
		(void)module_open(file->path, NULL, &file->module, err);
	} else if (!file->module) {
		(void)err_set(err, -ENOEXEC, "cannot read '%s'", file->path);
	}
	return file->module;
}

/* Another program: a script, or the command itself, may run it. */
static bool is_program(const char *path)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));

	return program_read(path, facts, NULL) == 0 && facts->kind == PROGRAM_ELF && facts->dynamic;
}

/* The file that the user named: one of those at start by its path or name, or any other by path. */
static struct file *find_file(struct hook_planner *planner, const char *name, struct err *err)
{
	AUTO(mem_freep) char *joined = NULL;
	char real[PATH_MAX];

	if (!strchr(name, '/'))
		VEC_FOREACH (&planner->files, file)
			if (strcmp(cstr_base(file->path), name) == 0 ||
			    (strncmp(cstr_base(file->path), name, strlen(name)) == 0 &&
			     strncmp(cstr_base(file->path) + strlen(name), ".so", 3) == 0))
				return file;
	joined = name[0] == '/' || !planner->cwd ? mem_strdup(name)
						 : mem_printf("%s/%s", planner->cwd, name);
	if (!realpath(joined, real)) {
		(void)err_set(err, -ENOENT,
			      "the program is not linked with '%s', and there is no such file",
			      name);
		(void)err_set_remedy(
			err, "the path of a library that is loaded later: ./plugin.so!name");
		return NULL;
	}
	VEC_FOREACH (&planner->files, file) {
		char other[PATH_MAX];

		if (realpath(file->path, other) && strcmp(real, other) == 0)
			return file;
	}
	VEC_PUSH(&planner->files, ((struct file){ .path = mem_strdup(real),
						  .main = is_program(real),
						  .late = true,
						  .named = true }));
	return &planner->files.items[planner->files.count - 1];
}

static uint64_t patch_key(const struct file *file, uint64_t at)
{
	const uint8_t *id;
	size_t len = module_build_id(file->module, &id);
	uint64_t sum = checksum_add(CHECKSUM_SEED, file->path, strlen(file->path));

	if (len > 0)
		sum = checksum_add(CHECKSUM_SEED, id, len);
	return checksum_mix(sum, at) | 1;
}

static void fill_place(const struct file *file, uint64_t at, struct plan_place *ret)
{
	const uint8_t *id;
	size_t len = module_build_id(file->module, &id);
	const char *name = cstr_base(file->path);
	size_t at_name = file->main ? 1 : 0;

	if (file->main)
		ret->module[0] = '/';
	memcpy(ret->module + at_name, name, strnlen(name, sizeof(ret->module) - 1 - at_name));
	ret->build_id_bytes = len <= sizeof(ret->build_id) ? (uint32_t)len : 0;
	if (ret->build_id_bytes > 0)
		memcpy(ret->build_id, id, ret->build_id_bytes);
	ret->build_id_at = module_build_id_vaddr(file->module);
	ret->offset = at;
}

static uint32_t rights_at(const struct module *module, uint64_t at)
{
	struct module_segment segment;

	for (size_t i = 0; module_segment(module, i, &segment); i++)
		if (at >= segment.vaddr && at - segment.vaddr < segment.len)
			return (segment.read ? PROT_READ : 0u) | (segment.write ? PROT_WRITE : 0u) |
			       (segment.exec ? PROT_EXEC : 0u);
	return PROT_READ | PROT_EXEC;
}

static void fill_moved(const struct patch *patch, struct plan_hook *hook)
{
	static const uint8_t kinds[] = { [CODE_FIX_RELATIVE] = PLAN_FIX_RELATIVE,
					 [CODE_FIX_LOW] = PLAN_FIX_LOW,
					 [CODE_FIX_HIGH] = PLAN_FIX_HIGH };

	_Static_assert(CODE_MOVED_MAX <= PLAN_HOOK_MOVED && CODE_FIXUPS_MAX <= PLAN_HOOK_FIXUPS &&
			       CODE_MARKS_MAX <= PLAN_HOOK_MARKS,
		       "it fits");
	memcpy(hook->moved, patch->moved.bytes, patch->moved.len);
	hook->moved_bytes = (uint32_t)patch->moved.len;
	hook->fixup_count = (uint32_t)patch->moved.fixup_count;
	for (size_t i = 0; i < patch->moved.fixup_count; i++)
		hook->fixups[i] =
			(struct plan_fixup){ .at = patch->moved.fixups[i].at,
					     .kind = kinds[patch->moved.fixups[i].kind],
					     .after = patch->moved.fixups[i].after,
					     .target = (int64_t)patch->moved.fixups[i].target };
	hook->mark_count = (uint32_t)patch->moved.mark_count;
	for (size_t i = 0; i < patch->moved.mark_count; i++)
		hook->marks[i] = (struct plan_mark){
			.moved = (uint8_t)patch->moved.marks[i].moved,
			.original = (uint8_t)(patch->moved.marks[i].original - patch->at)
		};
}

static int add_hook(const struct file *file, const struct patch *patch, const char *name,
		    uint32_t flags, struct strbuf *items, struct err *err)
{
	struct plan_hook hook = { .item = { .type = PLAN_ITEM_HOOK, .bytes = sizeof(hook) },
				  .key = patch_key(file, patch->at),
				  .form = patch->trap ? PLAN_HOOK_TRAP : PLAN_HOOK_JUMP,
				  .flags = flags,
				  .rights = rights_at(file->module, patch->at),
				  .covered = (uint32_t)patch->covered,
				  .before = (uint32_t)patch->before };

	if (!module_read(file->module, patch->at, hook.expected, patch->covered)) {
		/* Padding behind the last function of a segment may lie in no file. */
		return err_set(err, -ENOTSUP, "'%s' cannot be hooked: it ends the file", name);
	}
	hook.flags |= patch->moved.pushes ? PLAN_HOOK_PUSHES : 0;
	if (patch->kind != PATCH_ENTRY)
		hook.flags |= PLAN_HOOK_EXIT;
	if (patch->kind == PATCH_TAIL) {
		hook.flags |= PLAN_HOOK_TAIL;
		hook.tail_target = (int64_t)patch->tail_target;
	}
	fill_place(file, patch->at, &hook.place);
	fill_moved(patch, &hook);
	memcpy(hook.label, name, strnlen(name, sizeof(hook.label) - 1));
	strbuf_add(items, &hook, sizeof(hook));
	return 0;
}

static void add_action(const struct file *file, const struct patch *patch,
		       enum plan_action_what what, const struct hook_use *use, uint32_t number,
		       struct strbuf *items)
{
	struct plan_action action = { .item = { .type = PLAN_ITEM_ACTION, .bytes = sizeof(action) },
				      .key = patch_key(file, patch->at),
				      .what = what,
				      .number = number,
				      .pointer = (uint8_t)use->pointer,
				      .size = (uint8_t)use->size,
				      .count = (uint8_t)use->count,
				      .fixed_size = use->fixed_size };

	strbuf_add(items, &action, sizeof(action));
}

struct use_plan {
	enum plan_action_what enter, leave; /* 0: none there */
};

static const struct use_plan use_plans[] = {
	[HOOK_WATCH_ARGUMENT] = { .enter = PLAN_WATCH_ARGUMENT },
	[HOOK_WATCH_RESULT] = { .leave = PLAN_WATCH_RESULT },
	[HOOK_ALLOC] = { .enter = PLAN_ALLOC_ENTER, .leave = PLAN_ALLOC_LEAVE },
	[HOOK_FREE] = { .enter = PLAN_FREE },
	[HOOK_REALLOC] = { .enter = PLAN_REALLOC_ENTER, .leave = PLAN_REALLOC_LEAVE },
	[HOOK_SIGHT_ARGUMENTS] = { .enter = PLAN_SIGHT_ENTER },
	[HOOK_SIGHT_BOTH] = { .enter = PLAN_SIGHT_ENTER, .leave = PLAN_SIGHT_LEAVE },
	[HOOK_WATCH_FRAME] = { .enter = PLAN_WATCH_FRAME, .leave = PLAN_FRAME_LEAVE },
	[HOOK_WATCH_ENTERED] = { .enter = PLAN_WATCH_FRAME },
	[HOOK_REPLACE] = { .enter = PLAN_REPLACE },
	[HOOK_PLACE_PYTHON] = { .enter = PLAN_PLACE_PYTHON },
};

static bool needs_arguments(const struct hook_use *use)
{
	return use->pointer != HOOK_NO_ARGUMENT || use->size != HOOK_NO_ARGUMENT ||
	       use->count != HOOK_NO_ARGUMENT;
}

/* Functions that the agent stands in front of, or calls itself on its way into a hook. */
static const char *const followed[] = { "malloc",   "calloc",	     "realloc",	       "free",
					"memalign", "aligned_alloc", "posix_memalign", "valloc",
					"pvalloc",  "reallocarray" };
static const char *const called[] = { "memcpy",	 "memmove",	  "memset",
				      "memcmp",	 "bcmp",	  "memchr",
				      "strlen",	 "strnlen",	  "strchr",
				      "strrchr", "strcmp",	  "strstr",
				      "strcspn", "clock_gettime", "pthread_setspecific" };

static int check_own(const struct file *file, const struct function *function,
		     const struct hook_use *use, struct err *err)
{
	bool allocates =
		use->role == HOOK_ALLOC || use->role == HOOK_FREE || use->role == HOOK_REALLOC;

	if (strncmp(cstr_base(file->path), "libc.", 5) != 0 &&
	    strncmp(cstr_base(file->path), "libc-", 5) != 0)
		return 0;
	if (allocates && cstr_among(function->name, followed, ARRAY_SIZE(followed)))
		return err_set(err, -EINVAL, "redhand follows '%s' without being asked",
			       function->name);
	if (cstr_among(function->name, called, ARRAY_SIZE(called)))
		return err_set(err, -ENOTSUP, "'%s' cannot be hooked: redhand uses it inside hooks",
			       function->name);
	return 0;
}

static int check_kind(const struct function *function, const struct hook_use *use, struct err *err)
{
	switch (function->kind) {
	case FUNCTION_IFUNC:
		(void)err_set(err, -ENOTSUP,
			      "'%s' only chooses, when the program starts, which function to use",
			      function->name);
		return err_set_remedy(err, "hook the function that it chooses, by its own name");
	case FUNCTION_PART:
		return err_set(err, -ENOTSUP,
			       "the beginning of '%s' was inlined in places that go on in '%s'",
			       function->name, function->symbol);
	case FUNCTION_COPY:
		if (needs_arguments(use))
			return err_set(
				err, -ENOTSUP,
				"'%s' is a copy that the compiler made of '%s', and it may take "
				"other arguments",
				function->symbol, function->name);
		return 0;
	case FUNCTION_PLAIN:
		break;
	}
	return 0;
}

static int add_patch(const struct file *file, const struct patch *patch,
		     const struct function *function, enum plan_action_what what,
		     const struct hook_use *use, uint32_t number, struct strbuf *items,
		     struct err *err)
{
	int r = add_hook(file, patch, function->name, 0, items, err);

	if (r == 0)
		add_action(file, patch, what, use, number, items);
	return r;
}

static int add_patches(struct hook_planner *planner, const struct file *file,
		       const struct function *function, const struct patches *patches,
		       const struct hook_use *use, struct strbuf *items, struct err *err)
{
	const struct use_plan *plan = &use_plans[use->role];
	bool pairs = use->role == HOOK_ALLOC || use->role == HOOK_REALLOC;
	uint32_t number = pairs ? planner->pairs++ : use->number;
	size_t traps = 0;
	int r = 0;

	if (plan->leave != 0 && patches->no_exits.code != 0) {
		(void)err_set(err, -ENOTSUP, "what '%s' returns cannot be seen: %s", function->name,
			      patches->no_exits.message);
		return err_set_remedy(err, "hook the function that it ends in, or build with "
					   "-fno-optimize-sibling-calls and -g");
	}
	VEC_FOREACH (&patches->list, patch) {
		enum plan_action_what what = patch->kind == PATCH_ENTRY ? plan->enter : plan->leave;

		if (r < 0 || what == 0)
			continue;
		r = add_patch(file, patch, function, what, use, number, items, err);
		traps += patch->trap;
	}
	if (r == 0 && traps > 0)
		NOTE(planner, "hook-note:breakpoint", said_text(function->name),
		     said_number(traps));
	return r;
}

static int plan_function(struct hook_planner *planner, struct file *file,
			 const struct function *function, const struct hook_use *use,
			 struct strbuf *items, struct err *err)
{
	AUTO(shape_deinit) struct shape shape = { 0 };
	AUTO(patches_deinit) struct patches patches = { 0 };
	int r = check_own(file, function, use, err);

	if (r == 0)
		r = check_kind(function, use, err);
	if (r == 0)
		r = shape_read(file->module, function, &shape, err);
	if (r == 0)
		r = patches_plan(&shape, &patches, err);
	if (r == 0)
		r = add_patches(planner, file, function, &patches, use, items, err);
	if (r == 0 && shape.loops_to_entry && use_plans[use->role].enter != 0)
		NOTE(planner, "hook-note:loop", said_text(function->name));
	return r;
}

/* The loader calls an empty function whenever its list of libraries has changed (for debuggers:
 * <link.h>, r_brk), after it mapped a library and before it runs anything in it. */
static void plan_loader(struct hook_planner *planner, struct strbuf *items)
{
	AUTO(functions_deinit) struct functions found = { 0 };
	AUTO(shape_deinit) struct shape shape = { 0 };
	AUTO(patches_deinit) struct patches patches = { 0 };
	struct file *loader = NULL;

	if (planner->loader_planned || !planner->libraries.loader)
		return;
	planner->loader_planned = true;
	loader = find_file(planner, planner->libraries.loader, NULL);
	if (loader && open_file(loader, NULL)) {
		functions_find(loader->module, LOADER_NOTICE, &found);
		if (found.list.count == 1 &&
		    shape_read(loader->module, &found.list.items[0], &shape, NULL) == 0 &&
		    patches_plan(&shape, &patches, NULL) == 0 && !patches.list.items[0].trap &&
		    add_hook(loader, &patches.list.items[0], LOADER_NOTICE, PLAN_HOOK_LOADER, items,
			     NULL) == 0)
			return;
	}
	NOTE(planner, "hook-note:loader");
}

static void note_inlined(struct hook_planner *planner, struct file *file, const char *name)
{
	bool any;
	size_t inlined = functions_inlined(file->module, name, &any);

	if (inlined > 0)
		NOTE(planner, "hook-note:inlined", said_number(inlined), said_text(name));
}

/* A copy of the function: what goes through it is seen by no other hook. */
static void plan_copy(struct hook_planner *planner, struct file *file, struct function *copy,
		      const struct hook_use *use, struct strbuf *items)
{
	struct err why = { 0 };

	copy->arguments_in_registers = true;
	if (plan_function(planner, file, copy, use, items, &why) < 0)
		NOTE(planner, "hook-note:unseen", said_text(why.message));
}

/* A function, or what `inner` of its use says. */
static int plan_whole(struct hook_planner *planner, struct file *file,
		      const struct function *function, const struct hook_use *use,
		      struct strbuf *items, struct err *err)
{
	AUTO(functions_deinit) struct functions others = { 0 };
	struct function inner = { 0 }, copy = { 0 }, known = *function; /* which owns nothing */
	bool begins = use->inner && function_begins_with(file->module, function, &inner);
	uint64_t table, caller;
	int r;

	if (begins)
		known = inner;
	known.arguments_in_registers |= use->inner != NULL;
	r = plan_function(planner, file, &known, use, items, err);
	if (r == 0 && use->inner && !begins)
		functions_find(file->module, use->inner, &others);
	VEC_FOREACH (&others.list, other)
		plan_copy(planner, file, other, use, items);
	if (r == 0 && use->caller_in && module_symbol(file->module, use->caller_in, &table) &&
	    module_read(file->module, table + use->caller_at, &caller, sizeof(caller)) &&
	    function_calls_instead(file->module, caller, function->entry, &copy)) {
		bool planned = copy.entry == known.entry;

		VEC_FOREACH (&others.list, other)
			planned |= other->entry == copy.entry;
		if (!planned)
			plan_copy(planner, file, &copy, use, items);
	}
	function_deinit(&copy);
	function_deinit(&inner);
	return r;
}

/* All functions of the name in one file. 0 when there is none, 1 when they are planned. */
static int plan_named(struct hook_planner *planner, struct file *file, const char *name,
		      const struct hook_use *use, struct strbuf *items, struct err *err)
{
	AUTO(functions_deinit) struct functions found = { 0 };
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	size_t hooked = 0;
	int r = 0;

	if (planner->scoped)
		functions_find_scoped(file->module, name, &found);
	else
		functions_find(file->module, name, &found);
	if (found.list.count == 0)
		return 0;
	if (found.list.count > FUNCTIONS_MAX) {
		(void)err_set(err, -ENOTSUP, "there are %zu functions called '%s'",
			      found.list.count, name);
		return err_set_remedy(err, "the name with its parameters, as in '%s'",
				      found.list.items[0].name);
	}
	VEC_FOREACH (&found.list, function) {
		struct err why = { 0 };

		r = plan_whole(planner, file, function, use, &planned, &why);
		hooked += r == 0;
		if (r < 0 && err)
			*err = why;
		/* The function itself costs all calls, a copy of it only some. */
		if (r < 0 && function->kind == FUNCTION_PLAIN)
			return r;
		if (r < 0)
			NOTE(planner, "hook-note:unseen", said_text(why.message));
	}
	if (hooked == 0)
		return r;
	if (err)
		*err = (struct err){ 0 };
	strbuf_add(items, planned.data, planned.len);
	note_inlined(planner, file, name);
	return 1;
}

static bool is_ours(const char *path)
{
	return strncmp(cstr_base(path), "libredhand-agent", 16) == 0;
}

static bool seen_any(const struct hook_planner *planner)
{
	return VEC_ANY(&planner->files, file, file->late && !file->named);
}

/* A name like this one, and in which file; the caller's to free, NULL: there is none. */
static char *find_near(struct hook_planner *planner, struct file *only, const char *name,
		       struct file **ret)
{
	char *near = NULL;

	for (size_t i = 0; !near && i < planner->files.count; i++) {
		struct file *other = only ? only : &planner->files.items[i];

		near = !is_ours(other->path) && open_file(other, NULL)
			       ? functions_near(other->module, name)
			       : NULL;
		if (near)
			*ret = other;
		if (only)
			break;
	}
	return near;
}

static int not_found(struct hook_planner *planner, struct file *only, const char *name,
		     struct err *err)
{
	AUTO(mem_freep) char *near = NULL;
	struct file *file = only ? only : &planner->files.items[0];
	bool any = false;

	if (file->module && functions_inlined(file->module, name, &any) > 0 && any) {
		(void)err_set(
			err, -ENOENT,
			"every call of '%s' was inlined by the compiler: there is no function "
			"left to hook",
			name);
		return err_set_remedy(
			err, "build it with __attribute__((noinline)) or -fno-inline, or hook "
			     "a function that calls it");
	}
	near = find_near(planner, only, name, &file);
	(void)err_set(err, -ENOENT, "there is no function '%s' in '%s'%s%s%s%s", name,
		      cstr_base(file->path),
		      only		  ? ""
		      : seen_any(planner) ? " or what else was seen to be loaded"
					  : " or the libraries it is linked with",
		      near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
	if (near)
		return err ? err->code : -ENOENT;
	if (seen_any(planner) && planner->unseen)
		return err_set_remedy(err, "'%s' ran unobserved: it may be in there",
				      planner->unseen);
	return err_set_remedy(
		err, "FILE!name for a function of another file, FILE+0xADDRESS where names are "
		     "stripped");
}

static int plan_address(struct hook_planner *planner, struct file *file, uint64_t at,
			const struct hook_use *use, struct strbuf *items, struct err *err)
{
	struct function function;
	int r;

	if (!functions_at(file->module, at, &function)) {
		(void)err_set(err, -ENOENT, "no function begins at 0x%llx of '%s'%s%s%s",
			      (unsigned long long)at, cstr_base(file->path),
			      function.name ? ": it is inside '" : "",
			      function.name ? function.name : "", function.name ? "'" : "");
		r = err_set_remedy(err,
				   "the address of its first instruction, as objdump -d shows it");
	} else {
		r = plan_function(planner, file, &function, use, items, err);
	}
	function_deinit(&function);
	return r;
}

/* Splits FILE!name and FILE+0xADDRESS; `ret_name` points into `text`. */
static char *split_file(const char *text, const char **ret_name)
{
	const char *mark = strrchr(text, '!');
	const char *plus = strstr(text, "+0x");

	if (!mark && plus && plus[3] != '\0' &&
	    plus[3 + strspn(plus + 3, "0123456789abcdefABCDEF")] == '\0')
		mark = plus;
	*ret_name = mark ? mark + 1 : text;
	return mark ? mem_strndup(text, (size_t)(mark - text)) : NULL;
}

static int plan_in(struct hook_planner *planner, struct file *file, const char *name,
		   const struct hook_use *use, struct strbuf *items, struct err *err)
{
	char *end;
	uint64_t at;

	if (!open_file(file, err))
		return err ? err->code : -ENOEXEC;
	if (strncmp(name, "0x", 2) == 0) {
		at = strtoull(name, &end, 16);
		if (*end != '\0' || end == name + 2)
			return err_set(err, -EINVAL, "'%s' is no address", name);
		return plan_address(planner, file, at, use, items, err) < 0
			       ? err ? err->code : -ENOENT
			       : 1;
	}
	return plan_named(planner, file, name, use, items, err);
}

/* In the first file that has it; of programs that the command starts, in all that have it. As
 * plan_named(); `ret_file` is the first one. */
static int plan_anywhere(struct hook_planner *planner, const char *name, const struct hook_use *use,
			 struct strbuf *items, struct file **ret_file, struct err *err)
{
	struct file *first = NULL;

	VEC_FOREACH (&planner->files, file) {
		int r;

		if (file->named || is_ours(file->path) || (first && !(file->main && file->late)) ||
		    !open_file(file, NULL))
			continue;
		r = plan_in(planner, file, name, use, items, first ? NULL : err);
		if (r < 0 && !first)
			return r;
		if (r <= 0)
			continue;
		if (!first)
			first = file;
		if (!(first->main && first->late))
			break;
	}
	*ret_file = first;
	return first != NULL;
}

/* A name that is whole goes before one that is the end of another. */
static int plan_by_name(struct hook_planner *planner, struct file *only, const char *name,
			const struct hook_use *use, struct strbuf *planned, struct file **ret_found,
			struct err *err)
{
	int r = 0;

	for (int scoped = 0; scoped < 2 && r == 0; scoped++) {
		planner->scoped = scoped > 0;
		r = only ? plan_in(planner, only, name, use, planned, err)
			 : plan_anywhere(planner, name, use, planned, ret_found, err);
	}
	return r;
}

int hook_plan(struct hook_planner *planner, const char *text, const struct hook_use *use,
	      struct strbuf *items, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	AUTO(mem_freep) char *named = NULL;
	struct file *only = NULL, *found = NULL;
	const char *name;
	int r;

	named = split_file(text, &name);
	if (name[0] == '\0')
		return err_set(err, -EINVAL, "'%s' names no function", text);
	if (named || strncmp(name, "0x", 2) == 0) {
		only = named ? find_file(planner, named, err) : &planner->files.items[0];
		if (!only)
			return err ? err->code : -ENOENT;
	}
	r = plan_by_name(planner, only, name, use, &planned, &found, err);
	if (r == 0)
		return not_found(planner, only, name, err);
	if (r < 0)
		return r;
	if (only)
		found = only;
	if (found->late && !found->main)
		plan_loader(planner, &planned);
	if (!only && found != planner->files.items)
		NOTE(planner, "hook-note:found-in", said_text(name),
		     said_text(cstr_base(found->path)));
	strbuf_add(items, planned.data, planned.len);
	return 0;
}

/* The one that others see by this name. */
static const struct function *exported(const struct functions *found, const char *symbol)
{
	return VEC_FIND(&found->list, function,
			function->kind == FUNCTION_PLAIN && function->global && function->symbol &&
				strcmp(function->symbol, symbol) == 0);
}

/* By another of its names. Asked before its code is looked at, which takes long. */
static bool replaced_before(const struct strbuf *items, const struct file *file,
			    const struct function *function)
{
	uint64_t first = patch_key(file, function->entry);
	uint64_t behind = patch_key(file, function->entry + PATCHES_ENTRY_MARK);
	struct plan_action action;

	for (size_t at = 0; items->len - at >= sizeof(action.item); at += action.item.bytes) {
		memcpy(&action.item, items->data + at, sizeof(action.item));
		if (action.item.type != PLAN_ITEM_ACTION)
			continue;
		memcpy(&action, items->data + at, sizeof(action));
		if (action.what == PLAN_REPLACE && (action.key == first || action.key == behind))
			return true;
	}
	return false;
}

static int replace_function(const struct file *file, const struct function *function,
			    const struct hook_use *use, bool slow, struct strbuf *items,
			    struct err *err)
{
	AUTO(shape_deinit) struct shape shape = { 0 };
	AUTO(patches_deinit) struct patches patches = { 0 };
	const struct patch *entry;
	int r;

	if (replaced_before(items, file, function))
		return 0;
	r = shape_read(file->module, function, &shape, err);
	if (r == 0)
		r = patches_plan(&shape, &patches, err);
	if (r < 0)
		return r;
	entry = &patches.list.items[0];
	if (entry->trap && !slow)
		return err_set(err, -ENOTSUP, "'%s' has no room for a jump", function->name);
	r = add_hook(file, entry, function->name,
		     function_leaves(file->module, function) ? 0 : PLAN_HOOK_KEEP, items, err);
	if (r == 0)
		add_action(file, entry, PLAN_REPLACE, use, use->number, items);
	return r;
}

int hook_plan_replace(struct hook_planner *planner, const char *program, const char *symbol,
		      uint32_t number, bool slow, struct strbuf *items, struct err *err)
{
	AUTO(functions_deinit) struct functions found = { 0 };
	struct hook_use use = { .role = HOOK_REPLACE,
				.number = number,
				.pointer = HOOK_NO_ARGUMENT,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT };
	const struct function *function;
	struct file *file = find_file(planner, program, err);

	if (!file || !open_file(file, err))
		return err ? err->code : -ENOEXEC;
	functions_find(file->module, symbol, &found);
	function = exported(&found, symbol);
	if (!function)
		return err_set(err, -ENOENT, "there is no function '%s' in '%s'", symbol,
			       cstr_base(file->path));
	return replace_function(file, function, &use, slow, items, err);
}

int hook_plan_watch(struct hook_planner *planner, const char *function, int argument,
		    uint32_t watch, struct strbuf *items, struct err *err)
{
	struct hook_use use = { .role = argument < 0 ? HOOK_WATCH_RESULT : HOOK_WATCH_ARGUMENT,
				.number = watch,
				.pointer = argument < 0 ? HOOK_NO_ARGUMENT : (unsigned int)argument,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT };

	if (argument >= (int)PLAN_ARGUMENTS)
		return err_set(err, -EINVAL,
			       "only the first %u integer arguments are in registers, from arg0 on",
			       PLAN_ARGUMENTS);
	return hook_plan(planner, function, &use, items, err);
}
