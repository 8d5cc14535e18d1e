#include "studies/series/bystanders.h"

#include <string.h>

#include "run/tally.h"
#include "search/stats/rate.h"

void bystanders_deinit(struct bystanders *bystanders)
{
	VEC_FOREACH (&bystanders->list, s)
		signature_deinit(s);
	VEC_DEINIT(&bystanders->list);
	strv_deinit(&bystanders->always);
}

void bystanders_note(struct bystanders *bystanders, const struct target *target,
		     const struct signature *signature)
{
	struct signature copy;

	if (target_is(target, signature) || bystanders_have(bystanders, signature))
		return;
	signature_copy(&copy, signature);
	VEC_PUSH(&bystanders->list, copy);
}

void bystanders_note_always(struct bystanders *bystanders, const struct target *target,
			    const struct signature *signature)
{
	if (!target_is(target, signature))
		strv_add(&bystanders->always, signature->id);
}

struct series_walk {
	struct bystanders *bystanders;
	const struct target *target;
	struct case_store *cs;
};

static int note_series(void *ctx, const struct series_row *row, struct err *err)
{
	struct series_walk *reading = ctx;
	AUTO(tally_deinit) struct tally tally = { 0 };
	int r;

	if (strcmp(row->command, "repro") != 0 && strcmp(row->command, "hunt") != 0)
		return 0;
	r = tally_load(&tally, reading->cs, row->id, err);
	VEC_FOREACH (&tally.signatures, t) {
		AUTO(signature_deinit) struct signature signature = { 0 };

		if (r == 0)
			r = case_signature(reading->cs, t->id, &signature, err);
		if (r == 0)
			bystanders_note(reading->bystanders, reading->target, &signature);
	}
	return r;
}

int bystanders_read(struct bystanders *bystanders, const struct target *target,
		    struct case_store *cs, struct err *err)
{
	return case_series_each(cs, note_series, &(struct series_walk){ bystanders, target, cs },
				err);
}

/* Known again under another observer, as the target is. */
static bool is_again(const struct signature *known, const struct signature *signature)
{
	return target_is(&(struct target){ .faults = true, .known = true, .signature = *known },
			 signature);
}

bool bystanders_have(const struct bystanders *bystanders, const struct signature *signature)
{
	return VEC_ANY(&bystanders->list, s, is_again(s, signature));
}

struct dropping {
	const struct bystanders *bystanders;
	const struct target *target;
	struct case_store *cs;
	VEC(uint64_t) trials;
	unsigned int arm;
	uint64_t untold; /* trials of that arm that showed only what is known besides */
	uint64_t idle;	 /* of these, only what every run shows */
};

static void look_at(void *ctx, const struct run_row *row)
{
	struct dropping *dropping = ctx;
	char id[SIGNATURE_ID_LEN + 1];
	bool target = false, other = false, unknown = false;

	for (const char *at = row->signatures; (at = signature_next_id(at, id)) != NULL;) {
		AUTO(signature_deinit) struct signature signature = { 0 };

		if (case_signature(dropping->cs, id, &signature, NULL) == 0) {
			bool known = bystanders_have(dropping->bystanders, &signature);

			target |= target_is(dropping->target, &signature) ||
				  target_kin(dropping->target, &signature);
			other |= known;
			unknown |= !known && !strv_has(&dropping->bystanders->always, id);
		}
	}
	if (other && !target)
		VEC_PUSH(&dropping->trials, row->trial);
	if (row->signatures[0] == '\0' || target || unknown || row->arm != dropping->arm)
		return;
	dropping->untold++;
	dropping->idle += !other;
}

/* Which trials of the series failed in another way only? */
static int look(struct dropping *dropping, const struct series_identity *identity, struct err *err)
{
	struct series_found found;
	int r = case_series(dropping->cs, identity, 0, &found, err);

	return r == 0 ? case_runs(dropping->cs, found.id, look_at, dropping, err) : r;
}

static bool is_dropped(const struct dropping *dropping, uint64_t trial)
{
	return VEC_ANY(&dropping->trials, t, *t == trial);
}

int bystanders_drop(const struct bystanders *bystanders, const struct target *target,
		    struct case_store *cs, const struct series_identity *identity,
		    struct evidence_list *list, struct err *err)
{
	struct dropping dropping = { .bystanders = bystanders, .target = target, .cs = cs };
	size_t kept = 0;
	int r;

	if (bystanders->list.count == 0)
		return 0;
	r = look(&dropping, identity, err);
	for (size_t i = 0; r == 0 && i < list->list.count; i++) {
		struct evidence *e = &list->list.items[i];

		if (is_dropped(&dropping, e->trial))
			evidence_deinit(e);
		else
			list->list.items[kept++] = *e;
	}
	if (r == 0)
		list->list.count = kept;
	VEC_DEINIT(&dropping.trials);
	return r;
}

int bystanders_discount(const struct bystanders *bystanders, const struct target *target,
			struct case_store *cs, const struct series_identity *identity,
			unsigned int arm, struct rate *rate, struct experiment_made *made,
			struct err *err)
{
	struct dropping dropping = {
		.bystanders = bystanders, .target = target, .cs = cs, .arm = arm
	};
	int r;

	if (!bystanders || bystanders->list.count + bystanders->always.count == 0)
		return 0;
	r = look(&dropping, identity, err);
	if (r == 0 && rate->failed >= dropping.idle)
		*rate = rate_wilson(rate->trials, rate->failed - dropping.idle, RATE_CONFIDENCE);
	if (r == 0)
		made->telling -= dropping.untold < made->telling ? dropping.untold : made->telling;
	made->shown = made->shown < made->telling ? made->shown : made->telling;
	VEC_DEINIT(&dropping.trials);
	return r;
}
