#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "model/frame.h"
#include "model/said.h"

/*
 * A crash, put into words: what died, where, what it touched and the life of that.
 *
 * Everything in it is owned by it; all text from the target is printable.
 */
enum fault_class {
	FAULT_UNKNOWN,
	FAULT_NULL,	     /* a small offset from NULL */
	FAULT_FREED,	     /* inside a block that was freed */
	FAULT_RECYCLED,	     /* inside a block that was freed; another has the place now */
	FAULT_BEYOND,	     /* behind the end of a live block */
	FAULT_NON_CANONICAL, /* no address at all: its upper bits differ */
	FAULT_MISALIGNED,
	FAULT_EXECUTE, /* the instruction pointer itself is bad */
	FAULT_STACK_OVERFLOW,
	FAULT_MAPPING_SHRANK, /* behind the present end of a mapped file */
	FAULT_READ_ONLY,      /* a write to memory that may only be read */
	FAULT_UNMAPPED,	      /* nothing is there */
	FAULT_OWN,	      /* memory of redhand's own agent */
	FAULT_ABORT,	      /* abort(), with glibc's message where there is one */
	FAULT_ARITHMETIC,
	FAULT_ILLEGAL, /* no such instruction */
	FAULT_TRAP,
	FAULT_SYSCALL, /* a forbidden system call */
	FAULT_SENT,    /* the signal came from kill(), not from an instruction */
	FAULT_CLASSES,
};

/* The identifier in signatures and JSON. */
const char *fault_class_name(enum fault_class fault);

enum block_state {
	BLOCK_LIVE,
	BLOCK_FREED,
};

/* One block that a pointer of the crashed thread leads to. */
struct block_life {
	char *via;	/* which pointer: "rax", "the address"; several joined */
	uint64_t value; /* that pointer */
	uint64_t id;
	char *key; /* names the same block in another run: CONTEXT#ORDINAL */
	uint64_t start, size;
	enum block_state state;
	bool telling; /* the faulting instruction itself used that pointer, or got it from there */
	bool former;  /* it was freed and another block had its place after it */
	bool poison;  /* that register holds what redhand wrote into it when it was freed: it was
		       * read from there, or from somewhere that got it from there */
	bool beyond;  /* the pointer leads behind its end */
	bool left;    /* the bad pointer was read outside of it, by an index into it */
	bool python;  /* an object or memory of CPython's own allocator */
	uint64_t freed_events; /* freed at most so many allocations and frees ago; 0 unknown */
	struct stack allocated, freed;
};

/* A pointer this far inside of a freed block may be older than the block: what small ones leave is
 * put together. Headers of allocators and base classes are smaller. */
#define BLOCK_MIDST 1024

void block_life_deinit(struct block_life *block);
void block_life_free(struct block_life *block);			   /* NULL is fine */
struct block_life *block_life_dup(const struct block_life *block); /* NULL gives NULL */

/* Who made a mapped file shorter. */
struct file_cut {
	uint64_t trial;
	int pid;
	char *program;
	char *how; /* ftruncate, truncate, open */
	int64_t old_size, new_size;
	double before_s; /* this long before the crash */
	struct stack stack;
};

struct crash {
	int pid, tid;
	char *program; /* path of the process's program */
	char *command; /* its command line */
	char *thread;  /* name of the thread */
	int signal, code;
	int ended_by; /* the signal that a handler of it ended the process with; else the same */
	bool hidden;  /* nobody saw it die: a parent hid it */
	bool from_outside; /* another process sent the signal: where it struck says nothing */
	uint64_t address;  /* the fault's; 0 when the signal was sent */
	uint64_t realtime_ns;
	enum fault_class fault;
	bool write;	     /* the access that faulted was a store */
	struct said words;   /* the fault in one sentence */
	char *abort_message; /* NULL when there is none */
	char *instruction;   /* that faulted, as text; NULL when unknown */
	char *origin;	     /* the one that loaded the bad pointer; NULL when not found */
	struct stack stack;
	VEC(struct block_life) blocks; /* what it touched first */
	char *file;		       /* FAULT_MAPPING_SHRANK: the file */
	uint64_t file_inode, file_device;
	uint64_t mapped, present; /* and its sizes, in bytes */
	struct file_cut *cut;	  /* who shortened it; NULL when unknown */
	struct {
		char name[8];
		uint64_t value;
	} registers[20];
	unsigned int register_count;
	uint64_t write_us; /* how long the record took */
	bool cut_short;	   /* the record is not whole */
};

/* Something about the observation that the user should know. */
struct crash_report {
	VEC(struct crash) crashes; /* the one that counts first */
	struct said_list notes;	   /* what was lost or not observed */
};

/* "#17"; of a block that is named by its context and ordinal "#5000.17". Returns buf. */
#define BLOCK_NAME_BYTES 32u
const char *block_name(uint64_t id, char buf[BLOCK_NAME_BYTES]);

void file_cut_free(struct file_cut *cut);
void crash_deinit(struct crash *crash);
void crash_copy(struct crash *to, const struct crash *from);
struct file_cut *file_cut_dup(const struct file_cut *cut); /* NULL gives NULL */
void crash_report_deinit(struct crash_report *report);

/* A jump to NULL, or close by. */
bool crash_is_null_call(const struct crash *crash);

/* A fault that needs no damaged memory: a NULL pointer, a division, a full stack, an instruction
 * that stops the program. */
bool crash_is_plain(const struct crash *crash);

/* Appends what kind of fault it was and in which function: "null in use". */
void crash_place(const struct crash *crash, struct strbuf *sb);

/* Is it code of the C library, the loader or the agent? Where abort(), raise() and memcpy() live
 * says nothing about who called them. */
bool frame_is_runtime(const struct frame *frame);

/* Is it what runs Python, or leads from there to C (libffi, ctypes, numpy)? It does what the code
 * says that it runs. */
bool frame_is_interpreter(const struct frame *frame);

/* Is it neither that, nor code that is there for whoever calls it: a wrapper around malloc, the
 * libraries of C++ and Rust, CPython's services for objects? */
bool frame_is_telling(const struct frame *frame);

/* Does the stack end inside malloc, free or one of their kin, or in what those call? */
bool stack_in_allocator(const struct stack *stack);

/* The frame that says most: the innermost one that is not the C library's, nor code of a library
 * that does what it is told (those of C++ and Rust, CPython's services for objects); of a full
 * stack one of those that recur. NULL when there is none with a name or a module. */
const struct frame *crash_site(const struct crash *crash);

/* The same of any stack: whose code it was, not which routine of the C library or of an interpreter
 * did it for it. */
const struct frame *stack_site(const struct stack *stack);
/* … or its innermost frame, if there is any. */
const struct frame *stack_site_or_top(const struct stack *stack);
