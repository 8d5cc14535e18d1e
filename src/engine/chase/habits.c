/* What the last writer of a place did there before, in the same trial. */
#include <string.h>

#include "engine/chase/inside.h"

#define HABITS_TOLD 4u /* of one trial */

/* An earlier write of the same instruction to the same place of the same block. */
static bool did_before(const struct caught *caught, const struct event_log *in,
		       const struct log_hit *last)
{
	const struct log_hit *hit = caught->hit;

	return caught->log == in && hit->address == last->address && hit->id == last->id &&
	       hit->number < last->number &&
	       hit->gregs[LOG_GREG_RIP] == last->gregs[LOG_GREG_RIP] &&
	       !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
	       memcmp(hit->old, hit->new, sizeof(hit->new)) != 0;
}

void see_habits(struct chase *chase, const struct watch_log *log, const struct event_log *in,
		const struct sight *sight, const struct stake_result *result)
{
	unsigned int told = 0;

	if (!result->exact || result->last->hit->id == 0)
		return;
	for (size_t i = log->hits.count; i-- > 0 && told < HABITS_TOLD;) {
		struct evidence e;

		if (!did_before(&log->hits.items[i], in, result->last->hit))
			continue;
		e = evidence_new(EVIDENCE_WRITE, sight->trial, true);
		caught_describe(&log->hits.items[i], chase->symbols, e.write);
		home_deinit(&e.write->home);
		home_copy(&e.write->home, &sight->write.write->home);
		VEC_PUSH(&chase->ret->evidence.list, e);
		told++;
	}
}
