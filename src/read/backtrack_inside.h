#pragma once

#include "arch/store.h"
#include "read/backtrack.h"

/*
 * Reading a trail. Private to trail.c (what the code before the fault tells), trail_found.c (where
 * the bad value stands) and trail_stack.c (what belongs to functions: their variables, and what
 * keeps their frames together).
 */
#define FRAMES_MAX 24u

struct reader {
	const struct scene *scene;
	struct symbols *symbols;
	struct snapshot snapshot;
	struct machine_frame frames[FRAMES_MAX];
	size_t count;
	/* The field that the first load read, of the object that the code has gone on to since. */
	struct trail_step hint;
	struct trail *ret;
};

struct trap trail_trap(const struct machine_frame *frame);

/* `own`: the code went by the stack or frame pointer. */
void trail_name_home(const struct reader *reader, uint64_t address, bool own,
		     struct trail_step *step);
void trail_name_global(const struct reader *reader, uint64_t address, struct home *ret);
/* Which functions of this stack were given the block, as which argument? Through these it can be
 * found in a run whose keys are others. */
void trail_find_handles(const struct reader *reader, size_t from, struct trail_step *step);
void trail_step_deinit(struct trail_step *step);

/* The words that hold the wild pointer are its homes, whatever the code before the fault seems to
 * say: in a loop that has moved on it says something else. */
void trail_take_found(struct reader *reader);

/* The home of a step that is a word of the stack; `own`: the code went there by the stack or frame
 * pointer. */
void trail_name_slot(const struct reader *reader, uint64_t address, bool own,
		     struct trail_step *step);

/* The bad address was jumped to, and the call at `at` of the caller goes to a function that ends in
 * a jump: was it that one? Then frame 0 is that function, at its jump. */
bool trail_leapt(struct reader *reader, uint64_t at);

/* Was it the frame itself that was bad: its return address, or the guard in front of it? Then that
 * is the one step. */
bool trail_smashed(struct reader *reader);
