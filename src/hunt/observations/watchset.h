#pragma once

#include "base/strbuf.h"
#include "model/heap.h"
#include "plan/hooks/planner.h"
#include "read/backtrack.h"
#include "read/hits.h"
#include "wire/plan.h"

/*
 * The homes that are watched in the next trials, and what came of it in one of them.
 */
enum locate_by {
	LOCATE_KEY,	 /* the block with the same key */
	LOCATE_ARGUMENT, /* what a function is given: the newest of them */
	LOCATE_RESULT,	 /* what a function returns: the newest of them */
	LOCATE_GLOBAL,
	LOCATE_THREAD,	/* a variable that each thread has */
	LOCATE_FRAME,	/* a slot of a function's frame, from its entry to its return */
	LOCATE_CONTEXT, /* blocks of the same context, by whichever thread: the newest of them */
};

struct watch_spec {
	enum locate_by by;
	unsigned int level; /* which step of the backtrack it is, or which hop after it */
	struct home home;   /* as it was in the trial that it was found in */
	struct block_key key;
	uint32_t bytes;
	uint64_t identity, address; /* of the module, and in its file: global or function */
	char *module;		    /* path; LOCATE_RESULT: the function, as a hook names it */
	unsigned int argument;
	int64_t offset; /* from the block's or object's start */
	bool row; /* of an array whose elements are all watched: told by that of the first crash */
	uint64_t size;	   /* LOCATE_CONTEXT: of blocks of this size only; 0: any */
	bool refused;	   /* the function cannot be hooked */
	bool after_free;   /* the watch goes on when the block is freed */
	bool reads;	   /* they are caught, too */
	bool after_return; /* LOCATE_FRAME: the watch goes on when the function has returned */
	bool count;	   /* it counts references: the last one is kept */
	bool fence;	   /* nothing is watched: its blocks are shut when they are freed */
};

struct watchset {
	VEC(struct watch_spec) list; /* watch numbers are their places */
};

void watchset_deinit(struct watchset *watchset);

/* Adds a spec for a step of the backtrack; false when it cannot be watched (memory without a
 * name). LOCATE_ARGUMENT uses its n-th handle from the outside. */
bool watchset_add_step(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, unsigned int level, enum locate_by by,
		       size_t handle);

/* Where a copied value came from, in terms that hold in the next run, too: a block's key, or a
 * place in a module's file. What it is called stands in write_seen.source. */
struct source_place {
	struct block_key key;
	uint64_t identity, address; /* identity 0: in no module */
};

/* Adds one for the home that a caught write copied its value from. */
/* The place of that step in the elements of the array that it lies in: in all of them, or in as
 * many as there are watches for, others at each turn. False: there is no such turn. */
bool watchset_add_rows(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, uint64_t stride, unsigned int turn);
bool watchset_add_source(struct watchset *watchset, const struct write_seen *write,
			 const struct source_place *place, unsigned int level);

/* Adds one for a global, as the trial with this log had it in memory. */
bool watchset_add_global(struct watchset *watchset, const struct event_log *log,
			 const struct home *home);

/* Adds one for a step of the backtrack whose block is an object that this function hands out. */
bool watchset_add_result(struct watchset *watchset, const struct backtrack_step *step,
			 unsigned int level, const char *function);

/* Adds one for bytes that the heap observer found damaged; false when their block has no key. */
bool watchset_add_damage(struct watchset *watchset, const struct heap_finding *finding);

/* Adds all blocks of a context, 16 hexadecimal digits, to be shut when they are freed. */
bool watchset_add_fence(struct watchset *watchset, const char *context);

/* Adds some bytes of a block, by its key as text; false when that is none. */
bool watchset_add_block(struct watchset *watchset, const char *key, int64_t offset, uint32_t bytes);

/* Of what was watched by its key, the first: its first byte, in the newest blocks of its context
 * and size instead. False when that is no guard of a block. */
bool watchset_widen(struct watchset *watchset);

/* Adds the word so many bytes from a global that the backtrack read. */
bool watchset_add_near(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, int64_t distance);

/* Adds one for a word of the block with this key that counts references; false: no such key. */
bool watchset_add_count(struct watchset *watchset, const char *key, int64_t offset);

/* Appends the items of the plan. Stakes whose function cannot be hooked are marked. */
int watchset_plan(struct watchset *watchset, struct hook_planner *planner, struct strbuf *items,
		  struct err *err);

/* What a failing trial's crash found in the home of a spec. */
struct victim {
	uint64_t address, value, id;
	unsigned int len;
	uint64_t before; /* only hits with smaller numbers count; 0: all */
};

/* What was caught there. */
struct watchset_result {
	bool watched;	  /* while it got that value, or from birth on */
	bool since_birth; /* LOCATE_KEY, and it never ended before */
	struct log_watched row;
	bool caught;		/* `last` is the write that left the value, or the latest one */
	const struct hit *last; /* whole, of that writer: maybe of an earlier write */
	bool exact;		/* `last` is that very write */
	struct log_last brief;
};

/* Was the victim's place watched until the end, from before the value came? Whether or not anybody
 * was caught there. `from_birth`: of blocks that are watched from their birth on. */
bool watchset_covers(struct event_log *log, const struct victim *victim, bool from_birth);

void watchset_look(const struct trial_hits *log, struct event_log *in, const struct victim *victim,
		   struct watchset_result *ret);

/* The first write known to have changed the place after `after_ns` (since the process began);
 * false: none is known. */
bool watchset_next_write(const struct trial_hits *log, struct event_log *in, uint64_t address,
			 uint64_t after_ns, struct watchset_result *ret);

/* Where the write that was caught only repeated what was there: the latest one before it that
 * brought the value; NULL: none is known. */
const struct hit *watchset_brought(const struct trial_hits *log, struct event_log *in,
				   const struct victim *victim,
				   const struct watchset_result *result);

/* Did the store go through a pointer to an object of a hooked allocator that had been given back?
 */
bool watchset_through_freed_object(const struct watchset_result *result,
				   const struct write_seen *write);

/* The innermost frames of the thread that was caught; returns how many. machine_frames_free(). */
size_t watchset_frames(const struct hit *caught, struct symbols *symbols, struct machine_frame *ret,
		       size_t room);

/* Did it go through a pointer that a loop moves on? enum pointer_motion, or 0. */
unsigned int watchset_runs(const struct hit *caught, struct symbols *symbols);

/* The write as evidence has it. */
void watchset_tell(const struct watchset_result *result, const struct victim *victim,
		   struct event_log *log, struct symbols *symbols, struct write_seen *ret,
		   struct source_place *ret_source);
