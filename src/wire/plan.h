/*
 * The plan: what the tool asks the agent to do. Tool -> agent, file `plan` in the trial's folder.
 *
 * A header, then items. Every item says its type and its size, and the agent skips types it does
 * not know, counting them in the log (LOG_DROP_PLAN_ITEM): so a newer tool can ask an older agent
 * for less than everything and still be told the truth. One checksum covers the whole file; a plan
 * that does not verify makes the agent retire rather than guess.
 *
 * No plan at all means observer `crash` with the defaults below.
 *
 * To add an item: a PLAN_ITEM_ number (never reuse one), its struct with the size pinned, a case
 * in agent/features.c, and a row in tests/unit/test_wire_plan.c. Change PLAN_VERSION only when
 * an old agent would misread the new file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ids.h"

#define PLAN_MAGIC 0x314e414c50444852ull /* "RHDPLAN1" */
#define PLAN_VERSION 1u
#define PLAN_BYTES_MAX (1u << 20)

/* The one variable that carries the trial's folder, absolute, into every process of the trial. */
#define WIRE_TRIAL_VARIABLE "REDHAND_TRIAL"
#define WIRE_PLAN_NAME "plan"
/* The log of image n of process pid is events.PID.N.rhl; exec makes a new image of the same pid. */
#define WIRE_LOG_PREFIX "events."
#define WIRE_LOG_SUFFIX ".rhl"

enum plan_observer {
	PLAN_OBSERVE_CRASH = 1, /* signal handlers only */
	PLAN_OBSERVE_IDS = 2,	/* crash, and identity and history of every block */
};

enum plan_flags {
	PLAN_GROWTH = 1 << 0,	   /* checkpoints of live blocks per context at each line written */
	PLAN_PYTHON = 1 << 1,	   /* follow CPython's object allocators */
	PLAN_TRUNCATIONS = 1 << 2, /* record who cuts files */
	PLAN_JIT_CODE = 1 << 3,	   /* keep emitted code at a crash and at exit */
	PLAN_WILD_VALUES = 1 << 4, /* at a crash: where else its wild pointers stand */
	PLAN_PAGES = 1 << 5,	   /* watched blocks lie on pages that cannot be written to */
	PLAN_NO_BLOCKS =
		1 << 6, /* of observer ids all but the blocks: allocations are left alone */
};

/* Sizes are limits for fixed regions of the log; 0 means the default named in the comment. */
struct plan_header {
	uint64_t magic;
	uint32_t version;
	uint32_t total_bytes; /* header and items */
	uint32_t item_count;
	uint32_t observer;		/* enum plan_observer */
	uint32_t flags;			/* enum plan_flags */
	uint32_t ring_records;		/* history per thread, a power of two: 4096 */
	uint32_t thread_slots;		/* threads alive at once that are followed: 512 */
	uint32_t context_rows;		/* a power of two: 131072 */
	uint32_t stack_slice_bytes;	/* of a crash: 65536 */
	uint32_t context_slice_bytes;	/* of each new context: 2048 */
	uint32_t register_window_bytes; /* readable memory behind each register: 256 */
	uint32_t events_mib;		/* append-only area: 256 (sparse) */
	uint32_t checkpoint_gap_ms;	/* least time between two growth checkpoints: 10 */
	uint32_t tracer;		/* pid of who sets debug registers; 0: perf is used */
	uint64_t seed;	/* for whatever an observer randomises; recorded, so a trial can be repeated
			 */
	uint64_t check; /* checksum of the file with this field 0 */
};

#define PLAN_RING_RECORDS 4096u
#define PLAN_THREAD_SLOTS 512u
#define PLAN_CONTEXT_ROWS 131072u
#define PLAN_CONTEXT_ROWS_PYTHON 262144u /* with growth: Python's frames make contexts, too */
#define PLAN_STACK_SLICE 65536u
#define PLAN_CONTEXT_SLICE 2048u
#define PLAN_REGISTER_WINDOW 256u
#define PLAN_EVENTS_MIB 256u
#define PLAN_CHECKPOINT_GAP_MS 10u

enum plan_item_type {
	PLAN_ITEM_ACTION = 1, /* struct plan_action: what a hook does */
	PLAN_ITEM_HOOK = 2,   /* struct plan_hook: one patched place */
	PLAN_ITEM_WATCH = 3,  /* struct plan_watch */
	/* Taken by later work. */
	PLAN_ITEM_PREDICATE = 4,
	PLAN_ITEM_CANARY = 5,  /* struct plan_heap */
	PLAN_ITEM_HOLDERS = 6, /* struct plan_holders */
	PLAN_ITEM_CHAOS = 7,   /* struct plan_chaos */
	PLAN_ITEM_FENCE = 8,   /* struct plan_fence */
};

