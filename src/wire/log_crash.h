/*
 * Crashes in the event log (log_format.h): the record of a crash, and what follows it: pieces of
 * memory (BLOB), the blocks that its registers and its stack point into (BLOCK), Python's state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ids.h"
#include "wire/log_pin.h"

enum log_crash_flags {
	LOG_CRASH_FINAL = 1 << 0, /* default action follows: the process is about to die of it */
	LOG_CRASH_FORWARDED = 1 << 1,	    /* the target's own handler runs next: provisional */
	LOG_CRASH_SENT = 1 << 2,	    /* by kill/tgkill/raise/abort, not by an instruction */
	LOG_CRASH_LIGHT = 1 << 3,	    /* short form: many handled faults came before */
	LOG_CRASH_ON_TARGET_STACK = 1 << 4, /* not on an alternate stack */
	LOG_CRASH_NO_LANE = 1 << 5,	    /* thread unknown to the agent */
	LOG_CRASH_IN_AGENT = 1 << 6,	    /* happened while this thread was inside a hook */
	LOG_CRASH_IN_HANDLER = 1 << 7,	    /* in the target's handler for the one it `follows` */
};

struct log_crash {
	int32_t signo, code, error;
	uint32_t flags;		/* enum log_crash_flags */
	uint64_t fault_address; /* si_addr for SEGV, BUS, ILL, FPE, TRAP; call address for SYS */
	uint32_t sender_pid, sender_uid; /* LOG_CRASH_SENT */
	uint32_t lane;
	uint32_t tid;
	uint64_t gregs[LOG_GREGS];
	uint64_t fs_base;
	uint64_t realtime_ns;
	uint64_t stack_high; /* of this thread's stack, 0 unknown */
	uint64_t follows; /* seq of this thread's previous crash record: a handler that re-raised */
	uint64_t allocations;	  /* last id this thread handed out: "how many allocations ago" */
	uint32_t syscall_number;  /* SIGSYS */
	uint32_t previous_action; /* 0 default, 1 ignore, 2 handler */
	uint64_t previous_handler;
	char thread_name[16];
};

struct log_crash_done {
	uint64_t write_ns; /* how long the record took */
	uint32_t blobs, blocks;
};

/* The target's handler returned, but to another place than it was called from: what it made of the
 * interrupted registers. */
struct log_crash_diverted {
	uint64_t rip, rsp;
};

/* Was it made to look as if the faulting instruction had called something? Who survives a fault
 * goes on behind it or farther up. Go calls so what panics, which for a fault on a thread's own
 * stack, where C runs, ends the process. */
static inline bool log_crash_called(const struct log_crash *crash,
				    const struct log_crash_diverted *to)
{
	uint64_t rsp = crash->gregs[LOG_GREG_RSP];

	return to->rip != 0 && to->rip != crash->gregs[LOG_GREG_RIP] && to->rsp < rsp &&
	       rsp - to->rsp <= 64 && rsp < crash->stack_high &&
	       crash->stack_high - rsp < (1u << 30);
}

enum log_stack_part {
	LOG_STACK_INNER = 0,
	LOG_STACK_MORE = 1,  /* goes on where the inner part ends */
	LOG_STACK_OUTER = 2, /* the thread's first functions, when that is elsewhere */
};

enum log_blob_kind {
	LOG_BLOB_STACK = 1,   /* from the interrupted rsp (less the 128-byte red zone) up; an enum
				 log_stack_part */
	LOG_BLOB_CODE = 2,    /* around rip */
	LOG_BLOB_MEMORY = 3,  /* behind register `index` (number in gregs) */
	LOG_BLOB_MAPS = 4,    /* /proc/self/maps, text */
	LOG_BLOB_FILES = 5,   /* struct log_file_size[] for file mappings */
	LOG_BLOB_THREADS = 6, /* struct log_thread_name[] */
	LOG_BLOB_ABORT = 7,   /* glibc's abort message: heap checks, assertions, fortify */
	LOG_BLOB_COMMAND = 8, /* /proc/self/cmdline */
	LOG_BLOB_PATH = 9,
	LOG_BLOB_FAULT_MEMORY = 10, /* around the fault address, when readable */
	LOG_BLOB_XSTATE = 11,	    /* legacy fxsave area: 512 bytes, xmm registers */
	LOG_BLOB_PYTHON = 12,	    /* struct log_kept, its bytes, padding to 8; and again */
	LOG_BLOB_DATA = 13,	    /* variables of the main program, with PLAN_WILD_VALUES */
	LOG_BLOB_JIT = 16, /* a page of emitted code. In EVENTS, whoever owns it: a crash, EXIT */
};

