/*
 * Watches in the event log (log_format.h): region WATCH, with what was watched, who wrote and the
 * latest hits, and the records about changes and sights.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/checksum.h"
#include "wire/ids.h"
#include "wire/log_pin.h"

#define LOG_WATCHES 16u
#define LOG_WRITERS 1024u
#define LOG_WATCHED 65536u /* objects remembered */
#define LOG_HITS 2048u	   /* the latest hits, whole */
#define LOG_HIT_STACK 8192u
#define LOG_HIT_CODE_BEFORE 96u
#define LOG_HIT_CODE 128u
#define LOG_HIT_OWNERS 16u
#define LOG_WATCH_BYTES 32u
#define LOG_WRITER_VALUES 4u
#define LOG_WRITER_ALONGSIDE 0x80000000u
/* Of a writer's row: the watch's number, and the system call's plus one, if the kernel wrote. libc
 * makes many of its calls by one instruction (glibc 2.41), so that alone does not tell the writer.
 */
#define LOG_WRITER_WATCH(row_watch) ((row_watch)&0xffu)
#define LOG_WRITER_CALL(row_watch) ((row_watch) >> 8 & 0xffffu)
#define LOG_WRITER_OF_CALL(call) ((((call) + 1u) & 0xffffu) << 8)

enum log_watch_mode {
	LOG_WATCH_OFF = 0, /* could not be armed: `trouble` */
	LOG_WATCH_PERF = 1,
	LOG_WATCH_BY_PTRACE = 2,
	LOG_WATCH_PAGES = 3,
};

/* What became of a watch of the plan. Live counters: hints. */
struct log_watch_row {
	uint32_t mode;		/* enum log_watch_mode */
	uint32_t kernel_writes; /* 1: seen, too */
	int32_t trouble;	/* errno of the call that failed */
	uint32_t reserved;
	uint64_t objects;   /* that the watch is about */
	uint64_t armed;	    /* of those, watched at some time */
	uint64_t displaced; /* given up for another while they lived */
	uint64_t hits;	    /* traps, all of them */
	uint64_t matched;   /* hits that counted */
	uint64_t unchanged; /* hits that left the value as it was */
	uint64_t imprecise; /* delivered late: SIGTRAP was blocked */
	uint64_t late;	    /* row 0: traps of objects that were no longer watched, of all */
	uint64_t unplaced;  /* global or range in no loaded module yet */
	uint64_t yielded;   /* row 0: enum log_yielded */
	uint64_t opened;    /* row 0, pages: instructions that only ran with the pages open */
	uint64_t moved;	    /* objects that ended because realloc moved their block */
	uint64_t let_go;    /* row 0, pages: blocks that are watched no more: pages_yield.c */
	uint64_t rest[2];
};

/* Why nothing is watched any more. */
enum log_yielded {
	LOG_YIELDED_NOT = 0,
	LOG_YIELDED_TO_OTHER = 1,  /* the process is to be traced by somebody else */
	LOG_YIELDED_KILLED = 2,	   /* the tracer has gone */
	LOG_YIELDED_TO_KERNEL = 3, /* pages: it writes there of its own accord from now on */
	LOG_YIELDED_SANDBOX = 4,   /* LOG_RETIRED_SANDBOX */
};

/* Who writes: by the instruction after the store. Live counters: hints. */
struct log_writer_row {
	uint64_t rip;	/* 0: free row */
	uint32_t watch; /* LOG_WRITER_WATCH(), LOG_WRITER_CALL(); with LOG_WRITER_ALONGSIDE: of hits
			 * that had no trap of their own */
	uint32_t check; /* over rip, watch and the row number: log_context_check() */
	uint64_t count, changed;
	uint64_t first_hit, last_hit;					     /* numbers of hits */
	uint64_t values[LOG_WRITER_VALUES], value_counts[LOG_WRITER_VALUES]; /* stored, the first
									       few */
};

enum log_watched_end {
	LOG_WATCHED_STILL = 0, /* or the process died */
	LOG_WATCHED_FREED = 1,
	LOG_WATCHED_DISPLACED = 2, /* a newer object took the debug register */
	LOG_WATCHED_AGAIN = 3,	   /* a hook handed the same address over again: a new object */
	LOG_WATCHED_MOVED = 4,	   /* realloc */
	LOG_WATCHED_EXIT = 5,
	LOG_WATCHED_RETURNED = 6, /* the function whose frame it was in */
	LOG_WATCHED_YIELDED = 7,  /* with all others: enum log_yielded */
};

