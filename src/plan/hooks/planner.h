#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/said.h"
#include "plan/hooks/libraries.h"

/*
 * Plans hooks on functions of the target: finds them, follows their code and writes the items of
 * the agent's plan (wire/plan.h) that put the hooks in.
 *
 * A function is named as
 *	name			a symbol, C++ names as people write them, in the program, then in
 *				the libraries it is linked with, then in what else it was seen to
 *				load; of programs that it starts, in all that have it
 *	FILE!name		in that file: a library by name or path, also one that is loaded
 *				only later, or another program that the command runs
 *	0xADDRESS		where a function of the program begins (as objdump shows it)
 *	FILE+0xADDRESS		the same in another file
 *
 * All functions of a name are hooked, and so are the copies that the compiler made of them.
 */
struct hook_planner;

/* Fails when the program cannot be read. */
int hook_planner_new(const struct libraries_request *request, struct hook_planner **ret,
		     struct err *err);
void hook_planner_free(struct hook_planner *planner);
AUTO_DEFINE(struct hook_planner, hook_planner_free)

enum hook_role {
	HOOK_WATCH_ARGUMENT,  /* watch_object() with argument `pointer`, at entry */
	HOOK_WATCH_RESULT,    /* watch_object() with what it returns */
	HOOK_ALLOC,	      /* returns an object of `size` × `count`, or `fixed_size` bytes */
	HOOK_FREE,	      /* takes the object `pointer` back */
	HOOK_REALLOC,	      /* both, with `pointer` and `size` */
	HOOK_SIGHT_ARGUMENTS, /* tells of objects of the context `fixed_size` that it is given */
	HOOK_SIGHT_BOTH,      /* …and that it returns */
	HOOK_WATCH_FRAME,     /* watch_object() with the end of its frame, until it returns… */
	HOOK_WATCH_ENTERED,   /* …or until the register is wanted elsewhere */
	HOOK_REPLACE,	      /* hook_plan_replace() */
	HOOK_PLACE_PYTHON, /* with `pointer`, a Python class: its next instance on watched pages */
};

#define HOOK_NO_ARGUMENT 255u

struct hook_use {
	enum hook_role role;
	uint32_t number; /* of the watch, or of the function that is looked at; from 0 */
	/* Integer arguments, from 0 to 5, or HOOK_NO_ARGUMENT. */
	unsigned int pointer, size, count;
	uint64_t fixed_size; /* where `size` is HOOK_NO_ARGUMENT */
	/* What it does may be in a function of its own, with the same arguments and result, which
	 * others call past it. That one is hooked instead if it begins with a call of it; where it
	 * has a copy inside, both are. Arguments of both are in registers. NULL: no such thing. */
	const char *inner;
	/* A table that has, at this offset, a function which calls it by a pointer: what that one
	 * calls instead is hooked as well. NULL: no such thing. */
	const char *caller_in;
	uint64_t caller_at;
};

/* Appends the items for one function to `items`. An error says why it cannot be hooked, and what to
 * try; nothing is appended then. */
int hook_plan(struct hook_planner *planner, const char *function, const struct hook_use *use,
	      struct strbuf *items, struct err *err);

/* For `ret:FUNC` (argument < 0) and `argN:FUNC` of watch number `watch`. */
int hook_plan_watch(struct hook_planner *planner, const char *function, int argument,
		    uint32_t watch, struct strbuf *items, struct err *err);

/* Replaces a function of a malloc that a program of the command has inside by the agent's: `number`
 * is enum plan_own, `symbol` its name in the program's table of symbols, `program` as it was found.
 * `slow`: a breakpoint will do. -ENOENT when it has none. 0 also for another name of one that was
 * replaced before. */
int hook_plan_replace(struct hook_planner *planner, const char *program, const char *symbol,
		      uint32_t number, bool slow, struct strbuf *items, struct err *err);

/* What the user should know about the hooks planned so far, a sentence each: calls that will not be
 * seen, hooks that cost more. */
const struct said_list *hook_planner_notes(const struct hook_planner *planner);
