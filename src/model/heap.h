#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/evidence.h"
#include "model/frame.h"
#include "model/home.h"
#include "model/rate_seen.h"
#include "model/said.h"

/*
 * What the heap observer has found: damaged blocks, frees that should not be, and who still points
 * to what was freed.
 *
 * Everything in it is owned by it; all text from the target is printable.
 */
enum heap_kind {
	HEAP_OVERFLOW,	       /* a write behind the end of a block */
	HEAP_UNDERFLOW,	       /* before its start */
	HEAP_WRITE_AFTER_FREE, /* into a block that was freed */
	HEAP_DOUBLE_FREE,
	HEAP_INTERIOR_FREE,   /* of a pointer into a block */
	HEAP_MISMATCHED_FREE, /* new with free, malloc with delete, new[] with delete */
	HEAP_INVALID_FREE,    /* of what was never allocated */
	HEAP_USE_AFTER_FREE,  /* a crash over what was read from, or lies in, a freed block; or a
			       * fence saw it read */
	HEAP_OVER_READ,	      /* a read behind the end of a block, or before its start */
	HEAP_KINDS,
};

/* The identifier in JSON. */
const char *heap_kind_name(enum heap_kind kind);

#define HEAP_BYTES 64

/* Between which moments of the run it happened. */
struct heap_when {
	char *check;	   /* who saw it: free, realloc, line, exit, crash, timer, eviction */
	char *after;	   /* the line before which the block was still whole, or was not there yet;
			    * NULL: none such is known */
	char *before;	   /* the first line after the damage was seen; NULL: there was none */
	bool since_birth;  /* the block was made after `after`: it may never have been whole */
	struct strv tests; /* that ran in between, as far as names are known; in order */
	bool more_tests;
	bool by_time; /* placed by when the lines arrived, since its process wrote none of them */
};

/* What one trial saw of a finding: the first time in it. */
struct heap_sighting {
	uint64_t trial;
	bool failed; /* the trial did */
	uint64_t id, size, address;
	int64_t offset;
	uint64_t length;
};

#define HEAP_SIGHTINGS_MAX 64

struct heap_finding {
	enum heap_kind kind;
	uint64_t trial;	   /* an example, and all below is about it */
	uint64_t evidence; /* that example in the case; 0: not stored */
	int pid;
	char *program;
	char *key;     /* of the block: the same in another run; NULL: no block */
	char *context; /* of its allocation, 16 hexadecimal digits; NULL: no block */
	uint64_t id, size, address;
	bool live;	 /* it was not freed yet when this was seen */
	int64_t offset;	 /* of the first damaged byte, or of the pointer that was freed */
	uint64_t length; /* from the first damaged byte to the last one */
	uint8_t expected[HEAP_BYTES], found[HEAP_BYTES];
	unsigned int bytes; /* in expected and found */
	/* Damage that began at another block and ran on to this one: not this block's doing. Where
	 * not all blocks had guards, also what may have begun at one without. */
	bool continued;
	bool sampled; /* not all blocks had guards in that trial */
	uint64_t gap; /* bytes between blocks that had no guard, in that trial */
	bool far; /* before the block, from the far end of the guard on, and nothing else near it */
	/* It begins at this block's end and ends at another's start: which of them is overrun is
	 * open. The context of that other; NULL: nobody's. */
	char *rival;
	/* It goes on at both ends of another live block, up to one's start out of a freed block, or
	 * begins in the guard behind one: a pointer that ran out of that one leaves the same, as it
	 * need not change every byte. Its context; NULL: nobody's. */
	char *through;
	/* Of a use after free: the block's poison was taken for a pointer; another block has the
	 * place now; the access was a store; which instruction, as text or NULL. */
	bool poison, recycled, write;
	/* A fence saw the access itself: seen_at is who made it, offset its first byte outside,
	 * length how many bytes it touched (0: not known); how often it was seen in that process,
	 * and its number there. */
	bool fenced;
	bool unpointed;	  /* no register that the address was made of pointed to the block */
	struct home from; /* then: where the pointer had been loaded from, as far as it is known */
	uint64_t pointer; /* … and what it was */
	uint64_t accesses;
	uint32_t number;
	bool python; /* the block is CPython's: an object, as a rule */
	char *instruction;
	const char *allocated_by, *freed_by; /* malloc, new, new[] …; free, delete … */
	struct stack allocated, freed;
	struct stack seen_at; /* the free or realloc that saw it; of a bad free, that free itself */
	struct heap_when when;
	uint64_t count;			/* how often in all trials */
	uint64_t trials;		/* in how many of them */
	uint64_t last_trial;		/* the latest of these */
	VEC(struct heap_sighting) seen; /* one per trial, the first of them */
};

