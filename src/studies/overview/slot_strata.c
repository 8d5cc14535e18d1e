/*
 * Is there a slot (a device, a core) where it fails more often, or never? Asked of all trials: each
 * series is compared within itself, because rates differ from command to command. Where trials
 * crash, crashes alone count: a test that fails in every run fails in every slot.
 */
#include "studies/overview/slot_strata.h"

#include "search/stats/rate.h"
#include "search/stats/strata.h"

#define ODD_SLOT_P 0.05
#define SLOTS_MAX 1024u /* anything else comes from a damaged case */

static void piles_deinit(struct slot_pile *pile)
{
	VEC_FREE(&pile->slots, slot, VEC_DEINIT(&slot->series));
}

void slots_deinit(struct slot_strata *strata)
{
	piles_deinit(&strata->failures);
	piles_deinit(&strata->crashes);
}

static struct slot_stratum *slot_at(struct slot_pile *pile, unsigned int number)
{
	while (pile->slots.count <= number)
		VEC_PUSH(&pile->slots, ((struct slot_stratum){ 0 }));
	return &pile->slots.items[number];
}

static void count_slot(const struct tally *tally, unsigned int slot, bool crashes,
		       uint64_t *ret_trials, uint64_t *ret_failed)
{
	*ret_trials = *ret_failed = 0;
	VEC_FOREACH (&tally->counts, c) {
		if (slot != TALLY_ALL && c->slot != slot)
			continue;
		*ret_trials += c->count;
		if (crashes ? c->cut_short : tally_counts(tally, c->signatures))
			*ret_failed += c->count;
	}
}

static void add_pile(struct slot_pile *pile, const struct tally *tally, unsigned int slots,
		     bool crashes)
{
	uint64_t trials, failed;

	count_slot(tally, TALLY_ALL, crashes, &trials, &failed);
	pile->failed += failed;
	for (unsigned int number = 0; number < slots; number++) {
		struct slot_stratum *slot = slot_at(pile, number);
		uint64_t own, own_failed;

		count_slot(tally, number, crashes, &own, &own_failed);
		slot->trials += own;
		slot->failed += own_failed;
		VEC_PUSH(&slot->series, ((struct fisher_table){ .trials_a = own,
								.failed_a = own_failed,
								.trials_b = trials - own,
								.failed_b = failed - own_failed }));
	}
}

void slots_add(struct slot_strata *strata, const struct tally *tally)
{
	unsigned int slots = 0;

	VEC_FOREACH (&tally->counts, c)
		if (c->slot < SLOTS_MAX && c->slot + 1 > slots)
			slots = c->slot + 1;
	add_pile(&strata->failures, tally, slots, false);
	add_pile(&strata->crashes, tally, slots, true);
}

void slots_judge(const struct slot_strata *strata, struct investigation *inv)
{
	const struct slot_pile *pile =
		strata->crashes.failed > 0 ? &strata->crashes : &strata->failures;
	size_t count = 0;

	inv->odd_slot = SIZE_MAX;
	inv->slots_crashed = pile == &strata->crashes;
	VEC_FOREACH (&pile->slots, slot)
		count += slot->trials > 0;
	for (size_t i = 0; i < pile->slots.count; i++) {
		const struct slot_stratum *slot = &pile->slots.items[i];
		struct slot_summary s = {
			.slot = (unsigned int)i,
			.rate = rate_wilson(slot->trials, slot->failed, RATE_CONFIDENCE),
			.p = strata_two_sided(slot->series.items, slot->series.count)
		};

		if (slot->trials == 0)
			continue;
		if (count > 2)
			s.p = s.p * (double)count < 1 ? s.p * (double)count : 1;
		if (count > 1 && s.p < ODD_SLOT_P &&
		    (!investigation_odd_slot(inv) || s.p < investigation_odd_slot(inv)->p))
			inv->odd_slot = inv->slots.count;
		VEC_PUSH(&inv->slots, s);
	}
}
