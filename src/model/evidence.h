#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/crash.h"
#include "model/experiment_made.h"
#include "model/frame.h"
#include "model/home.h"
#include "model/said.h"
#include "model/signature.h"

/*
 * Evidence: what was seen, piece by piece, each with its trial.
 *
 * Whoever observes fills these in and stores them (case/case.h: case_add_evidence()); the
 * verdict rules (judge/) read them and nothing else. A piece says what was seen, never
 * what it means: a caught write is no accusation.
 *
 * Everything in a piece is owned by it; all text from the target is printable.
 */

/* How a store lies on the field that was watched. */
enum store_fit {
	FIT_UNKNOWN,
	FIT_NARROW, /* inside it, shorter */
	FIT_EXACT,
	FIT_WIDE, /* begins before it or ends after it */
	FIT_KINDS,
};

/* What is known about the home that a stored value was loaded from. */
enum source_state {
	SOURCE_UNKNOWN,
	SOURCE_SAME,	/* it held that value whole, and still did at the store */
	SOURCE_CHANGED, /* it had been given another value before the store: a stale copy */
	SOURCE_TORN,	/* it was read between two stores that together make its value */
	SOURCE_STATES,
};

enum write_flags {
	/* The last write to its home before the failure. */
	WRITE_LAST = 1 << 0,
	/* What it left in the home is what the failing instruction (or check) found there. Set
	 * only when both values were seen and are equal. */
	WRITE_FOUND = 1 << 1,
	/* The trap was delivered late: instruction, registers and stack are not the writer's. */
	WRITE_ASYNC = 1 << 2,
	/* By the kernel, in a system call that the stack names. */
	WRITE_KERNEL = 1 << 3,
	/* The value was found in another home, and an instruction before the store loaded it
	 * from there: `source`. */
	WRITE_COPIED = 1 << 4,
	/* Read, changed and written back by one instruction or by a load and a store of one
	 * function: the new value was made from what had been read. */
	WRITE_UPDATE = 1 << 5,
	/* Some elements of a vector, by a mask: `width` is what was really written, store_start and
	 * store_len reach from its first byte to its last. */
	WRITE_MASKED = 1 << 6,
	/* The same, and the mask is not known: they are the most that it can have been. */
	WRITE_AT_MOST = 1 << 7,
	/* It moved a pointer out of the block that the pointer had been stored for, at that place.
	 */
	WRITE_LEFT_BLOCK = 1 << 8,
};

/* What kind of store the instruction is. */
enum store_form { FORM_OTHER, FORM_PLAIN, FORM_MODIFY, FORM_PUSH, STORE_FORMS };

/* Where the instruction has its address from. */
enum address_base {
	ADDRESS_UNKNOWN,
	ADDRESS_FIXED, /* it stands in the code, or is counted from the thread pointer */
	ADDRESS_FRAME, /* from the stack pointer, or the frame pointer of a function that has one */
	ADDRESS_POINTER, /* a register: `pointer` */
	ADDRESS_BASES,
};

/* Where that register has its value from. */
enum pointer_source {
	POINTER_UNKNOWN,
	POINTER_LOADED,	  /* from memory */
	POINTER_GIVEN,	  /* an argument of the function */
	POINTER_RETURNED, /* by a call */
	POINTER_OTHER,	  /* a constant, an address that was computed */
	POINTER_SOURCES,
};

/* Which way a loop around the store moves the pointer. */
enum pointer_motion { MOTION_UP = 1 << 0, MOTION_DOWN = 1 << 1, MOTION_SOMEWHERE = 1 << 2 };

/* What the code of the store says about its address. */
struct store_code {
	bool certain; /* the instruction was found for certain: the rest means something */
	enum store_form form;
	enum address_base base;
	uint64_t pointer;	    /* ADDRESS_POINTER: the register's value */
	int64_t displacement;	    /* from there */
	bool string, indexed;	    /* stos or movs; a second register is added */
	bool moves_base;	    /* the instruction itself changes the register */
	bool immediate;		    /* a constant was stored */
	enum pointer_source source; /* of `pointer` */
	bool changed, joined;	    /* on its way from there: computed with; two ways meet */
	unsigned int motion;	    /* enum pointer_motion; 0: no loop moves it */
};

