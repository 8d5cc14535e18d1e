/*
 * The fields of the block that a verdict is about, by the debug information of the program.
 *
 * A block has no type. A function that allocates gives out what it made, and its result has one:
 * the first of those that were at work then whose type is as large as the block is believed.
 */
#include "studies/overview/investigation.h"

#include <string.h>

#include "debuginfo/types.h"

#define FRAMES_MOST 6u

static bool try_frame(const struct frame *frame, uint64_t size, struct block_layout *ret)
{
	AUTO(types_closep) struct types *types = NULL;
	AUTO(block_layout_deinit) struct block_layout layout = { 0 };

	if (!frame->function || !frame->module || frame->kind != FRAME_NATIVE ||
	    types_open(frame->module, &types, NULL) < 0 ||
	    types_layout_of_function(types, frame->function, TYPES_RETURN, &layout, NULL) < 0 ||
	    layout.size != size)
		return false;
	*ret = layout;
	layout = (struct block_layout){ 0 };
	return true;
}

void layout_read(struct investigation *inv)
{
	const struct block_life *block = inv->judged ? investigation_block(inv) : NULL;

	for (size_t i = 0; block && i < block->allocated.count && i < FRAMES_MOST; i++)
		if (try_frame(&block->allocated.frames[i], block->size, &inv->layout))
			return;
}
