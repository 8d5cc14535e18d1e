#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "wire/tracer_talk.h"

/*
 * The debug registers of one thread of a traced process.
 *
 * What is set now is remembered, so that only differences are written. The thread is in a ptrace
 * stop whenever one of these is called.
 */
struct register_aim {
	uint64_t address;
	uint32_t bytes; /* 1, 2, 4, 8; 0: off */
};

struct debug_registers {
	struct register_aim aims[TRACER_REGISTERS]; /* as the thread has them */
};

/* 0 or -errno: -EINVAL, the kernel does not take the address; -ENOSPC, somebody else has them;
 * -ESRCH, the thread is dying. */
int debug_registers_set(pid_t tid, struct debug_registers *now,
			const struct register_aim wanted[TRACER_REGISTERS]);

/* Which of them caused the trap that the thread has stopped for? Clears the cause. -1: none did. */
int debug_registers_cause(pid_t tid);
