/*
 * Types as tables of their fields: bytes and back, copies, ends. See archive.h.
 */
#include "model/archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VERSIONS_EVER 1000

int archive_begin(struct archive *a, uint64_t newest)
{
	a->version = unpack_u64(&a->in);
	if (a->version == 0 || a->version > VERSIONS_EVER)
		return -EBADMSG;
	return a->version > newest ? -EPROTO : 0;
}

void archive_u64(struct archive *a, uint64_t *value)
{
	if (a->out)
		pack_u64(a->out, *value);
	else
		*value = unpack_u64(&a->in);
}

static void archive_uint(struct archive *a, unsigned int *value)
{
	uint64_t wide = *value;

	archive_u64(a, &wide);
	*value = (unsigned int)wide;
}

static void archive_int(struct archive *a, int *value)
{
	uint64_t wide = (uint64_t)(int64_t)*value;

	archive_u64(a, &wide);
	*value = (int)(int64_t)wide;
}

void archive_bool(struct archive *a, bool *value)
{
	uint64_t wide = *value;

	archive_u64(a, &wide);
	*value = wide != 0;
}

static void archive_double(struct archive *a, double *value)
{
	uint64_t bits;

	memcpy(&bits, value, sizeof(bits));
	archive_u64(a, &bits);
	memcpy(value, &bits, sizeof(bits));
}

/* A case may have been changed by anybody: what is shown on a terminal must be fit for one. */
static char *read_text(struct archive *a)
{
	AUTO(mem_freep) char *raw = unpack_str(&a->in);
	struct strbuf sb = { 0 };

	if (!raw)
		return NULL;
	strbuf_add_printable(&sb, raw, strlen(raw));
	return strbuf_take(&sb);
}

static void archive_text(struct archive *a, char **text)
{
	if (a->out)
		pack_str(a->out, *text);
	else
		*text = read_text(a);
}

void archive_chars(struct archive *a, char *text, size_t room)
{
	AUTO(mem_freep) char *read = NULL;

	if (a->out) {
		pack_str(a->out, text);
		return;
	}
	read = read_text(a);
	(void)snprintf(text, room, "%s", read ? read : "");
}

/* What follows cannot be trusted: nothing more is read. */
static void archive_fail(struct archive *a)
{
	a->in.broken = true;
	a->in.left = 0;
}

static uint64_t archive_count(struct archive *a, uint64_t count)
{
	archive_u64(a, &count);
	if (!a->out && count > a->in.left / sizeof(uint64_t)) {
		archive_fail(a);
		return 0;
	}
	return count;
}

unsigned int archive_choice(struct archive *a, unsigned int value, unsigned int count)
{
	uint64_t wide = value;

	archive_u64(a, &wide);
	if (wide < count)
		return (unsigned int)wide;
	archive_fail(a);
	return 0;
}

void archive_strv(struct archive *a, struct strv *strv)
{
	uint64_t count = archive_count(a, strv->count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		char *text = a->out ? strv->items[i] : NULL;

		archive_text(a, &text);
		if (!a->out && text)
			strv_take(strv, text);
	}
}

static void archive_bytes(struct archive *a, struct strbuf *bytes)
{
	if (a->out)
		pack_bytes(a->out, bytes);
	else
		unpack_bytes(&a->in, bytes);
}

static void frame(struct archive *a, struct frame *f)
{
	archive_text(a, &f->function);
	archive_text(a, &f->file);
	archive_uint(a, &f->line);
	archive_text(a, &f->module);
	archive_u64(a, &f->offset);
	archive_u64(a, &f->address);
	archive_u64(a, &f->cfa);
	f->kind = archive_choice(a, f->kind, FRAME_KERNEL + 1);
	archive_uint(a, &f->flags);
}

static void read_frame(struct archive *a, struct stack *stack)
{
	struct frame f = { 0 };

	frame(a, &f);
	if (!a->in.broken)
		(void)stack_push(stack, &f);
	MEM_FREE(f.function, f.file, f.module);
}

static void archive_stack(struct archive *a, struct stack *stack)
{
	uint64_t count = archive_count(a, stack->count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (a->out)
			frame(a, &stack->frames[i]);
		else
			read_frame(a, stack);
	}
	stack->end = archive_choice(a, stack->end, STACK_LOOP + 1);
}

/* A hostile case may nest them without end. */
#define PARTS_DEEP 8

static void archive_said(struct archive *a, struct said *said);

static void said_value(struct archive *a, struct said_value *value)
{
	value->kind = archive_choice(a, value->kind, SAID_KINDS);
	switch (value->kind) {
	case SAID_NUMBER:
	case SAID_SIGNED:
	case SAID_REAL:
		archive_u64(a, &value->number);
		break;
	case SAID_TEXT:
	case SAID_SITE:
		archive_text(a, &value->text);
		break;
	case SAID_HOME:
		if (!a->out)
			value->home = mem_alloc(sizeof(*value->home));
		fields_walk(a, &home_fields, value->home);
		break;
	case SAID_PART:
		if (!a->out)
			value->part = mem_alloc(sizeof(*value->part));
		archive_said(a, value->part);
		break;
	default:
		break;
	}
}

