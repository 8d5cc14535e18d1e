/*
 * What is watched now (watch.h): the objects, and their place in the log.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/agent.h"
#include "wire/plan.h"

#define WATCH_ARMED_MAX 4u
#define WATCH_WORDS (LOG_WATCH_BYTES / 8)

/* An object that is watched now. Written under the lock; handlers read it. */
struct watch_armed {
	uint64_t number;    /* atomic; 0: it has ended, or there is none */
	uint64_t suspended; /* its number, while its block is in realloc's hands */
	uint64_t address;
	uint32_t bytes;
	uint32_t watch;
	bool fixed; /* not an object: never displaced */
	bool paged; /* on watched pages: nothing is ever on its way */
	uint64_t id, start, size;
	struct block_key key;
	uint64_t last[WATCH_WORDS];   /* atomic words: as the latest hit left them */
	uint64_t noted[WATCH_WORDS];  /* a change nobody was caught at, told already */
	uint64_t beside[WATCH_WORDS]; /* the same, as it was seen at another's trap */
	struct log_watched *row;
};

extern HIDDEN struct watch_state {
	const struct plan_watch *plans[PLAN_WATCHES_MAX];
	uint32_t count;
	struct log_watch_area *area; /* in the log; NULL: nothing is watched */
	unsigned char *hits;	     /* ring in the log */
	uint64_t hit_count;	     /* atomic */
	uint64_t numbers;	     /* objects armed so far; atomic */
	bool reads;		     /* trap, too */
	struct watch_armed armed[WATCH_ARMED_MAX];
} watch_state;

/* Copies from memory that may have gone; false: it has. _sigsafe */
bool watch_read_sigsafe(void *to, uint64_t from, uint32_t bytes);
