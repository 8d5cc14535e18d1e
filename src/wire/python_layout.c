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

/* The words of _Py_DebugOffsets in 3.13 (Include/internal/pycore_runtime.h). */
enum debug_offset {
	OFFSETS_COOKIE = 0,
	OFFSETS_VERSION = 1,
	OFFSETS_FREE_THREADED = 2,
	OFFSETS_INTERPRETERS_HEAD = 5,
	OFFSETS_INTERPRETER_NEXT = 8,
	OFFSETS_THREADS_HEAD = 9,
	OFFSETS_THREAD_NEXT = 21,
	OFFSETS_CURRENT_FRAME = 23,
	OFFSETS_THREAD_ID = 24,
	OFFSETS_NATIVE_THREAD_ID = 25,
	OFFSETS_FRAME_SIZE = 28,
	OFFSETS_FRAME_PREVIOUS = 29,
	OFFSETS_FRAME_EXECUTABLE = 30,
	OFFSETS_FRAME_INSTRUCTION = 31,
	OFFSETS_FRAME_OWNER = 33,
	OFFSETS_CODE_FILENAME = 35,
	OFFSETS_CODE_QUALNAME = 37,
	OFFSETS_CODE_LINETABLE = 38,
	OFFSETS_CODE_FIRST_LINE = 39,
	OFFSETS_CODE_ADAPTIVE = 43,
};

bool python_layout_refine(struct python_layout *layout, const uint8_t *runtime, size_t len)
{
	struct python_layout refined = *layout;
	const struct {
		enum debug_offset from;
		uint32_t *to;
	} taken[] = {
		{ OFFSETS_INTERPRETERS_HEAD, &refined.runtime.interpreters_head },
		{ OFFSETS_INTERPRETER_NEXT, &refined.interpreter.next },
		{ OFFSETS_THREADS_HEAD, &refined.interpreter.threads_head },
		{ OFFSETS_THREAD_NEXT, &refined.thread.next },
		{ OFFSETS_CURRENT_FRAME, &refined.thread.frame },
		{ OFFSETS_THREAD_ID, &refined.thread.thread_id },
		{ OFFSETS_NATIVE_THREAD_ID, &refined.thread.native_thread_id },
		{ OFFSETS_FRAME_SIZE, &refined.frame.size },
		{ OFFSETS_FRAME_PREVIOUS, &refined.frame.previous },
		{ OFFSETS_FRAME_EXECUTABLE, &refined.frame.code },
		{ OFFSETS_FRAME_INSTRUCTION, &refined.frame.instruction },
		{ OFFSETS_FRAME_OWNER, &refined.frame.owner },
		{ OFFSETS_CODE_FILENAME, &refined.code.filename },
		{ OFFSETS_CODE_QUALNAME, &refined.code.qualname },
		{ OFFSETS_CODE_LINETABLE, &refined.code.linetable },
		{ OFFSETS_CODE_FIRST_LINE, &refined.code.first_line },
		{ OFFSETS_CODE_ADAPTIVE, &refined.code.size },
	};
	uint64_t words[OFFSETS_CODE_ADAPTIVE + 1];

	if (layout->version < 0x030d)
		return true;
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
	/* Free threading makes every object's head longer. */
	if (words[OFFSETS_FREE_THREADED]) {
		refined.unicode.length += 16;
		refined.unicode.state += 16;
		refined.unicode.ascii_size += 16;
		refined.unicode.compact_size += 16;
		refined.bytes.length += 16;
		refined.bytes.data += 16;
	}
	*layout = refined;
	return true;
}
