/*
 * What the parts above core/ want to hear of, one row each: features[] in features.c, the one file
 * that knows all of them.
 *
 * Whoever makes something happen says so here and does not know who listens. So core/ includes
 * nothing from above it, ids/ nothing of those who want to know about blocks, and a new feature is
 * a row in features.c, a folder, and nothing else. The table is constant: its pointers lie in
 * memory that nobody can write to once the loader is done.
 *
 * Rows are told in their order. Nothing of it is on the hot path of malloc and free (blocks.h),
 * which looks at agent_switch alone; what the slow path tells is told once for many blocks, or of
 * blocks that somebody has marked. Everything that may come out of a handler or a hook is
 * _sigsafe.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "wire/log_format.h"

struct block;
struct call;
struct caller;
struct guard;
struct thread;

/* In this order; false: no memory, and the agent retires. */
struct feature_start {
	void (*begin)(void);				   /* before anything is mapped */
	bool (*map)(void);				   /* the log is there */
	bool (*main_thread)(const void *auxiliary_vector); /* its lane is there, and not open */
	void (*init)(void);				   /* the signals are ours */
	void (*switch_on)(void);			   /* sets its part of agent_switch */
};

/* Told by themselves. */
struct feature_thread {
	void (*wanted)(void); /* the caller is about to make another */
	void (*lane_open)(struct thread *self, bool other_stack);
	void (*known)(void); /* seen for the first time, started by us or not */
	void (*born)(void);  /* started by us */
	void (*gone)(struct thread *self);
};

/* In the child. */
struct feature_fork {
	void (*lane_forget)(const struct thread *area); /* its tables are the parent's */
	void (*forget)(void);				/* the log is new; before the lane opens */
	void (*forked)(void);
	void (*orphaned)(void); /* nobody told us of the fork: crashes alone are written down */
};

/* Of the process. */
struct feature_end {
	void (*exiting)(void);
	void (*exited)(uint64_t record); /* of LOG_EXIT */
	void (*crashing)(void);		 /* before the record of a final crash */
	/* Behind it. `starts`: blocks that it is about. */
	void (*crashed)(const struct log_crash *crash, const uint64_t *starts, unsigned count);
	void (*leave)(void); /* no more system calls from now on: sandbox.h */
};

/* What happens to it. */
struct feature_process {
	/* True: it was ours, and the interrupted code goes on. */
	bool (*signal)(int signo, const siginfo_t *info, ucontext_t *context);
	void (*modules_changed)(void);
	void (*traced)(int pid);  /* the target is about to trace a process; 0: itself */
	void (*calls_told)(void); /* from now on system calls are told to us */
	bool (*call_taken)(struct call *call); /* one of them; true: it was answered */
	void (*memory_tight)(void);
};

/* Lines of output. */
struct feature_line {
	void (*begin)(int fd, const void *text, size_t bytes);
	void (*write)(int fd, const void *text, size_t bytes); /* leaves the process now */
	void (*end)(int fd, size_t bytes, bool ended);
	bool (*refused)(void);	   /* true: no time for another checkpoint */
	void (*cost)(uint64_t ns); /* of FEATURE_LINE_COST, that its record took */
	void (*told)(uint64_t checkpoint);
};

/* Inside the guard, but for the last three. */
struct feature_block {
	void (*context_made)(uint32_t row, uint64_t stack_hash, const uint64_t *frames,
			     uint32_t count);
	/* Of contexts that are marked, and blocks that are: context_marks, block_mark(). */
	void (*born)(struct guard *guard, struct block *block, uint64_t start);
	void (*gone)(struct guard *guard, uint64_t start, uint64_t size);
	void (*suspended)(struct guard *guard, uint64_t start, uint64_t size);
	bool (*resumed)(struct guard *guard, uint64_t start, uint64_t size);
	/* Freed, and not known as live. space: enum block_space */
	void (*free_unknown)(struct guard *guard, uint32_t space, uint64_t pointer,
			     const struct caller *caller);
	void (*settles)(struct guard *guard, uint32_t api); /* blocks_state.unsettled */
	void (*group_full)(struct guard *guard);	    /* of records or ids */
	void (*ids_given)(struct thread *self);
	void (*epoch_moved)(void);
	void (*watch_armed)(void); /* on a block or an object, by this thread; not under a lock */
};

/* Hooks on functions of the target; inside the guard. */
struct feature_target {
	void (*object_seen)(struct guard *guard, uint32_t watch, uint64_t address,
			    const struct caller *caller);
	void (*frame_left)(struct guard *guard, uint32_t watch, uint64_t end);
	bool (*python_type_wanted)(uint32_t watch, uint64_t type);
};

struct feature {
	const char *name;
	bool with_ids; /* map, init and forked only where blocks are followed */
	struct feature_start start;
	struct feature_thread thread;
	struct feature_fork fork;
	struct feature_end end;
	struct feature_process process;
	struct feature_line line;
	struct feature_block block;
	struct feature_target target;
};

extern __attribute__((visibility("hidden"))) const struct feature features[];
extern __attribute__((visibility("hidden"))) const unsigned features_count;

/* The items of the plan, each to whom it concerns. What this agent does not know it refuses;
 * returns how many (LOG_DROP_PLAN_ITEM), so that the tool can tell the user what was not done. */
uint32_t features_plan(const void *bytes);

/* What lines cost is the time that this thread worked: on a busy machine the time that passes is
 * mostly the others'. */
#define FEATURE_LINE_COST CLOCK_THREAD_CPUTIME_ID

#define FEATURES_TELL(event, ...)                                               \
	do {                                                                    \
		unsigned feature_at;                                            \
                                                                                \
		for (feature_at = 0; feature_at < features_count; feature_at++) \
			if (features[feature_at].event)                         \
				features[feature_at].event(__VA_ARGS__);        \
	} while (0)

/* Until one says true. */
#define FEATURES_ASK(event, ...)                                                                 \
	({                                                                                       \
		bool feature_says = false;                                                       \
		unsigned feature_at;                                                             \
                                                                                                 \
		for (feature_at = 0; !feature_says && feature_at < features_count; feature_at++) \
			feature_says = features[feature_at].event &&                             \
				       features[feature_at].event(__VA_ARGS__);                  \
		feature_says;                                                                    \
	})

/* All of them, and whether one did; those who say true do not keep it from the others. */
#define FEATURES_ANY(event, ...)                                                         \
	({                                                                               \
		bool feature_says = false;                                               \
		unsigned feature_at;                                                     \
                                                                                         \
		for (feature_at = 0; feature_at < features_count; feature_at++)          \
			if (features[feature_at].event)                                  \
				feature_says |= features[feature_at].event(__VA_ARGS__); \
		feature_says;                                                            \
	})