/* One piece of memory in a blob that packs many small ones. */
struct log_kept {
	uint64_t address; /* in the target */
	uint64_t bytes;	  /* follow, padded with zeros to a multiple of 8 */
};

/* A crash in a process that runs CPython: where its state lies, for python_frames_read(). */
struct log_python {
	uint64_t runtime; /* address of _PyRuntime */
	uint64_t version; /* value of Py_Version */
	uint32_t frames;  /* Python frames of this thread that were kept; 0: it runs none */
	uint32_t reserved;
};

/* One piece of a long piece of data. Pieces of one blob share owner, kind and index. */
struct log_blob {
	uint16_t kind; /* enum log_blob_kind */
	uint16_t index;
	uint32_t bytes;	  /* of this piece; follows */
	uint64_t address; /* in the target, of the blob's first byte; 0 when it is not memory */
	uint64_t offset;  /* of this piece in the blob */
	uint64_t total;	  /* of the blob */
};

/* What a mapped file looks like at the moment of the crash: a smaller size than mapped tells that
 * it was cut. */
struct log_file_size {
	uint64_t map_low; /* start of the mapping: find its line in MAPS */
	uint64_t map_bytes;
	uint64_t file_offset;
	int64_t size;		/* -1: no such file now */
	uint64_t device, inode; /* of the file with that name now */
	uint32_t same_file;	/* 1: inode equals the mapped one; 0: another file has the name */
	uint32_t reserved;
};

struct log_thread_name {
	uint32_t tid;
	char name[16];
	uint32_t reserved;
};

enum log_block_via {
	LOG_VIA_REGISTER = 1, /* where = index in gregs */
	LOG_VIA_FAULT = 2,    /* the fault address */
	LOG_VIA_STACK = 3,    /* where = address of the stack word */
	LOG_VIA_MEMORY = 4,   /* where = address of the word behind a register */
	LOG_VIA_BAD_FREE = 5, /* the pointer passed to free */
	LOG_VIA_DAMAGE = 6,   /* where = address of the first damaged byte */
	LOG_VIA_SWEEP = 7,    /* whoever points to it was looked for */
	LOG_VIA_FENCE = 9,    /* where = the address that was touched */
	LOG_VIA_POISON = 8,   /* where = index in gregs: the register holds its poison */
};

enum log_block_state {
	LOG_BLOCK_LIVE = 1,
	LOG_BLOCK_FREED = 2, /* last owner of this address; nobody has it now */
};

enum log_block_relation {
	LOG_INSIDE = 1, /* start <= value < start + size */
	LOG_BEYOND = 2, /* after the end of the nearest block below, within a page of it */
	LOG_FORMER = 3, /* a freed block that covered the value; a live one has the place now */
};

/* A pointer-like value and the block it points into. One value can have an INSIDE record and
 * several FORMER ones. Lives before those are in the rings. */
struct log_block {
	uint16_t via;	  /* enum log_block_via */
	uint8_t state;	  /* enum log_block_state */
	uint8_t relation; /* enum log_block_relation */
	uint8_t api;	  /* enum log_api */
	uint8_t reserved[3];
	uint64_t where;
	uint64_t value;
	uint64_t id;
	uint64_t start;
	uint64_t size;
	uint64_t freed_epoch;  /* when FREED: the header's epoch then, low 32 bits */
	uint32_t context;      /* allocated */
	uint32_t free_context; /* freed, or 0 */
	struct block_key key;
};

/* A word of memory that holds the value of a register that points nowhere. */
struct log_value {
	uint64_t value, where;
	uint64_t id, start, size; /* of the live block it is in; id 0: none */
	struct block_key key;
	uint32_t context;
	uint32_t api; /* enum log_api */
};

LOG_PIN(log_crash, 296);
LOG_PIN(log_crash_done, 16);
LOG_PIN(log_crash_diverted, 16);
LOG_PIN(log_blob, 32);
LOG_PIN(log_kept, 16);
LOG_PIN(log_python, 24);
LOG_PIN(log_file_size, 56);
LOG_PIN(log_thread_name, 24);
LOG_PIN(log_block, 80);
LOG_PIN(log_value, 64);
_Static_assert(offsetof(struct log_crash, gregs) == 40, "bump LOG_VERSION");
