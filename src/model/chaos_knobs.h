#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Chaos: what a trial was disturbed with on purpose, to raise the odds that it fails.
 *
 * Everything follows from the seed, and is stored with the trial all the same: what a seed means
 * may change from one redhand to the next, what was done to a trial does not.
 */
enum chaos_knob {
	CHAOS_PAD = 1 << 0,    /* a variable of random length: the stack begins elsewhere */
	CHAOS_GAP = 1 << 1,    /* address space is taken first: mappings and heap lie elsewhere */
	CHAOS_PIN = 1 << 2,    /* one core, or all */
	CHAOS_STARVE = 1 << 3, /* threads are held back at allocations */
	CHAOS_ARM = 1 << 4,    /* … and when they have armed a watch */
	CHAOS_ALL = (1 << 5) - 1,
};

#define CHAOS_KNOBS 5

extern const char *const chaos_knob_names[CHAOS_KNOBS + 1]; /* by bit; NULL at the end */

/* Values of knobs that are not in force are 0. */
struct chaos {
	unsigned int knobs; /* enum chaos_knob, in force; 0: no chaos */
	uint64_t seed;
	uint64_t pad_bytes;
	uint64_t gap_bytes;   /* of address space */
	uint64_t heap_bytes;  /* by which the heap begins later; also of the knob gap */
	int core;	      /* the only one to run on; -1: all */
	uint64_t hold_weight; /* sixteenths: a thread is held back at its n-th allocation from one
			       * place with a chance of weight / n */
	uint64_t arm_us;      /* longest delay after arming a watch */
};

/* Reads "pad,pin", "all" or "none". */
int chaos_parse(const char *text, unsigned int *ret, struct err *err);

/* The knobs in force, as chaos_parse() reads them. */
void chaos_list(unsigned int knobs, struct strbuf *sb);