/* What the value in the home led to when the trial failed, by the way back from the fault. */
enum value_leads { LEADS_UNKNOWN, LEADS_NOWHERE, LEADS_TO_LIVE, LEADS_TO_FREED, VALUE_LEADS };

struct value_found {
	bool known;		   /* the home is a step on the way back from the fault */
	unsigned int step;	   /* which; 0: the fault itself went through the value */
	unsigned int steps;	   /* of the whole way */
	enum value_leads leads;	   /* to a block, or nowhere that is known */
	bool at_start;		   /* the value is that block's address */
	bool leads_recycled;	   /* another block had that block's place before */
	bool jumped, indexed;	   /* the fault jumped there; an index was bad, no pointer */
	bool read_by_code;	   /* the code says that it was read there */
	unsigned int other_places; /* that held the same value, where the code does not say */
	bool replaced;		   /* the home got another value after it had been read */
	bool outlived;		   /* what it led to when it was stored had ended */
	bool strayed;		   /* the reader's index had left another, live block */
	bool runtime;		   /* the home is a variable of the C library's own */
	bool place_reused;	   /* another kind of block had the home's place before */
	bool owner_reached;	   /* the pointer to the home's block was stored in its life */
};

/* How the field was written in this block's life, up to this store. */
struct write_parts {
	bool known;
	unsigned int whole;   /* writes of all of it, other than to zero */
	unsigned int writers; /* different instructions that wrote a part */
	bool covered;	      /* together they wrote all of it */
};

/* How it is known that the block behind the store's pointer had been freed, or not. */
enum free_basis {
	FREE_SEEN,     /* the allocator's own functions were followed */
	FREE_INFERRED, /* from how functions of the program were seen to be called: see the note */
	FREE_UNSEEN,   /* it may belong to an allocator that was not followed: see the note */
	FREE_BASES,
};

/* One store that was caught. */
/* Bytes of the block, right after a store. */
struct block_bytes {
	struct strbuf bytes; /* empty: not known */
	int64_t offset;	     /* of the first one in the block; outside of blocks from the home */
	uint64_t nth; /* the how manieth store to the watched bytes, while they were watched */
};

struct write_seen {
	struct home home;	   /* what was watched */
	struct block_life *victim; /* the block of that home; NULL outside of blocks */
	char *instruction;	   /* as text; NULL when it could not be decoded */
	unsigned int width;	   /* of the store, in bytes; 0 unknown */
	uint64_t store_start;	   /* first address it wrote; 0 unknown */
	uint64_t store_len;	   /* bytes from there (a `rep`: all of them) */
	enum store_fit fit;
	uint64_t old, new;	/* the field before and after */
	unsigned int value_len; /* bytes of these that mean something, at most 8 */
	unsigned int flags;	/* enum write_flags */
	struct stack writer;	/* innermost first; the frame's kind tells jit and python */
	int tid;
	char *thread;	  /* its name; or NULL */
	char *registers;  /* "rax=0x…", with spaces between, as they were at the trap; or NULL */
	uint64_t when_ns; /* since the process began; 0 unknown */
	/* The block of the pointer that the store went through, as it was at the store; `value`
	 * is that pointer; NULL unknown. Of a pointer that is known to be older than the block
	 * that has the place now, it is the earlier block, with `former` set. */
	struct block_life *base;
	struct block_life *target; /* the block that the new value points into, as it was at the
				    * store; NULL: none, or no pointer */
	struct home source;	   /* WRITE_COPIED */
	enum source_state source_state;
	uint64_t age; /* allocations between the block's birth and this write */
	struct store_code code;
	struct value_found found; /* what the home held at the failure */
	struct write_parts parts;
	/* The how manieth write to the field it is: since the birth of the block, and of the object
	 * that an allocator of the program's own made there. 0: not watched all that time. */
	uint64_t nth_of_block, nth_of_object;
	bool new_was_block; /* the new value was the address of a block at the store */
	/* It is part of a copy or a fill by the C library: store_start is where that began, by its
	 * own arguments, and `base` the block there; store_len what is known of its length. */
	bool copy;
#define COPY_NEGATIVE (UINT64_C(1) << 63) /* store_len: below zero, no more is known */
	enum free_basis free_basis;
	struct block_bytes block;
};

