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
 * in agent/plan_apply.c, and a row in tests/unit/test_wire_plan.c. Change PLAN_VERSION only when
 * an old agent would misread the new file.
 */
#ifndef REDHAND_WIRE_PLAN_H
#define REDHAND_WIRE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	uint32_t reserved;
	uint64_t seed;	/* for whatever an observer randomises; recorded, so a trial can be repeated
			 */
	uint64_t check; /* checksum of the file with this field 0 */
};

#define PLAN_RING_RECORDS 4096u
#define PLAN_THREAD_SLOTS 512u
#define PLAN_CONTEXT_ROWS 131072u
#define PLAN_STACK_SLICE 65536u
#define PLAN_CONTEXT_SLICE 2048u
#define PLAN_REGISTER_WINDOW 256u
#define PLAN_EVENTS_MIB 256u
#define PLAN_CHECKPOINT_GAP_MS 10u

enum plan_item_type {
	PLAN_ITEM_ALLOCATOR = 1, /* struct plan_allocator */
	/* Taken by later work: hooks on functions, watches, predicates, canaries. */
	PLAN_ITEM_HOOK = 2,
	PLAN_ITEM_WATCH = 3,
	PLAN_ITEM_PREDICATE = 4,
	PLAN_ITEM_CANARY = 5,
	PLAN_ITEM_HOLDERS = 6, /* struct plan_holders */
};

struct plan_item {
	uint16_t type;	/* enum plan_item_type */
	uint16_t flags; /* per type */
	uint32_t bytes; /* with this header; a multiple of 8 */
};

/* A place in code that survives ASLR: the module by its file name as the loader knows it (empty:
 * the main program) and by build-id, and the offset from its load bias. */
struct plan_place {
	char module[200];
	uint8_t build_id[20]; /* zero: do not check */
	uint32_t build_id_bytes;
	uint64_t offset; /* module-relative; absolute when module is "*" */
};

/* How the hook at a place is put in. The tool decodes the prologue, so the agent only copies:
 * `moved` is position-independent code equal to the first `covered` bytes at the place. */
struct plan_patch {
	uint8_t expected[32]; /* bytes that must stand there now, or the hook is refused */
	uint8_t moved[96];
	uint32_t covered;
	uint32_t moved_bytes;
};

struct plan_allocator {
	struct plan_item item;
	struct plan_place alloc, free;
	struct plan_patch alloc_patch, free_patch;
	uint8_t size_argument; /* 0..5: integer argument that holds the size */
	uint8_t pointer_argument;
	uint8_t reserved[6];
	char label[64]; /* for the report: what the user wrote */
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

_Static_assert(sizeof(struct plan_holders) == 272, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_header) == 80, "wire size; bump PLAN_VERSION");
_Static_assert(offsetof(struct plan_header, check) == 72, "wire offset; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_item) == 8, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_place) == 232, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_patch) == 136, "wire size; bump PLAN_VERSION");
_Static_assert(sizeof(struct plan_allocator) == 816, "wire size; bump PLAN_VERSION");

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

#endif
