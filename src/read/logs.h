#pragma once

#include "base/vec.h"
#include "debuginfo/symbols.h"
#include "model/mappings.h"
#include "model/said.h"
#include "read/blobs.h"
#include "read/python_stacks.h"
#include "wire/log_reader.h"

/*
 * The event logs that the processes of one trial left in its directory.
 *
 * All of it was written by, or next to, a program with damaged memory. The reader
 * (wire/log_reader.h) takes any bytes; here every count and length is bounded.
 */
struct event_log {
	char *name;
	const void *bytes; /* mapped */
	size_t len;
	struct log_reader reader;
	char *program; /* NULL when the log does not say */
	char *command;
	struct mappings modules; /* where code lay, for stacks taken before the crash */
	char *names_dir;	 /* where names of emitted code came with it; NULL */
	VEC(struct {
		uint32_t context;
		uint64_t offset;
	})
	contexts;		      /* ascending by context */
	struct python_stacks python;  /* of contexts, with growth */
	VEC(uint64_t) module_records; /* where they stand */
	VEC(struct log_hook) hooks;
	struct wrappers *wrappers; /* around malloc; NULL until somebody asks */
};

struct event_logs {
	VEC(struct event_log) list; /* in order of process start */
	struct said_list notes;	    /* what cannot be used or was not observed */
};

/* A quick look, for a slot: it is another process than the one that reads the trial, and has to say
 * at once whether there is anything to read. The signal of the first process that died of one, 0
 * when none did; the last fault that a handler was given and may not have come back from; and
 * whether any process made a file shorter. */
struct event_glance {
	int signal;
	int pid;
	int handed_signal;
	int handed_pid;
	int called_signal; /* of the last fault that a handler turned into a call:
			      log_crash_called() */
	int called_pid;
	int called_parent; /* pid of its parent */
	bool cuts;
	bool told; /* a process was on watched pages until its end: its system calls were told */
};

void event_logs_glance(int trials, const char *trial, struct event_glance *ret);

/* The log that knows the block's contexts: after a fork, blocks that the child got with it belong
 * to the parent's. NULL when that is not there. */
struct event_log *event_logs_owner(struct event_logs *logs, struct event_log *log, uint64_t id);

/* What it says of its process, and where code lay: for stacks, which the caller adds. */
struct snapshot event_log_snapshot(const struct event_log *log);

/* The stack of a context (where a block was allocated or freed), without the agent's own frames.
 * False when the log does not have it. */
bool event_log_context(struct event_log *log, uint32_t context, struct symbols *symbols,
		       struct stack *ret);

/* The same of a context that allocated: frames that only passed on to malloc have FRAME_WRAPPER. */
bool event_log_allocation(struct event_log *log, uint32_t context, struct symbols *symbols,
			  struct stack *ret);

/* The same of a context that freed: frames that only handed their pointer on to free. */
bool event_log_freeing(struct event_log *log, uint32_t context, struct symbols *symbols,
		       struct stack *ret);

/* Where the code at an address of the target really belongs: some instructions of hooked functions
 * run elsewhere. Any other address is returned as it is. */
uint64_t event_log_original(const struct event_log *log, uint64_t address);

/* Is this a place in the agent where it calls what a hooked function only jumps to? Such a frame is
 * none of the program's. */
bool event_log_is_tail(const struct event_log *log, uint64_t address);

/* Is it the agent's own code, which stands between the target and libc? */
bool event_log_is_agent(const struct event_log *log, uint64_t address);

/* Puts back, into bytes of the target's code at `address`, what hooks replaced there. */
void event_log_unpatch(const struct event_log *log, uint64_t address, uint8_t *bytes, size_t len);

/* A stack as the agent takes it in its own functions. */
struct callee_stack {
	struct log_callee_registers registers;
	const void *bytes; /* from registers.rsp on */
	size_t len;
	const uint64_t *frames; /* what the agent's own scan saw, for when there is nothing else */
	size_t frame_count;
	const struct python_memory *python; /* NULL: none was kept */
	uint32_t tid;			    /* 0 when unknown */
};

/* Unwinds it and drops the frames of the agent. */
void event_log_unwind_callee(struct event_log *log, const struct callee_stack *seen,
			     struct symbols *symbols, struct stack *ret);

/* The row of the context that a block's key names; 0 when the log does not have it. */
uint32_t event_log_key_context(struct event_log *log, const struct block_key *key);

/* A block's key in words, CONTEXT[@LANE]#ORDINAL; of blocks that only the history knows, the
 * context alone. The caller's to free; NULL when not even that is known. */
char *event_log_key(struct event_log *log, const struct block_key *key, uint32_t context);

/* Where a module's file is, the caller's to free: one that does not fit its record follows it. */
char *event_log_module_path(const struct log_item *item, const struct log_module *module);

/* A blob as text the caller frees; NULL when it is not there. Made printable. */
char *event_log_text(const struct event_log *log, const struct log_item *owner,
		     enum log_blob_kind kind);
