/*
 * Frames and stacks of them.
 */
#include "model/frame.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cstr.h"
#include "base/mem.h"

/* Names come out of files that somebody else made: a symbol may hold what a terminal obeys. */
static char *copy(const char *text)
{
	struct strbuf sb = { 0 };

	if (!text)
		return NULL;
	strbuf_add_printable(&sb, text, strlen(text));
	return strbuf_take(&sb);
}

void stack_deinit(struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		mem_free(stack->frames[i].function);
		mem_free(stack->frames[i].file);
		mem_free(stack->frames[i].module);
	}
	mem_free(stack->frames);
	*stack = (struct stack){ 0 };
}

struct frame *stack_insert(struct stack *stack, size_t at, const struct frame *frame)
{
	struct frame *slot;

	assert(at <= stack->count);
	if (stack->count == stack->room) {
		stack->room = stack->room > 0 ? stack->room * 2 : 16;
		stack->frames = mem_resize(stack->frames, stack->room, sizeof(*stack->frames));
	}
	slot = stack->frames + at;
	memmove(slot + 1, slot, (stack->count - at) * sizeof(*slot));
	*slot = *frame;
	slot->function = copy(frame->function);
	slot->file = copy(frame->file);
	slot->module = copy(frame->module);
	stack->count++;
	return slot;
}

struct frame *stack_push(struct stack *stack, const struct frame *frame)
{
	return stack_insert(stack, stack->count, frame);
}

void stack_copy(struct stack *to, const struct stack *from)
{
	for (size_t i = 0; i < from->count; i++)
		(void)stack_push(to, &from->frames[i]);
	to->end = from->end;
}

const char *frame_kind_name(enum frame_kind kind)
{
	switch (kind) {
	case FRAME_NATIVE:
		return "native";
	case FRAME_INLINE:
		return "inline";
	case FRAME_JIT:
		return "jit";
	case FRAME_PYTHON:
		return "python";
	case FRAME_KERNEL:
		return "kernel";
	}
	return "native";
}

const char *stack_end_name(enum stack_end end)
{
	switch (end) {
	case STACK_COMPLETE:
		return "complete";
	case STACK_TRUNCATED:
		return "truncated";
	case STACK_LOST:
		return "lost";
	case STACK_TOO_DEEP:
		return "too-deep";
	case STACK_LOOP:
		return "loop";
	}
	return "lost";
}

bool frame_in_piece(const struct frame *frame)
{
	return frame->kind == FRAME_JIT && frame->function && !frame->module && frame->offset > 0;
}

void frame_describe(const struct frame *frame, struct strbuf *sb)
{
	if (frame->function)
		strbuf_adds(sb, frame->function);
	else if (frame->module)
		strbuf_addf(sb, "%s+0x%" PRIx64, cstr_base(frame->module), frame->offset);
	else
		strbuf_addf(sb, "%s0x%" PRIx64, frame->kind == FRAME_JIT ? "emitted code " : "",
			    frame->address);
	if (frame_in_piece(frame))
		strbuf_addf(sb, "+0x%" PRIx64, frame->offset);
	if (frame->file && frame->line > 0)
		strbuf_addf(sb, " (%s:%u)", frame->file, frame->line);
	else if (frame->function && frame->kind == FRAME_JIT)
		strbuf_adds(sb, " (emitted code)");
	else if (frame->function && frame->module)
		strbuf_addf(sb, " (in %s)", cstr_base(frame->module));
}
