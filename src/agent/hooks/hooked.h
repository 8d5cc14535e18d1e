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
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "agent/hooks/hook_sites.h"
#include "wire/plan.h"

/* Items of the plan. False: no room, or an action for a hook that is not there. */
bool hooked_plan_hook(const struct plan_hook *hook);
bool hooked_plan_action(const struct plan_action *action);

/* In the constructor, when the log and the main thread's lane are there. */
void hooked_init(void);

/* In a forked child: its log knows nothing yet. */
void hooked_after_fork(void);

/* A breakpoint: if it is ours, the interrupted code goes on in the stub. */
bool hooked_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);

/* Instructions that a hook moved run elsewhere: behind one of those, a place in the function that
 * they were moved out of; any other address is itself. _sigsafe */
uint64_t hooked_original_sigsafe(uint64_t rip);

/* From the gate. hooked_fast() returns false when something is left for hooked_slow(). */
bool hooked_fast(struct hooked_call *call);
void hooked_slow(struct hooked_call *call);

/* The loader has changed its list: hooks are placed in what came, forgotten in what went. */
void hooked_libraries_changed(void);