/* The value that a faulting instruction could not use: the pointer that it went through, or the
 * divisor. By the code before the fault. */
struct fault_value {
	bool divisor;
	uint64_t value;
	enum pointer_source source;
	struct home home;  /* POINTER_LOADED */
	char *returned_by; /* POINTER_RETURNED: the function; NULL unknown */
};

/* Who took references to a counted block and who gave them back, over its life and beyond. */
struct reference_party {
	struct stack at; /* from the function on that asked for it; never empty */
	uint64_t taken, given;
	/* Named by exclusion: nobody else but the interpreter counted. Or, with more given than
	 * taken: those are of several functions together, and this is where it became too many. */
	bool alone;
};

struct reference_account {
	struct home home; /* the count */
	struct block_life *block;
	VEC(struct reference_party) parties;
};

/* A home that was watched in a trial. One for each trial whose victim was watched; it is what
 * makes 'nobody was caught' mean something. */
struct watch_account {
	struct home home;
	struct block_life *victim; /* NULL outside of blocks */
	char *mode;		   /* "hw", "pages", "ptrace" */
	bool victim_watched;	   /* the failing block itself, from before the damage on */
	bool since_birth;	   /* no write since the block's birth can have been missed */
	bool kernel_writes;	   /* writes by system calls would have been caught, too */
	uint64_t hits;		   /* writes seen, those that were not stored included */
	unsigned int threads;	   /* that made them */
	bool value_known;	   /* the two below mean something */
	uint64_t value;		   /* what the failure found there */
	uint64_t birth_value;	   /* what was there when the block was born */
};

/* The value changed and no write was caught. */
struct outside_change {
	struct home home;
	struct block_life *victim;
	uint64_t old, new;
	unsigned int value_len;
	bool kernel_writes; /* would have been caught */
	bool gap;	    /* the watch was off for some of the time: it may have missed one */
	struct said_list between; /* system calls and mappings in between */
};

/* Two observations at one address that look like a change. */
struct conflation_seen {
	uint64_t address;
	int64_t offset;
	uint64_t first_id, second_id;
	char *first_key, *second_key;
	uint64_t first_value, second_value;
	unsigned int value_len;
	struct block_life *first, *second; /* NULL unknown */
	bool watched; /* both were watched over that time, and neither was written */
};

/* A pointer into a freed block was followed; or, of EVIDENCE_OVER_READ, one behind the end of a
 * live block or before its start was read through. */
struct freed_use {
	struct block_life *block; /* with allocated and freed sites, and freed_events */
	int64_t offset;
	bool write; /* the use was a store */
	char *instruction;
	struct stack user;
	bool poison;	   /* found because the block's poison came out: a read */
	bool place_reused; /* another kind of block had the place before this one */
	bool fenced;	   /* seen at a closed page, and let through: no crash showed it */
	uint64_t width;	   /* bytes that it touched; 0 unknown */
	bool first;	   /* watched from the block's free on: nobody touched it before */
	bool unpointed;	   /* no register that the address was made of pointed to the block */
	struct home from;  /* then: where the pointer had been loaded from; or unknown */
};

/* Somebody still points to a block that was freed. */
struct holder_seen {
	struct home home;	   /* where the pointer stands */
	struct block_life *holder; /* the block that holds it; NULL for a global or a stack */
	struct block_life *target; /* with allocated and freed sites */
	struct stack written_by;   /* who put the pointer there; empty when unknown */
	bool used;	   /* the failing instruction got its pointer from exactly this home */
	bool exact;	   /* it points to the block's start or to where the use was */
	bool on_stack_too; /* a stack held the same pointer then, or was not looked at */
	/* The target is no block but the frame of a function that has returned: `allocated` is its
	 * stack when the pointer was stored, from that function on; nobody freed it. */
	bool frame;
	bool counted; /* whoever stored the pointer took a reference for it */
};

