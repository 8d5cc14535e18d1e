#include "read/field_names.h"

#include <string.h>

#include "debuginfo/types.h"

/* Frames of an allocation that are asked, beginning with the innermost. */
#define FRAMES_ASKED 8

struct module_types {
	char *path;
	struct types *types; /* NULL: it has none, or cannot be read */
};

/* What was asked before. */
struct answer {
	const char *module; /* of a module_types */
	struct type_place place;
	char *name; /* NULL: it cannot be told */
};

struct namer {
	VEC(struct module_types) modules;
	VEC(struct answer) answers;
};

static struct module_types *module_of(struct namer *namer, const char *path)
{
	struct module_types module = { 0 };

	VEC_FOREACH (&namer->modules, m)
		if (strcmp(m->path, path) == 0)
			return m;
	module.path = mem_strdup(path);
	if (types_open(path, &module.types, NULL) < 0)
		module.types = NULL;
	VEC_PUSH(&namer->modules, module);
	return &namer->modules.items[namer->modules.count - 1];
}

static const char *ask(struct namer *namer, const char *path, const struct type_place *place)
{
	struct module_types *module = module_of(namer, path);
	struct answer answer = { .module = module->path, .place = *place };

	VEC_FOREACH (&namer->answers, a)
		if (strcmp(a->module, path) == 0 && memcmp(&a->place, place, sizeof(*place)) == 0)
			return a->name;
	if (!module->types || types_field_at(module->types, place, &answer.name, NULL) < 0)
		answer.name = NULL;
	VEC_PUSH(&namer->answers, answer);
	return answer.name;
}

/* How many frames of an allocation are asked: from malloc outwards to the one that says most.
 * Wrappers in between return void *. */
static size_t frames_asked(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);
	size_t count = 0;

	while (count < stack->count && count < FRAMES_ASKED) {
		const struct frame *frame = &stack->frames[count++];

		if (site && frame >= site && frame->kind != FRAME_INLINE)
			break;
	}
	return count;
}

static bool place_of(const struct frame *frame, struct type_place *place)
{
	/* A return address may belong to the next function already. */
	place->address = frame->flags & FRAME_EXACT ? frame->offset : frame->offset - 1;
	return frame->kind == FRAME_NATIVE && frame->module && frame->module[0] == '/' &&
	       frame->offset > 0 && !(frame->flags & FRAME_FILE_REPLACED);
}

static const char *name_in(struct namer *namer, const struct block_life *block, int64_t offset,
			   uint64_t len)
{
	struct type_place place = { .size = block->size, .offset = (uint64_t)offset, .len = len };
	const char *name = NULL;

	for (size_t i = 0; i < frames_asked(&block->allocated) && !name; i++) {
		const struct frame *frame = &block->allocated.frames[i];

		if (place_of(frame, &place))
			name = ask(namer, frame->module, &place);
	}
	return name;
}

bool block_layout_read(const struct block_life *block, struct block_layout *ret)
{
	struct type_place place = { .size = block->size };

	for (size_t i = 0; i < frames_asked(&block->allocated); i++) {
		const struct frame *frame = &block->allocated.frames[i];
		AUTO(types_closep) struct types *types = NULL;

		if (place_of(frame, &place) && types_open(frame->module, &types, NULL) == 0 &&
		    types_layout_at(types, &place, ret, NULL) == 0) {
			ret->by = mem_strdup(frame->function ? frame->function : frame->module);
			return true;
		}
	}
	return false;
}

static void name_home(struct namer *namer, struct home *home, const struct block_life *block)
{
	const char *name;

	if (home->kind != HOME_BLOCK || home->field || !block || home->offset < 0 ||
	    block->size == 0)
		return;
	name = name_in(namer, block, home->offset, home->len);
	if (name)
		home->field = mem_strdup(name);
}

static void name_write(struct namer *namer, struct write_seen *write)
{
	if (write)
		name_home(namer, &write->home, write->victim);
}

static void name_race(struct namer *namer, struct race_seen *race)
{
	name_home(namer, &race->home, race->victim);
	name_write(namer, race->first);
	name_write(namer, race->second);
}

static void name_piece(struct namer *namer, struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_WRITE:
	case EVIDENCE_SIGHTING:
		name_write(namer, e->write);
		break;
	case EVIDENCE_WATCH:
		name_home(namer, &e->watch->home, e->watch->victim);
		break;
	case EVIDENCE_OUTSIDE:
		name_home(namer, &e->outside->home, e->outside->victim);
		break;
	case EVIDENCE_HOLDER:
		name_home(namer, &e->holder->home, e->holder->holder);
		break;
	case EVIDENCE_RACE:
		name_race(namer, e->race);
		break;
	case EVIDENCE_ACCOUNT:
		name_home(namer, &e->account->home, e->account->block);
		break;
	default:
		break;
	}
}

void field_names_tell(struct evidence_list *evidence)
{
	struct namer namer = { 0 };

	VEC_FOREACH (&evidence->list, e)
		name_piece(&namer, e);
	VEC_FOREACH (&namer.modules, m) {
		types_close(m->types);
		mem_free(m->path);
	}
	VEC_DEINIT(&namer.modules);
	VEC_FREE(&namer.answers, a, mem_free(a->name));
}
