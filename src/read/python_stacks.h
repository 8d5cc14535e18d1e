#pragma once

#include "base/vec.h"
#include "model/frame.h"
#include "wire/log_reader.h"

/*
 * The Python frames of contexts, as a log with growth has them: which frames a context stands
 * under, and the code objects that name them.
 */
struct python_stacks {
	VEC(struct {
		uint32_t number; /* of the context */
		uint64_t offset; /* of its record */
	})
	stacks; /* ascending once sorted */
	VEC(struct {
		uint32_t number; /* of the code object */
		uint64_t offset;
		uint64_t hash; /* the same in every run */
	})
	codes;
};

/* Takes a record of either kind; any other is passed over. */
void python_stacks_take(struct python_stacks *stacks, const struct log_item *item);
void python_stacks_sort(struct python_stacks *stacks);
void python_stacks_deinit(struct python_stacks *stacks);

/* The frames of a context, innermost first. Returns how many; 0: it has none. */
size_t python_stacks_frames(const struct python_stacks *stacks, const struct log_reader *reader,
			    uint32_t context, struct log_python_frame ret[LOG_PYTHON_FRAMES]);

/* What a frame is called in every run; 0: its code object is not known. */
uint64_t python_stacks_place(const struct python_stacks *stacks,
			     const struct log_python_frame *frame);

/* Puts the frames of a context into its native stack, each group before the frame that runs it. */
void python_stacks_merge(const struct python_stacks *stacks, const struct log_reader *reader,
			 uint32_t context, struct stack *stack);
