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
 *    of exports-crash.map, which is shorter; crash_only.c). Each hook calls the real function
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
 *  - Send a message. Trouble is agent_retire_sigsafe(reason): hooks become pass-through, the reason
 * and the drop counters stand in the log's header page, the target runs on.
 *
 * How the parts hang together: a folder each, and each header says the rest. Lower ones first;
 * who may include whom is in tools/check-includes.
 *    arch/     registers, raw system calls, stores that are run for the target
 *    core/     the functions behind ours (real), the way into a hook (guard), the log, a lane per
 *              thread, modules, what the target believes about its signals
 *    python/   the memory that names Python frames
 *    ids/      who owns an address and who owned it last (blocks), from a stack to a context id
 *              (context, sites, stack_hashes), a lane's records (history), frees that should not be
 *    guards/   guards around blocks (canary), freed ones kept (quarantine), which blocks (sample),
 *              looking at them (guard_check), what is wrong (damage), who points there (sweep)
 *    watch/    what is watched, with which debug registers, who was caught (hit)
 *    pages/    watched pages and the stores there
 *    calls/    system calls that are told to us
 *    fence/    blocks that end at closed pages
 *    hooks/    hooks on functions of the target itself
 *    growth/   live blocks per context as a series, who holds them
 *    crash/    the record of a fault
 *    chaos/    disturbances that the plan asks for, to raise the odds
 *    process/  exec, exit, files, lines, sandboxes, limits, libraries that would go past the hooks
 *    alloc/    the hooks of allocation, and what libc's malloc and free do nearly always (tcache)
 *    features.c  names them all: who is told of what
 *
 * A function that may run in a signal handler ends in _sigsafe and calls only such. Functions that
 * take a `struct guard *` are safe in the same sense: a handler that interrupts a hook and
 * allocates is refused by the guard and counted.
 */
#pragma once

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

struct policy;

/* Which hooks record. On a page of its own that the kernel wipes in every forked child, libc's
 * forks and raw ones alike: zero means pass-through. */
struct agent_switch {
	_Alignas(4096) uint32_t ids; /* enum agent_ids: blocks are followed */
	uint32_t crash;		     /* faults are recorded */
	uint32_t truncations;
	uint32_t growth;
	uint32_t chaos; /* enum chaos_switch: threads are held back */
	uint32_t lines; /* checkpoints at lines: for growth, or to tell when a block was damaged */
	const struct policy *policy; /* how allocation is done; NULL: as at rest. alloc/policy.h */
	char rest[4096 - 36];
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
	uint64_t epoch, next_id;      /* atomic */
	uint64_t space_limit; /* on memory, as the target saw it at the start; UINT64_MAX: none */
	char **environment;   /* while the constructor runs */
	uint32_t watches;     /* in the plan */
	uint32_t calls_told;  /* atomic: some thread's system calls are told to us; set once */
	uint32_t faults;      /* enum agent_faults */
	bool cramped;	      /* memory is limited: what we map is missing elsewhere */
	bool tight;	      /* memory is limited, and too little to follow blocks */
	uint32_t sandboxed;   /* enum agent_left */
};

/* System calls or signals of ours would end the target, or stop it: the agent has left. */
enum agent_left {
	AGENT_LEFT_IMAGE = 1, /* the next one is observed again */
	AGENT_LEFT_FOR_GOOD = 2,
};

/* Memory that the target faults on because we want it to. */
enum agent_faults {
	AGENT_FAULTS_PAGES = 1 << 0,
	AGENT_FAULTS_FENCES = 1 << 1,
};

/* Is this libredhand-agent-crash.so, which stands in front of threads, signals and exec only? */
extern HIDDEN const bool agent_crash_only;
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

/* True in the process that the log belongs to; false in a vfork child. One system call. */
bool agent_owns_process_sigsafe(void);
