/*
 * Records of fences in the event log (log_format.h): who touched memory that no block of the
 * program has.
 */
#pragma once

#include <stdint.h>

#include "wire/log_crash.h"
#include "wire/log_pin.h"

enum log_fence_mode {
	LOG_FENCE_OFF = 0,	/* no memory for it: `trouble` */
	LOG_FENCE_MARKERS = 1,	/* pages are closed by guard markers (Linux 6.13) */
	LOG_FENCE_MAPPINGS = 2, /* each closed page is a mapping of its own */
};

/* Once, when it starts. */
struct log_fence {
	uint32_t mode;	  /* enum log_fence_mode */
	int32_t trouble;  /* errno of what failed */
	uint32_t calls;	  /* errno: why system calls are not told to us; 0: they are */
	uint32_t flags;	  /* PLAN_FENCE_… */
	uint32_t turn;	  /* of the plan */
	uint32_t level;	  /* as it starts: one context in 2^level has fences */
	uint64_t bytes;	  /* of address space */
	uint64_t at_once; /* blocks that may have fences at the same time */
};

enum log_fence_side {
	LOG_FENCE_BEHIND = 1, /* behind the end of a block */
	LOG_FENCE_BEFORE = 2, /* before its start */
	LOG_FENCE_FREED = 3,  /* in a freed block, or near one */
};

enum log_fence_flags {
	LOG_FENCE_WRITE = 1 << 0,
	LOG_FENCE_KERNEL = 1 << 1, /* by a system call: `call`; rip is behind it */
};

#define LOG_FENCE_CODE 16u

/* The first access of its kind: by this instruction to blocks of this context, in this way. It was
 * let through. A BLOCK record follows. */
struct log_fence_access {
	uint32_t number;  /* from 1, in this process */
	uint32_t side;	  /* enum log_fence_side */
	uint32_t flags;	  /* enum log_fence_flags */
	uint32_t context; /* the stack of the instruction; 0: not known */
	uint32_t tid;
	uint32_t call;	  /* LOG_FENCE_KERNEL: the system call's number */
	uint64_t address; /* of the first byte that was closed */
	int64_t offset;	  /* of that byte, from the block's start */
	uint64_t length;  /* LOG_FENCE_KERNEL: bytes of the buffer from there on; else 0 */
	uint32_t code_bytes;
	uint32_t reserved;
	uint8_t code[LOG_FENCE_CODE]; /* the instruction, from rip on */
	uint64_t gregs[LOG_GREGS];    /* before it */
};

#define LOG_FENCE_COUNTS 64u

/* At exit and at a crash: how often each was seen. As many of `counts` as there are, from the
 * access `first` on. */
struct log_fence_counts {
	uint32_t first, count;
	uint64_t counts[LOG_FENCE_COUNTS];
};

/* At exit and at a crash. */
struct log_fence_end {
	uint64_t fenced, passed; /* blocks with and without a fence */
	uint64_t most;		 /* that had one at the same time */
	uint32_t level;		 /* as it ended: more than it started with where room was short */
	uint32_t accesses;	 /* records of struct log_fence_access */
	uint64_t let_through;	 /* accesses, all of them */
	uint64_t left_open;	 /* pages that were used so often that they stay open */
};

LOG_PIN(log_fence, 40);
LOG_PIN(log_fence_access, 256);
LOG_PIN(log_fence_counts, 520);
LOG_PIN(log_fence_end, 48);
