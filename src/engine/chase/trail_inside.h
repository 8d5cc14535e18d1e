#pragma once

#include "arch/store.h"
#include "engine/chase/trail.h"

/*
 * Reading a trail. Private to trail.c (what the code before the fault tells) and trail_stack.c (what
 * belongs to functions: their variables, and what keeps their frames together).
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

/* The home of a step that is a word of the stack; `own`: the code went there by the stack or frame
 * pointer. */
void trail_name_slot(const struct reader *reader, uint64_t address, bool own,
		     struct trail_step *step);

/* The bad address was jumped to, and the call at `at` of the caller goes to a function that ends in a
 * jump: was it that one? Then frame 0 is that function, at its jump. */
bool trail_leapt(struct reader *reader, uint64_t at);

/* Was it the frame itself that was bad: its return address, or the guard in front of it? Then that is
 * the one step. */
bool trail_smashed(struct reader *reader);
