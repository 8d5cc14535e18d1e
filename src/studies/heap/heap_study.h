#pragma once

#include "case/case.h"
#include "model/heap.h"
#include "studies/series/repro.h"
#include "wire/plan.h"

/*
 * `heap`: run the program with guards around its blocks, and tell which were damaged.
 */
/* The arms of its series. */
enum heap_arm {
	HEAP_ARM_CRASH,
	HEAP_ARM_HEAP,
	HEAP_ARM_FENCE, /* after those with guards */
	HEAP_ARM_EXACT, /* after those with fences; not every program bears it, so it has no rate */
};

/* When blocks have fences, which see reads out of bounds and of freed blocks, too. */
enum heap_fencing {
	HEAP_FENCE_NEVER,
	HEAP_FENCE_AFTERWARDS, /* where trials with guards found nothing */
	HEAP_FENCE_INSTEAD,    /* all trials, in place of those with guards alone */
};

struct heap_fencing_wish {
	enum heap_fencing when;
	unsigned int trials; /* at least so many, of those that come afterwards */
	uint16_t flags;	     /* PLAN_FENCE_… */
};

struct heap_request {
	struct series_request series;
	unsigned int trials; /* under the heap observer */
	/* With poison by chance: so many, as long as too few have failed to tell whose it is. Also
	 * when none has: whose freed blocks are read may have been left alone by luck. */
	unsigned int trials_max;
	unsigned int
		found_enough; /* trials with the same finding that are enough; 0: all are run */
	bool damage;	      /* only damage counts among them: a wrong free is known already */
	/* Poison by chance: it ends when somebody is suspected with this p; 0: not before all
	 * trials are run. */
	double suspect_p;
	bool give_up_clean; /* no: when none has failed after `trials`, it is not waited for */
	/* What the coins are asked about, where every trial fails: does it crash elsewhere than
	 * there (crash_place())? NULL: does it fail. */
	const char *unlike;
	uint64_t outcome; /* the same: does it show anything else to the outside? 0: not asked */
	bool compare;	  /* and as many under crash, in turns */
	uint64_t seed;
	struct plan_heap plan; /* of every trial, but for the seed */
	struct heap_fencing_wish fence;
	const char *sweep_function; /* whose blocks to sweep for; NULL: as the plan says */
};

/* The heap is looked at anew each time: earlier trials of the same command are forgotten. */
int heap_run(struct case_store *cs, const struct heap_request *request, struct heap_report *ret,
	     struct err *err);
