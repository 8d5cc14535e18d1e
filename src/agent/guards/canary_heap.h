/*
 * The heap behind the hooks where blocks have guards (canary.h): each function does what the one of
 * libc does that it is named after, errno included, and records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/guards/canary.h"

/* Switches it on and says so in the log. After blocks_init(). */
void canary_init(void);
/* From now on blocks go without, and what was freed leaves quarantine. */
void canary_tight(void);
/* The same in the log of a forked child. */
void canary_after_fork(void);
void canary_orphaned(void);
void canary_switch_on(void);

/* Blocks that lie elsewhere than in libc's memory, and have no guards there: fences. Asked where
 * canary.annexed says so. Bound in features.c. */
struct canary_annex {
	/* NULL: it is to lie in libc's. Zeroed. */
	void *(*allocate)(uint64_t align, uint64_t size, enum log_api api, struct caller caller);
	bool (*holds)(const void *ptr);
	void (*free)(void *ptr, enum log_free_by by, struct caller caller);
	void *(*realloc)(void *ptr, size_t size, struct caller caller);
	size_t (*usable)(const void *ptr);
	/* Nothing can be recorded: it is never used again. */
	void (*leave)(void *ptr);
};

extern HIDDEN const struct canary_annex canary_annex;

enum canary_flags {
	CANARY_ZEROED = 1 << 0,
	CANARY_TAKEN = 1 << 1,	/* sample_takes() has said so */
	CANARY_PASSED = 1 << 2, /* its own: no guards around this one */
};

void *canary_allocate(size_t align, size_t size, unsigned flags, enum log_api api,
		      struct caller caller);
/* The same with memory that libc has given: canary_room() of the front and the size, and the gap.
 * Without a front there are no guards. */
void *canary_take(void *base, uint64_t front, size_t size, enum log_api api, struct caller caller);

/* Of a block that canary_holds(). */
void *canary_realloc(void *ptr, size_t size, struct caller caller);
/* Of a block without guards that canary_could_hold(): it moves. */
void *canary_take_in(void *ptr, size_t size, unsigned flags, enum log_api api,
		     struct caller caller);
void canary_free(void *ptr, enum log_free_by by, struct caller caller);
size_t canary_usable(void *ptr);

/* new with delete, new[] with delete[], everything else with free. */
bool canary_mismatched(const struct block *block, enum log_free_by by);

/* Is it a block with guards, live or in quarantine? */
bool canary_holds(const void *ptr);
/* A live block that is known, with guards or without? */
bool canary_could_hold(const void *ptr);

/* Gives a block back when nothing can be recorded: the agent has retired, the hook was refused, or
 * a child was made that libc does not know of. _sigsafe as far as libc's own free is. */
void canary_free_blindly(void *ptr);
void *canary_realloc_blindly(void *ptr, size_t size);
