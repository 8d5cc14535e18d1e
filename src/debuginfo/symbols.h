#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "model/frame.h"
#include "model/snapshot.h"

struct code_layout;

/*
 * Stacks with names, out of snapshots.
 *
 * One struct symbols keeps everything that was opened (files, their debug information, what each
 * address was called) and serves any number of snapshots of any number of processes, one at a time:
 * not for use by two threads at once. Nothing here reads a live process.
 */
struct symbols;

struct symbols_options {
	/* Where separate debug files are, in libdwfl's notation (":.debug:/usr/lib/debug"); NULL
	 * for that default. debuginfod is asked as well when DEBUGINFOD_URLS is set. */
	const char *debug_path;
	/* Files, or directories of files, that a process elsewhere may have had copies of: found by
	 * their build-ids. NULL: none. */
	const struct strv *at_hand;
	const char *perf_map_dir; /* directory of perf-PID.map; NULL for /tmp */
	size_t max_frames;	  /* native frames per stack; 0 for 512 */
	bool no_python;		  /* leave the interpreter's frames as they are */
};

struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *symbols);
AUTO_DEFINE(struct symbols, symbols_free)

/*
 * Unwinds from the snapshot's registers and names every frame: inlined ones expanded, Python's put
 * in where the interpreter runs them. A snapshot full of lies gives a short or odd stack, never an
 * error; ret->end says why it stops. Fails only with -EINVAL, when the instruction or stack pointer
 * was not recorded. The caller deinits `ret`.
 */
int symbols_unwind(struct symbols *symbols, const struct snapshot *snapshot, struct stack *ret,
		   struct err *err);

/* A physical frame as the machine had it, for whoever reads its instructions. */
struct machine_frame {
	taddr pc;
	bool exact;    /* execution stands there; else it is a return address */
	bool returned; /* FRAME_RETURNED */
	struct registers registers;
	taddr cfa;     /* end of its frame: the caller's stack pointer before the call; 0 unknown */
	taddr start;   /* of its function, or of its piece of emitted code; 0 unknown */
	uint8_t *code; /* from `start` on where that is near, to a little after pc */
	size_t code_len;
	taddr code_address;
};

/* The innermost frames of a snapshot; returns how many. Each one's code is the caller's to free
 * (machine_frames_free() does). */
size_t symbols_machine_frames(struct symbols *symbols, const struct snapshot *snapshot,
			      struct machine_frame *ret, size_t room);
void machine_frames_free(struct machine_frame *frames, size_t count);

/* The frame of one return address, without registers. */
void symbols_machine_frame(struct symbols *symbols, const struct snapshot *snapshot, taddr back,
			   struct machine_frame *ret);

/* Where the function, or the piece of emitted code, around an address begins; 0 when nobody knows.
 * Only the snapshot's mappings and pid are used. */
taddr symbols_function_start(struct symbols *symbols, const struct snapshot *snapshot,
			     taddr inside);

/* The name of the global variable at `vaddr` (an address in the file) of a mapped file, and where
 * in it that is. The caller's to free; NULL when it is not known. */
char *symbols_global(struct symbols *symbols, const struct mapping *mapping, uint64_t vaddr,
		     uint64_t *ret_offset);

/* Is it an address in that file, zeroed memory behind it included? True where the file is gone. */
bool symbols_covers(struct symbols *symbols, const struct mapping *mapping, uint64_t vaddr);

/* Appends the frame (and those inlined into it) at one address. `flags`: FRAME_EXACT for an
 * instruction's own address, 0 for a return address, and whatever else the frames shall carry.
 * Only the snapshot's mappings, pieces and pid are used. */
void symbols_name(struct symbols *symbols, const struct snapshot *snapshot, taddr address,
		  unsigned int flags, struct stack *stack);

/* Puts functions that left by a jump back into a stack that was named address by address;
 * symbols_unwind() does so by itself. */
void symbols_complete(struct symbols *symbols, const struct snapshot *snapshot,
		      struct stack *stack);

/* Which parts of an executable mapping are code, and where functions begin in it, as addresses of
 * the process. Of a mapping without a file all is code, and the names of emitted code tell the
 * starts. False when there is no file, or it is not the one any more. The caller deinits `ret`. */
bool symbols_code(struct symbols *symbols, const struct snapshot *snapshot,
		  const struct mapping *mapping, struct code_layout *ret);

/* Memory as the snapshot has it, or, where the process could not write, the mapped file. True only
 * for all of it. */
bool symbols_read(struct symbols *symbols, const struct snapshot *snapshot, taddr address,
		  void *buf, size_t len);
