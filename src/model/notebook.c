#include "model/notebook.h"

void parking_deinit(struct parking *parking)
{
	mem_free(parking->because);
	mem_free(parking->until);
	world_deinit(&parking->world);
	mem_free(parking->gate);
}

void attempt_deinit(struct attempt *attempt)
{
	mem_free(attempt->text);
	world_deinit(&attempt->world);
	mem_free(attempt->diff);
	VEC_FOREACH (&attempt->trials, t)
		mem_free(t->command);
	VEC_DEINIT(&attempt->trials);
}

static void written_deinit(struct notebook *notebook)
{
	VEC_FOREACH (&notebook->attempts, attempt)
		attempt_deinit(attempt);
	VEC_DEINIT(&notebook->attempts);
	VEC_FOREACH (&notebook->steps, step)
		mem_free(step->text);
	VEC_DEINIT(&notebook->steps);
	VEC_FOREACH (&notebook->relations, relation) {
		mem_free(relation->dir);
		strv_deinit(&relation->common);
	}
	VEC_DEINIT(&notebook->relations);
	VEC_FOREACH (&notebook->surroundings, s)
		world_deinit(&s->world);
	VEC_DEINIT(&notebook->surroundings);
}

void notebook_deinit(struct notebook *notebook)
{
	VEC_FOREACH (&notebook->notes, note)
		mem_free(note->text);
	VEC_DEINIT(&notebook->notes);
	VEC_FOREACH (&notebook->hypotheses, hypothesis)
		hypothesis_deinit(hypothesis);
	VEC_DEINIT(&notebook->hypotheses);
	VEC_FOREACH (&notebook->workarounds, workaround)
		mem_free(workaround->text);
	VEC_DEINIT(&notebook->workarounds);
	VEC_FOREACH (&notebook->parkings, parking)
		parking_deinit(parking);
	VEC_DEINIT(&notebook->parkings);
	VEC_FOREACH (&notebook->sentinels, sentinel)
		mem_free(sentinel->dir);
	VEC_DEINIT(&notebook->sentinels);
	written_deinit(notebook);
}

const struct parking *notebook_parked(const struct notebook *notebook)
{
	size_t count = notebook->parkings.count;

	if (count == 0 || notebook->parkings.items[count - 1].resumed_ms != 0)
		return NULL;
	return &notebook->parkings.items[count - 1];
}

const struct sentinel_note *notebook_sentinel(const struct notebook *notebook)
{
	size_t count = notebook->sentinels.count;

	return count > 0 ? &notebook->sentinels.items[count - 1] : NULL;
}
