/*
 * The event log: agent -> tool. One file per process image, mapped shared by the agent, so that
 * everything written survives SIGKILL. Native byte order (x86-64, little-endian); no pointers.
 *
 *   page 0   struct log_header       fixed part sealed by a checksum, then live counters (hints)
 *   page 1   the fixed part again    a wild write rarely hits both
 *   THREADS  struct log_thread[]     one row per thread slot ("lane")
 *   RESERVE  records                 kept free for final crashes, then two slots for provisional
 *                                    ones, which overwrite each other
 *   CONTEXTS struct log_context[]    one row per (stack hash, lane), with live counters
 *   RINGS    struct log_life[][]     per lane the last ring_records blocks that it freed
 *   WATCH    struct log_watch_area   counts, writers, watched objects, and a ring of hits
 *   EVENTS   records                 append-only
 *
 * The target scribbles on memory, by definition. So each record, ring entry and row carries its
 * own checksum, records start at multiples of 16 and begin with a magic number: the reader skips
 * what was hit and finds the next one. Long data is cut into BLOB records of at most 4 KiB, so a
 * stray store costs at most that. What lies in RINGS, CONTEXTS and EVENTS and was never written is
 * zero (the file is sparse).
 *
 * A record type may grow at its end (payload.bytes tells); anything else bumps LOG_VERSION.
 *
 * Here: the file, its regions, and the records about a process. What belongs to crashes, to the
 * heap observer and to watches lies in log_crash.h, log_heap.h and log_watch.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/ids.h"
#include "wire/log_crash.h"
#include "wire/log_fence.h"
#include "wire/log_heap.h"
#include "wire/log_pin.h"
#include "wire/log_watch.h"
#include "wire/python_layout.h"

#define LOG_MAGIC 0x31474f4c44414852ull /* "RHADLOG1" */
#define LOG_VERSION 4u
#define LOG_PAGE 4096u
#define LOG_ALIGN 16u

enum log_region_kind {
	LOG_REGION_THREADS,
	LOG_REGION_CONTEXTS,
	LOG_REGION_RINGS,
	LOG_REGION_RESERVE,
	LOG_REGION_EVENTS,
	LOG_REGION_WATCH,
	LOG_REGION_COUNT = 8,
};

struct log_region {
	uint64_t offset; /* from the start of the file, a multiple of LOG_PAGE */
	uint64_t bytes;
};

/* Why the agent stopped observing. The target ran on. */
enum log_retired {
	LOG_RETIRED_NO = 0,
	LOG_RETIRED_PLAN = 1,	    /* the plan did not verify */
	LOG_RETIRED_MEMORY = 2,	    /* mmap refused */
	LOG_RETIRED_DISK = 3,	    /* the log's file system is full (SIGBUS while writing) */
	LOG_RETIRED_SYMBOLS = 4,    /* no real malloc behind ours */
	LOG_RETIRED_FILE = 5,	    /* the log file could not be made */
	LOG_RETIRED_SELF_FAULT = 6, /* a fault inside the agent itself */
	LOG_RETIRED_SANDBOX = 7,    /* a filter kills for what the agent would do */
	LOG_RETIRED_TRACED = 8,	    /* a tracer would stop it for each of the agent's signals */
};

/* What could not be recorded, counted one by one. */
enum log_drop {
	LOG_DROP_EVENT = 0,   /* no room in EVENTS */
	LOG_DROP_RESERVE = 1, /* no room in RESERVE */
	LOG_DROP_THREAD = 2,  /* a thread without a lane: its blocks have no history */
	LOG_DROP_CONTEXT = 3, /* context table full: "unknown" instead */
	LOG_DROP_BLOCK = 4,   /* no room in the side table */
	LOG_DROP_GUARD = 5,   /* a hook entered while in a hook (a signal handler that allocates) */
	LOG_DROP_FOREIGN_FREE = 6, /* freed a pointer nobody had seen allocated: coverage */
	LOG_DROP_EARLY = 7,	   /* served from the early arena, before the agent was ready */
	LOG_DROP_PLAN_ITEM = 8, /* an item of the plan that this agent does not know or refused */
	LOG_DROP_FAULT_LIGHT =
		9, /* faults handled by the target, stored in short form or not at all */
	LOG_DROP_COUNT = 16,
};

