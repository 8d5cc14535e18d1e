/*
 * Watches: which memory is looked at, and who was caught writing to it.
 *
 * A watch of the plan is about a fixed address, or about objects: blocks of certain contexts, or
 * what a hook on a function hands over. Up to four objects are armed at a time, as far as the debug
 * registers go (watch_registers.h); which, is the plan's policy. hit.c writes down who was caught.
 *
 * Arming happens in hooks, under a lock that nobody holds for longer than a few system calls. A
 * handler never waits for it: it tries once, to park a register, and else leaves that be. An object
 * that ends is only marked: its register is aimed anew with the next object, which costs one call
 * where a disarm and an arm would cost two, and none where the new object lies at the same place. A
 * trap meanwhile finds the mark, and parks the register.
 *
 * Contexts with a watch are marked (context_marks) and so never kept among the places that the fast
 * path knows, and a watched block is marked so that its free is passed on to the slow one
 * (blocks.h): who is not watched pays nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "agent/ids/blocks.h"
#include "agent/ids/context.h"
#include "agent/watch/watch_state.h"
#include "wire/plan.h"

/* Objects on watched pages, any number of them: where the plan has PLAN_PAGES. Bound in features.c,
 * because pages.h lies above this. */
struct watch_pages_ops {
	int (*init)(void); /* 0, or the errno of what failed */
	/* In a forked child; calls `again` for each object. The errno of what failed at the start.
	 */
	int (*after_fork)(void);
	void (*each)(void (*visit)(struct watch_armed *armed));
	bool (*yielded)(void); /* opened: nothing is watched any more */
	bool (*holds)(uint64_t address);
	/* It is filled in but for its values. False: no room. */
	bool (*arm)(const struct watch_armed *armed, uint32_t context);
	/* Ends those that begin in [start, start + bytes), but for those that go on after a free.
	 */
	void (*disarm)(uint64_t start, uint64_t bytes, enum log_watched_end why);
	/* A block stays where it is, with another size. True: some are still inside. */
	bool (*resized)(uint64_t start, uint64_t size);
};

extern HIDDEN const struct watch_pages_ops watch_pages;

/* Instructions that a hook moved run elsewhere: behind one of those, a place in the function that
 * they were moved out of; any other address is itself. Bound in features.c. _sigsafe */
extern HIDDEN uint64_t (*const watch_original_code)(uint64_t rip);

/* Takes an item of the plan, which stays where it is. False: malformed or one too many. */
bool watch_plan(const struct plan_watch *item);

/* The log is there and the modules are known. */
void watch_init(void);

/* In a forked child: with a new log and debug registers of its own. */
void watch_after_fork(void);

/* More modules may be loaded now: globals that had no place. */
void watch_modules_changed_sigsafe(void);

/* A context was seen for the first time. */
void watch_context_made(uint32_t row, uint64_t stack_hash, const uint64_t *frames, uint32_t count);

/* A block of a context with a watch begins; one that is marked ends. */
void watch_block_born(struct guard *guard, struct block *block, uint64_t start);
void watch_block_gone(struct guard *guard, uint64_t start, uint64_t size);

/* realloc: a marked block may move, or lose its end. Its objects end before the real call, and
 * those that are still inside of it afterwards go on as if nothing had happened. True: some do. */
void watch_block_suspend(struct guard *guard, uint64_t start, uint64_t size);
bool watch_block_resume(struct guard *guard, uint64_t start, uint64_t size);

/* Does a watch want the next block of this context, of this size, on watched pages? */
bool watch_places(uint32_t context, uint64_t size);
/* …on pages of its own, to be shut when it is freed? */
bool watch_fences(void);

/* A hook on a function saw an object that watch number `watch` of the plan (PLAN_ITEM_WATCH,
 * counted from 0) is about: what it returned, or one of its arguments. NULL pointers are left out
 * by the caller. */
void watch_object(struct guard *guard, uint32_t watch, uint64_t address,
		  const struct caller *caller);

/* The function whose frame ends at `end` returns: what watch number `watch` has in it is over. */
void watch_frame_left(struct guard *guard, uint32_t watch, uint64_t end);

/* A thread begins and ends, and calls it itself: variables that each thread has. */
void watch_thread_born(void);
void watch_thread_gone(struct thread *self);

void watch_switch_on(void);

/* Is this Python class the one that watch number `watch` is about? */
bool watch_wants_python(uint32_t watch, uint64_t type);
