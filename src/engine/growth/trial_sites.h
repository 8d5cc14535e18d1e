#pragma once

#include "model/growth.h"
#include "read/moments.h"

/*
 * What grew in one trial, over all its processes, with names.
 */
struct trial_sites {
	VEC(struct growth_site) list;
	uint64_t tests; /* of the process that saw the most */
	uint64_t contexts;
	enum growth_basis basis;
	struct strv notes;
};

/* `trials` is the directory of all trials, `trial` the name of this one. */
void trial_sites_read(int trials, const char *trial, const struct moments *moments,
		      struct symbols *symbols, struct trial_sites *ret);
void trial_sites_deinit(struct trial_sites *sites);
