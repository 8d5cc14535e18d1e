/*
 * The agent: a guest in somebody else's broken process.
 *
 * What the agent may do
 *  - Record. Everything clever happens before (the plan) or after (the tool).
 *  - Map memory for itself with raw mmap: the log (shared, one file), the side table, one area per
 *    thread. It never calls malloc, stdio, dladdr, backtrace or anything that takes a lock.
 *    (Locks of its own are taken where there are watched pages: pages.h.)
 *  - Open a descriptor only for the time of one function; the mappings live without it, so the
 *    target may close every descriptor it finds. The four of the watches are kept, and hooks_fd.c
 *    keeps them from being closed.
 *  - Stand in front of the functions listed in exports.map (where crashes are all that is wanted:
 *    of exports-crash.map, which is shorter; lean.c). Each hook calls the real function
 *    exactly once, with the same arguments (but see hooks_memory.c), and keeps errno. Those of
 *    malloc and free do themselves what the real ones do nearly always, once that was seen to be
 *    what we think it is: tcache.h.
 *  - Put a jump or a breakpoint into functions that the plan names, while nobody can run them: see
 *    hooked.h.
 *  - Stop for the tracer, where the plan names one: watch_ptrace.h.
 *  - Where memory is watched in a virtual machine: sleep for the shortest time there is, once in
 *    each thread, at the end of its first trap (watch_perf.c).
 *  - Where the plan asks for watched pages: place blocks of watched contexts in memory of its own,
 *    carry out the target's stores there, be told of its system calls and make those that write
 *    there (pages.h, calls.h).
 *  - Have a handler for SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT and SIGSYS. The target
 *    keeps its own view of its dispositions, masks and alternate stacks: see signals.h.
 *
 * What it must not do
 *  - Change how the target ends: the wait status, the core file, the output.
 *  - Change the layout of the heap: ids live beside it, in the side table. (Unless the plan asks
 *    for the heap observer, for watched pages or for chaos.)
 *  - Touch anything in a vfork child (it runs on its parent's memory), or after a fork that libc
 *    did not make: `agent_switch` lies on a page that the kernel wipes on fork.
 *  - Send a message. Trouble is agent_retire(reason): hooks become pass-through, the reason and
 *    the drop counters stand in the log's header page, the target runs on.
 *
 * How the parts hang together
 *    real.c      the functions behind ours, and the early arena that feeds dlsym itself
 *    guard.h     the way into a hook; functions that need it take it
 *    log.c       the mapped file; records are reserved by one atomic add and never overwritten
 *    thread.c    a lane per thread: its ring, caches, alternate stack, virtual signal mask
 *    modules.c   where code lies, from /proc/self/maps, for hashes that survive ASLR
 *    context.c   from a return address and a stack to a context id; sites.c remembers the places,
 *                keys.c the stacks
 *    blocks.c    side table: who owns an address, who owned it last; rings.c, where a lane's
 *                records go, and the epoch
 *    tcache.c    what libc's malloc and free do nearly always, in the hook
 *    python.c    objects of CPython, where the plan asks for them
 *    badfree.c   frees that should not be; glibc_heap.c asks the allocator's own marks
 *    canary.c    guards around blocks, where the plan asks for them; quarantine.c keeps freed ones;
 *                round.c looks at all of them, damage.c writes down what is wrong; budget.c says
 *                what memory they may take
 *    sample.c    which blocks have them, where not all do
 *    fence/      blocks that end at closed pages (its parts: fence/fence_inside.h)
 *    sweep.c     who still points to a freed block; holders.c, to live ones that grow
 *    signals.c   what the target believes about its signals (signals_older.c: older names for the
 *                same); crash.c writes the record
 *    sandbox.c   filters on system calls: when to leave; rlimits.c, limits on memory without ours
 *    interpreter.c  the memory that names Python frames, for that record
 *    checkpoint.c   live blocks per context as a series; hooks_stdio.c sees the lines
 *    pages.c     memory that the target cannot write to (its parts: pages_inside.h);
 *                pages_fault.c makes the stores there, arch/x86_64_store.c runs them
 *    calls.c     is told of every system call then; call.c makes one, call_lists.c with lists of
 *                buffers, call_signals.c those about signals, call_cancel.c threads that are
 *                cancelled in one
 *    predicate.c does a hit count?
 *    chaos.c     disturbances that the plan asks for, to raise the odds
 *    plan_apply.c   the items of the plan
 *    watch.c     what is watched; watch_registers.c with what; hit.c writes down who was caught
 *    hooked.c    hooks on functions of the target itself, stub.c the code they lead to;
 *                hooked_fast.c what they mostly do, hooked_slow.c the rest
 *    own.c       a malloc that the program has inside
 *    deepbind.c  libraries that would go past the hooks
 *    hooks_*.c   the hooks, each fits a screen
 *
 * A function that may run in a signal handler ends in _sigsafe and calls only such. Functions that
 * take a `struct guard *` are safe in the same sense: a handler that interrupts a hook and
 * allocates is refused by the guard and counted.
 */
