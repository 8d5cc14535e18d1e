#include "debuginfo/python_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/vec.h"

/* Bounds against chains that damage has bent into circles. */
#define INTERPRETERS_MAX 64
#define THREADS_MAX 4096
#define FRAMES_MAX 1024
#define TEXT_MAX 1024
#define LINETABLE_MAX 65536

struct frames_walk {
	const struct python_layout *layout;
	memory_reader *read;
	void *arg;
};

static bool read_word(const struct frames_walk *walk, taddr address, uint64_t *ret)
{
	return walk->read(walk->arg, address, ret, sizeof(*ret));
}

static uint64_t word_at(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static uint32_t half_at(const uint8_t *bytes, uint32_t offset)
{
	uint32_t half;

	memcpy(&half, bytes + offset, sizeof(half));
	return half;
}

static bool is_thread(const struct frames_walk *walk, taddr state,
		      const struct python_thread *thread)
{
	uint64_t id;

	if (thread->kernel_tid &&
	    read_word(walk, state + walk->layout->thread.native_thread_id, &id) &&
	    id == thread->kernel_tid)
		return true;
	return thread->pthread && read_word(walk, state + walk->layout->thread.thread_id, &id) &&
	       id == thread->pthread;
}

/* The PyThreadState of the thread, or 0. */
static taddr find_thread(const struct frames_walk *walk, const struct python_thread *thread)
{
	const struct python_layout *l = walk->layout;
	unsigned int threads = 0;
	uint64_t interpreter, state;

	if (!read_word(walk, thread->runtime + l->runtime.interpreters_head, &interpreter))
		return 0;
	for (unsigned int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		if (!read_word(walk, interpreter + l->interpreter.threads_head, &state))
			return 0;
		while (state && threads++ < THREADS_MAX) {
			if (is_thread(walk, state, thread))
				return state;
			if (!read_word(walk, state + l->thread.next, &state))
				break;
		}
		if (!read_word(walk, interpreter + l->interpreter.next, &interpreter))
			return 0;
	}
	return 0;
}

static void add_utf8(struct strbuf *sb, uint32_t c)
{
	if (c < 0x80) {
		strbuf_addc(sb, (char)c);
	} else if (c < 0x800) {
		strbuf_addc(sb, (char)(0xc0 | c >> 6));
		strbuf_addc(sb, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		strbuf_addc(sb, (char)(0xe0 | c >> 12));
		strbuf_addc(sb, (char)(0x80 | ((c >> 6) & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | (c & 0x3f)));
	} else {
		strbuf_addc(sb, (char)(0xf0 | ((c >> 18) & 7)));
		strbuf_addc(sb, (char)(0x80 | ((c >> 12) & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | ((c >> 6) & 0x3f)));
		strbuf_addc(sb, (char)(0x80 | (c & 0x3f)));
	}
}

/* A str object as UTF-8; NULL when it cannot be read. */
static char *read_text(const struct frames_walk *walk, taddr object)
{
	const struct python_layout *l = walk->layout;
	struct strbuf text = { 0 };
	uint8_t raw[TEXT_MAX * 4];
	uint64_t length;
	uint32_t state = 0, width;
	bool ascii;

	if (!read_word(walk, object + l->unicode.length, &length) || length > TEXT_MAX ||
	    !walk->read(walk->arg, object + l->unicode.state, &state, 1))
		return NULL;
	/* interned:2, kind:3, compact:1, ascii:1 */
	width = (state >> 2) & 7;
	ascii = (state >> 6) & 1;
	if (!((state >> 5) & 1) || (width != 1 && width != 2 && width != 4) ||
	    (ascii && width != 1))
		return NULL;
	if (length > 0 &&
	    !walk->read(walk->arg,
			object + (ascii ? l->unicode.ascii_size : l->unicode.compact_size), raw,
			length * width))
		return NULL;
	for (uint64_t i = 0; i < length; i++) {
		uint32_t c = 0;

		memcpy(&c, raw + i * width, width);
		add_utf8(&text, c);
	}
	if (!text.data)
		strbuf_adds(&text, "");
	return strbuf_take(&text);
}

/* The next number of a location table: six bits per byte, low ones first. */
static uint64_t varint(const uint8_t *table, size_t len, size_t *at)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	while (*at < len && shift < 60) {
		uint8_t byte = table[(*at)++];

		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
		shift += 6;
	}
	return value;
}

static int64_t signed_varint(const uint8_t *table, size_t len, size_t *at)
{
	uint64_t value = varint(table, len, at);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

uint32_t python_line(const uint8_t *table, size_t len, uint32_t first_line, uint64_t instruction)
{
	int64_t line = first_line;
	uint64_t unit = 0;
	size_t at = 0;

	while (at < len) {
		uint8_t head = table[at++];
		unsigned int code = (head >> 3) & 15;
		bool none = false;

		if (!(head & 0x80))
			return 0;
		if (code == 15)
			none = true;
		else if (code == 13 || code == 14)
			line += signed_varint(table, len, &at);
		else if (code >= 10)
			line += code - 10;
		unit += (head & 7) + 1;
		if (instruction < unit)
			return none || line < 0 || line > UINT32_MAX ? 0 : (uint32_t)line;
		/* Columns do not matter; an entry's head is the only byte with its top bit set. */
		while (at < len && !(table[at] & 0x80))
			at++;
	}
	return 0;
}

static uint32_t read_line(const struct frames_walk *walk, const uint8_t *code, uint64_t instruction)
{
	const struct python_layout *l = walk->layout;
	taddr object = word_at(code, l->code.linetable);
	uint32_t first = half_at(code, l->code.first_line), line;
	AUTO(mem_freep) uint8_t *table = NULL;
	uint64_t length;

	if (!read_word(walk, object + l->bytes.length, &length) || length > LINETABLE_MAX)
		return first;
	table = mem_alloc(length);
	if (length > 0 && !walk->read(walk->arg, object + l->bytes.data, table, length))
		return first;
	line = python_line(table, length, first, instruction);
	return line > 0 ? line : first;
}

/* Adds one Python frame. 1: added; 0: passed over, as Python's own tracebacks do; negative: its
 * memory cannot be read. */
static int add_code(const struct frames_walk *walk, taddr object, uint64_t instruction, bool begun,
		    struct python_frames *ret)
{
	const struct python_layout *l = walk->layout;
	struct python_frame item = { .frame.kind = FRAME_PYTHON };
	uint8_t code[4096];

	if (l->code.size > sizeof(code) || !walk->read(walk->arg, object, code, l->code.size))
		return -EFAULT;
	if (instruction > INT32_MAX)
		instruction = 0;
	/* Not started yet, or the interpreter's own helper code. */
	if (!begun && instruction < half_at(code, l->code.first_traceable))
		return 0;
	item.frame.function = read_text(walk, word_at(code, l->code.qualname));
	item.frame.file = read_text(walk, word_at(code, l->code.filename));
	if (!item.frame.function && !item.frame.file)
		return -EFAULT;
	item.frame.line = read_line(walk, code, instruction);
	VEC_PUSH(ret, item);
	return 1;
}

static int add_frame(const struct frames_walk *walk, const uint8_t *frame,
		     struct python_frames *ret)
{
	const struct python_layout *l = walk->layout;
	taddr object = python_code_object(word_at(frame, l->frame.code));

	return add_code(walk, object,
			(word_at(frame, l->frame.instruction) - (object + l->code.size)) / 2,
			frame[l->frame.owner] == PYTHON_OWNED_BY_GENERATOR, ret);
}

int python_frames_add(const struct python_layout *layout, taddr object, uint32_t instruction,
		      memory_reader *read, void *arg, struct python_frames *ret)
{
	return add_code(&(struct frames_walk){ .layout = layout, .read = read, .arg = arg }, object,
			instruction, true, ret);
}

/* Ties the frames since `first` to a place in the native stack. */
static void place(struct python_frames *frames, size_t first, taddr native_stack)
{
	for (size_t i = first; i < frames->count; i++)
		frames->items[i].native_stack = native_stack;
}

static void walk_frames(const struct frames_walk *walk, taddr at, taddr cframe,
			struct python_frames *ret)
{
	const struct python_layout *l = walk->layout;
	uint8_t frame[256];
	size_t first = ret->count; /* of the group that one native frame runs */

	for (unsigned int i = 0; at && i < FRAMES_MAX; i++) {
		bool ends_group;

		if (!walk->read(walk->arg, at, frame, l->frame.size))
			return;
		/* Up to 3.12 the interpreter loop keeps a cframe on its native stack; since 3.12 it
		 * also has a Python frame of its own there, below those that it runs. */
		if (l->frame.is_entry) {
			if (add_frame(walk, frame, ret) < 0)
				return;
			ends_group = frame[l->frame.is_entry] != 0;
			if (ends_group)
				place(ret, first, cframe);
			if (ends_group && !read_word(walk, cframe + l->cframe.previous, &cframe))
				cframe = 0;
		} else {
			ends_group = frame[l->frame.owner] >= PYTHON_OWNED_BY_C_STACK;
			if (ends_group)
				place(ret, first, at);
			else if (add_frame(walk, frame, ret) < 0)
				return;
		}
		if (ends_group)
			first = ret->count;
		at = word_at(frame, l->frame.previous);
	}
}

int python_frames_read(const struct python_layout *layout, const struct python_thread *thread,
		       memory_reader *read, void *arg, struct python_frames *ret)
{
	struct frames_walk walk = { .layout = layout, .read = read, .arg = arg };
	taddr state, at, cframe = 0;

	if (layout->frame.size > 256 || layout->frame.size < 72)
		return -ESRCH;
	state = find_thread(&walk, thread);
	if (!state || !read_word(&walk, state + layout->thread.frame, &at))
		return -ESRCH;
	if (layout->cframe.current_frame || layout->cframe.previous) {
		cframe = at;
		if (!read_word(&walk, cframe + layout->cframe.current_frame, &at))
			return -ESRCH;
	}
	walk_frames(&walk, at, cframe, ret);
	return 0;
}

void python_frames_deinit(struct python_frames *frames)
{
	for (size_t i = 0; i < frames->count; i++) {
		mem_free(frames->items[i].frame.function);
		mem_free(frames->items[i].frame.file);
	}
	VEC_DEINIT(frames);
}

/* The index of the first entry (inlined ones included) of the native frame whose part of the
 * stack holds the address; stack->count for none. */
static size_t find_native(const struct stack *stack, taddr address)
{
	taddr low = 0;
	size_t first = 0;

	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (frame->kind == FRAME_PYTHON) {
			first = i + 1;
			continue;
		}
		if (frame->kind == FRAME_INLINE)
			continue;
		if (frame->cfa && address < frame->cfa && address >= low)
			return first;
		/* A signal handler may run on another stack, above or below. */
		low = frame->flags & FRAME_SIGNAL ? 0 : frame->cfa;
		first = i + 1;
	}
	return stack->count;
}

void python_frames_merge(const struct python_frames *frames, struct stack *stack)
{
	for (size_t i = 0; i < frames->count;) {
		taddr native = frames->items[i].native_stack;
		size_t at = native ? find_native(stack, native) : stack->count;
		bool unplaced = at == stack->count;

		/* One group: all that the same native frame runs. */
		do {
			struct frame *added = stack_insert(stack, at++, &frames->items[i].frame);

			if (unplaced)
				added->flags |= FRAME_UNPLACED;
			i++;
		} while (i < frames->count && frames->items[i].native_stack == native);
	}
}