enum log_state {
	LOG_STATE_STARTING = 0,
	LOG_STATE_RUNNING = 1,
	LOG_STATE_RETIRED = 2,
	LOG_STATE_EXITED = 3, /* clean exit seen: exit(), _exit() */
	LOG_STATE_EXEC = 4,   /* this image called exec; the next image has its own log */
};

/* What another's allocator keeps by itself, libc's cache of freed blocks and CPython's pools, is
 * used in the hook when all that it was seen to do was foreseen. */
enum log_trust {
	LOG_TRUST_NONE = 0,    /* never looked at: it is not there, or the plan rules it out */
	LOG_TRUST_WATCHED = 1, /* looked at, not decided yet */
	LOG_TRUST_USED = 2,
	LOG_TRUST_LEFT = 3, /* something was not as foreseen, or too little was seen: left alone */
};

struct log_header {
	/* Fixed part: written once, then sealed. Page 1 holds a copy. */
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	struct log_region regions[LOG_REGION_COUNT];
	uint32_t pid, ppid;
	uint32_t image;	   /* n of events.PID.n.rhl */
	uint32_t observer; /* enum plan_observer */
	uint32_t plan_flags;
	uint32_t ring_records;
	uint32_t thread_slots;
	uint32_t context_rows;
	uint32_t parent_image; /* after fork: the image this one was copied from; else UINT32_MAX */
	uint32_t forked;       /* 1 after fork: blocks with id < id_base came from the parent */
	uint64_t id_base;
	uint64_t start_monotonic_ns, start_realtime_ns;
	uint64_t agent_base, agent_end; /* where the agent's code lies, to drop its frames */
	uint64_t epoch_base; /* after fork: blocks freed before this epoch were freed by the parent,
			      * and their contexts are rows of its log, as for id < id_base */
	uint32_t user;	     /* whose process it is: user id + 1; 0: not recorded */
	uint8_t reserved[1024 - 244];
	uint64_t check; /* over everything before it */

	/* Live part: hints. The target may have damaged any of it. */
	uint32_t state;			    /* enum log_state */
	uint32_t retired;		    /* enum log_retired */
	uint64_t events_tail, reserve_tail; /* bytes used in the region */
	uint64_t epoch;			    /* moves by one per 64 events of any thread, late */
	uint64_t next_id; /* ids below were handed out (in blocks, so not all used) */
	uint64_t drops[LOG_DROP_COUNT];
	uint64_t contexts_used, threads_seen, forwarded_faults;
	uint32_t exit_status, exited;
	uint64_t chaos_holds, chaos_held_ns; /* threads held back on purpose, and for how long */
	uint64_t epoch_rest; /* at the last crash: events that were not in the epoch yet, and one;
			      * 0: nobody looked */
	uint32_t libc_cache; /* enum log_trust */
	uint32_t unused;     /* 0 */
	uint8_t page_rest[LOG_PAGE - 1032 - 232];
};

#define LOG_FIXED_BYTES offsetof(struct log_header, check)

/* One row per thread slot. A slot is taken again by a later thread once its thread has ended. */
struct log_thread {
	uint32_t tid, generation; /* generation counts the threads that had this slot */
	uint64_t stack_high;	  /* highest address of its stack, as far as known */
	uint64_t ring_position;	  /* records ever written to the ring of this lane: hint, up to
				   * LOG_LIFE_GROUP - 1 behind; the reader finds the rest by epoch */
	uint64_t created_context; /* context id of the pthread_create; 0 for the main thread */
	uint64_t start_monotonic_ns,
		end_monotonic_ns; /* end 0: running, or died with the process */
	char name[16];
};

