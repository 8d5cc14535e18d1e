/*
 * One instruction of the target, carried out with the trap flag set.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define FLAG_TRAP 0x100u /* of EFLAGS */
/* siginfo's codes of SIGTRAP (sigaction(2)). */
#define CODE_BRKPT 1
#define CODE_TRACE 2

/* Is this the trap behind an instruction that is being stepped? Some hypervisors lose the debug
 * status register now and then; the kernel then takes the exception for an `int1` instruction. What
 * was stepped reached for memory, so it was none. An `int3` has another code (SI_KERNEL). */
static inline bool step_trap(const siginfo_t *info, const ucontext_t *context)
{
	return info->si_code == CODE_TRACE ||
	       (info->si_code == CODE_BRKPT &&
		(uint64_t)info->si_addr == (uint64_t)context->uc_mcontext.gregs[REG_RIP]);
}
