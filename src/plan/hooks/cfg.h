#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/code.h"
#include "base/err.h"
#include "base/vec.h"
#include "debuginfo/functions.h"
#include "debuginfo/module.h"

/*
 * The shape of a function: its instructions, and every address in it that control may come to from
 * elsewhere. From that follows where code can be replaced without anybody noticing.
 *
 * What may be reached is rather overstated than understated: an address too many costs a cheaper
 * hook, one too few would break the program. Looked at are the function's own branches; the bytes
 * of all other code, as if a branch could begin at any of them; all words of data that hold an
 * address in the function (labels whose address is taken, tables of addresses); tables of distances
 * at every address that the function names; places where exceptions land; symbols.
 */
struct shape_exit {
	uint64_t at;
	bool tail;	 /* a jump to another function, not a return */
	uint64_t target; /* of a tail jump; 0 when it is not known */
};

struct shape {
	struct module *module;
	struct function function;	   /* with the pieces that only it jumps to; owns nothing */
	VEC(struct code_instruction) code; /* ascending by address */
	VEC(uint64_t) targets;		   /* ascending */
	VEC(struct shape_exit) exits;	   /* ascending */
	bool unfollowed;		   /* a table of jumps was not found: targets are missing */
	bool loops_to_entry;
};

/* Reads and follows the function. An error says why it cannot be understood. */
int shape_read(struct module *module, const struct function *function, struct shape *ret,
	       struct err *err);
void shape_deinit(struct shape *shape);

/* The instruction that begins at this address, or NULL. */
const struct code_instruction *shape_instruction(const struct shape *shape, uint64_t at);

/* Is there a target in [low, high)? */
bool shape_has_target(const struct shape *shape, uint64_t low, uint64_t high);