/* Counters are kept with PLAN_GROWTH only, and belong to blocks allocated by this context. `own` is
 * changed by the lane's thread alone, `other` by frees in other threads. live = allocs - frees_own
 * - frees_other. */
struct log_context {
	uint64_t stack_hash; /* module-relative, the same in every run; 0: free row */
	uint32_t lane;
	uint32_t check; /* over stack_hash, lane and the row number: log_context_check() */
	uint64_t allocs, alloc_bytes;
	uint64_t frees_own, free_bytes_own;
	uint64_t frees_other, free_bytes_other;
};

enum log_life_op {
	LOG_LIFE_FREE = 2,
	LOG_LIFE_RESIZE = 3, /* realloc that stayed in place: same id, the new size */
};

/* Who the block was asked from. */
enum log_api {
	LOG_API_MALLOC = 0,  /* malloc, calloc, realloc, reallocarray */
	LOG_API_ALIGNED = 1, /* memalign and its kin */
	LOG_API_NEW = 2,
	LOG_API_NEW_ARRAY = 3,
	LOG_API_PYTHON_OBJECT = 4, /* PYMEM_DOMAIN_OBJ */
	LOG_API_PYTHON_MEMORY = 5, /* PYMEM_DOMAIN_MEM */
	LOG_API_HOOKED = 6,	   /* --allocator */
};

/* The life of a block, written at its end: what the side table knew of it then. Who is alive is not
 * in the rings. The order within a lane is the ring's order; between lanes the epoch, which moves
 * at least every 256 records of a lane, tells it up to that grain. */
struct log_life {
	uint64_t id;
	uint32_t size_low; /* size bits 0..31 */
	uint32_t context;  /* allocated; bits 24..31 are bits 32..39 of the size */
	uint32_t free_context;
	uint32_t ordinal; /* within its context */
	uint32_t epoch;	  /* of the end, low 32 bits */
	uint8_t op;	  /* enum log_life_op */
	uint8_t api;	  /* enum log_api */
	uint8_t lane;	  /* that allocated it; 255: one that does not fit */
	uint8_t reserved;
	uint64_t start;
	uint64_t check; /* log_life_check() */
};

/* Every record starts with this; the payload follows, padded with zeros to LOG_ALIGN. */
struct log_record {
	uint32_t magic;	     /* LOG_RECORD_MAGIC */
	uint16_t type;	     /* enum log_record_type */
	uint16_t head_check; /* over type, bytes and seq: a reader need not sum garbage */
	uint32_t bytes;	     /* payload, without padding; at most LOG_PAYLOAD_MAX */
	uint32_t tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t seq;	  /* unique in this image, from 1, in order of start of writing */
	uint64_t owner;	  /* seq of the record that this one belongs to, or 0 */
	uint64_t check;	  /* over header (this field 0) and payload */
};

#define LOG_RECORD_MAGIC 0x43455248u /* "HREC" */
#define LOG_PAYLOAD_MAX 65536u
#define LOG_BLOB_CHUNK 4096u

