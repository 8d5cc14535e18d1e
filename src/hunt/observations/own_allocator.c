#include "hunt/observations/own_allocator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "debuginfo/functions.h"
#include "debuginfo/module.h"
#include "plan/hooks/allocator.h"
#include "wire/log_format.h"
#include "wire/plan.h"

#define WINDOW_BYTES 16384u /* functions of one source file lie together */
#define FUNCTIONS_MAX 64u
#define OBJECTS_MAX 64u
#define AGAIN_MIN 8u /* an object came back so often, in all… */
#define TWICE_MIN 2u /* …and so many of them did */

static bool is_system(const char *module)
{
	static const char *const names[] = { "libc.",	   "libc-",	 "ld-",
					     "libstdc++.", "libpthread", "libredhand-agent" };
	const char *slash = strrchr(module, '/');
	const char *name = slash ? slash + 1 : module;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool add(struct allocator_probe *probe, struct module *module, const char *path, uint64_t at)
{
	struct function function = { 0 };
	char *hook = mem_printf("%s+0x%" PRIx64, path, at);
	bool known = functions_at(module, at, &function);

	VEC_FOREACH (&probe->list, other)
		known = known && strcmp(other->hook, hook) != 0;
	if (known && probe->list.count < FUNCTIONS_MAX)
		VEC_PUSH(&probe->list,
			 ((struct probed_function){
				 .hook = TAKE(hook),
				 .name = function.name ? mem_strdup(function.name)
						       : mem_printf("0x%" PRIx64, at) }));
	known = hook == NULL;
	mem_free(hook);
	function_deinit(&function);
	return known;
}

/* Near ones first: up and down by turns would need an order that the file does not give. */
static void add_near(struct allocator_probe *probe, struct module *module, const char *path,
		     const struct function_range *around)
{
	uint64_t low = around->low > WINDOW_BYTES ? around->low - WINDOW_BYTES : 0;
	uint64_t at = functions_next(module, around->high);

	for (; at < around->high + WINDOW_BYTES && probe->list.count < FUNCTIONS_MAX * 5 / 8;
	     at = functions_next(module, at + 1))
		(void)add(probe, module, path, at);
	/* Those before it, nearest last: the window is cut so that it holds the nearest. */
	for (uint64_t from = around->low, step = WINDOW_BYTES / 16;
	     from > low && probe->list.count<FUNCTIONS_MAX; from -= from> step ? step : from) {
		uint64_t piece = from > step ? from - step : 0;

		for (at = functions_next(module, piece); at < from;
		     at = functions_next(module, at + 1))
			(void)add(probe, module, path, at);
	}
}

bool allocator_probe_begin(const struct stack *allocated, uint64_t stack_hash,
			   struct allocator_probe *ret)
{
	AUTO(module_closep) struct module *inner = NULL;
	struct function_range around = { 0 };
	char *path = NULL;

	ret->stack_hash = stack_hash;
	for (size_t i = 0; i < allocated->count && ret->list.count < PLAN_SIGHT_MAKERS; i++) {
		const struct frame *frame = &allocated->frames[i];
		AUTO(module_closep) struct module *module = NULL;
		struct function_range range;

		if (!frame->module || frame->offset == 0 || frame->kind == FRAME_PYTHON ||
		    is_system(frame->module))
			continue;
		if (path && strcmp(path, frame->module) != 0)
			break; /* another file's business */
		if (module_open(frame->module, NULL, &module, NULL) < 0 ||
		    !functions_piece(module, frame->offset - 1, &range) ||
		    !add(ret, module, frame->module, range.low))
			continue;
		if (!path) {
			path = mem_strdup(frame->module);
			around = range;
			inner = TAKE(module);
		}
	}
	ret->makers = ret->list.count;
	if (inner)
		add_near(ret, inner, path, &around);
	mem_free(path);
	return ret->makers > 0 && ret->list.count > ret->makers;
}

void allocator_probe_deinit(struct allocator_probe *probe)
{
	VEC_FREE(&probe->list, function, MEM_FREE(function->hook, function->name));
	*probe = (struct allocator_probe){ 0 };
}

void allocator_probe_plan(const struct allocator_probe *probe, struct hook_planner *planner,
			  struct strbuf *items)
{
	for (size_t i = 0; i < probe->list.count; i++) {
		struct hook_use use = { .role = i < probe->makers ? HOOK_SIGHT_BOTH
								  : HOOK_SIGHT_ARGUMENTS,
					.number = (uint32_t)i,
					.pointer = HOOK_NO_ARGUMENT,
					.size = HOOK_NO_ARGUMENT,
					.count = HOOK_NO_ARGUMENT,
					.fixed_size = probe->stack_hash };

		(void)hook_plan(planner, probe->list.items[i].hook, &use, items, NULL);
	}
}

/* Functions and arguments by which an object may go back. Registers keep what was in them: a
 * function without arguments seems to be given what the one before it was. So it need not be the
 * last each time, only mostly. */
#define PAIRS_MAX (FUNCTIONS_MAX * 4u)

/* An object, since it was handed out. */
struct object {
	uint64_t address;
	bool handed, came_back;
	uint32_t last; /* pair; PAIRS_MAX: none */
	uint8_t given[PAIRS_MAX];
};

struct judgement {
	struct object objects[OBJECTS_MAX];
	size_t count;
	size_t again;		/* times that an object came back */
	size_t once[PAIRS_MAX]; /* …having gone through this pair once… */
	size_t last[PAIRS_MAX]; /* …and through none after it */
};

static struct object *object_at(struct judgement *judgement, uint64_t address)
{
	for (size_t i = 0; i < judgement->count; i++)
		if (judgement->objects[i].address == address)
			return &judgement->objects[i];
	if (judgement->count == OBJECTS_MAX)
		return NULL;
	judgement->objects[judgement->count] = (struct object){ .address = address };
	return &judgement->objects[judgement->count++];
}

static void handed_out(struct judgement *judgement, struct object *object)
{
	if (object->handed) {
		judgement->again++;
		object->came_back = true;
		for (uint32_t i = 0; i < PAIRS_MAX; i++)
			judgement->once[i] += object->given[i] == 1;
		if (object->last < PAIRS_MAX)
			judgement->last[object->last]++;
	}
	object->handed = true;
	object->last = PAIRS_MAX;
	memset(object->given, 0, sizeof(object->given));
}

static void judge_maker(const struct object_trace *observations, size_t count, uint32_t maker,
			size_t makers, struct judgement *judgement)
{
	*judgement = (struct judgement){ 0 };
	for (size_t i = 0; i < count; i++) {
		const struct object_trace *s = &observations[i];
		struct object *object = object_at(judgement, s->object);

		if (!object || s->function >= FUNCTIONS_MAX)
			continue;
		if (s->function == maker && s->argument == LOG_SIGHT_RESULT) {
			handed_out(judgement, object);
		} else if (s->function >= makers && s->argument < 4 && object->handed &&
			   !(s->inside & 1u << maker)) {
			object->last = s->function * 4 + s->argument;
			if (object->given[object->last] < 2)
				object->given[object->last]++;
		}
	}
}

/* The pair that every object went through exactly once each time, and mostly last. */
static uint32_t best_pair(const struct judgement *judgement)
{
	uint32_t best = PAIRS_MAX;
	size_t objects = 0;

	for (size_t i = 0; i < judgement->count; i++)
		objects += judgement->objects[i].came_back;
	if (judgement->again < AGAIN_MIN || objects < TWICE_MIN)
		return PAIRS_MAX;
	for (uint32_t i = 0; i < PAIRS_MAX; i++)
		if (judgement->once[i] == judgement->again &&
		    judgement->last[i] * 2 > judgement->again &&
		    (best == PAIRS_MAX || judgement->last[i] > judgement->last[best]))
			best = i;
	return best;
}

int allocator_probe_judge(const struct object_trace *observations, size_t count, size_t makers,
			  uint32_t *ret_taker, unsigned int *ret_argument, size_t *ret_times)
{
	AUTO(mem_freep) struct judgement *judgement = mem_alloc(sizeof(*judgement));

	for (size_t maker = 0; maker < makers; maker++) {
		uint32_t pair;

		judge_maker(observations, count, (uint32_t)maker, makers, judgement);
		pair = best_pair(judgement);
		if (pair == PAIRS_MAX)
			continue;
		*ret_taker = pair / 4;
		*ret_argument = pair % 4;
		*ret_times = judgement->again;
		return (int)maker;
	}
	return -1;
}

/* Of blocks that are objects, their size; of pieces of a block, how far they lie apart. 0: it does
 * not come out. */
static uint64_t object_size(const struct object_trace *observations, size_t count, bool *ret_whole)
{
	uint64_t size = UINT64_MAX;
	bool whole = true;

	for (size_t i = 0; i < count; i++)
		whole = whole && observations[i].object == observations[i].start;
	for (size_t i = 0; i < count; i++) {
		if (whole && observations[i].size < size)
			size = observations[i].size;
		for (size_t k = 0; !whole && k < count; k++)
			if (observations[k].start == observations[i].start &&
			    observations[k].object > observations[i].object &&
			    observations[k].object - observations[i].object < size)
				size = observations[k].object - observations[i].object;
	}
	*ret_whole = whole;
	return size == UINT64_MAX ? 0 : size;
}

static void say(const struct allocator_probe *probe, size_t maker, uint32_t taker, size_t times,
		struct own_allocator *ret)
{
	const char *hands_out = probe->list.items[maker].name;
	const char *takes_back = probe->list.items[taker].name;

	SAY(&ret->basis, "allocator:inferred", said_text(takes_back), said_text(hands_out),
	    said_number(times), said_number(ret->size), said_number(ret->argument));
}

#define SIGHTS_MAX 4096u /* of object_size(), which compares each with each */

void allocator_probe_read(const struct allocator_probe *probe, struct event_logs *logs,
			  struct own_allocator *ret)
{
	VEC_FOREACH (&logs->list, log) {
		VEC(struct object_trace) observations = { 0 };
		struct log_item item;
		uint32_t taker;
		size_t times;
		int maker;

		log_reader_rewind(&log->reader);
		while (!ret->found && log_reader_next(&log->reader, &item)) {
			struct log_sight s;

			if (item.head.type == LOG_SIGHT && log_payload(&item, &s, sizeof(s)) &&
			    s.function < probe->list.count)
				VEC_PUSH(&observations,
					 ((struct object_trace){ .object = s.object,
								 .start = s.start,
								 .size = s.size,
								 .function = s.function,
								 .argument = s.argument,
								 .inside = s.inside }));
		}
		maker = allocator_probe_judge(observations.items, observations.count, probe->makers,
					      &taker, &ret->argument, &times);
		if (maker >= 0)
			ret->size = object_size(observations.items,
						observations.count < SIGHTS_MAX ? observations.count
										: SIGHTS_MAX,
						&ret->whole);
		if (maker >= 0 && ret->size > 0) {
			ret->found = true;
			ret->stack_hash = probe->stack_hash;
			ret->hands_out = mem_strdup(probe->list.items[maker].hook);
			ret->takes_back = mem_strdup(probe->list.items[taker].hook);
			say(probe, (size_t)maker, taker, times, ret);
		}
		VEC_DEINIT(&observations);
		if (ret->found)
			return;
	}
}

/* The function of the program's own that called malloc. */
static const char *innermost_function(const struct stack *allocated)
{
	for (size_t i = 0; i < allocated->count; i++)
		if (allocated->frames[i].module && !is_system(allocated->frames[i].module))
			return allocated->frames[i].function;
	return NULL;
}

/* FILE!NAME says where a function is. */
static bool is_function(const char *hook, const char *name)
{
	const char *mark = strchr(hook, '!');

	return name && strcmp(mark ? mark + 1 : hook, name) == 0;
}

static bool is_on(const struct stack *allocated, const char *hook)
{
	for (size_t i = 0; i < allocated->count; i++)
		if (is_function(hook, allocated->frames[i].function))
			return true;
	return false;
}

void own_allocator_take_given(const struct strv *allocators, const struct stack *allocated,
			      uint64_t stack_hash, uint64_t block_size, struct own_allocator *ret)
{
	for (size_t i = 0; !ret->found && i < allocators->count; i++) {
		uint64_t size;
		char *hook;

		for (size_t n = 0;
		     (hook = allocator_hands_out(allocators->items[i], n, &size)) && !ret->found;
		     n++) {
			if (!is_on(allocated, hook)) {
				mem_free(hook);
				continue;
			}
			*ret = (struct own_allocator){
				.found = true,
				.given = allocators,
				.stack_hash = stack_hash,
				.size = size,
				.whole = is_function(hook, innermost_function(allocated)) &&
					 (size == 0 || block_size < 2 * size),
				.hands_out = hook
			};
			SAY(&ret->basis, "allocator:given", said_text(hook));
			return;
		}
	}
}

static int plan_given(const struct own_allocator *own, struct hook_planner *planner,
		      struct strbuf *items, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < own->given->count; i++)
		r = allocator_plan(planner, own->given->items[i], items, err);
	return r;
}

int own_allocator_plan(const struct own_allocator *own, struct hook_planner *planner,
		       struct strbuf *items, struct err *err)
{
	struct hook_use use = { .role = HOOK_ALLOC,
				.pointer = HOOK_NO_ARGUMENT,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT,
				.fixed_size = own->size };
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	int r;

	if (own->given)
		return plan_given(own, planner, items, err);
	r = hook_plan(planner, own->hands_out, &use, &planned, err);

	use = (struct hook_use){ .role = HOOK_FREE,
				 .pointer = own->argument,
				 .size = HOOK_NO_ARGUMENT,
				 .count = HOOK_NO_ARGUMENT };
	if (r == 0)
		r = hook_plan(planner, own->takes_back, &use, &planned, err);
	if (r == 0)
		strbuf_add(items, planned.data, planned.len);
	return r;
}

void own_allocator_deinit(struct own_allocator *own)
{
	mem_free(own->hands_out);
	mem_free(own->takes_back);
	said_deinit(&own->basis);
	*own = (struct own_allocator){ 0 };
}