/* One object, for the time it was watched. */
struct log_watched {
	uint64_t number;	  /* from 1, in order; 0: free */
	uint64_t address;	  /* of the watched bytes */
	uint64_t id, start, size; /* of the block; id 0: none known */
	struct block_key key;
	uint32_t watch;
	uint32_t end; /* enum log_watched_end */
	uint64_t begin_ns, end_ns;
	uint64_t hits;
	uint32_t context; /* where the hook was called from, or the block allocated */
	uint32_t lane;
	uint64_t first_value, last_value; /* the first eight bytes, then and at the end */
	uint64_t last_seen; /* as the latest hit left them: differs from last_value when somebody
			     * wrote without a trap */
	uint64_t check;
};

enum log_hit_flags {
	LOG_HIT_IMPRECISE = 1 << 0, /* delivered late: not the instruction */
	LOG_HIT_LATE = 1 << 1,	    /* the object was no longer watched */
	LOG_HIT_ALONGSIDE = 1 << 2, /* this one had no trap of its own: it was found changed at the
				     * trap of another; of the same store only if that covers it */
	LOG_HIT_NO_LANE = 1 << 3,
	LOG_HIT_AT = 1 << 4,	 /* on watched pages: rip is the instruction, and the registers are
				  * those before it */
	LOG_HIT_KERNEL = 1 << 5, /* on watched pages: a system call wrote it, `last_syscall`; rip
				  * is behind it, rax what it returned */
	LOG_HIT_WITH_VECTORS = 1 << 6, /* `vectors` are known */
};

#define LOG_HIT_VECTORS 16u
#define LOG_HIT_MASKS 8u

/* Registers that may say which bytes of a vector were stored. */
struct log_hit_vectors {
	uint64_t masks[LOG_HIT_MASKS];	      /* k0 to k7 */
	uint8_t vectors[LOG_HIT_VECTORS][32]; /* ymm0 to ymm15 */
};

/* The block behind a register. */
struct log_hit_owner {
	uint64_t id, start;
	uint32_t size_low;
	uint32_t context, free_context;
	uint8_t greg; /* index in gregs; 255: no more */
	uint8_t state, relation, space;
	uint32_t ordinal, reserved; /* within its context: with that, its key */
};

/* A write that was caught. The ring's slots are LOG_HIT_SLOT bytes: this, then the stack. */
struct log_hit {
	uint64_t number; /* from 1, in order; the slot is number % LOG_HITS; 0: free */
	uint64_t check;	 /* over everything else, the stack included */
	uint64_t time_ns;
	uint32_t tid, lane;
	uint32_t watch, flags;
	uint64_t watched; /* number of the object */
	/* Of a variable of a thread, which has no id, `start` is its thread pointer. */
	uint64_t address, id, start, size;
	struct block_key key;
	uint64_t age;
	uint64_t allocations; /* next id of this thread: blocks with larger ones were born later */
	uint32_t bytes;	      /* watched */
	uint32_t stack_bytes;
	uint8_t old[LOG_WATCH_BYTES], new[LOG_WATCH_BYTES];
	uint64_t gregs[LOG_GREGS];
	uint64_t stack_high;
	uint64_t stack_address;
	uint64_t code_address;
	uint32_t code_bytes;
	uint32_t last_syscall; /* LOG_HIT_KERNEL: its number */
	uint8_t code[LOG_HIT_CODE];
	struct log_hit_owner owners[LOG_HIT_OWNERS];
	struct log_hit_vectors vectors; /* LOG_HIT_WITH_VECTORS */
};

#define LOG_HIT_SLOT (1792u + LOG_HIT_STACK)
#define LOG_HIT_BLOCK 256u

/* Bytes of the block right after a hit: all of a small one, else those around what is watched;
 * outside of blocks what is watched. Behind the hits, and in the same slot as the hit. */
struct log_hit_block {
	uint64_t number;  /* of the hit; 0: free */
	uint64_t check;	  /* over everything behind it, and the number */
	uint64_t address; /* of the first byte */
	uint64_t nth;	  /* the how manieth hit on this object it is */
	uint32_t len, reserved;
	uint8_t bytes[LOG_HIT_BLOCK];
};

/* A system call that filled some of the watched bytes, where the kernel's writes cannot be caught.
 */
struct log_between_call {
	uint64_t buffer, bytes; /* that it filled */
	uint64_t caller;	/* return address */
	uint64_t time_ns;
	uint32_t number, tid;
	int32_t fd; /* -1: unknown */
	uint32_t reserved;
};

struct log_between_other {
	uint32_t pid;
	char name[20]; /* as /proc/PID/comm says; ends in 0 */
};