enum log_record_type {
	LOG_IMAGE = 1,	      /* struct log_image, first record; BLOBs: command line */
	LOG_MODULE = 2,	      /* struct log_module per piece of code, at start and after dlopen */
	LOG_THREAD_START = 3, /* struct log_thread_event */
	LOG_THREAD_END = 4,
	LOG_CONTEXT = 5,       /* struct log_context_seen, stack bytes inline */
	LOG_CRASH = 6,	       /* struct log_crash; BLOBs and BLOCKs follow, then CRASH_DONE */
	LOG_CRASH_DONE = 7,    /* struct log_crash_done; missing: the record was cut short */
	LOG_CRASH_HANDLED = 8, /* owner = the crash: the target's handler returned; struct
				* log_crash_diverted if not to where it was called from */
	LOG_BLOB = 9,	       /* struct log_blob, bytes inline */
	LOG_BLOCK = 10,	       /* struct log_block */
	LOG_TRUNCATION = 11,   /* struct log_truncation; BLOBs: path, stack */
	LOG_CHECKPOINT = 12,   /* struct log_checkpoint; GROWTH records follow */
	LOG_GROWTH = 13,       /* struct log_growth[]: contexts whose live blocks changed */
	LOG_EXEC = 14,	       /* BLOB: path */
	LOG_EXIT = 15,	       /* struct log_exit */
	LOG_BAD_FREE = 17,     /* struct log_bad_free, stack as in CONTEXT by its context id */
	LOG_UNOBSERVED = 18,   /* struct log_unobserved; BLOB: path of the program */
	LOG_HOLDERS = 24,      /* struct log_holders; HOLDER records follow */
	LOG_HOLDER = 25,       /* struct log_holder */
	LOG_MODULE_GONE = 19,  /* struct log_module of a module that dlclose took away */
	LOG_PYTHON = 20,       /* struct log_python; owner = the crash, as of its PYTHON blob */
	LOG_HIT = 26, /* struct log_hit: the first few of each writer; HIT_BYTES and PYTHON may
		       * follow, then CRASH_DONE */
	LOG_HIT_BYTES = 32,	/* struct log_hit_block, `len` bytes inline */
	LOG_VALUE = 28,		/* struct log_value; owner = the crash */
	LOG_WATCH_CHANGED = 27, /* struct log_watch_changed */
	LOG_SIGHT = 29,		/* struct log_sight */
	LOG_PYTHON_STACK = 30,	/* struct log_python_stack, frames inline: beside a CONTEXT */
	LOG_PYTHON_CODE = 31,	/* struct log_python_code; BLOB PYTHON: what names it */
	LOG_HOOK = 36,		/* struct log_hook: one place of the target's code was patched */
	/* 40 to 55: the heap observer */
	LOG_HEAP = 40,	       /* struct log_heap, once, when it starts */
	LOG_HEAP_DAMAGE = 41,  /* struct log_heap_damage; a BLOCK record follows */
	LOG_ROUND = 42,	       /* struct log_round, at exit and at a crash */
	LOG_FENCE = 44,	       /* struct log_fence, once, when fences start */
	LOG_FENCE_ACCESS = 45, /* struct log_fence_access; a BLOCK record follows */
	LOG_FENCE_COUNT = 46,  /* struct log_fence_counts, at exit and at a crash */
	LOG_FENCE_END = 47,    /* struct log_fence_end, at exit and at a crash */
	LOG_SWEEP = 43, /* struct log_sweep; a BLOCK record for each block that it looked for, then
			 * HOLDER records */
};

struct log_image {
	uint64_t start_realtime_ns;
	uint64_t stack_high; /* of the main thread */
	char exe[240];	     /* as /proc/self/exe said; cut to fit, and whole in a blob then */
};

struct log_module {
	uint64_t bias;	    /* runtime address - ELF address */
	uint64_t low, high; /* lowest and highest+1 runtime address of its load segments */
	uint64_t text_low, text_high; /* an executable segment; others have their own record */
	uint64_t identity; /* what the stack hash uses: from build-id, else from the file name */
	uint32_t build_id_bytes;
	uint8_t build_id[20];
	char path[200]; /* cut at the front to fit; a longer one follows the record, whole */
};

struct log_thread_event {
	uint32_t lane, generation;
	uint64_t stack_high;
	char name[16];
};

/* The registers an unwinder needs at a place where the agent looked at its own caller. The frames
 * of the agent itself come first and are to be dropped. */
struct log_callee_registers {
	uint64_t rip, rsp, rbp, rbx, r12, r13, r14, r15;
};

#define LOG_CONTEXT_FRAMES 16u
#define LOG_CONTEXT_DEEP 48u /* return addresses kept of a longer stack */

