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
 * Contexts with a watch are never kept among the places that the fast path knows (context.c), and a
 * watched block is marked so that its free is passed on to the slow one (blocks.h): who is not
 * watched pays nothing.
 */
#ifndef REDHAND_AGENT_WATCH_H
#define REDHAND_AGENT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/guard.h"
#include "agent/ids/blocks.h"
#include "agent/ids/context.h"
#include "wire/plan.h"

#define WATCH_ARMED_MAX 4u
#define WATCH_WORDS (LOG_WATCH_BYTES / 8)

/* An object that is watched now. Written under the lock; handlers read it. */
struct watch_armed {
	uint64_t number;    /* atomic; 0: it has ended, or there is none */
	uint64_t suspended; /* its number, while its block is in realloc's hands */
	uint64_t address;
	uint32_t bytes;
	uint32_t watch;
	bool fixed; /* not an object: never displaced */
	bool paged; /* on watched pages: nothing is ever on its way */
	uint64_t id, start, size;
	struct block_key key;
	uint64_t last[WATCH_WORDS];   /* atomic words: as the latest hit left them */
	uint64_t noted[WATCH_WORDS];  /* a change nobody was caught at, told already */
	uint64_t beside[WATCH_WORDS]; /* the same, as it was seen at another's trap */
	struct log_watched *row;
};

extern HIDDEN struct watch_state {
	const struct plan_watch *plans[PLAN_WATCHES_MAX];
	uint32_t count;
	struct log_watch_area *area; /* in the log; NULL: nothing is watched */
	unsigned char *hits;	     /* ring in the log */
	uint64_t hit_count;	     /* atomic */
	uint64_t numbers;	     /* objects armed so far; atomic */
	bool reads;		     /* trap, too */
	struct watch_armed armed[WATCH_ARMED_MAX];
} watch_state;

/* For each row of the context table, the watches that are about its blocks. NULL: none is. */
extern HIDDEN uint16_t *watch_contexts;

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

static inline bool watch_wants(uint32_t context)
{
	return unlikely(watch_contexts != NULL) && watch_contexts[context];
}

/* A block of a context with a watch begins; one that is marked ends. */
void watch_block_born(struct guard *guard, struct block *block, uint64_t start);
void watch_block_gone(struct guard *guard, uint64_t start, uint64_t size, enum log_watched_end why);

/* realloc: a marked block may move, or lose its end. Its objects end before the real call, and
 * those that are still inside of it afterwards go on as if nothing had happened. True: some do. */
void watch_block_suspend(struct guard *guard, uint64_t start, uint64_t size);
bool watch_block_resume(struct guard *guard, uint64_t start, uint64_t size);

/* Does a watch want the next block of this context, of this size, on watched pages? */
bool watch_places(uint32_t context, uint64_t size);
/* …on pages of its own, to be shut when it is freed? */
bool watch_fences(void);

/* For pages_objects.c: begins, looks at and ends an object, while nobody can write to it. */
void watch_begin(struct watch_armed *armed, uint32_t context);
void watch_look(struct watch_armed *armed);
void watch_end(struct watch_armed *armed, enum log_watched_end why);
/* It goes on when its block is freed. */
bool watch_outlives(const struct watch_armed *armed);

/* A hook on a function saw an object that watch number `watch` of the plan (PLAN_ITEM_WATCH,
 * counted from 0) is about: what it returned, or one of its arguments. NULL pointers are left out
 * by the caller. */
void watch_object(struct guard *guard, uint32_t watch, uint64_t address, struct caller caller);

/* The function whose frame ends at `end` returns: what watch number `watch` has in it is over. */
void watch_frame_left(struct guard *guard, uint32_t watch, uint64_t end);

/* A thread begins and ends, and calls it itself: variables that each thread has. */
void watch_thread_born(void);
void watch_thread_gone(void);

/* Is this Python class the one that watch number `watch` is about? */
bool watch_wants_python(uint32_t watch, uint64_t type);

/* Has anything watched changed without a trap? At lines, at a crash and at the end. _sigsafe */
void watch_check_sigsafe(void);
void watch_exiting_sigsafe(void);
/* Nothing is watched from now on, nor does that take any more system calls. _sigsafe */
void watch_leave_sigsafe(void);

/* A trap of a register whose object has ended: parks it. _sigsafe */
void watch_retire_register_sigsafe(unsigned n, uint64_t address);

/* A register may still be aimed at where an object was. _sigsafe */
bool watch_register_lingers_sigsafe(void);

/* Copies from memory that may have gone; false: it has. _sigsafe */
bool watch_read_sigsafe(void *to, uint64_t from, uint32_t bytes);

#endif
