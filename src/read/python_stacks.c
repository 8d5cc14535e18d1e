#include "read/python_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "debuginfo/python_frames.h"
#include "read/blobs.h"

#define CODES_MAX (1u << 20)
#define STACKS_MAX (1u << 20)

void python_stacks_deinit(struct python_stacks *stacks)
{
	VEC_DEINIT(&stacks->stacks);
	VEC_DEINIT(&stacks->codes);
}

void python_stacks_take(struct python_stacks *stacks, const struct log_item *item)
{
	struct log_python_stack stack;
	struct log_python_code code;

	if (item->head.type == LOG_PYTHON_STACK && stacks->stacks.count < STACKS_MAX &&
	    log_payload(item, &stack, sizeof(stack))) {
		__typeof__(stacks->stacks.items[0]) entry = { stack.context, item->offset };

		VEC_PUSH(&stacks->stacks, entry);
	}
	if (item->head.type == LOG_PYTHON_CODE && stacks->codes.count < CODES_MAX &&
	    log_payload(item, &code, sizeof(code))) {
		__typeof__(stacks->codes.items[0]) entry = { code.number, item->offset, code.hash };

		VEC_PUSH(&stacks->codes, entry);
	}
}

static int by_number(const void *a, const void *b)
{
	/* All begin with the number. */
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

void python_stacks_sort(struct python_stacks *stacks)
{
	VEC_SORT(&stacks->stacks, by_number);
	VEC_SORT(&stacks->codes, by_number);
}

#define FIND(list, number)                                                                     \
	((list)->count == 0                                                                    \
		 ? NULL                                                                        \
		 : (__typeof__((list)->items))bsearch(&(number), (list)->items, (list)->count, \
						      sizeof((list)->items[0]), by_number))

size_t python_stacks_frames(const struct python_stacks *stacks, const struct log_reader *reader,
			    uint32_t context, struct log_python_frame ret[LOG_PYTHON_FRAMES])
{
	__typeof__(stacks->stacks.items) entry = FIND(&stacks->stacks, context);
	struct log_python_stack stack;
	struct log_item item;
	const void *frames;
	size_t bytes, count;

	if (!entry || !log_record_at(reader, entry->offset, &item) ||
	    item.head.type != LOG_PYTHON_STACK || !log_payload(&item, &stack, sizeof(stack)))
		return 0;
	frames = log_payload_rest(&item, sizeof(stack), &bytes);
	count = bytes / sizeof(ret[0]);
	if (count > stack.frame_count)
		count = stack.frame_count;
	if (count > LOG_PYTHON_FRAMES)
		count = LOG_PYTHON_FRAMES;
	if (count > 0)
		memcpy(ret, frames, count * sizeof(ret[0]));
	return count;
}

uint64_t python_stacks_place(const struct python_stacks *stacks,
			     const struct log_python_frame *frame)
{
	__typeof__(stacks->codes.items) code = FIND(&stacks->codes, frame->code);

	return code ? (code->hash ^ frame->instruction) * 0x9e3779b97f4a7c15u | 1 : 0;
}

static bool read_piece(void *arg, taddr address, void *buf, size_t len)
{
	const struct python_memory *memory = arg;

	VEC_FOREACH (&memory->pieces, piece)
		if (address >= piece->address && address - piece->address <= piece->len &&
		    len <= piece->len - (address - piece->address)) {
			memcpy(buf, piece->bytes + (address - piece->address), len);
			return true;
		}
	return false;
}

/* It was read out of a log: what is read by it must lie within what was kept. */
static bool is_sound(const struct python_layout *layout)
{
	const uint32_t fields[] = { layout->code.first_line, layout->code.filename,
				    layout->code.qualname, layout->code.linetable,
				    layout->code.first_traceable };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (layout->code.size < 8 || fields[i] > layout->code.size - 8)
			return false;
	return true;
}

/* Adds its name to `ret`; what cannot be named is left out. */
static void name_frame(const struct python_stacks *stacks, const struct log_reader *reader,
		       const struct log_python_frame *frame, struct python_frames *ret)
{
	__typeof__(stacks->codes.items) code = FIND(&stacks->codes, frame->code);
	AUTO(python_memory_deinit) struct python_memory memory = { 0 };
	struct log_python_code record;
	struct log_item item;

	if (!code || !log_record_at(reader, code->offset, &item) ||
	    !log_payload(&item, &record, sizeof(record)) || !is_sound(&record.layout))
		return;
	python_memory_pieces(reader, &item, &memory);
	(void)python_frames_add(&record.layout, record.object, frame->instruction, read_piece,
				&memory, ret);
}

/* The index of the first entry, inlined ones included, of the n-th native frame. Those that had
 * left by a jump were not on the stack that the agent saw. */
static size_t native_at(const struct stack *stack, uint32_t n)
{
	size_t first = 0;

	for (size_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].kind == FRAME_INLINE)
			continue;
		if (stack->frames[i].kind != FRAME_PYTHON &&
		    !(stack->frames[i].flags & FRAME_TAIL) && n-- == 0)
			return first;
		first = i + 1;
	}
	return stack->count;
}

void python_stacks_merge(const struct python_stacks *stacks, const struct log_reader *reader,
			 uint32_t context, struct stack *stack)
{
	struct log_python_frame frames[LOG_PYTHON_FRAMES];
	size_t count = python_stacks_frames(stacks, reader, context, frames);

	for (size_t i = 0; i < count; i++) {
		struct python_frames named = { 0 };
		size_t at = native_at(stack, frames[i].native);
		bool unplaced = at == stack->count;

		name_frame(stacks, reader, &frames[i], &named);
		if (named.count > 0 && unplaced)
			named.items[0].frame.flags |= FRAME_UNPLACED;
		if (named.count > 0)
			(void)stack_insert(stack, at, &named.items[0].frame);
		python_frames_deinit(&named);
	}
}
