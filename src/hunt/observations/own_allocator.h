#pragma once

#include "base/strbuf.h"
#include "debuginfo/symbols.h"
#include "model/said.h"
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
struct allocator_probe {
	VEC(struct probed_function) list; /* those that may hand out first */
	size_t makers;
	uint64_t stack_hash; /* of the blocks that it is about */
};

struct probed_function {
	char *hook; /* as hook_plan() takes it */
	char *name; /* for people */
};

struct own_allocator {
	bool found;
	uint64_t stack_hash;
	char *hands_out, *takes_back; /* as hook_plan() takes them */
	struct said basis;	      /* how it is known */
	unsigned int argument;	      /* of takes_back, from 0 */
	uint64_t size;		      /* of an object */
	bool whole;		      /* an object is a whole block, not a piece of one */
	/* Not inferred: the user described it and maybe others (--allocator). NULL: inferred. */
	const struct strv *given;
};

/* What the user described, where it hands out blocks that are allocated there; else nothing. */
void own_allocator_take_given(const struct strv *allocators, const struct stack *allocated,
			      uint64_t stack_hash, uint64_t block_size, struct own_allocator *ret);

/* Which functions to look at; `allocated` is where the blocks of this context are allocated. False
 * when there is none. */
bool allocator_probe_begin(const struct stack *allocated, uint64_t stack_hash,
			   struct allocator_probe *ret);
void allocator_probe_deinit(struct allocator_probe *probe);

/* Appends the hooks that look; functions that cannot be hooked are left out. */
void allocator_probe_plan(const struct allocator_probe *probe, struct hook_planner *planner,
			  struct strbuf *items);

/* What they saw in one trial. */
void allocator_probe_read(const struct allocator_probe *probe, struct event_logs *logs,
			  struct own_allocator *ret);

/* Appends the hooks that follow the objects. */
int own_allocator_plan(const struct own_allocator *own, struct hook_planner *planner,
		       struct strbuf *items, struct err *err);
void own_allocator_deinit(struct own_allocator *own);

/* What was seen of one object, in order; for allocator_probe_judge(). */
struct object_trace {
	uint64_t object, start, size;
	uint32_t function;
	uint8_t argument, inside; /* as struct log_sight */
};

/* Which of the first `makers` functions hands out, and which other one takes back? -1: none does,
 * for all that was seen. */
int allocator_probe_judge(const struct object_trace *observations, size_t count, size_t makers,
			  uint32_t *ret_taker, unsigned int *ret_argument, size_t *ret_times);