struct plan_item {
	uint16_t type;	/* enum plan_item_type */
	uint16_t flags; /* per type */
	uint32_t bytes; /* with this header; a multiple of 8 */
};

/* A place in code that survives ASLR: the module by its file name as the loader knows it ("/"
 * before it: the main program) and by build-id, and the offset from its load bias. */
struct plan_place {
	char module[200]; /* ends in 0 */
	uint8_t build_id[20];
	uint32_t build_id_bytes; /* 0: the module has none, its name must do */
	uint64_t build_id_at;	 /* module-relative: where the build-id's bytes lie in memory */
	uint64_t offset;	 /* module-relative */
};

enum plan_fixup_kind {
	PLAN_FIX_RELATIVE = 1, /* 4 bytes: target - (address of the field + 4 + after) */
	PLAN_FIX_LOW = 2,      /* 4 bytes: low half of the target's address */
	PLAN_FIX_HIGH = 3,     /* 4 bytes: high half */
};

/* A field of the moved code that depends on where things lie. */
struct plan_fixup {
	uint16_t at; /* in `moved` */
	uint8_t kind;
	uint8_t after; /* bytes of the instruction behind the field */
	uint32_t reserved;
	int64_t target; /* module-relative */
};

/* Instruction boundaries: the moved code at `moved` is the original's at `original`. */
struct plan_mark {
	uint8_t moved, original;
};

enum plan_hook_form {
	PLAN_HOOK_JUMP = 1, /* five bytes: a jump to the stub */
	PLAN_HOOK_TRAP = 2, /* one byte: int3; the SIGTRAP handler goes on in the stub */
};

enum plan_hook_flags {
	PLAN_HOOK_EXIT = 1 << 0,   /* at a return: the hook sees the result, not the arguments */
	PLAN_HOOK_PUSHES = 1 << 1, /* the moved code makes a call by pushing a return address: not
				    * where shadow stacks are on */
	PLAN_HOOK_TAIL = 1 << 2,   /* the place jumps to another function, whose return is the
				    * hooked one's too: the stub calls it */
	PLAN_HOOK_KEEP = 1 << 4,   /* replaced: who calls it may count on every register */
	PLAN_HOOK_LOADER = 1 << 3, /* the loader's own notice that its list of libraries changed */
};

#define PLAN_HOOK_COVERED 32u
#define PLAN_HOOK_MOVED 128u
#define PLAN_HOOK_FIXUPS 8u
#define PLAN_HOOK_MARKS 16u

/* How a hook is put in at one place. The tool has decoded the code there, so the agent only copies:
 * `moved` does what the first `covered` bytes did and then goes on behind them (or returns). The
 * hook runs after the first `before` bytes of it. */
struct plan_hook {
	struct plan_item item;
	struct plan_place place;
	uint64_t key;	 /* names the place in actions; a second hook of the same key is the same */
	uint32_t form;	 /* enum plan_hook_form */
	uint32_t flags;	 /* enum plan_hook_flags */
	uint32_t rights; /* of the segment: PROT_… */
	uint32_t covered; /* bytes that are replaced or moved */
	uint32_t before;  /* of `moved` */
	uint32_t moved_bytes;
	uint32_t fixup_count;
	uint32_t mark_count;
	int64_t tail_target;		     /* PLAN_HOOK_TAIL: module-relative */
	uint8_t expected[PLAN_HOOK_COVERED]; /* what must stand there now, or it is refused */
	uint8_t moved[PLAN_HOOK_MOVED];
	struct plan_fixup fixups[PLAN_HOOK_FIXUPS];
	struct plan_mark marks[PLAN_HOOK_MARKS];
	char label[64]; /* what it is, for people */
};

enum plan_action_what {
	PLAN_WATCH_ARGUMENT = 1, /* watch_object() with an argument */
	PLAN_WATCH_RESULT = 2,	 /* watch_object() with the result; at exits */
	PLAN_ALLOC_ENTER = 3,	 /* an allocation begins: its size is kept for… */
	PLAN_ALLOC_LEAVE = 4,	 /* …the exit, where the object is known */
	PLAN_FREE = 5,
	PLAN_REALLOC_ENTER = 6,
	PLAN_REALLOC_LEAVE = 7,
	/* Tell of objects that lie in blocks of the context whose hash is `fixed_size`: */
	PLAN_SIGHT_ENTER = 8, /* …that are arguments */
	PLAN_SIGHT_LEAVE = 9, /* …that are the result */
	/* With PLAN_PAGES: if argument `pointer` is the Python class of watch `number`, the next
	 * object that Python allocates in this thread is placed on watched pages. */
	PLAN_PLACE_PYTHON = 10,
	PLAN_WATCH_FRAME = 11, /* watch_object() with the end of the function's frame: the stack
				* pointer that its caller has before the call */
	PLAN_FRAME_LEAVE = 12, /* at exits: what is watched in it has ended */
	PLAN_REPLACE = 13,     /* at the entry of a function of the program's own malloc, enum
				* plan_own in `number`: the agent's takes its place and calls it. All
				* of a program or none are placed */
};

