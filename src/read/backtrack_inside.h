#pragma once

#include "arch/store.h"
#include "read/backtrack.h"

/*
 * Reading the way back. Private to backtrack.c (what the code before the fault tells),
 * backtrack_value.c (where the bad value stands) and backtrack_stack.c (what belongs to functions:
 * their variables, and what keeps their frames together).
 */
#define FRAMES_MAX 24u

struct backtracker {
	const struct crash_record *record;
	struct symbols *symbols;
	struct snapshot snapshot;
	struct machine_frame frames[FRAMES_MAX];
	size_t count;
	/* The field that the first load read, of the object that the code has gone on to since. */
	struct backtrack_step hint;
	struct backtrack *ret;
	/* The first load went through this pointer, which is no multiple of a word, into a live
	 * block: what it read there says nothing, and where the pointer stands is the home. 0: no.
	 */
	uint64_t crooked;
	struct log_block freed; /* a pointer into it was given to free(); id 0: no */
};

/* `own`: the code went by the stack or frame pointer. */
void backtrack_name_home(const struct backtracker *reader, uint64_t address, bool own,
			 struct backtrack_step *step);
/* The file as the process had it, with its bias; NULL: not known. */
const struct mapping *backtrack_module(const struct backtracker *reader, const char *path);
bool backtrack_in_runtime(const struct backtracker *reader, size_t frame);
void backtrack_name_global(const struct backtracker *reader, uint64_t address, struct home *ret);
/* Which functions of this stack were given the block, as which argument? Through these it can be
 * found in a run whose keys are others. */
void backtrack_find_handles(const struct backtracker *reader, size_t from,
			    struct backtrack_step *step);
void backtrack_step_deinit(struct backtrack_step *step);

/* The words that hold the wild pointer are its homes, whatever the code before the fault seems to
 * say: in a loop that has moved on it says something else. */
void backtrack_take_found(struct backtracker *reader);

/* How many places of the program, stacks left out, hold the address of the block that `freed` is.
 */
uint64_t backtrack_owners(const struct backtracker *reader);

/* The home of a step that is a word of the stack; `own`: the code went there by the stack or frame
 * pointer. */
void backtrack_name_slot(const struct backtracker *reader, uint64_t address, bool own,
			 struct backtrack_step *step);

/* The bad address was jumped to, and the call at `at` of the caller goes to a function that ends in
 * a jump: was it that one? Then frame 0 is that function, at its jump. */
bool backtrack_leapt(struct backtracker *reader, uint64_t at);

/* Was it the frame itself that was bad: its return address, or the guard in front of it? Then that
 * is the one step. */
bool backtrack_smashed(struct backtracker *reader);