/* How far the agent's own walk by call frame information came. */
enum log_walk {
	LOG_WALK_LOST = 0,  /* to a frame that it does not understand: the bytes tell the rest */
	LOG_WALK_WHOLE = 1, /* to the end of the stack */
	LOG_WALK_CUT = 2,   /* to LOG_CONTEXT_DEEP frames */
};

/* First time a context was seen. Payload: this, then the frames that `frames` has no room for, then
 * stack_bytes bytes from registers.rsp up, which only a walk that was lost needs. */
struct log_context_seen {
	uint64_t stack_hash;
	uint32_t context; /* row */
	uint32_t lane;
	struct log_callee_registers registers;
	uint16_t frame_count; /* at most LOG_CONTEXT_DEEP */
	uint16_t walk;	      /* enum log_walk */
	uint32_t stack_bytes;
	uint64_t frames[LOG_CONTEXT_FRAMES]; /* return addresses, innermost first */
};

#define LOG_PYTHON_FRAMES 10u
#define LOG_PYTHON_UNPLACED UINT32_MAX

/* With PLAN_GROWTH a context has the innermost Python frames as well, innermost first. */
struct log_python_frame {
	uint32_t code;	      /* number of a PYTHON_CODE record; 0: unknown */
	uint32_t instruction; /* in code units */
	uint32_t native; /* index in the CONTEXT's frames: of the one that runs it, which is the
			  * interpreter's loop; or LOG_PYTHON_UNPLACED */
};

struct log_python_stack {
	uint32_t context; /* row */
	uint32_t frame_count;
};

/* Told when first met; its memory is in the blob, as python_record_code_sigsafe() kept it. */
struct log_python_code {
	uint64_t hash; /* of file, name and first line: the same in every run */
	uint64_t object;
	uint32_t number;
	uint32_t reserved;
	struct python_layout layout;
};

enum log_truncation_how {
	LOG_BY_FTRUNCATE = 1,
	LOG_BY_TRUNCATE = 2,
	LOG_BY_OPEN = 3,      /* open, openat, creat, fopen, … with truncation */
	LOG_BY_FALLOCATE = 4, /* a range was taken out: FALLOC_FL_COLLAPSE_RANGE */
};

struct log_truncation {
	uint32_t how;	/* enum log_truncation_how */
	int32_t result; /* 0 or -errno */
	int64_t old_size, new_size;
	uint64_t realtime_ns;
	uint64_t device, inode;
	uint32_t context;
	uint32_t reserved;
	struct log_callee_registers registers; /* for the STACK blob */
};

enum log_checkpoint_why {
	LOG_CHECKPOINT_WRITE = 1, /* before a line on stdout or stderr, or a piece of one */
	LOG_CHECKPOINT_EXIT = 2,
	LOG_CHECKPOINT_TIME = 3, /* checkpoint_gap_ms went by, and somebody allocates */
};

struct log_checkpoint {
	uint32_t why;
	int32_t fd; /* 1 or 2 for WRITE, else -1 */
	uint64_t realtime_ns;
	uint64_t epoch;
	uint32_t reserved;
	uint32_t text_bytes;
	/* Start of the line, as far as it is known before it is made: of a printf the format, up to
	 * its first conversion. */
	char text[64];
	/* What this image put on fd before, through calls that the agent sees: the line's offset in
	 * the captured stream, if nobody else writes to it. */
	uint64_t stream_bytes;
	/* With the heap observer: blocks of this lane with this id or a higher one were begun
	 * later, and so were blocks of any lane from ids_given on. */
	uint64_t next_id, ids_given;
	uint32_t lane; /* UINT32_MAX: none */
	uint32_t reserved_too;
};

struct log_growth {
	uint32_t context;
	uint32_t reserved;
	uint64_t live_blocks, live_bytes;
};