/* Functions of a malloc that the program has inside, where no library stands in front of it. By
 * their names everybody knows what they take. */
enum plan_own {
	/* The agent has a function of the same name, which calls the program's. */
	PLAN_OWN_MALLOC = 0,
	PLAN_OWN_FREE,
	PLAN_OWN_CALLOC,
	PLAN_OWN_REALLOC,
	PLAN_OWN_REALLOCARRAY, /* …which calls the program's realloc */
	PLAN_OWN_MEMALIGN,
	PLAN_OWN_ALIGNED_ALLOC,
	PLAN_OWN_POSIX_MEMALIGN,
	PLAN_OWN_VALLOC,
	PLAN_OWN_PVALLOC,
	/* Called as it is; what it does is noted. */
	PLAN_OWN_RALLOCX, /* (block, size, flags) */
	PLAN_OWN_MALLOCX, /* (size, …) */
	PLAN_OWN_NEW,	  /* (size, …): four forms */
	PLAN_OWN_NEW_ARRAY = PLAN_OWN_NEW + 4,
	PLAN_OWN_GIVE = PLAN_OWN_NEW_ARRAY + 4, /* (block, …): delete in its forms, cfree, … */
	PLAN_OWN_FUNCTIONS = PLAN_OWN_GIVE + 17,
};

/* Functions that may hand objects out have the smallest numbers: while one of them runs, sights of
 * the same thread say so. */
#define PLAN_SIGHT_MAKERS 4u

#define PLAN_NO_ARGUMENT 255u
#define PLAN_ARGUMENTS 6u /* integer arguments in registers */

/* What is to be done at a hooked place. */
struct plan_action {
	struct plan_item item;
	uint64_t key;	 /* of the hook, which comes before it in the plan */
	uint32_t what;	 /* enum plan_action_what */
	uint32_t number; /* of the watch; of the allocator, to pair entry and exit */
	uint8_t pointer; /* integer arguments, from 0, or PLAN_NO_ARGUMENT */
	uint8_t size;
	uint8_t count; /* multiplied with the size */
	uint8_t reserved[5];
	uint64_t fixed_size; /* when no argument holds it; of a sight: a stack hash */
};

#define PLAN_HOLDERS_MAX 32u

/* Who points to live blocks of these contexts? Looked for once, after so many growth checkpoints at
 * lines, or at exit if there are fewer. Needs PLAN_GROWTH. */
struct plan_holders {
	struct plan_item item;
	uint32_t after_lines;
	uint32_t count;
	uint64_t stack_hashes[PLAN_HOLDERS_MAX];
};

/* Disturbances that are meant to raise the odds; each 0 when it is not in force. What is drawn
 * while the target runs (which thread, when, how long) comes from `seed`. */
struct plan_chaos {
	struct plan_item item;
	uint64_t seed;
	uint64_t gap_bytes;   /* of address space, taken before anything else is mapped */
	uint32_t heap_bytes;  /* by which the heap begins later; a multiple of 16 */
	uint32_t hold_weight; /* in sixteenths: the n-th allocation of a thread from one place is
			       * held back with a chance of weight / n */
	uint32_t hold_share;  /* all holds together: at most 1/hold_share of the time so far */
	uint32_t arm_us;      /* longest hold of a thread that has just armed a watch */
};

#define PLAN_CHAOS_SHARE 5u

#define PLAN_WATCHES_MAX 16u
#define PLAN_WATCH_BYTES_MAX 32u /* four debug registers of eight bytes */
#define PLAN_RANGES_MAX 512u
#define PLAN_STEPS_MAX 64u

enum plan_watch_kind {
	PLAN_WATCH_ADDRESS = 1, /* `address`, the same for the whole run */
	PLAN_WATCH_GLOBAL = 2,	/* the first of its ranges whose module is there */
	PLAN_WATCH_CONTEXT = 3, /* blocks whose allocation goes through one of its ranges */
	PLAN_WATCH_KEY = 4,	/* blocks with this key, or near it in ordinal */
	PLAN_WATCH_HOOK = 5, /* objects that hooks on functions hand over: agent/watch/watch.h; with
			      * PLAN_PAGES, blocks whose allocation goes through one of its
			      * ranges are placed where they can be watched */
	PLAN_WATCH_THREAD = 6, /* `offset` from the thread pointer, of each thread */
};

