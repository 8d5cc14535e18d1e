#include "wire/python_layout.h"

#include <string.h>

static const struct python_layout layouts[] = {
	{
		.version = 0x030b,
		.runtime = { .interpreters_head = 40 },
		.interpreter = { .next = 0, .threads_head = 16 },
		.thread = { .next = 8, .thread_id = 152, .native_thread_id = 160, .frame = 56 },
		.frame = { .size = 80,
			   .previous = 48,
			   .code = 32,
			   .instruction = 56,
			   .owner = 69,
			   .is_entry = 68 },
		.cframe = { .current_frame = 8, .previous = 16 },
		.code = { .size = 184,
			  .first_line = 72,
			  .filename = 112,
			  .qualname = 128,
			  .linetable = 136,
			  .first_traceable = 168 },
		.unicode = { .length = 16, .state = 32, .ascii_size = 48, .compact_size = 72 },
		.bytes = { .length = 16, .data = 32 },
	},
	{
		.version = 0x030c,
		.runtime = { .interpreters_head = 40 },
		.interpreter = { .next = 0, .threads_head = 72 },
		.thread = { .next = 8, .thread_id = 136, .native_thread_id = 144, .frame = 56 },
		.frame = { .size = 80, .previous = 8, .code = 0, .instruction = 56, .owner = 70 },
		.cframe = { .current_frame = 0, .previous = 8 },
		.code = { .size = 192,
			  .first_line = 68,
			  .filename = 112,
			  .qualname = 128,
			  .linetable = 136,
			  .first_traceable = 176 },
		.unicode = { .length = 16, .state = 32, .ascii_size = 40, .compact_size = 56 },
		.bytes = { .length = 16, .data = 32 },
	},
	{
		.version = 0x030d,
		.runtime = { .interpreters_head = 632 },
		.interpreter = { .next = 7264, .threads_head = 7344 },
		.thread = { .next = 8, .thread_id = 152, .native_thread_id = 160, .frame = 72 },
		.frame = { .size = 80, .previous = 8, .code = 0, .instruction = 56, .owner = 70 },
		.code = { .size = 200,
			  .first_line = 68,
			  .filename = 112,
			  .qualname = 128,
			  .linetable = 136,
			  .first_traceable = 184 },
		.unicode = { .length = 16, .state = 32, .ascii_size = 40, .compact_size = 56 },
		.bytes = { .length = 16, .data = 32 },
	},
	{
		.version = 0x030e,
		.runtime = { .interpreters_head = 808 },
		.interpreter = { .next = 7272, .threads_head = 7344 },
		.thread = { .next = 8, .thread_id = 152, .native_thread_id = 160, .frame = 72 },
		.frame = { .size = 88, .previous = 8, .code = 0, .instruction = 56, .owner = 74 },
		.code = { .size = 208,
			  .first_line = 68,
			  .filename = 112,
			  .qualname = 128,
			  .linetable = 136,
			  .first_traceable = 192 },
		.unicode = { .length = 16, .state = 32, .ascii_size = 40, .compact_size = 56 },
		.bytes = { .length = 16, .data = 32 },
	},
};

bool python_layout_find(uint64_t py_version, struct python_layout *ret)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version == py_version >> 16) {
			*ret = layouts[i];
			return true;
		}
	}
	return false;
}

/* The words of _Py_DebugOffsets (3.13: Include/internal/pycore_runtime.h, 3.14:
 * pycore_debug_offsets.h). The first ten are the same since 3.13. */
enum debug_offset {
	OFFSETS_COOKIE = 0,
	OFFSETS_VERSION = 1,
	OFFSETS_FREE_THREADED = 2,
	OFFSETS_INTERPRETERS_HEAD = 5,
	OFFSETS_INTERPRETER_NEXT = 8,
	OFFSETS_THREADS_HEAD = 9,
	OFFSETS_MAX = 50,
};

/* Which word is what, where that differs. */
static const struct published {
	uint16_t version;
	struct {
		uint8_t next, frame, thread_id, native_thread_id;
	} thread;
	struct {
		uint8_t size, previous, code, instruction, owner;
	} frame;
	struct {
		uint8_t filename, qualname, linetable, first_line, adaptive;
	} code;
} published[] = {
	{ 0x030d, { 21, 23, 24, 25 }, { 28, 29, 30, 31, 33 }, { 35, 37, 38, 39, 43 } },
	{ 0x030e, { 24, 26, 27, 28 }, { 31, 32, 33, 34, 36 }, { 40, 42, 43, 44, 48 } },
};

static const struct published *published_find(uint16_t version)
{
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		if (published[i].version == version)
			return &published[i];
	return NULL;
}

/* As far as free threading makes every object's head longer. */
static void lengthen_heads(struct python_layout *layout)
{
	layout->unicode.length += 16;
	layout->unicode.state += 16;
	layout->unicode.ascii_size += 16;
	layout->unicode.compact_size += 16;
	layout->bytes.length += 16;
	layout->bytes.data += 16;
}

bool python_layout_refine(struct python_layout *layout, const uint8_t *runtime, size_t len)
{
	const struct published *p = published_find(layout->version);
	struct python_layout refined = *layout;
	uint64_t words[OFFSETS_MAX];

	if (!p)
		return true;

	const struct {
		uint8_t from;
		uint32_t *to;
	} taken[] = {
		{ OFFSETS_INTERPRETERS_HEAD, &refined.runtime.interpreters_head },
		{ OFFSETS_INTERPRETER_NEXT, &refined.interpreter.next },
		{ OFFSETS_THREADS_HEAD, &refined.interpreter.threads_head },
		{ p->thread.next, &refined.thread.next },
		{ p->thread.frame, &refined.thread.frame },
		{ p->thread.thread_id, &refined.thread.thread_id },
		{ p->thread.native_thread_id, &refined.thread.native_thread_id },
		{ p->frame.size, &refined.frame.size },
		{ p->frame.previous, &refined.frame.previous },
		{ p->frame.code, &refined.frame.code },
		{ p->frame.instruction, &refined.frame.instruction },
		{ p->frame.owner, &refined.frame.owner },
		{ p->code.filename, &refined.code.filename },
		{ p->code.qualname, &refined.code.qualname },
		{ p->code.linetable, &refined.code.linetable },
		{ p->code.first_line, &refined.code.first_line },
		{ p->code.adaptive, &refined.code.size },
	};

	if (len < sizeof(words))
		return false;
	memcpy(words, runtime, sizeof(words));
	if (memcmp(runtime, "xdebugpy", 8) != 0 || words[OFFSETS_VERSION] >> 16 != layout->version)
		return false;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		uint64_t word = words[taken[i].from];

		if (word > 1 << 20)
			return false;
		*taken[i].to = (uint32_t)word;
	}
	/* Not published: it stands a fixed way before the instructions. */
	if (refined.code.size < 200 || refined.code.size > 4096 || refined.frame.size < 72 ||
	    refined.frame.size > 256)
		return false;
	refined.code.first_traceable = refined.code.size - 16;
	/* Since 3.14 free threading keeps more than one copy of the instructions, and strings have
	 * another state: not known. */
	if (words[OFFSETS_FREE_THREADED] && layout->version >= 0x030e)
		return false;
	if (words[OFFSETS_FREE_THREADED])
		lengthen_heads(&refined);
	*layout = refined;
	return true;
}
