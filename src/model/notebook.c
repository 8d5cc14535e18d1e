#include "model/notebook.h"

static void parking_deinit(struct parking *parking)
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
	VEC_FREE(&attempt->trials, t, mem_free(t->command));
}

static void written_deinit(struct notebook *notebook)
{
	VEC_FREE(&notebook->attempts, attempt, attempt_deinit(attempt));
	VEC_FREE(&notebook->steps, step, mem_free(step->text));
	VEC_FOREACH (&notebook->relations, relation) {
		mem_free(relation->dir);
		strv_deinit(&relation->common);
	}
	VEC_DEINIT(&notebook->relations);
	VEC_FREE(&notebook->surroundings, s, world_deinit(&s->world));
}

void notebook_deinit(struct notebook *notebook)
{
	VEC_FREE(&notebook->notes, note, mem_free(note->text));
	VEC_FREE(&notebook->hypotheses, hypothesis, hypothesis_deinit(hypothesis));
	VEC_FREE(&notebook->workarounds, workaround, mem_free(workaround->text));
	VEC_FREE(&notebook->parkings, parking, parking_deinit(parking));
	VEC_FREE(&notebook->sentinels, sentinel, mem_free(sentinel->dir));
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
