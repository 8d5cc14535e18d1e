/*
 * A lock that is waited for without the kernel, and not for ever: a target that is broken may have
 * damaged it, and must not hang.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/arch/x86_64.h"

/* False: it was not to be had in so many tries. */
static inline bool spin_take_sigsafe(uint32_t *lock, uint32_t tries)
{
	uint32_t spins, none;

	for (spins = 0; spins < tries; spins++) {
		none = 0;
		if (__atomic_compare_exchange_n(lock, &none, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
		if (spins % 64 == 63)
			(void)raw_syscall0(SYS_sched_yield);
		else
			arch_relax();
	}
	return false;
}

static inline void spin_give_sigsafe(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