/* Which objects are watched when there are more than debug registers. */
enum plan_watch_policy {
	PLAN_WATCH_NEWEST = 0,
	PLAN_WATCH_OLDEST = 1,
	PLAN_WATCH_SAMPLE = 2, /* each with the same chance, by the plan's seed */
};

enum plan_watch_flags {
	PLAN_WATCH_AFTER_FREE = 1 << 0, /* goes on when the block is freed */
	PLAN_WATCH_STOP = 1 << 1,	/* SIGSTOP to the process at the first hit that counts */
	PLAN_WATCH_ANY_LANE = 1 << 2,	/* KEY: whichever thread allocates */
	PLAN_WATCH_READS = 1 << 3,	/* reads trap, too; of all watches or of none, perf only */
	/* It is a count: hits that leave 0 in its lower half are kept for good, too. */
	PLAN_WATCH_COUNT = 1 << 4,
	/* KEY or CONTEXT, with PLAN_PAGES and for all watches or none: nothing is watched, but
	 * whoever touches such a block after its free dies of it, there and then. */
	PLAN_WATCH_FENCE = 1 << 5,
};

/* A piece of a module's file, by what makes the module the same in the next run. */
struct plan_range {
	uint64_t identity; /* wire_module_identity() */
	uint64_t address;  /* as the ELF file has it */
	uint64_t bytes;
};

/* One step of a predicate, for a machine with a stack of 64-bit numbers. */
struct plan_step {
	uint8_t op;	/* enum plan_step_op */
	uint8_t bits;	/* of operands that are compared as signed numbers; 0: 64 */
	uint16_t first; /* PLAN_STEP_WRITER: ranges[first], `count` of them */
	uint32_t count;
	uint64_t value;
};

enum plan_step_op {
	PLAN_STEP_PUSH = 1, /* value */
	/* Pushed: what a hit is about. */
	PLAN_STEP_OLD,
	PLAN_STEP_NEW,
	PLAN_STEP_SIZE, /* of the block */
	PLAN_STEP_TID,
	PLAN_STEP_AGE,	  /* allocations since the block's birth */
	PLAN_STEP_WRITER, /* 1 if the instruction lies in one of the ranges */
	/* Two numbers off, one on. */
	PLAN_STEP_ADD,
	PLAN_STEP_SUB,
	PLAN_STEP_AND,
	PLAN_STEP_OR,
	PLAN_STEP_XOR,
	PLAN_STEP_SHL,
	PLAN_STEP_SHR,
	PLAN_STEP_EQ,
	PLAN_STEP_NE,
	PLAN_STEP_LT, /* unsigned, as are all */
	PLAN_STEP_LE,
	PLAN_STEP_GT,
	PLAN_STEP_GE,
	PLAN_STEP_BOTH,	  /* logical and: 0 or 1 */
	PLAN_STEP_EITHER, /* logical or */
	/* One off, one on. */
	PLAN_STEP_NOT,	  /* logical */
	PLAN_STEP_INVERT, /* bits, as wide as the field */
	PLAN_STEPS,
};

/* Ranges follow the struct: those that say where, then those that predicates speak of. */
struct plan_watch {
	struct plan_item item;
	uint32_t kind;	 /* enum plan_watch_kind */
	uint32_t flags;	 /* enum plan_watch_flags */
	uint32_t policy; /* enum plan_watch_policy */
	uint32_t bytes;	 /* watched: 1..PLAN_WATCH_BYTES_MAX */
	int64_t offset;	 /* from the object's start */
	uint64_t address;
	uint64_t size_low, size_high; /* blocks of these sizes only; high 0: any */
	struct block_key key;	/* HOOK: only objects in blocks of this context, if it is not 0 */
	uint32_t ordinal_reach; /* KEY: this far to both sides */
	uint32_t place_count;	/* of the ranges, those that say where */
	uint32_t range_count;	/* all of them */
	uint32_t step_count;
	char python_type[64]; /* HOOK: instances of this Python class only; "": any object */
	struct plan_step steps[PLAN_STEPS_MAX];
};

_Static_assert(sizeof(struct plan_chaos) == 40, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_range) == 24, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_step) == 16, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_watch) == 1176, "wire size; bump PLAN_VERSION");
enum plan_sweep {
	PLAN_SWEEP_NONE = 0,
	PLAN_SWEEP_CONTEXTS = 1, /* freed blocks of these contexts */
	PLAN_SWEEP_ALL = 2,
	PLAN_SWEEP_SAMPLED = 3, /* any, as often as a tenth of the time allows */
};

