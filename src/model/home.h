#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where a value lives: a field of a block, a global, a slot on a stack. */
enum home_kind {
	HOME_UNKNOWN,
	HOME_BLOCK,
	HOME_GLOBAL,
	HOME_STACK,
	HOME_ADDRESS, /* none of these; only the address is known */
	HOME_THREAD,  /* a variable that each thread has its own of */
	HOME_KINDS,
};

struct home {
	enum home_kind kind;
	char *key;	   /* HOME_BLOCK: CONTEXT#ORDINAL, the same in another run; or NULL */
	uint64_t block_id; /* HOME_BLOCK: which block it was in this trial; 0 unknown */
	char *name;	   /* HOME_GLOBAL: the symbol; HOME_STACK: the function; or NULL */
	char *field;	   /* as the source calls it: "struct object.word"; NULL when unknown */
	char *module;	   /* HOME_GLOBAL: its file; or NULL */
	int64_t offset;	   /* within the block or symbol; not less than the block's size, or
			    * negative: beside the block (a canary). Of a frame, from its end,
			    * which is right behind the return address: negative. Of a variable
			    * of a thread, from the thread pointer */
	uint64_t len;	   /* of the field, in bytes; 0 unknown */
	uint64_t address;  /* in this trial; 0 unknown */
};

/* The identifier in JSON: "block". */
const char *home_kind_name(enum home_kind kind);

void home_copy(struct home *to, const struct home *from); /* onto an empty one */
void home_deinit(struct home *home);

/* Keys without their ordinals: blocks of one context are alike, and which of them it is may differ
 * from run to run. The second is for any thread. False for NULL. */
bool key_same_context(const char *a, const char *b);
bool key_same_stack(const char *a, const char *b);

/* Do they name the same field in any run: same block key or context, symbol, offset? */
bool home_same(const struct home *a, const struct home *b);

/* Are they the same global, whichever of its elements? */
bool same_variable(const struct home *a, const struct home *b);
