#include "run/tally.h"

#include <string.h>

/* Twice is the least that can be called every time. */
#define ALWAYS_MIN 2

void tally_deinit(struct tally *tally)
{
	VEC_FREE(&tally->counts, c, MEM_FREE(c->signatures, c->node));
	VEC_DEINIT(&tally->signatures);
}

static struct tally_signature *find(const struct tally *tally, const char *id)
{
	return VEC_FIND(&tally->signatures, s, strcmp(s->id, id) == 0);
}

const struct tally_signature *tally_find(const struct tally *tally, const char *id)
{
	return find(tally, id);
}

/*
 * A failure that every run shows is a separate issue. A run that died before it could show it
 * does not speak against that: a failure that does not itself end the run is compared with the
 * runs that reached their end.
 */
static void update_always(struct tally *tally)
{
	VEC_FOREACH (&tally->signatures, s) {
		uint64_t could = s->cuts || tally->full == 0 ? tally->trials : tally->full;
		uint64_t did = s->cuts || tally->full == 0 ? s->count : s->full;

		s->always = did == could && could >= ALWAYS_MIN;
	}
}

static void count_signatures(struct tally *tally, const struct tally_row *row)
{
	char id[SIGNATURE_ID_LEN + 1];

	for (const char *at = row->signatures; (at = signature_next_id(at, id)) != NULL;) {
		struct tally_signature *s = find(tally, id);

		if (!s) {
			VEC_PUSH(&tally->signatures,
				 ((struct tally_signature){ .trial = row->trial, .cuts = true }));
			s = &tally->signatures.items[tally->signatures.count - 1];
			memcpy(s->id, id, sizeof(id));
		}
		s->count += row->count;
		if (row->trial < s->trial)
			s->trial = row->trial;
		if (!row->cut_short) {
			s->full += row->count;
			s->cuts = false;
		}
	}
}

void tally_add(struct tally *tally, const struct tally_row *row)
{
	const char *node = row->node ? row->node : "";
	struct tally_count *same = NULL;

	VEC_FOREACH (&tally->counts, c) {
		if (c->arm == row->arm && c->slot == row->slot && c->cut_short == row->cut_short &&
		    strcmp(c->signatures, row->signatures) == 0 && strcmp(c->node, node) == 0) {
			same = c;
			break;
		}
	}
	if (!same) {
		VEC_PUSH(&tally->counts,
			 ((struct tally_count){ .arm = row->arm,
						.slot = row->slot,
						.node = mem_strdup(node),
						.signatures = mem_strdup(row->signatures),
						.cut_short = row->cut_short,
						.trial = row->trial }));
		same = &tally->counts.items[tally->counts.count - 1];
	}
	same->count += row->count;
	if (row->trial < same->trial)
		same->trial = row->trial;
	tally->trials += row->count;
	tally->full += row->cut_short ? 0 : row->count;
	count_signatures(tally, row);
	update_always(tally);
}

static void load_row(void *ctx, const struct tally_row *row)
{
	tally_add(ctx, row);
}

int tally_load(struct tally *tally, struct case_store *cs, struct series_id series, struct err *err)
{
	return case_tally(cs, series, load_row, tally, err);
}

bool tally_intermittent(const struct tally *tally)
{
	return VEC_ANY(&tally->signatures, s, !s->always);
}

bool tally_counts(const struct tally *tally, const char *signatures)
{
	bool intermittent = tally_intermittent(tally);
	char id[SIGNATURE_ID_LEN + 1];

	if (!intermittent)
		return signatures[0] != '\0';
	for (const char *at = signatures; (at = signature_next_id(at, id)) != NULL;) {
		const struct tally_signature *s = find(tally, id);

		if (!s || !s->always)
			return true;
	}
	return false;
}

void tally_failed(const struct tally *tally, unsigned int arm, unsigned int slot,
		  uint64_t *ret_trials, uint64_t *ret_failed)
{
	uint64_t trials = 0, failed = 0;

	VEC_FOREACH (&tally->counts, c) {
		if ((arm != TALLY_ALL && c->arm != arm) || (slot != TALLY_ALL && c->slot != slot))
			continue;
		trials += c->count;
		failed += tally_counts(tally, c->signatures) ? c->count : 0;
	}
	*ret_trials = trials;
	*ret_failed = failed;
}
