#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/frame.h"
#include "model/said.h"

/*
 * Growth: which sites allocate blocks that stay, test after test.
 *
 * Everything in it is owned by it; all text from the target is printable.
 */

/* What a test added to the live blocks of a place, over all the times it ran. */
struct growth_test {
	char *name;
	uint64_t times;
	int64_t blocks, bytes;
};

/* Somebody who still points to such blocks at the end. */
struct growth_holder {
	char *kind; /* "block", "global", "stack", "memory" (no block) */
	char *name; /* a global's name, as far as it is known; NULL */
	char *module;
	uint64_t module_offset;
	uint64_t size, offset; /* of the holding block; where in it the pointer stands */
	struct stack stack;    /* who allocated the holding block */
	uint64_t pointers;     /* to how many different blocks */
	VEC(uint64_t) targets; /* their ids */
	uint64_t block_id;     /* of the first such holding block */
	char *root;	       /* the global that leads to the holding block; NULL: not found */
};

struct growth_site {
	char *key;	      /* names the place in every run of this build */
	struct strv contexts; /* keys of the contexts behind it (some, if there are many) */
	uint64_t context_count;
	struct stack stack;		    /* of one of them */
	size_t shared;			    /* frames of `stack` that all of them have */
	char *program;			    /* of the process; NULL when unknown */
	uint64_t blocks_first, blocks_last; /* live, before the first test and after the last */
	uint64_t bytes_first, bytes_last;
	uint64_t tests, rises; /* tests; those after which it was higher than ever */
	VEC(uint64_t) levels;  /* live blocks over the tests, some of them if there are many */
	double blocks_per_test, bytes_per_test;
	double p;	     /* the largest of all trials */
	unsigned int trials; /* in which it grew */
	bool framework;	     /* a test framework's own: studies/growth/whose.h */
	uint64_t lines;	     /* of its process, as its agent counts them, up to the last test */
	VEC(struct growth_test) by_test; /* what adds most comes first */
	uint64_t looked_for; /* blocks whose holders were looked for; 0: nobody looked */
	VEC(struct growth_holder) holders; /* most pointers first */
};

/* How the moments were found between which growth is told. */
enum growth_basis {
	GROWTH_TESTS,	    /* lines of a test framework */
	GROWTH_BREADCRUMBS, /* lines that the user chose */
	GROWTH_LINES,	    /* every line */
};

struct growth_report {
	const char *case_dir;
	char *const *program;
	double seconds;
	bool interrupted;
	unsigned int trials; /* that ran */
	unsigned int usable; /* of these, with enough tests to tell */
	unsigned int failed;
	uint64_t tests;	   /* of the usable trial with the fewest */
	uint64_t contexts; /* that had live blocks after any test, in the first usable trial */
	enum growth_basis basis;
	VEC(struct growth_site)
	sites; /* those that grew in every usable trial; worst first,
		* a test framework's own last */
	struct said_list notes;
};

void growth_site_deinit(struct growth_site *site);
void growth_holder_deinit(struct growth_holder *holder);
void growth_report_deinit(struct growth_report *report);

const char *growth_basis_name(enum growth_basis basis);
