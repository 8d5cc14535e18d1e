#pragma once

#include "model/said.h"
#include "model/summary.h"

/*
 * The product of `minimize`, ready to be printed. Everything in it is owned by it unless it says
 * const.
 */
enum minimal_verdict {
	MINIMAL_SEARCHING,     /* not done: the list is the shortest that was seen to fail */
	MINIMAL_FOUND,	       /* every item of the list is needed */
	MINIMAL_COUNT_MATTERS, /* no small list: the number of items matters, not which */
	MINIMAL_NOT_BY_ITSELF, /* it failed beside longer lists only: what runs there is part of it
				*/
};

enum minimal_others {
	MINIMAL_OTHERS_UNKNOWN,
	MINIMAL_OTHERS_NONE, /* without any one of the items even the full list passes */
	MINIMAL_OTHERS_SOME, /* others can stand in for some of them: there is another trigger */
	MINIMAL_OTHERS_ANY,
};

/* What other orders of the list showed. */
enum minimal_order {
	MINIMAL_ORDER_UNKNOWN, /* not tried, or too little to say */
	MINIMAL_ORDER_SAME,    /* they failed, too, and not at a rate that differs for sure */
	MINIMAL_ORDER_MATTERS,
};

struct minimal_item {
	char *name;
	bool victim;	     /* the test that fails */
	double needed;	     /* probability that it is needed */
	struct rate without; /* the list without this item */
	struct rate wider;   /* these, and longer lists without it */
};

struct minimize_result {
	enum minimal_verdict verdict;
	enum minimal_others others;
	const char *framework, *noun, *nouns;
	size_t total;			/* items of the full list */
	VEC(struct minimal_item) items; /* the list, in order */
	VEC(struct minimal_item)
	doubtful; /* while searching: those not ruled out, likeliest first */
	double confidence, wanted;
	double to_go; /* while searching: trials expected */

	uint64_t trials;	 /* that said something */
	uint64_t other_failures; /* of these: failed in another way */
	uint64_t no_information; /* not in `trials` */
	uint64_t rollbacks;	 /* look-alikes adopted and given back */
	uint64_t earlier;	 /* trials that were in the case already */
	struct rate full, minimal, stand_ins, reversed, shuffled;
	bool order_checked; /* the last two mean something */
	enum minimal_order order;
	double order_p; /* of the larger difference between the list and another order */

	char *victim;			       /* NULL when there is none */
	char target[SIGNATURE_ID_LEN + 1];     /* "" while it is not known */
	struct signature_summaries signatures; /* everything met, the target among it */

	struct strv argv, env; /* the plain command, and what it needs in its environment */
	bool plain_differs;    /* it needs redhand's help to keep the order */
	struct said advice;    /* what else could be done */
	char *file;	       /* where the list has been written */
	const char *cwd;       /* NULL: where redhand was started */

	const char *case_dir;
	char *const *program;
	unsigned int jobs;
	uint64_t seed;
	double seconds;
	bool interrupted, program_changed;
};

void minimize_result_deinit(struct minimize_result *result);

/* What a search found, as the case keeps it. Rates have counts only. */
struct minimal_list {
	int64_t series; /* 0: there is none */
	enum minimal_verdict verdict;
	struct strv tests; /* names, in order */
	uint64_t total;	   /* items of the full list */
	char *victim;	   /* NULL when there is none */
	char *signature;   /* id of the failure that was chased; NULL while there is none */
	struct rate minimal, full;
	double confidence;
	struct strv argv, env; /* the plain command, with {case} for the case's directory; what it
				* needs besides the user's own --slot-env */
};

void minimal_list_deinit(struct minimal_list *list);
