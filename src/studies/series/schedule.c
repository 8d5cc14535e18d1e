#include "studies/series/schedule.h"

#include "base/mem.h"
#include "search/stats/rng.h"

struct schedule_place schedule_at(const struct schedule *schedule, uint64_t position)
{
	uint64_t per_round = schedule->batch * schedule->arms;
	uint64_t round = (position - 1) / per_round, within = (position - 1) % per_round;
	uint64_t done = round * schedule->batch; /* runs of each arm before this round */
	uint64_t batch = schedule->per_arm - done < schedule->batch ? schedule->per_arm - done
								    : schedule->batch;
	AUTO(mem_freep) unsigned int *order = mem_alloc(schedule->arms * sizeof(*order));
	struct rng rng;

	/* The order of a round depends on its number only, not on the rounds before. */
	rng_init(&rng, schedule->seed + round * 0x9e3779b97f4a7c15u);
	for (unsigned int i = 0; i < schedule->arms; i++)
		order[i] = round % 2 == 0 ? i : schedule->arms - 1 - i;
	if (!schedule->mirrored)
		rng_shuffle(&rng, order, schedule->arms, sizeof(order[0]));
	return (struct schedule_place){
		.arm = order[within / batch],
		.batch = schedule->batch > 1 ? round * schedule->arms + within / batch : 0,
		.index = done + within % batch,
	};
}
