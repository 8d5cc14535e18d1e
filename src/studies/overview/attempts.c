/*
 * What the trials after each attempted fix show. Counted when it is asked for: trials that come
 * later belong to it, too.
 */
#include "studies/overview/case_overview.h"

#include <string.h>

#include "run/tally.h"
#include "search/stats/rate.h"

/* The trials of one command and of one kind of build. */
struct pile {
	char *command;
	bool same_build;
	struct tally tally;
};

struct piles {
	VEC(struct pile) list;
};

/* Lists of minimize and commits of bisect are other commands than the one that was mended. */
static bool counts(const char *command)
{
	return strcmp(command, "repro") == 0 || strcmp(command, "hunt") == 0 ||
	       strcmp(command, "sentinel") == 0 || strcmp(command, "chase") == 0;
}

static struct pile *pile_of(struct piles *piles, const struct later_row *row)
{
	VEC_FOREACH (&piles->list, pile)
		if (strcmp(pile->command, row->command) == 0 && pile->same_build == row->same_build)
			return pile;
	VEC_PUSH(&piles->list, ((struct pile){ .command = mem_strdup(row->command),
					       .same_build = row->same_build }));
	return &piles->list.items[piles->list.count - 1];
}

static void take_row(void *ctx, const struct later_row *row)
{
	if (counts(row->command))
		tally_add(&pile_of(ctx, row)->tally,
			  &(struct tally_row){ .signatures = row->signatures,
					       .cut_short = row->cut_short,
					       .count = row->count,
					       .trial = row->trial });
}

static void add_piles(struct piles *piles, struct attempt *ret)
{
	VEC_FOREACH (&piles->list, pile) {
		uint64_t trials, failed;

		tally_failed(&pile->tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
		VEC_PUSH(&ret->trials, ((struct attempt_trials){
					       .command = TAKE(pile->command),
					       .rate = rate_wilson(trials, failed, RATE_CONFIDENCE),
					       .same_build = pile->same_build }));
		tally_deinit(&pile->tally);
	}
	VEC_DEINIT(&piles->list);
}

int attempts_count(struct case_store *cs, struct notebook *notebook, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < notebook->attempts.count; i++) {
		struct attempt *attempt = &notebook->attempts.items[i];
		struct piles piles = { 0 };

		r = case_trials_after(cs, attempt->after,
				      i + 1 < notebook->attempts.count ? attempt[1].after
								       : INT64_MAX,
				      take_row, &piles, err);
		add_piles(&piles, attempt);
	}
	return r;
}
