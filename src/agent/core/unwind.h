/*
 * A walk up the stack by the call frame information that every module carries (.eh_frame).
 *
 * Used once per new path to an allocation, never in a signal handler: a conservative scan of the
 * stack was tried first, but stale return addresses in unused slots made half of git's contexts
 * differ between two runs. It keeps only what it needs to find return addresses (rsp, rbp); a frame
 * that needs more ends the walk, the same way in every run. The stack's bytes go into the log all
 * the same, and the tool unwinds those with all registers.
 *
 * It reads the modules' tables where they are mapped, and stacks that may be broken: the caller
 * arms the thread's recovery (guard_recovery) first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/unwind_rule.h"

struct unwind {
	uint64_t rip, rsp, rbp;
	uint64_t low,
		high; /* stack words are read only in here; high 0: unknown, recovery guards */
};

struct loaded_module;

/* Decodes the rule for a return address. */
void unwind_learn(uint64_t rip, const struct loaded_module *module, struct unwind_rule *ret);

/* From a frame to its caller. On success *ret_slot is the address of the stack word that held the
 * new rip. False at the end of the stack or of what can be known. */
bool unwind_step(struct unwind *at, const struct unwind_rule *rule, uint64_t *ret_slot);
