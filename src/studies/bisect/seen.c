/*
 * How often the program has failed before, as the case has it: whoever bisects has mostly run
 * `repro` first, and need not say its counts again.
 */
#include "studies/bisect/bisect.h"

#include <string.h>

#include "run/settings.h"
#include "run/tally.h"

/* It was another checkout, perhaps, and an afternoon ago: worth no more than so many trials here.
 */
#define WORTH_MOST 50

struct looking {
	struct case_store *cs;
	char *const *program;
	const char *signature; /* NULL: any failure that comes and goes */
	struct bisect_seen *seen;
};

static bool same_program(const struct strv *a, char *const *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!b[i] || strcmp(a->items[i], b[i]) != 0)
			return false;
	return a->count > 0 && !b[a->count];
}

static void count(const struct looking *looking, const struct series_row *row,
		  const struct tally *tally)
{
	struct bisect_seen seen = { .series = row->id.value };

	tally_failed(tally, TALLY_ALL, TALLY_ALL, &seen.trials, &seen.failed);
	if (looking->signature) {
		seen.failed = 0;
		VEC_FOREACH (&tally->signatures, s)
			if (strcmp(s->id, looking->signature) == 0)
				seen.failed = s->count;
	}
	if (seen.failed == 0 || seen.failed > seen.trials)
		return;
	/* The newest counts. */
	*looking->seen = seen;
}

static int look(void *ctx, const struct series_row *row, struct err *err)
{
	struct looking *looking = ctx;
	AUTO(series_settings_deinit) struct series_settings settings = { 0 };
	AUTO(tally_deinit) struct tally tally = { 0 };
	int r;

	if (strcmp(row->command, "repro") != 0 ||
	    series_settings_read(row->settings, &settings, NULL) < 0 ||
	    !same_program(&settings.program, looking->program))
		return 0;
	r = tally_load(&tally, looking->cs, row->id, err);
	if (r == 0 && tally_intermittent(&tally))
		count(looking, row, &tally);
	return r;
}

int bisect_seen(struct case_store *cs, char *const *program, const char *signature,
		struct bisect_seen *ret, struct err *err)
{
	struct bisect_seen seen = { 0 };
	int r = case_series_each(cs, look, &(struct looking){ cs, program, signature, &seen }, err);

	if (r < 0)
		return r;
	if (seen.trials > WORTH_MOST) {
		seen.failed = (seen.failed * WORTH_MOST + seen.trials / 2) / seen.trials;
		seen.failed = seen.failed > 0 ? seen.failed : 1;
		seen.trials = WORTH_MOST;
	}
	*ret = seen;
	return 0;
}
