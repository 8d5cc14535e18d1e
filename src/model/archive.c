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

void archive_i64(struct archive *a, int64_t *value)
{
	uint64_t bits = (uint64_t)*value;

	archive_u64(a, &bits);
	*value = (int64_t)bits;
}

void archive_uint(struct archive *a, unsigned int *value)
{
	uint64_t wide = *value;

	archive_u64(a, &wide);
	*value = (unsigned int)wide;
}

void archive_int(struct archive *a, int *value)
{
	int64_t wide = *value;

	archive_i64(a, &wide);
	*value = (int)wide;
}

void archive_bool(struct archive *a, bool *value)
{
	uint64_t wide = *value;

	archive_u64(a, &wide);
	*value = wide != 0;
}

void archive_double(struct archive *a, double *value)
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

void archive_text(struct archive *a, char **text)
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

uint64_t archive_count(struct archive *a, uint64_t count)
{
	archive_u64(a, &count);
	if (!a->out && count > a->in.left / sizeof(uint64_t)) {
		a->in.broken = true;
		a->in.left = 0;
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
	a->in.broken = true;
	a->in.left = 0;
	return 0;
}

bool archive_part(struct archive *a, void **part, size_t size)
{
	bool there = *part != NULL;

	archive_bool(a, &there);
	if (!a->out)
		*part = there && !a->in.broken ? mem_alloc(size) : NULL;
	return *part != NULL;
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

void archive_bytes(struct archive *a, struct strbuf *bytes)
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
	ARCHIVE_CHOICE(a, &f->kind, FRAME_KERNEL + 1);
	archive_uint(a, &f->flags);
}

static void read_frame(struct archive *a, struct stack *stack)
{
	struct frame f = { 0 };

	frame(a, &f);
	if (!a->in.broken)
		(void)stack_push(stack, &f);
	mem_free(f.function);
	mem_free(f.file);
	mem_free(f.module);
}

void archive_stack(struct archive *a, struct stack *stack)
{
	uint64_t count = archive_count(a, stack->count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (a->out)
			frame(a, &stack->frames[i]);
		else
			read_frame(a, stack);
	}
	ARCHIVE_CHOICE(a, &stack->end, STACK_LOOP + 1);
}

void archive_home(struct archive *a, struct home *home)
{
	ARCHIVE_CHOICE(a, &home->kind, HOME_KINDS);
	archive_text(a, &home->key);
	archive_u64(a, &home->block_id);
	archive_text(a, &home->name);
	archive_text(a, &home->field);
	archive_text(a, &home->module);
	archive_i64(a, &home->offset);
	archive_u64(a, &home->len);
	archive_u64(a, &home->address);
}

void archive_block(struct archive *a, struct block_life *block)
{
	archive_text(a, &block->via);
	archive_u64(a, &block->value);
	archive_u64(a, &block->id);
	archive_text(a, &block->key);
	archive_u64(a, &block->start);
	archive_u64(a, &block->size);
	ARCHIVE_CHOICE(a, &block->state, BLOCK_FREED + 1);
	archive_bool(a, &block->telling);
	archive_bool(a, &block->former);
	archive_bool(a, &block->beyond);
	archive_bool(a, &block->python);
	archive_u64(a, &block->freed_events);
	archive_stack(a, &block->allocated);
	archive_stack(a, &block->freed);
	if (a->version >= 2)
		archive_bool(a, &block->poison);
	if (a->version >= 9)
		archive_bool(a, &block->left);
}

void archive_block_or_null(struct archive *a, struct block_life **block)
{
	if (ARCHIVE_PART(a, block))
		archive_block(a, *block);
}
