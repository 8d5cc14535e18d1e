#pragma once

#include "base/strbuf.h"
#include "debuginfo/symbols.h"
#include "plan/hooks/planner.h"
#include "read/logs.h"

/*
 * An allocator of the program's own that nobody told us about: a function that hands out the same
 * objects again and again, and one that takes them back. To malloc they live all the time, so a
 * write to an object that had been given back looks like one to a live block.
 *
 * It is found by looking on: functions on the stack of the block's allocation are watched for
 * returning such objects, those near them in the file for being given them. Where no object was
 * ever handed out again without having gone through one and the same function, once, and that
 * mostly last, that function takes back.
 */

/* The functions that are looked at. */
struct scout {
	VEC(struct scout_function) list; /* those that may hand out first */
	size_t makers;
	uint64_t stack_hash; /* of the blocks that it is about */
};

struct scout_function {
	char *hook; /* as hook_plan() takes it */
	char *name; /* for people */
};

struct recycler {
	bool found;
	uint64_t stack_hash;
	char *hands_out, *takes_back; /* as hook_plan() takes them */
	char *words;		      /* how it is known: a sentence */
	unsigned int argument;	      /* of takes_back, from 0 */
	uint64_t size;		      /* of an object */
	bool whole;		      /* an object is a whole block, not a piece of one */
	/* Not inferred: the user described it and maybe others (--allocator). NULL: inferred. */
	const struct strv *given;
};

/* What the user described, where it hands out blocks that are allocated there; else nothing. */
void recycler_take_given(const struct strv *allocators, const struct stack *allocated,
			 uint64_t stack_hash, uint64_t block_size, struct recycler *ret);

/* Which functions to look at; `allocated` is where the blocks of this context are allocated. False
 * when there is none. */
bool scout_begin(const struct stack *allocated, uint64_t stack_hash, struct scout *ret);
void scout_deinit(struct scout *scout);

/* Appends the hooks that look; functions that cannot be hooked are left out. */
void scout_plan(const struct scout *scout, struct hook_planner *planner, struct strbuf *items);

/* What they saw in one trial. */
void scout_read(const struct scout *scout, struct event_logs *logs, struct recycler *ret);

/* Appends the hooks that follow the objects. */
int recycler_plan(const struct recycler *recycler, struct hook_planner *planner,
		  struct strbuf *items, struct err *err);
void recycler_deinit(struct recycler *recycler);

/* What was seen of one object, in order; for scout_judge(). */
struct scout_sight {
	uint64_t object, start, size;
	uint32_t function;
	uint8_t argument, inside; /* as struct log_sight */
};

/* Which of the first `makers` functions hands out, and which other one takes back? -1: none does,
 * for all that was seen. */
int scout_judge(const struct scout_sight *sights, size_t count, size_t makers, uint32_t *ret_taker,
		unsigned int *ret_argument, size_t *ret_times);