enum log_between_flags {
	LOG_BETWEEN_MAPPED = 1 << 0, /* map_* and path tell of the mapping that it lies in */
	LOG_BETWEEN_SHARED = 1 << 1, /* others may write through mappings of the same */
	LOG_BETWEEN_LOOKED = 1 << 2, /* `others` were looked for */
};

#define LOG_BETWEEN_CALLS 4u
#define LOG_BETWEEN_OTHERS 8u

/* The value changed and nobody was caught. A hit that comes later may explain it. */
struct log_watch_changed {
	uint64_t watched; /* number of the object */
	uint64_t address;
	uint64_t hit; /* number of the latest hit then */
	uint32_t watch, bytes;
	uint8_t expected[LOG_WATCH_BYTES], found[LOG_WATCH_BYTES];
	/* What is known of the time since the latest hit. */
	uint64_t map_low, map_high, map_offset;
	uint64_t again; /* where this process has it mapped once more; 0: nowhere */
	uint32_t flags; /* enum log_between_flags */
	uint32_t call_count, other_count, reserved;
	struct log_between_call calls[LOG_BETWEEN_CALLS];
	struct log_between_other others[LOG_BETWEEN_OTHERS]; /* processes that map it, too */
	char path[128];
};

#define LOG_SIGHT_RESULT 255u

/* A function was given an object, or returned it. */
struct log_sight {
	uint64_t object;
	uint64_t start, size; /* of the block that it lies in */
	uint32_t function;    /* number in the plan */
	uint8_t argument;     /* LOG_SIGHT_RESULT: returned */
	uint8_t inside;	      /* bit n: while function n < PLAN_SIGHT_MAKERS ran in this thread */
	uint8_t reserved[2];
};

#define LOG_LASTS 16384u
#define LOG_LAST_PROBES 8u

/* The latest hit at an address, in short: the ring forgets sooner. Found by address: from
 * log_last_slot() on, LOG_LAST_PROBES places; where all are taken, the oldest goes. */
struct log_last {
	uint64_t address; /* 0: free */
	uint64_t watched, hit;
	uint64_t id;
	uint64_t rip;
	uint64_t old_word, new_word; /* the first eight bytes */
	uint64_t time_ns;
	uint32_t tid, watch;
	uint32_t bytes, flags; /* enum log_hit_flags */
	uint64_t count;	       /* hits at this address */
	uint64_t changed_hit;  /* the latest that changed the value; 0: none did */
	uint64_t reserved[3];
	uint64_t check; /* over everything before it */
};

/* Region WATCH; the hits follow, from a page boundary on, then the bytes of their blocks, which
 * logs of an earlier redhand have not. */
struct log_watch_area {
	struct log_watch_row rows[LOG_WATCHES];
	struct log_writer_row writers[LOG_WRITERS];
	struct log_watched watched[LOG_WATCHED];
	struct log_last lasts[LOG_LASTS];
	uint64_t watched_count, hit_count; /* live */
	uint64_t rest[510];
};

LOG_PIN(log_watch_row, 136);
LOG_PIN(log_writer_row, 112);
LOG_PIN(log_watched, 128);
LOG_PIN(log_hit_owner, 40);
LOG_PIN(log_hit_vectors, 576);
LOG_PIN(log_hit, 1744);
LOG_PIN(log_hit_block, 296);
LOG_PIN(log_between_call, 48);
LOG_PIN(log_between_other, 24);
LOG_PIN(log_watch_changed, 656);
LOG_PIN(log_last, 128);
LOG_PIN(log_watch_area, 16 * 136 + 1024 * 112 + 65536 * 128 + 16384 * 128 + 4096);
_Static_assert(sizeof(struct log_hit) <= LOG_HIT_SLOT - LOG_HIT_STACK, "the stack follows");

/* Of a hit whose `check` is 0; `number` is left out, since it is written last. */
static inline uint64_t log_hit_sum(uint64_t number, const struct log_hit *hit, const void *stack)
{
	uint64_t sum = checksum_long(number, (const char *)hit + sizeof(hit->number),
				     sizeof(*hit) - sizeof(hit->number));

	return checksum_long(sum, stack, hit->stack_bytes);
}

static inline uint64_t log_hit_block_sum(uint64_t number, const struct log_hit_block *block)
{
	return checksum_long(number, &block->address,
			     sizeof(*block) - offsetof(struct log_hit_block, address));
}

static inline uint32_t log_last_slot(uint64_t address)
{
	return (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 50);
}

static inline uint64_t log_last_sum(const struct log_last *last)
{
	return checksum_add(CHECKSUM_SEED, last, offsetof(struct log_last, check));
}
