#pragma once

#include <stdint.h>

/*
 * Counts and answers that the search and its last questions (aftercheck.h) have in common.
 */

enum minimiser_flags {
	MINIMISER_CHECK_OTHERS = 1 << 0, /* at the end: do other tests do as well? */
	MINIMISER_CHECK_ORDER = 1 << 1,	 /* at the end: does the order matter? */
};

enum minimiser_others {
	MINIMISER_OTHERS_UNKNOWN, /* not checked (yet) */
	MINIMISER_OTHERS_NONE,	  /* without any one of them even the full list passes */
	MINIMISER_OTHERS_SOME,	  /* others can stand in for some or all: another trigger */
	MINIMISER_OTHERS_ANY,	  /* and for every single one: the number matters, not which */
};

struct minimiser_count {
	uint32_t runs, failed;
};
