#pragma once

#include "model/growth_site.h"
#include "read/reading.h"

/*
 * What grew in one trial, over all its processes, with names.
 */
struct trial_sites {
	VEC(struct growth_site) list;
	uint64_t tests; /* of the process that saw the most */
	uint64_t contexts;
	enum growth_basis basis;
	struct said_list notes;
};

void trial_sites_read(struct reading *reading, struct trial_sites *ret);
void trial_sites_deinit(struct trial_sites *sites);
