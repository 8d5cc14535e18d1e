#include "studies/series/series_findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "run/stored.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "studies/series/families.h"

#define WINDOWS_SHOWN 5
#define SIGNATURES_SHOWN 50
#define ODD_SLOT_P 0.05
#define SLOTS_MAX 1024

static void take_window(void *ctx, const struct window_row *row)
{
	struct signature_summary *s = ctx;

	s->places++;
	if (s->windows.count < WINDOWS_SHOWN)
		VEC_PUSH(&s->windows, ((struct window){ .last = mem_strdup(row->last),
							.next = cstr_dup(row->next),
							.count = row->count,
							.trial = row->trial }));
}

static int order_signatures(const void *a, const void *b)
{
	const struct signature_summary *x = a, *y = b;

	return ORDER(x->always, y->always) ?: ORDER(y->rate.failed, x->rate.failed) ?: ORDER(x->trial, y->trial);
}

static int by_count(const void *a, const void *b)
{
	const struct tally_signature *x = a, *y = b;

	return x->count < y->count ? 1 : x->count > y->count ? -1 : strcmp(x->id, y->id);
}

int findings_crash(struct reading *reading, struct case_store *cs, struct crash **ret,
		   struct err *err)
{
	/* A directory that is gone is no error: somebody tidied up. */
	const struct crash *found = reading_crash(reading, CRASH_WHOLE);
	struct crash *crash;
	int r = 0;

	if (!found)
		return 0;
	crash = mem_alloc(sizeof(*crash));
	crash_copy(crash, found);
	if (crash->fault == FAULT_MAPPING_SHRANK)
		r = case_find_cut(cs, crash->file_device, crash->file_inode, crash->realtime_ns,
				  &crash->cut, err);
	*ret = crash;
	return r;
}

int findings_signatures(const struct findings_source *of, struct signature_summaries *ret,
			struct err *err)
{
	const struct tally *tally = of->tally;
	size_t count = tally->signatures.count;
	AUTO(mem_freep) struct tally_signature *sorted = mem_alloc((count + 1) * sizeof(*sorted));

	if (count > 0)
		memcpy(sorted, tally->signatures.items, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_count);
	for (size_t i = 0; i < count && i < SIGNATURES_SHOWN; i++) {
		struct signature_summary s = {
			.rate = rate_wilson(tally->trials, sorted[i].count, RATE_CONFIDENCE),
			/* Members that were told apart at first may be one by now. */
			.always = sorted[i].always ||
				  (tally->trials > 1 && sorted[i].count == tally->trials),
			.trial = sorted[i].trial,
		};
		int r = case_signature(of->cs, sorted[i].id, &s.signature, err);

		if (r == 0)
			r = case_windows(of->cs, of->series, sorted[i].id, take_window, &s, err);
		if (r == 0 && s.signature.kind == FAILURE_SIGNAL) {
			AUTO(reading_closep)
			struct reading *reading =
				readings_open(of->readings, of->cs, s.trial, s.signature.signal);

			r = findings_crash(reading, of->cs, &s.crash, err);
		}
		VEC_PUSH(&ret->list, s);
		if (r < 0)
			return r;
	}
	VEC_SORT(&ret->list, order_signatures);
	return 0;
}

static void compare_slots(const struct tally *tally, struct series_summary *ret)
{
	uint64_t all_trials, all_failed;
	unsigned int slots = 0;

	VEC_FOREACH (&tally->counts, c)
		if (c->slot < SLOTS_MAX) /* anything else comes from a damaged case */
			slots = c->slot + 1 > slots ? c->slot + 1 : slots;
	tally_failed(tally, TALLY_ALL, TALLY_ALL, &all_trials, &all_failed);
	for (unsigned int slot = 0; slot < slots; slot++) {
		struct slot_summary s = { .slot = slot, .p = 1 };
		uint64_t trials, failed;

		tally_failed(tally, TALLY_ALL, slot, &trials, &failed);
		s.rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
		s.p = fisher_two_sided(&(struct fisher_table){
			.trials_a = trials,
			.failed_a = failed,
			.trials_b = all_trials - trials,
			.failed_b = all_failed - failed,
		});
		/* Any of the slots might have come out odd: that many chances were taken. Of two,
		 * each is compared with the other, which is one and the same question. */
		if (slots > 2)
			s.p = s.p * slots < 1 ? s.p * slots : 1;
		VEC_PUSH(&ret->slots, s);
	}
	ret->odd_slot = -1;
	if (slots < 2)
		return;
	VEC_FOREACH (&ret->slots, s) {
		const struct slot_summary *odd =
			ret->odd_slot < 0 ? NULL : &ret->slots.items[ret->odd_slot];

		/* Of two it is the one that never fails. */
		if (s->p < ODD_SLOT_P &&
		    (!odd || s->p < odd->p || (s->p <= odd->p && s->rate.failed == 0)))
			ret->odd_slot = (int)(s - ret->slots.items);
	}
}

