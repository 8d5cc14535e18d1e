#pragma once

#include "read/census.h"
#include "search/stats/trend.h"

/*
 * Sites: the places in the program whose live blocks grow.
 *
 * A context is a whole stack, and a test of its own brings a context of its own: what ten tests
 * leak through the same function looks like ten contexts that grew once. So stacks are laid
 * together from the innermost frame outwards, and the longest common part that grows is the site.
 * Each block counts for one site only: what a longer stack explains is taken away from the
 * shorter one.
 */
struct site {
	uint64_t key;	     /* of its frames, the same in every run */
	unsigned int depth;  /* frames that all its contexts share */
	unsigned int inside; /* of these, as in struct census_context */
	struct trend trend;
	int64_t *blocks, *bytes; /* live, by moment */
	size_t moments;
	VEC(const struct census_context *) contexts; /* most live blocks first */
};

struct sites {
	VEC(struct site) list;
};

/* Those that grow, in no particular order. Points into the census. */
void sites_find(const struct census *census, struct sites *ret);

/* Makes one of two sites of a census; `other` leaves the list. */
void sites_join(struct sites *sites, size_t site, size_t other);
void sites_deinit(struct sites *sites);