static void archive_said(struct archive *a, struct said *said)
{
	uint64_t count;

	archive_text(a, &said->id);
	archive_text(a, &said->text);
	count = archive_count(a, said->values.count);
	if (++a->depth > PARTS_DEEP)
		archive_fail(a);
	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (!a->out)
			VEC_PUSH(&said->values, (struct said_value){ 0 });
		said_value(a, &said->values.items[i]);
	}
	a->depth--;
}

static void archive_said_list(struct archive *a, struct said_list *list)
{
	uint64_t count = archive_count(a, list->list.count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++)
		archive_said(a, a->out ? &list->list.items[i] : said_new(list));
}

/* Before that they were sentences. */
static void old_texts(struct archive *a, struct said_list *list)
{
	AUTO(strv_deinit) struct strv texts = { 0 };

	archive_strv(a, &texts);
	for (size_t i = 0; i < texts.count; i++)
		said_as_text(said_new(list), texts.items[i]);
}

#define SAID_VERSION 1

void said_pack(const struct said *said, struct strbuf *sb)
{
	struct archive a = { .out = sb, .version = SAID_VERSION };
	struct said s = *said; /* a walk takes what it could change */

	pack_u64(sb, SAID_VERSION);
	archive_said(&a, &s);
}

bool said_unpack(const void *bytes, size_t len, struct said *ret)
{
	struct archive a = { .in = { .at = bytes, .left = len } };
	struct said said = { 0 };
	bool whole = archive_begin(&a, SAID_VERSION) == 0;

	if (whole)
		archive_said(&a, &said);
	whole = whole && !a.in.broken && a.in.left == 0;
	if (whole)
		said_move(ret, &said);
	said_deinit(&said);
	return whole;
}

MODEL_FIELDS(home_fields, home, FIELD_CHOICE(home, kind, HOME_KINDS),
	     FIELD(home, key, block_id, name, field, module, offset, len, address));

void home_copy(struct home *to, const struct home *from)
{
	fields_copy(&home_fields, to, from);
}

void home_deinit(struct home *home)
{
	fields_free(&home_fields, home);
}

/* As VEC() makes them. */
struct any_list {
	char *items;
	size_t count, room;
};

static char *item_of(const struct any_list *list, const struct model_fields *of, size_t i)
{
	return list->items + i * of->size;
}

static void list_push(struct any_list *list, size_t size)
{
	if (list->count == list->room) {
		list->room = list->room > 0 ? list->room * 2 : 8;
		list->items = mem_resize(list->items, list->room, size);
	}
	memset(list->items + list->count++ * size, 0, size);
}

static void walk_list(struct archive *a, const struct model_fields *of, struct any_list *list)
{
	uint64_t count = archive_count(a, list->count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (!a->out)
			list_push(list, of->size);
		fields_walk(a, of, item_of(list, of, i));
	}
}

static void walk_part(struct archive *a, const struct model_fields *of, void **part)
{
	bool there = *part != NULL;

	archive_bool(a, &there);
	if (!a->out)
		*part = there && !a->in.broken ? mem_alloc(of->size) : NULL;
	if (*part)
		fields_walk(a, of, *part);
}

static const struct model_field number_list[] = {
	{ .kind = FIELD_U64 },
	{ 0 },
};
static const struct model_fields number_fields = { .size = sizeof(uint64_t), .list = number_list };

static void walk_owned(struct archive *a, const struct model_field *f, void *at)
{
	switch (f->kind) {
	case FIELD_TEXT:
		archive_text(a, at);
		break;
	case FIELD_STRV:
		archive_strv(a, at);
		break;
	case FIELD_BYTES:
		archive_bytes(a, at);
		break;
	case FIELD_NUMBERS:
		walk_list(a, &number_fields, at);
		break;
	case FIELD_STACK:
		archive_stack(a, at);
		break;
	case FIELD_SAID:
		if (a->version < f->since)
			archive_text(a, &((struct said *)at)->text);
		else
			archive_said(a, at);
		break;
	case FIELD_SAID_LIST:
		if (a->version < f->since)
			old_texts(a, at);
		else
			archive_said_list(a, at);
		break;
	case FIELD_STRUCT:
		fields_walk(a, f->of, at);
		break;
	case FIELD_PART:
		walk_part(a, f->of, at);
		break;
	default:
		walk_list(a, f->of, at);
	}
}