enum bad_free_kind {
	BAD_FREE_DOUBLE,
	BAD_FREE_INTERIOR,   /* inside a block */
	BAD_FREE_MISMATCHED, /* new and free, new[] and delete, … */
	BAD_FREE_FOREIGN,    /* no block was ever there */
	BAD_FREE_KINDS,
};

struct bad_free {
	enum bad_free_kind kind;
	uint64_t pointer;
	struct block_life *block; /* NULL for BAD_FREE_FOREIGN; `freed` is the first free */
	struct stack second;	  /* the free that was wrong */
	char *how;		  /* "malloc, then operator delete" for a mismatch; or NULL */
	/* Other places that held the block's own address then. */
	uint64_t owners;
	/* To an allocator that the user named, or a malloc inside the program. That nobody was
	 * given the object in between is as true as these are all the functions that hand objects
	 * out. */
	bool named;
};

enum canary_side {
	CANARY_BEFORE,
	CANARY_AFTER,
	CANARY_FREED, /* the poison of a freed block */
	CANARY_SIDES,
};

struct canary_broken {
	enum canary_side side;
	struct block_life *block;
	int64_t offset; /* of the first damaged byte, from the block's start */
	uint64_t len;	/* to the last damaged one */
	/* The context of another block at whose guards the same damage goes on: to its very start,
	 * or at both of its ends. No other trial told the two apart. NULL: none. */
	char *goes_on_at;
	struct strbuf expected, found;	 /* some bytes from there */
	char *last_whole, *first_broken; /* the two checkpoints (tests) around it; or NULL */
	struct stack writer;		 /* a fence saw the store itself; else empty */
	char *instruction;
};

struct mapping_cut {
	char *file;
	uint64_t mapped, present;
	struct file_cut *cut; /* NULL: nobody was seen */
	struct stack user;    /* who touched what was gone */
};

struct growth_seen {
	char *key;
	struct stack site;
	double blocks_per_test, bytes_per_test, p;
	uint64_t tests, rises;
	unsigned int trials, usable; /* grew in so many of so many */
	struct said holder;	     /* who still points to them */
	/* Live blocks in the first of these trials, before its first test and from there on to the
	 * last, at even distances; empty: not known. */
	VEC(uint64_t) levels;
};

/* The failure goes with what stood in new blocks of a context when they were allocated. Over many
 * trials; `trial` is one that failed. */
struct odds_seen {
	struct home home; /* HOME_BLOCK, by context; len 0: which bytes is not known */
	struct stack allocated;
	uint64_t garbage, garbage_failed; /* trials in which they held garbage */
	uint64_t zeroed, zeroed_failed;	  /* …and zeros */
	double p;	/* of one so large by chance, corrected for everybody that was tested */
	bool otherwise; /* every trial failed: those counted as failed did so in another way */
};

/* Two threads wrote one home within the window of interest. */
struct race_seen {
	struct home home;
	struct block_life *victim;
	struct write_seen *first, *second; /* in the order of time */
	uint64_t gap_ns;
	/* The second was made from a value that the first had already replaced: an update was
	 * lost. Only set when both values were seen. */
	bool lost_update;
	struct write_seen *read; /* where the second's thread had read that value; NULL unknown */
	bool locked;		 /* a lock was held at both: not by itself a defect */
};

/* Signs that it is the machine. Over many trials; `trial` is 0. */
struct host_signs {
	unsigned int bit_flips;	     /* watched failing trials: one bit differs, no writer */
	unsigned int flip_homes;     /* in so many different homes (block context and offset) … */
	unsigned int flip_bits;	     /* … and so many different bits */
	unsigned int segv, bus, ill; /* failing trials by signal */
	unsigned int sites;	     /* different functions they died in */
	int core;		     /* the core that the failures keep to; -1: none */
	double core_p;		     /* chance of that; 1 when not tried */
	char node[64];		     /* the machine, of several, that failures keep to; "": none */
	double node_p;		     /* chance of that; 1 when not tried */
	bool memory_tested;
	uint64_t memory_errors;
	double memory_seconds;
};

