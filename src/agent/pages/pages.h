/*
 * Watched pages: blocks that are watched lie in memory that the target can read but not write.
 *
 * That memory is there twice. The target has the one at `base`, which never becomes writable; the
 * other, at `base + distance`, is writable and known to nobody else. A store to the first faults
 * and is carried out, whole, on the second (pages_fault.c); a system call that is to write there is
 * given the second's address (calls.h). So there is no moment at which a write could slip through,
 * whatever other threads do, and any number of blocks can be watched, on any CPU.
 *
 * Blocks are placed by the allocation hooks, when the plan has a watch about their context. They
 * lie in slots: of one size in a span, with some room behind each as libc has it. A freed slot is
 * not used again until some others have been freed. Slots are written under a lock of their own
 * kind (`pages_lock`): the value before and after a store, and the list of who watches the slot,
 * hold still meanwhile. Handlers take it too, so whoever takes it in a hook has signals blocked.
 *
 * Where the plan wants fences (PLAN_WATCH_FENCE) that memory is there once, and a block has pages
 * to itself, which the target may write to until the block is freed, and then nobody may touch for
 * a long time.
 *
 * After a fork the memory would be shared with the child: a copy is made before, and put in its
 * place there.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "agent/core/agent.h"
#include "agent/core/guard.h"
#include "agent/ids/context.h"
#include "agent/watch/watch.h"

/* An object that is watched, in the list of its slot. */
struct pages_armed {
	struct watch_armed armed;
	uint32_t next; /* index + 1 of the next of this slot, or of the next free one; 0: none */
	uint32_t slot;
	uint32_t calls; /* system calls under way that may write to it */
};

struct pages_slot {
	uint64_t start;
	uint64_t bytes; /* asked for; 0: no block has it */
	uint32_t span;
	uint32_t armed; /* index + 1 of the first object; 0: none */
	uint32_t next;	/* of the freed ones of its span's kind */
	uint32_t freed;
};

extern HIDDEN struct pages {
	uint64_t base, bytes; /* bytes 0: there is no such memory */
	uint64_t distance;    /* from what the target sees to what can be written */
	uint64_t top;	      /* readable from base up to here */
	struct pages_armed *objects;
	struct pages_slot *slots;
	uint32_t objects_used; /* atomic; high-water mark */
	uint32_t yielded;      /* atomic; 1: the pages are open, nothing is watched any more */
	int trouble;	       /* errno, why there is none */
	uint8_t *rights; /* that the target asked for with mprotect: PROT_… + 1 by page; 0: none */
	bool uneven;	 /* somebody did, or pages are let go of */
} pages;

static inline bool pages_hold(uint64_t address)
{
	return unlikely(address - pages.base < pages.bytes);
}

/* Has the target itself made this page read-only? _sigsafe */
bool pages_denied_sigsafe(uint64_t address);

/* When the plan asks for it. 0, or the errno of what failed. */
int pages_init(void);

/* A block for this place, if one of its watches is about it; NULL: it is to come from where it
 * always does. align 0: as malloc has it. */
void *pages_allocate(uint64_t align, uint64_t size, bool zeroed, enum log_api api,
		     struct caller caller);
void pages_free(void *ptr, struct caller caller);
void *pages_realloc(void *ptr, uint64_t size, struct caller caller);
uint64_t pages_usable(const void *ptr);

/* An object of Python, if a hook has said that the next one is to lie here; NULL: it has not. */
void *pages_allocate_python(uint64_t size, bool zeroed, struct caller caller);

/* realloc of a block that lies elsewhere, from a place whose blocks are watched: moves it here.
 * NULL: it is to stay. */
void *pages_take_in(void *ptr, uint64_t size, struct caller caller);

/* Watches an object; it is filled in but for its values. False: not in these pages, or no room. */
bool pages_arm(const struct watch_armed *armed, uint32_t context);

/* Ends those that begin in [start, start + bytes), except for those that go on after a free. */
void pages_disarm(uint64_t start, uint64_t bytes, enum log_watched_end why);

/* A block stays where it is, with another size: ends those that are no longer inside. True: some
 * still are. */
bool pages_resized(uint64_t start, uint64_t size);

/* Has anything changed that nobody was caught at? At a crash; and at the end, with which all
 * objects end. _sigsafe */
void pages_crashing_sigsafe(void);
void pages_exiting_sigsafe(void);

/* The slots that [low, high) touches, as a set of locks. */
struct pages_locks {
	uint64_t taken;
};

/* Around it, wherever signals may come: a handler of the target's would wait for us. */
uint64_t pages_signals_block(void);
void pages_signals_restore(uint64_t before);

struct pages_locks pages_lock_sigsafe(uint64_t low, uint64_t high);
void pages_unlock_sigsafe(struct pages_locks locks);

/* The slot of an address, or NULL. */
struct pages_slot *pages_slot_sigsafe(uint64_t address);
/* Where it ends; where there is none, the page. */
uint64_t pages_slot_end_sigsafe(uint64_t address);

/* A copy of everything, for the child of a fork that comes next: where it is, or -errno. */
long pages_copy_sigsafe(void);
/* In the parent: not needed any more. */
void pages_copied_sigsafe(long copy);
/* In that child. False: it goes on with the parent's memory. */
bool pages_adopt_sigsafe(long copy);
/* The errno of what failed at the start. */
int pages_after_fork(void);
void pages_each(void (*visit)(struct watch_armed *armed));
bool pages_yielded(void);
bool pages_holds(uint64_t address);

/* The kernel is about to write of its own accord (pages_yield.c): opens the pages for good. */
void pages_yield_sigsafe(void);

/* The same for the block at this address and for those on the same pages, where what is kept there
 * must be writable by its own address: a stack, or what has a protection key. True: they were not
 * open before. */
bool pages_let_go_sigsafe(uint64_t address);
bool pages_left_sigsafe(uint64_t address);

/* Closes [low, high), or opens it: for as much as the target itself wants to, and never what was
 * let go of. _sigsafe */
bool pages_rights_sigsafe(uint64_t low, uint64_t high, bool open);
void pages_rights_all_sigsafe(bool open);

/* They become memory like any other, without system calls being told (sandbox.h). False: there are
 * none. */
bool pages_leave_sigsafe(void);

/* A store to these pages: carries it out and tells who it was. Or the trap behind an instruction
 * that could only be run where it is. False: it is none. */
bool pages_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context);
