#include "model/notebook.h"

void parking_deinit(struct parking *parking)
{
	mem_free(parking->because);
	mem_free(parking->until);
	world_deinit(&parking->world);
	mem_free(parking->gate);
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