static void walk_plain(struct archive *a, const struct model_field *f, void *at)
{
	switch (f->kind) {
	case FIELD_U64:
		archive_u64(a, at);
		break;
	case FIELD_UINT:
		archive_uint(a, at);
		break;
	case FIELD_INT:
		archive_int(a, at);
		break;
	case FIELD_BOOL:
		archive_bool(a, at);
		break;
	case FIELD_REAL:
		archive_double(a, at);
		break;
	case FIELD_CHOICE:
		*(unsigned int *)at = archive_choice(a, *(unsigned int *)at, f->limit);
		break;
	default:
		archive_chars(a, at, f->limit);
	}
}

void fields_walk(struct archive *a, const struct model_fields *fields, void *object)
{
	for (const struct model_field *f = fields->list; f->kind != FIELD_END; f++) {
		void *at = (char *)object + f->offset;
		bool said = f->kind == FIELD_SAID || f->kind == FIELD_SAID_LIST;
		bool old = a->version < f->since;

		if (f->kind == FIELD_HOOK || (f->kind == FIELD_OLD && old))
			f->hook(a, object);
		else if (f->kind == FIELD_OLD || (old && !said))
			continue;
		else if (f->kind < FIELD_TEXT)
			walk_plain(a, f, at);
		else
			walk_owned(a, f, at);
	}
}

static void free_field(const struct model_field *f, void *at)
{
	struct any_list *list = at;

	switch (f->kind) {
	case FIELD_TEXT:
		mem_free(*(char **)at);
		break;
	case FIELD_STRV:
		strv_deinit(at);
		break;
	case FIELD_BYTES:
		strbuf_deinit(at);
		break;
	case FIELD_STACK:
		stack_deinit(at);
		break;
	case FIELD_SAID:
		said_deinit(at);
		break;
	case FIELD_SAID_LIST:
		said_list_deinit(at);
		break;
	case FIELD_STRUCT:
		fields_free(f->of, at);
		break;
	case FIELD_PART:
		fields_drop(f->of, *(void **)at);
		break;
	case FIELD_LIST:
		for (size_t i = 0; i < list->count; i++)
			fields_free(f->of, item_of(list, f->of, i));
		mem_free(list->items);
		break;
	case FIELD_NUMBERS:
		mem_free(list->items);
		break;
	default:
		break;
	}
}

void fields_free(const struct model_fields *fields, void *object)
{
	for (const struct model_field *f = fields->list; f->kind != FIELD_END; f++)
		if (f->kind >= FIELD_TEXT)
			free_field(f, (char *)object + f->offset);
	memset(object, 0, fields->size);
}

void fields_drop(const struct model_fields *fields, void *object)
{
	if (object)
		fields_free(fields, object);
	mem_free(object);
}

static void copy_list(const struct model_fields *of, struct any_list *to,
		      const struct any_list *from)
{
	*to = (struct any_list){ 0 };
	for (size_t i = 0; i < from->count; i++) {
		list_push(to, of->size);
		fields_copy(of, item_of(to, of, i), item_of(from, of, i));
	}
}

static void copy_field(const struct model_field *f, void *to, const void *from)
{
	switch (f->kind) {
	case FIELD_TEXT:
		*(char **)to = *(char *const *)from ? mem_strdup(*(char *const *)from) : NULL;
		break;
	case FIELD_STRV:
		*(struct strv *)to = (struct strv){ 0 };
		strv_copy(to, ((const struct strv *)from)->items);
		break;
	case FIELD_BYTES:
		*(struct strbuf *)to = (struct strbuf){ 0 };
		strbuf_add(to, ((const struct strbuf *)from)->data,
			   ((const struct strbuf *)from)->len);
		break;
	case FIELD_STACK:
		*(struct stack *)to = (struct stack){ 0 };
		stack_copy(to, from);
		break;
	case FIELD_SAID:
		said_copy(to, from);
		break;
	case FIELD_SAID_LIST:
		*(struct said_list *)to = (struct said_list){ 0 };
		said_list_copy(to, from);
		break;
	case FIELD_STRUCT:
		fields_copy(f->of, to, from);
		break;
	case FIELD_PART:
		*(void **)to = fields_dup(f->of, *(void *const *)from);
		break;
	case FIELD_LIST:
		copy_list(f->of, to, from);
		break;
	case FIELD_NUMBERS:
		copy_list(&number_fields, to, from);
		break;
	default:
		break;
	}
}

void fields_copy(const struct model_fields *fields, void *to, const void *from)
{
	memcpy(to, from, fields->size);
	for (const struct model_field *f = fields->list; f->kind != FIELD_END; f++)
		if (f->kind >= FIELD_TEXT)
			copy_field(f, (char *)to + f->offset, (const char *)from + f->offset);
}

void *fields_dup(const struct model_fields *fields, const void *object)
{
	void *copy = object ? mem_alloc(fields->size) : NULL;

	if (copy)
		fields_copy(fields, copy, object);
	return copy;
}
