#pragma once

#include "arch/operands.h"
#include "debuginfo/symbols.h"
#include "model/crash.h"
#include "read/logs.h"

/*
 * The blocks that the pointers of a crashed thread lead to, the telling ones first.
 */
struct pointed;

struct pointers {
	struct event_log *log;
	const struct fault_operands *operands; /* of the faulting instruction */
	const uint64_t *source; /* the pointer that a variable of the stack still has, behind which
				 * the bad value was found; NULL: not known */
	const uint64_t *jumped; /* where the instruction pointer went, though there is no code; NULL
				 */
	VEC(struct pointed *) list;
};

void pointers_note(struct pointers *pointers, const struct log_block *block);

/* Of the blocks noted so far, the one that the bad value was loaded from is telling. */
void pointers_note_source(struct pointers *pointers);

/* Asks the history who had the places of the telling ones before. */
void pointers_note_former(struct pointers *pointers);

/* Puts the foremost blocks into the crash, with the stacks of their lives. */
void pointers_tell(struct pointers *pointers, struct symbols *symbols, struct crash *ret);
void pointers_deinit(struct pointers *pointers);

/* A recorded block with the stacks of its life. */
void block_life_read(struct event_log *log, const struct log_block *block, const char *via,
		     struct symbols *symbols, struct block_life *ret);

/* The block that had the place of `now` (at now->value) before, as far as the history goes. */
bool block_former(struct event_log *log, const struct log_block *now, struct log_block *ret);

/* The name of a register by its place in the agent's list; "?" for none. */
#define REGISTER_PLACES 17u
const char *register_at(uint64_t place);