enum plan_sweep_at {
	PLAN_SWEEP_AT_FREE = 1,	 /* each such free */
	PLAN_SWEEP_AT_LINES = 2, /* all that are in quarantine, before a line is written */
	PLAN_SWEEP_AT_CRASH = 3,
};

#define PLAN_SWEEP_MAX 32u
#define PLAN_QUARANTINE_MIB_MAX (1u << 16)

/* The heap observer: guards around blocks, poison in freed ones, quarantine, sweep. Needs observer
 * ids. */
/* In plan_heap.item.flags. */
#define PLAN_HEAP_PYTHON 1u  /* objects of CPython have guards, too: each is a block of its own */
#define PLAN_HEAP_SAMPLED 2u /* of contexts that make many blocks only some have guards */
/* The chance (poison_ppm) is about what new blocks hold: those of a context garbage, or zeros. With
 * a context in sweep_hashes it is about the words of its blocks, each by itself; all others hold
 * zeros. */
#define PLAN_HEAP_FRESH 4u

struct plan_heap {
	struct plan_item item;
	uint64_t seed;		 /* of the guards, the poison and the choice of contexts */
	uint32_t quarantine_mib; /* 0: none */
	uint32_t poison_ppm;	 /* see canary_chance() */
	uint32_t timer_ms;	 /* blocks are looked at now and then, so often; 0: not */
	uint32_t sweep;		 /* enum plan_sweep */
	uint32_t sweep_at;	 /* enum plan_sweep_at */
	uint32_t sweep_count;
	uint64_t sweep_hashes[PLAN_SWEEP_MAX];
};

/* In plan_fence.item.flags. */
#define PLAN_FENCE_EXACT 1u    /* each block ends at the end of a page, whatever its alignment */
#define PLAN_FENCE_FRONT 2u    /* each block begins at the start of a page */
#define PLAN_FENCE_MAPPINGS 4u /* pages are closed as older kernels do it */
#define PLAN_FENCE_UNTOLD 8u   /* system calls are left alone: closed pages are errors to them */
#define PLAN_FENCE_FILLED 16u  /* the first word behind a fence is a guard's, not zero */

/* Fences: blocks at the end of pages of their own, with the next page closed. Needs
 * PLAN_ITEM_CANARY, whose seed it uses; blocks without a fence are as that item says. */
struct plan_fence {
	struct plan_item item;
	uint32_t turn, level;  /* whose turn it is: wire/fence_turn.h */
	uint32_t memory_mib;   /* of blocks with fences; 0: a sixteenth of what is free */
	uint32_t time_percent; /* of the run time; beyond it, contexts that make many blocks take
				* turns; 0: no limit */
};

_Static_assert(sizeof(struct plan_fence) == 24, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_heap) == 296, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_holders) == 272, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_header) == 80, "wire size; bump PLAN_VERSION");
_Static_assert(offsetof(struct plan_header, check) == 72, "wire offset; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_item) == 8, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_place) == 240, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_fixup) == 16, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_hook) == 680, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_action) == 40, "wire size; bump PLAN_VERSION");

enum plan_fault {
	PLAN_OK = 0,
	PLAN_TOO_SHORT,
	PLAN_BAD_MAGIC,
	PLAN_BAD_VERSION,
	PLAN_BAD_SIZE,	/* total_bytes or an item leaves the file */
	PLAN_BAD_CHECK, /* checksum */
	PLAN_BAD_VALUE, /* a field outside its range */
};

/* Fills in a header with the defaults for an observer; no items yet. */
void plan_init(struct plan_header *plan, enum plan_observer observer);

/* Writes header and items (already laid out one after the other, item_bytes in all) into out and
 * seals them. Returns the bytes of the plan, or 0 when `cap` is too small or an item is malformed.
 */
size_t plan_seal(const struct plan_header *plan, const void *items, size_t item_bytes, void *out,
		 size_t cap);

/* Takes any bytes. PLAN_OK means that every item can be walked with plan_next. On success, and
 * only then, *ret holds the header with defaults filled in for zero fields. */
enum plan_fault plan_check(const void *bytes, size_t len, struct plan_header *ret);

/* Walks a checked plan: pass NULL to begin. NULL at the end. */
const struct plan_item *plan_next(const void *bytes, const struct plan_item *item);

/* A sentence fragment: "the checksum does not match". */
const char *plan_fault_text(enum plan_fault fault);
