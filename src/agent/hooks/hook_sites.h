/*
 * The hooked places and what is done at each: what the parts of the hooks on functions share.
 */
#pragma once

#include <stdint.h>

#include "agent/hooks/hooked_limits.h"
#include "wire/plan.h"

#define HOOKED_SITES 1024u
#define HOOKED_ACTIONS 2048u

/* What the gate hands over. */
struct hooked_call {
	const uint64_t *frame; /* [0]: rbp of the hooked function's caller, [1]: return address */
	uint32_t site;
	uint32_t next; /* action to go on with */
	uint64_t reserved[2];
	uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, flags, rax;
};

struct hooked_site {
	const struct plan_hook *plan;
	uint64_t address; /* where it is patched; 0: it is not */
	uint64_t bias;	  /* of its module */
	uint64_t stub;
	uint64_t tail; /* the slot for its tail call; 0: none */
	uint32_t stub_bytes;
	uint32_t area_bytes; /* of the memory that its stub is the first in; 0: it is not */
	uint32_t state;	     /* enum log_hook_state; 0: its module is not there */
	uint32_t first_action, action_count;
	uint32_t replaced; /* enum plan_own, from 1: the function is not hooked but replaced; 0: not
			    */
};

struct hooked_state {
	struct hooked_site sites[HOOKED_SITES];
	uint32_t site_count;
	uint32_t action_count;
	/* By site, in the order of the plan. */
	struct plan_action actions[HOOKED_ACTIONS];
	uint32_t traps; /* sites placed as breakpoints */
};

extern __attribute__((visibility("hidden"))) struct hooked_state hooked;

/* What takes the place of functions that are replaced: builtin_malloc.h. Bound in features.c. */
struct hooked_replacement {
	/* Where the patched entry of such a function leads to; 0: no such number. */
	uint64_t (*gate)(uint32_t number);
	/* `original` does what the function did. Before anything is patched. */
	void (*bind)(uint32_t number, uint64_t original);
	/* All of them are patched. */
	void (*take_over)(void);
};

extern __attribute__((visibility("hidden"))) const struct hooked_replacement hooked_replacement;
