/*
 * Records of the heap observer in the event log (log_format.h): frees that should not be, damage,
 * rounds and sweeps.
 */
#pragma once

#include <stdint.h>

#include "wire/log_pin.h"

enum log_bad_free_kind {
	LOG_DOUBLE_FREE = 1,	 /* its block was freed already */
	LOG_INTERIOR_FREE = 2,	 /* points into a live block, not at its start */
	LOG_MISMATCHED_FREE = 3, /* new with free, malloc with delete, new[] with delete */
	LOG_INVALID_FREE = 4,	 /* no block was ever there */
};

/* A block's memory may have been given out again where no hook could see it (a library loaded with
 * RTLD_DEEPBIND, a signal handler inside a hook). Then the last owner that the agent knows is dead,
 * and the pointer is not freed twice at all. */
enum log_bad_free_evidence {
	LOG_EVIDENCE_NONE = 0,	     /* a suspicion, no more */
	LOG_EVIDENCE_ALLOCATOR = 1,  /* the allocator's own marks say that it is free */
	LOG_EVIDENCE_QUARANTINE = 2, /* nobody can have it: it is in quarantine */
	LOG_EVIDENCE_FOLLOWED =
		4,		/* of a malloc inside the program: what its functions are known to
				 * hand out was seen, and every free so far was of such a block */
	LOG_EVIDENCE_PLACE = 3, /* no allocator gives out such an address: a stack, a global, not
				 * aligned */
};

/* How it was given back. */
enum log_free_by {
	LOG_BY_FREE = 0,
	LOG_BY_DELETE = 1,
	LOG_BY_DELETE_ARRAY = 2,
	LOG_BY_REALLOC = 3,
};

struct log_bad_free {
	uint32_t kind;
	uint32_t context; /* of this call */
	uint64_t pointer;
	uint32_t evidence; /* enum log_bad_free_evidence */
	uint32_t by;	   /* enum log_free_by */
			   /* The block it hits follows as a BLOCK record, if there is one; of an
			    * invalid one, the freed block whose poison the pointer is. */
};

struct log_heap {
	uint64_t seed;
	uint32_t quarantine_mib, poison_ppm, timer_ms;
	uint32_t sweep;	  /* enum plan_sweep */
	uint32_t sampled; /* 1: not every block has guards */
	uint32_t reserved;
};

/* Where a byte stands that is not what it should be. */
enum log_damage_kind {
	LOG_DAMAGE_BEFORE = 1, /* in the guard before the block */
	LOG_DAMAGE_BEHIND = 2, /* in the guard behind what the program may use */
	LOG_DAMAGE_FREED = 3,  /* in a freed block */
};

/* Which look at the block saw it. */
enum log_check {
	LOG_CHECK_FREE = 1,
	LOG_CHECK_REALLOC = 2,
	LOG_CHECK_LINE = 3, /* before the line of `checkpoint` */
	LOG_CHECK_EXIT = 4,
	LOG_CHECK_CRASH = 5,
	LOG_CHECK_TIME = 6,
	LOG_CHECK_EVICTION = 7, /* it left the quarantine */
};

#define LOG_DAMAGE_BYTES 64u

struct log_heap_damage {
	uint32_t kind;	     /* enum log_damage_kind */
	uint32_t check;	     /* enum log_check */
	uint32_t context;    /* of the free or realloc that saw it, else 0 */
	uint32_t bytes;	     /* in expected and found, from the first damaged one on */
	int64_t offset;	     /* of that byte, from the block's start */
	uint64_t length;     /* to the last damaged one: what lies between may be whole */
	uint64_t checkpoint; /* seq of the last CHECKPOINT before this record; 0: none yet */
	/* The block was whole then, if it was there: the last round that looked at every block. */
	uint64_t good_checkpoint; /* seq of the CHECKPOINT that the round followed, 0: none */
	uint64_t good_ns;	  /* CLOCK_MONOTONIC; 0: there was no such round */
	uint8_t expected[LOG_DAMAGE_BYTES], found[LOG_DAMAGE_BYTES];
};

/* A round: how many blocks were looked at. */
struct log_round {
	uint32_t check; /* enum log_check */
	uint32_t whole; /* 1: all of them; 0: it took too long */
	uint64_t live, quarantined;
	uint64_t round_ns;
	/* Since the image began, all rounds and frees together. */
	uint64_t damages;	   /* also those that were too many to be told */
	uint64_t rounds, spent_ns; /* complete rounds; time that looking took */
	/* Where not every block has guards: how many had, how many had none. */
	uint64_t guarded, passed;
};

struct log_sweep {
	uint32_t at;	    /* enum plan_sweep_at */
	uint32_t blocks;    /* that were looked for */
	uint32_t cut_short; /* 1: there was more memory, or there were more pointers */
	uint32_t context;   /* of the free */
	uint64_t read_bytes, sweep_ns;
};

LOG_PIN(log_bad_free, 24);
LOG_PIN(log_heap, 32);
LOG_PIN(log_heap_damage, 184);
LOG_PIN(log_round, 72);
LOG_PIN(log_sweep, 32);