/* What stood in the way of a closer look. */
enum obstacle {
	OBSTACLE_NO_AGENT = 1 << 0,    /* nothing can be put into the program */
	OBSTACLE_AGENT_HIDES = 1 << 1, /* it fails only while nothing is put into it */
	OBSTACLE_IDS_HIDE = 1 << 2,    /* it does not fail while allocations are tracked */
	OBSTACLE_TOO_SLOW = 1 << 3,    /* no trial ended within `limit_s` */
	OBSTACLE_BUDGET = 1 << 4,      /* the budget ended it */
	OBSTACLE_INTERRUPTED = 1 << 5,
	OBSTACLE_NOT_CHASED = 1 << 6, /* nobody has looked for the writer */
};

/* The command as it is run: what is hunted, and how often it came. */
struct failure_seen {
	char signature[16]; /* "": it never failed */
	enum failure_kind kind;
	int signal;
	bool fault;		  /* an instruction faulted, or the program called abort() */
	bool always;		  /* every run shows it */
	char *summary;		  /* NULL: it never failed */
	uint64_t trials, failed;  /* as it is run: failed as it is hunted */
	uint64_t ran, ran_failed; /* all trials of the hunt, and those that failed in any way */
	unsigned int obstacles;	  /* enum obstacle */
	double limit_s;		  /* OBSTACLE_TOO_SLOW */
};

/* What a tool inside the program, or around it, says that it saw. */
enum reported_kind {
	REPORTED_OTHER, /* nothing that a verdict could rest on */
	REPORTED_OVERFLOW,
	REPORTED_UNDERFLOW,
	REPORTED_OVER_READ,
	REPORTED_FREED_USE,
	REPORTED_FREED_WRITE,
	REPORTED_DOUBLE_FREE,
	REPORTED_INVALID_FREE,
	REPORTED_UNINITIALISED,
	REPORTED_RACE,
	REPORTED_NULL,	   /* a fault at a NULL pointer */
	REPORTED_STACK,	   /* none of it is left */
	REPORTED_DIVISION, /* by zero */
	REPORTED_KINDS,
};

struct reported {
	enum reported_kind kind;
	char *tool; /* "AddressSanitizer" */
	char *what; /* in its words: "heap-use-after-free" */
	bool write;
	uint64_t width; /* bytes of the access; 0 unknown */
	int64_t offset; /* from the block's start */
	/* With its size, place and stacks as far as they were told; of a variable `key` is its
	 * name. NULL: nothing was told. */
	struct block_life *block;
	struct stack user;  /* who did it */
	struct stack other; /* of a race: the other thread */
};

/* Frees what it has; it is not freed itself. */
void reported_deinit(struct reported *reported);
void reported_copy(struct reported *to, const struct reported *from);

enum hop_end {
	HOP_GOES_ON,
	HOP_ORIGIN,  /* the value was made here */
	HOP_LIMIT,   /* --hops, the budget */
	HOP_NOTHING, /* nothing more can be learned */
	HOP_ENDS,
};

/* One step of the chase: this home was watched, that was caught. */
struct hop_seen {
	unsigned int number; /* from 1: the home that the failure read */
	struct home home;
	uint64_t caught, watched, trials; /* caught in c of w watched failing trials, n run */
	uint64_t key_right, key_tried;	  /* re-identification: the key led to the right block */
	enum hop_end end;
	char *inferred;		/* what follows from it, a sentence */
	VEC(uint64_t) evidence; /* ids it rests on */
};

enum evidence_kind {
	EVIDENCE_CRASH,
	EVIDENCE_WRITE,
	EVIDENCE_WATCH,
	EVIDENCE_OUTSIDE,
	EVIDENCE_CONFLATION,
	EVIDENCE_FREED_USE,
	EVIDENCE_HOLDER,
	EVIDENCE_BAD_FREE,
	EVIDENCE_CANARY,
	EVIDENCE_MAPPING,
	EVIDENCE_GROWTH,
	EVIDENCE_RACE,
	EVIDENCE_HOST,
	EVIDENCE_FAILURE,
	EVIDENCE_HOP,
	/* A write to memory that somebody chose to watch (`write`). Nobody asked whether it has to
	 * do with a failure, so no rule judges by it. */
	EVIDENCE_SIGHTING,
	EVIDENCE_ODDS,
	EVIDENCE_EXPERIMENT,
	EVIDENCE_OVER_READ, /* `freed_use` */
	EVIDENCE_FAULT_VALUE,
	EVIDENCE_ACCOUNT,
	EVIDENCE_REPORTED,
	EVIDENCE_KINDS,
};