/* Who points to the live blocks of a context: how many were looked for. */
struct log_holders {
	uint64_t stack_hash;
	uint64_t live;	     /* blocks of the context */
	uint64_t read_bytes; /* of memory looked through, for all contexts together */
	uint32_t looked_for; /* of the live ones */
	uint32_t cut_short;  /* 1: there was more memory, or there were more pointers */
};

enum log_holder_kind {
	LOG_HELD_BY_BLOCK = 1,
	LOG_HELD_BY_FILE = 2,	  /* a writable mapping of a file: globals */
	LOG_HELD_BY_STACK = 3,	  /* may be a leftover of an earlier call */
	LOG_HELD_BY_MEMORY = 4,	  /* no block: zeroed globals, memory of mmap */
	LOG_HELD_BY_REGISTER = 5, /* where = index in gregs */
};

/* A word that has the value of a pointer into such a block. */
struct log_holder {
	uint64_t stack_hash; /* 0: the target is itself a holder, told before */
	uint64_t target_id, target_start;
	uint64_t where, value;
	uint64_t start, size, id; /* of the holding block; id: of a stack, its thread's lane */
	uint32_t context;	  /* of the holding block */
	uint32_t kind;		  /* enum log_holder_kind */
	uint32_t number;	  /* of the holding block in its context, from 1; 0: not known */
	uint32_t reserved;
};

struct log_exit {
	uint32_t status;
	uint32_t how; /* 1 exit or return from main, 2 _exit */
};

enum log_hook_state {
	LOG_HOOK_PLACED = 1,
	LOG_HOOK_OTHER_CODE = 2, /* not the bytes that the tool saw in the file */
	LOG_HOOK_NO_MEMORY = 3,	 /* none to be had near enough, or it may not be executed */
	LOG_HOOK_TOO_FAR = 4,	 /* something that the code names is out of reach */
	LOG_HOOK_SHADOW = 5,	 /* not with shadow stacks */
	LOG_HOOK_FULL = 7,	 /* more tail calls than there is room for */
	LOG_HOOK_WAITING = 6,	 /* its module was not there at start; another record may follow */
	LOG_HOOK_STATES = 8,
};

#define LOG_HOOK_MARKS 16u
#define LOG_HOOK_TAIL_BYTES 64u

/* Where code of the target runs at another place: a crash there is one in the original. */
struct log_hook {
	uint64_t address; /* of the patch */
	uint64_t stub;	  /* 0 unless PLACED */
	uint64_t tail;	  /* code of the agent that calls what the function jumps to; or 0 */
	uint32_t stub_bytes;
	uint32_t state;	  /* enum log_hook_state */
	uint32_t covered; /* bytes of the original, which stood there: */
	uint32_t mark_count;
	uint8_t original[32];
	/* The instruction at stub + stub_offset is the one at address + offset. */
	struct {
		uint16_t stub_offset, offset;
	} marks[LOG_HOOK_MARKS];
	char label[64]; /* the function; ends in 0 */
};

enum log_unobserved_why {
	LOG_UNOBSERVED_STATIC = 1,
	LOG_UNOBSERVED_SETUID = 2,
	LOG_UNOBSERVED_FOREIGN = 3,   /* another architecture */
	LOG_UNOBSERVED_SANITIZED = 4, /* this very image: a sanitizer has it in its hands */
	LOG_UNOBSERVED_LIBC = 5,      /* a C library that the agent is not made for */
	LOG_UNOBSERVED_SANDBOXED = 6, /* behind a filter that kills for what the agent would do */
	LOG_UNOBSERVED_VALGRIND = 7,  /* this very image */
	LOG_UNOBSERVED_EMULATED = 8, /* this very image: every page that is reserved costs memory */
	LOG_UNOBSERVED_USER = 9,     /* another user, who cannot write to the trial's directory */
	LOG_UNOBSERVED_LIMIT =
		10, /* this very image, but for crashes: little address space is left */
	LOG_UNOBSERVED_MALLOC = 11, /* this very image, but for crashes: its malloc is inside, and
				     * the plan does not say how to get in front of it */
};