/* How much of a program had fences. */
struct heap_fence {
	uint64_t fenced, passed; /* blocks with and without, of the processes that ended */
	uint64_t let_through;	 /* accesses to closed pages */
	unsigned int level;	 /* one context in 2^level had them, at the worst */
	unsigned int processes;
	unsigned int without; /* of them, those that could have none */
	unsigned int untold;  /* those whose system calls could not be followed */
	/* A system call was given a pointer to where nothing is: where that had been loaded from,
	 * what it was, and in which trial. */
	struct home nowhere;
	uint64_t pointer, trial;
};

struct heap_trials {
	VEC(uint64_t) list;
};

/* Somebody who pointed into a block when it had been freed. */
struct heap_holder {
	char *kind; /* "block", "global", "stack", "register", "memory" */
	char *name; /* a global's, as far as it is known; a register's; NULL */
	char *module;
	uint64_t module_offset;
	uint64_t name_offset;  /* where in that global */
	char *key;	       /* of the holding block */
	uint64_t size, offset; /* of the holding block; where in it the pointer stands */
	int lane;	       /* of a stack: whose, by order of creation; -1: unknown */
	struct stack stack;    /* who allocated the holding block */
	int64_t target_offset; /* where in the freed block it points */
	bool used;	       /* a crash went through this very pointer afterwards */
	/* Trials in which it also stood there still when it crashed; the first of them. */
	struct heap_trials used_in;
	/* Trials in which it did, and the crash used the block, but by which pointer is not known.
	 */
	struct heap_trials there_in;
	uint64_t count, trials, last_trial;
};

/* A block that was freed while somebody still pointed to it. Blocks of one context are one entry.
 */
struct heap_dangling {
	char *context;
	char *key; /* of one of them */
	uint64_t size;
	uint64_t trial;
	uint64_t blocks; /* that were looked for */
	bool python;	 /* objects of CPython's */
	bool used;	 /* one of its holders was used later */
	bool leftover;	 /* the C library's own, on its way to an abort: not told */
	struct stack allocated, freed;
	VEC(struct heap_holder) holders; /* blocks and globals first */
};

/* Does it fail more often when freed blocks of a context are overwritten? Or new ones? */
struct heap_suspect {
	char *context;
	int64_t word; /* of new blocks, the one that decides it; -1: not told apart */
	struct stack stack;
	struct rate poisoned, clear;
	double p; /* Fisher, one-sided, corrected by Holm for all contexts */
};

struct heap_report {
	const char *case_dir;
	char *const *program;
	double seconds;
	bool interrupted;
	uint64_t seed;
	unsigned int quarantine_mib;
	double poison_chance;	 /* 1: all freed blocks are overwritten */
	struct rate plain, heap; /* how often it failed under crash and under heap */
	bool compared;
	double p;			    /* that chance makes such a difference */
	struct said sentence;		    /* what the observer does to the failure */
	VEC(struct heap_finding) findings;  /* seen most often first */
	VEC(struct heap_dangling) dangling; /* those that were used first */
	/* What crashes say by themselves, whatever stood in blocks: a file that was cut. */
	struct evidence_list crashes;
	uint64_t contexts; /* that the chance of being overwritten was tested for */
	uint64_t needed;   /* failing trials that it takes at least to tell one of so many */
	VEC(struct heap_suspect) suspects;
	uint64_t blocks; /* that were looked at in last rounds */
	/* Trials in which not every block had guards; in their processes that ended, how many
	 * blocks had and how many had none. */
	uint64_t sampled_trials, guarded, unguarded;
	/* Where every trial with guards crashed (crash_place()); NULL: not all did, or in several
	 * places. */
	char *crash_place;
	bool crashes_differ;
	uint64_t outcome;	/* what trials with guards showed to the outside; 0: none, … */
	bool outcomes_differ;	/* … or not the same each time */
	struct rate fence_rate; /* of the trials with fences that came after those with guards */
	struct rate exact_rate; /* of those with fences right at the last byte, which some programs
				   do not bear */
	uint64_t fence_trials;	/* all that had fences */
	struct heap_fence fence;
	uint64_t swept;	      /* freed blocks whose holders were looked for */
	uint64_t sweep_bytes; /* of memory read for it */
	struct said_list notes;
};

void heap_finding_deinit(struct heap_finding *finding);
void heap_finding_copy(struct heap_finding *to, const struct heap_finding *from);
void heap_holder_deinit(struct heap_holder *holder);
void heap_dangling_deinit(struct heap_dangling *dangling);
/* Has it a holder who can still use it? What is on a stack or in a register may be a leftover. */
bool heap_dangling_held(const struct heap_dangling *dangling);
void heap_report_deinit(struct heap_report *report);