struct evidence {
	uint64_t id;	/* in its case, from 1; 0 until it is stored */
	uint64_t trial; /* 0: not of one trial */
	/* The trial failed in the way that is being chased, or showed the very damage that is. */
	bool failing;
	char signature[16]; /* of that failure; "" when it passed or nobody knows */
	enum evidence_kind kind;
	struct said note; /* anything else worth telling */
	union {
		struct crash *crash;
		struct write_seen *write;
		struct watch_account *watch;
		struct outside_change *outside;
		struct conflation_seen *conflation;
		struct freed_use *freed_use;
		struct holder_seen *holder;
		struct bad_free *bad_free;
		struct canary_broken *canary;
		struct mapping_cut *mapping;
		struct growth_seen *growth;
		struct race_seen *race;
		struct host_signs *host;
		struct failure_seen *failure;
		struct experiment_made *experiment;
		struct hop_seen *hop;
		struct odds_seen *odds;
		struct fault_value *fault_value;
		struct reference_account *account;
		struct reported *reported;
		void *any;
	};
};

struct evidence_list {
	VEC(struct evidence) list;
	uint64_t trials, failed; /* of the hunt so far; 0 when nobody counted */
};

/* A piece with its (zeroed) part allocated: e.g. evidence_new(EVIDENCE_WRITE, 17, true).write. */
struct evidence evidence_new(enum evidence_kind kind, uint64_t trial, bool failing);
void evidence_deinit(struct evidence *evidence);
void evidence_list_deinit(struct evidence_list *list);

/* Takes out all pieces that `is` says yes of. */
void evidence_drop(struct evidence_list *list,
		   bool (*is)(const struct evidence *evidence, const void *ctx), const void *ctx);

/* Adds the record of an experiment. */
void evidence_add_experiment(struct evidence_list *list, const struct experiment_made *made);

/* Was it seen at a closed page, and let through? */
bool evidence_fenced(const struct evidence *evidence);

/* Is it what a crash's own record says by itself? Then it is no damage that an observer found. */
bool evidence_of_crash(const struct evidence *evidence);

/* Is it that, or what the crash could not use, of a trial that an observer has disturbed, and which
 * did not fail as it is hunted? */
bool evidence_observed(const struct evidence *evidence);

/* A freed block of a known context was read, and nothing says by whom: its poison came out. */
bool evidence_by_somebody(const struct evidence *evidence);

/* Is there anything that a verdict could rest on? */
bool evidence_to_judge(const struct evidence_list *list);

/* NULL when there is none. */
const struct evidence *evidence_find(const struct evidence_list *list, uint64_t id);

/* The identifiers in the case and in JSON: "write", "freed-use", …; "narrow", "exact", "wide". */
const char *evidence_kind_name(enum evidence_kind kind);
const char *store_fit_name(enum store_fit fit);

/* How a store of `len` bytes at `start` lies on a field; FIT_UNKNOWN when a length is 0. */
enum store_fit store_fit_of(uint64_t start, uint64_t len, uint64_t field, uint64_t field_len);

/* What it says (evidence_said.c); report/ has the words. The same as a part of something larger. */
void evidence_say(const struct evidence *evidence, struct said *ret);
struct said_value said_evidence(const struct evidence *evidence);
struct said_value said_experiment(enum experiment_kind kind);

/*
 * As bytes for the case and back (evidence_fields.c). Reading takes any bytes: -EBADMSG for what
 * is damaged, -EPROTO for what a newer redhand wrote; `ret` is then untouched.
 */
void evidence_pack(const struct evidence *evidence, struct strbuf *sb);
int evidence_unpack(const void *bytes, size_t len, struct evidence *ret, struct err *err);