#ifndef REDHAND_AGENT_AGENT_H
#define REDHAND_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/log_format.h"
#include "wire/plan.h"

#define EXPORT __attribute__((visibility("default")))
/* For data that hooks read: a plain extern is reached through the linker's table. */
#define HIDDEN __attribute__((visibility("hidden")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum agent_ids {
	AGENT_IDS_OFF = 0,
	AGENT_IDS_GLIBC, /* blocks of libc's own malloc, by the shortest way */
	AGENT_IDS_OTHER,
	AGENT_IDS_GUARDED, /* and have guards around them: canary.h */
	AGENT_IDS_SAMPLED, /* and some have, the others by the shortest way: sample.h */
	AGENT_IDS_SLOW,	   /* from here on not by the hot path: blocks_hot() */
	AGENT_IDS_GUARDED_SLOW,
};

/* Which hooks record. On a page of its own that the kernel wipes in every forked child, libc's
 * forks and raw ones alike: zero means pass-through. */
struct agent_switch {
	_Alignas(4096) uint32_t ids; /* enum agent_ids: blocks are followed */
	uint32_t crash;		     /* faults are recorded */
	uint32_t truncations;
	uint32_t growth;
	uint32_t chaos; /* enum chaos_switch: threads are held back */
	uint32_t lines; /* checkpoints at lines: for growth, or to tell when a block was damaged */
	char rest[4096 - 28];
	uint32_t here; /* 1 from the start on, retired or not: where it is 0, the page was wiped */
};

/* The agent's one state page. Written by the constructor and the atfork handlers, then only read,
 * except for the fields marked atomic. */
struct agent {
	struct plan_header plan;
	uint32_t pid; /* of the log; a vfork child has another */
	uint32_t image;
	uint32_t user;	  /* whose the process was when this image began */
	char trial[1024]; /* folder, no trailing slash */
	char log_path[1088];
	char preload[2048];	      /* "LD_PRELOAD=..." as this image was given it */
	char trial_entry[1056];	      /* "REDHAND_TRIAL=..." */
	uint64_t text_low, text_high; /* the agent's own code */
	uint32_t items_refused;	      /* of the plan */
	uint32_t libc_cache;	      /* enum log_trust */
	uint64_t epoch;		      /* atomic */
	uint64_t next_id;	      /* atomic */
};

/* Is this libredhand-agent-crash.so, which stands in front of threads, signals and exec only? */
extern HIDDEN const bool agent_lean;
extern HIDDEN struct agent_switch agent_switch;
extern HIDDEN struct agent agent;

static inline __attribute__((always_inline)) bool agent_ids_guarded(void)
{
	return agent_switch.ids == AGENT_IDS_GUARDED || agent_switch.ids == AGENT_IDS_SAMPLED ||
	       agent_switch.ids == AGENT_IDS_GUARDED_SLOW;
}

static inline __attribute__((always_inline)) bool agent_ids_slow(void)
{
	return agent_switch.ids >= AGENT_IDS_SLOW;
}

/* Turns every hook into a pass-through and says why in the log, if there is one. _sigsafe. */
void agent_retire_sigsafe(enum log_retired reason);

/* True in the process that the log belongs to; false in a vfork child. One system call. */
bool agent_owns_process_sigsafe(void);

/* In a child that a system call of the target's own made (clone, fork past libc), which is about to
 * die: it gets a log, for its end alone. False: it is no such child. _sigsafe */
bool agent_adopt_orphan_sigsafe(void);

/* What is still to be written down of programs that children started. hooks_process.c, _sigsafe */
void process_exiting_sigsafe(void);

/* The image ends by itself. how: as in struct log_exit. _sigsafe */
void agent_exiting_sigsafe(uint32_t status, uint32_t how);

#endif