/* Trials and failures of one machine. */
static void node_failed(const struct tally *tally, const char *node, uint64_t *ret_trials,
			uint64_t *ret_failed)
{
	VEC_FOREACH (&tally->counts, c) {
		if (strcmp(c->node, node) != 0)
			continue;
		*ret_trials += c->count;
		*ret_failed += tally_counts(tally, c->signatures) ? c->count : 0;
	}
}

static bool knows_node(const struct series_summary *summary, const char *node)
{
	return VEC_ANY(&summary->nodes, n, strcmp(n->node, node) == 0);
}

/* As slots are: is there a machine where it fails more often, or never? */
static void compare_nodes(const struct tally *tally, struct series_summary *ret)
{
	uint64_t all_trials, all_failed;
	size_t count;

	ret->odd_node = -1;
	VEC_FOREACH (&tally->counts, c)
		if (!knows_node(ret, c->node))
			VEC_PUSH(&ret->nodes,
				 ((struct node_summary){ .node = mem_strdup(c->node), .p = 1 }));
	count = ret->nodes.count;
	if (count == 1 && ret->nodes.items[0].node[0] == '\0') {
		mem_free(ret->nodes.items[0].node);
		VEC_DEINIT(&ret->nodes);
		return;
	}
	tally_failed(tally, TALLY_ALL, TALLY_ALL, &all_trials, &all_failed);
	VEC_FOREACH (&ret->nodes, n) {
		uint64_t trials = 0, failed = 0;

		node_failed(tally, n->node, &trials, &failed);
		n->rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
		n->p = fisher_two_sided(&(struct fisher_table){ .trials_a = trials,
								.failed_a = failed,
								.trials_b = all_trials - trials,
								.failed_b = all_failed - failed });
		if (count > 2)
			n->p = n->p * (double)count < 1 ? n->p * (double)count : 1;
		if (count > 1 && n->p < ODD_SLOT_P &&
		    (ret->odd_node < 0 || n->p < ret->nodes.items[ret->odd_node].p))
			ret->odd_node = (int)(n - ret->nodes.items);
	}
}

static void count_place(void *ctx, const struct window_row *row)
{
	struct series_summary *ret = ctx;

	ret->crashes += row->count;
	ret->crash_places++;
}

static int resource_use(struct case_store *cs, struct series_id series, struct series_summary *ret,
			struct err *err)
{
	struct use_row use;
	int r = case_use(cs, series, &use, err);

	if (r < 0)
		return r;
	ret->use = (struct resource_use){
		.wall_mean_s = use.wall_mean_ns / 1e9,
		.wall_max_s = use.wall_max_ns / 1e9,
		.user_mean_s = use.user_mean_ns / 1e9,
		.system_mean_s = use.system_mean_ns / 1e9,
		.peak_kib = use.peak_kib,
	};
	ret->leftovers = use.leftovers;
	/* A crash loses what stdio still holds, and stdio writes to a pipe in blocks: crashes
	 * whose output is always a whole number of blocks have lost their last lines. */
	ret->buffered = use.cut_short > 0 && use.cut_full_buffer == use.cut_short &&
			use.full_with_output > 0;
	return 0;
}

void findings_clean_runs(struct series_summary *summary)
{
	summary->clean_runs_for_99 = rate_clean_runs(summary->rate.rate, 0.99);
	summary->clean_runs_at_low = rate_clean_runs(summary->rate.low, 0.99);
}

int findings_summarise(const struct findings_source *of, struct series_summary *ret,
		       struct err *err)
{
	const struct tally *tally = of->tally;
	uint64_t trials, failed;
	int r;

	tally_failed(tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	ret->rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	ret->intermittent = tally_intermittent(tally);
	VEC_FOREACH (&tally->counts, c)
		ret->failed_any += c->signatures[0] != '\0' ? c->count : 0;
	findings_clean_runs(ret);
	ret->clean_bound = rate_upper_bound_clean(trials, RATE_CONFIDENCE);
	compare_slots(tally, ret);
	compare_nodes(tally, ret);
	r = findings_signatures(of, &ret->signatures, err);
	if (r == 0)
		families_group(&ret->signatures, tally, &ret->families);
	if (r == 0)
		r = case_windows(of->cs, of->series, "", count_place, ret, err);
	return r < 0 ? r : resource_use(of->cs, of->series, ret, err);
}
