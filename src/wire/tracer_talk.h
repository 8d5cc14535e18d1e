/*
 * What the agent and the tracer say to each other, where no perf event can be opened.
 *
 * The tracer is a process of the tool that has all of a trial's processes under ptrace(2) and sets
 * their debug registers. The agent asks with an int3 whose registers hold the request: the thread
 * stops in the tracer, which answers in rax and lets it go on as if nothing had been. No memory is
 * shared, so it works the same in a forked child, a vfork child and a new image.
 *
 *	rax, r8         TRACER_MAGIC_A, TRACER_MAGIC_B
 *	rdi             enum tracer_request
 *	rsi, rdx, rcx   arguments
 *	rax             0 or -errno, when it goes on
 *
 * A process that nobody traces yet writes its pid (4 bytes) into the fifo WIRE_TRACER_NAME of the
 * trial's folder. A trap of a debug register reaches the agent as SIGTRAP with the siginfo that
 * perf would have sent (TRAP_PERF).
 *
 * Also included by assembler code.
 */
#pragma once

#define WIRE_TRACER_NAME "tracer"

#define TRACER_MAGIC_A 0x5244485f54524143
#define TRACER_MAGIC_B 0x6b656570206f7574
#define TRACER_REPAIRED 4 /* from agent_trap_repair: the next one puts the registers back */

#ifndef __ASSEMBLER__
#include <stdint.h>

#define TRACER_REGISTERS 4u

enum tracer_request {
	/* An agent begins. rsi: struct tracer_hello. */
	TRACER_HELLO = 1,
	/* Register rsi at rdx, rcx bytes (1, 2, 4, 8; aligned so; 0: off), in all threads of the
	 * process, before it goes on. */
	TRACER_AIM = 2,
	/* Process rsi (0: this one) is to be traced by somebody else: let go of it. */
	TRACER_YIELD = 3,
};

/* Lies in the target. */
struct tracer_hello {
	uint64_t repair; /* code that takes SIGTRAP back (the kernel drops a handler when its signal
			  * is forced while it is blocked) and then says TRACER_REPAIRED */
	uint64_t yielded; /* address of a uint64_t: set to 1 before the process is let go of */
};

/* <asm-generic/siginfo.h> has it since Linux 5.13: _sifields._sigfault._perf. */
struct perf_siginfo {
	int32_t signo, error, code, pad;
	uint64_t address;
	uint64_t data;
	uint32_t type, flags;
};

#define CODE_TRAP_PERF 6
#define CODE_TRAP_HWBKPT 4

_Static_assert(sizeof(struct tracer_hello) == 16, "wire size");
_Static_assert(sizeof(struct perf_siginfo) == 40, "as the kernel has it");
#endif
