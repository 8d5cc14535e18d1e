/*
 * Hooks on functions of the target itself, as the plan asks for them.
 *
 * The tool has found the functions and decoded their code; here it is only copied. Each hooked
 * place ("site") gets a stub (stub.h) near its module: the instructions that made room for the
 * jump, and a call of the gate (arch/x86_64_hooked.S) which leads to hooked_fast() and, for what
 * that leaves, hooked_slow(). Return addresses are never replaced: exceptions, longjmp, unwinders
 * and shadow stacks find the stack as it is. Exits are hooked where they are.
 *
 * Code is patched only while nobody can run it: by the constructor, before there is a second
 * thread, and when the loader tells that a library was mapped (its r_brk, <link.h>), before
 * anything in that library has run. So no thread ever sees half a jump.
 *
 * Known limits: libraries in a name space of their own (dlmopen) are not seen. A call whose entry
 * was refused (a signal handler inside another hook) is missing at its exit and counted as
 * LOG_DROP_BLOCK, and so are calls nested deeper than THREAD_PENDING.
 */
#ifndef REDHAND_AGENT_HOOKED_H
#define REDHAND_AGENT_HOOKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

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

/* Items of the plan. False: no room, or an action for a hook that is not there. */
bool hooked_plan_hook(const struct plan_hook *hook);
bool hooked_plan_action(const struct plan_action *action);

/* In the constructor, when the log and the main thread's lane are there. */
void hooked_init(void);

/* Is anything hooked or replaced in the program itself? After hooked_init(). */
bool hooked_in_program(void);

/* In a forked child: its log knows nothing yet. */
void hooked_after_fork(void);

/* A breakpoint: if it is ours, the interrupted code goes on in the stub. */
bool hooked_trap_sigsafe(ucontext_t *context);

/* Instructions that a hook moved run elsewhere: behind one of those, a place in the function that
 * they were moved out of; any other address is itself. _sigsafe */
uint64_t hooked_original_sigsafe(uint64_t rip);

/* From the gate. hooked_fast() returns false when something is left for hooked_slow(). */
bool hooked_fast(struct hooked_call *call);
void hooked_slow(struct hooked_call *call);

/* The loader has changed its list: hooks are placed in what came, forgotten in what went. */
void hooked_libraries_changed(void);

#endif