struct log_unobserved {
	uint32_t why;
	uint32_t reserved;
};

LOG_PIN(log_region, 16);
LOG_PIN(log_header, 4096);
LOG_PIN(log_thread, 64);
LOG_PIN(log_context, 64);
LOG_PIN(log_life, 48);
LOG_PIN(log_record, 48);
LOG_PIN(log_image, 256);
LOG_PIN(log_module, 272);
LOG_PIN(log_thread_event, 32);
LOG_PIN(log_callee_registers, 64);
LOG_PIN(log_context_seen, 216);
LOG_PIN(log_python_frame, 12);
LOG_PIN(log_python_stack, 8);
LOG_PIN(log_python_code, 136);
LOG_PIN(log_truncation, 120);
LOG_PIN(log_checkpoint, 128);
_Static_assert(offsetof(struct log_checkpoint, next_id) == 104, "may only grow at its end");
LOG_PIN(log_growth, 24);
LOG_PIN(log_holders, 32);
LOG_PIN(log_holder, 80);
LOG_PIN(log_exit, 8);
LOG_PIN(log_hook, 200);
LOG_PIN(log_unobserved, 8);
_Static_assert(offsetof(struct log_header, check) == 1024, "bump LOG_VERSION");
_Static_assert(offsetof(struct log_header, state) == 1032, "bump LOG_VERSION");
_Static_assert(offsetof(struct log_header, drops) == 1072, "bump LOG_VERSION");
_Static_assert(offsetof(struct log_record, check) == 40, "bump LOG_VERSION");

#define LOG_CONTEXT_MASK 0xffffffu

/* A lane writes its position once for so many records, and moves the epoch, by the number of groups
 * it has written since, at the latest after so many groups. */
#define LOG_LIFE_GROUP 64u
#define LOG_EPOCH_GROUPS 4u
/* Rings shorter than this have an exact position: an epoch would not tell their laps apart. */
#define LOG_RING_LAPS_MIN (2 * LOG_EPOCH_GROUPS * LOG_LIFE_GROUP)

/* Parity of the words: this runs for every free, and a stray store rarely keeps it. Turned, so that
 * a record full of one value is not valid. */
static inline uint64_t log_life_check(const struct log_life *life)
{
	uint64_t words[5];

	memcpy(words, life, sizeof(words));
	return ~(words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4]);
}

static inline uint32_t log_context_check(uint64_t stack_hash, uint32_t lane, uint32_t row)
{
	uint64_t a = stack_hash * 0x9e3779b97f4a7c15ull;

	return (uint32_t)((a ^ ((uint64_t)lane << 32 | row) * 0xc2b2ae3d27d4eb4full) >> 32) + 1;
}

static inline uint64_t log_life_size(const struct log_life *life)
{
	return (uint64_t)(life->context >> 24) << 32 | life->size_low;
}

/* Is that where a pointer to a block of this kind leads? An object of CPython may stand behind
 * words of the interpreter's own: two of the collector, two of its attributes. */
static inline bool log_block_begins(unsigned int api, uint64_t offset)
{
	return offset == 0 || (api == LOG_API_PYTHON_OBJECT && (offset == 16 || offset == 32));
}

static inline uint16_t log_head_check(const struct log_record *head)
{
	uint64_t a = (head->seq ^ (uint64_t)head->bytes << 32 ^ head->type) * 0x9e3779b97f4a7c15ull;

	return (uint16_t)(a >> 48) ^ 0x5248;
}

/* A record's place in its region: header, payload, padding. */
static inline uint64_t log_record_span(uint32_t payload_bytes)
{
	return (sizeof(struct log_record) + (uint64_t)payload_bytes + LOG_ALIGN - 1) &
	       ~(uint64_t)(LOG_ALIGN - 1);
}
