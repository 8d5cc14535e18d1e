#include "studies/sentinel/source.h"

#include <errno.h>
#include <string.h>

#include "run/tally.h"

void sentinel_source_deinit(struct sentinel_source *source)
{
	series_settings_deinit(&source->settings);
	minimal_list_deinit(&source->minimal);
	target_deinit(&source->target);
	strv_deinit(&source->known);
}

/* Is every one of these ids among the known ones? */
static bool all_known(const struct strv *known, const char *signatures)
{
	while (*signatures != '\0') {
		size_t len = strcspn(signatures, " ");
		bool found = false;

		for (size_t i = 0; i < known->count; i++)
			found |= strlen(known->items[i]) == len &&
				 strncmp(known->items[i], signatures, len) == 0;
		if (!found)
			return false;
		signatures += len + (signatures[len] == ' ');
	}
	return true;
}

int target_outcome(const struct target *target, struct case_store *cs, const struct strv *known,
		   const char *signatures, bool cut_short, enum target_outcome *ret,
		   struct err *err)
{
	bool shown = false;
	int r = target_shown(target, cs, signatures, &shown, err);

	if (r < 0)
		return r;
	*ret = shown					    ? OUTCOME_SHOWN
	       : cut_short || !all_known(known, signatures) ? OUTCOME_OTHER
							    : OUTCOME_CLEAN;
	return 0;
}

struct source_candidate {
	struct series_id id;
	char *command, *settings;
};

struct candidates {
	VEC(struct source_candidate) list;
};

static void candidates_deinit(struct candidates *candidates)
{
	VEC_FREE(&candidates->list, c, MEM_FREE(c->command, c->settings));
}

static int collect(void *ctx, const struct series_row *row, struct err *err)
{
	struct candidates *candidates = ctx;

	VEC_PUSH(&candidates->list,
		 ((struct source_candidate){ .id = row->id,
					     .command = mem_strdup(row->command),
					     .settings = mem_strdup(row->settings) }));
	return 0;
}

/* Trials that differ from each other, or that watch over a sentinel themselves, are no model. */
static bool usable(const struct source_candidate *c)
{
	return strcmp(c->command, "compare") != 0 && strcmp(c->command, "heap") != 0 &&
	       strcmp(c->command, "sentinel") != 0;
}

static int intermittent(struct case_store *cs, struct series_id series, bool *ret, struct err *err)
{
	AUTO(tally_deinit) struct tally tally = { 0 };
	int r = tally_load(&tally, cs, series, err);

	if (r == 0)
		*ret = tally_intermittent(&tally);
	return r;
}

/* These end when they have seen enough failures, and what they add to the program may bring more of
 * them: their share of failures is above the rate, and too few clean runs would be asked for. */
static bool tells_rate(const struct source_candidate *c)
{
	return strcmp(c->command, "chase") != 0 && strcmp(c->command, "watch") != 0;
}

/* The newest; one that tells the rate before all that do not. */
static int choose_newest(const struct candidates *candidates, struct case_store *cs,
			 const struct source_candidate **ret, struct err *err)
{
	size_t count = candidates->list.count;
	bool found = false;
	int r = 0;

	for (size_t i = 2 * count; i > 0 && r == 0 && !found; i--) {
		*ret = &candidates->list.items[(i - 1) % count];
		if (usable(*ret) && tells_rate(*ret) == (i > count))
			r = intermittent(cs, (*ret)->id, &found, err);
	}
	if (r < 0 || found)
		return r;
	(void)err_set(err, -ENOENT, "the case '%s' has no failure that comes and goes",
		      case_dir(cs));
	return err_set_remedy(err,
			      "redhand repro -- PROGRAM finds out how often it fails, for one that "
			      "always fails name its series with --from-series");
}

static int choose_given(const struct candidates *candidates, struct case_store *cs,
			struct series_id wanted, const struct source_candidate **ret,
			struct err *err)
{
	VEC_FOREACH (&candidates->list, c) {
		if (c->id.value != wanted.value)
			continue;
		*ret = c;
		if (usable(c))
			return 0;
		(void)err_set(err, -EINVAL,
			      "series %lld is of %s: its trials are no model for others",
			      (long long)wanted.value, c->command);
		return err_set_remedy(
			err, "a series of repro or minimize; redhand case show lists them");
	}
	(void)err_set(err, -ENOENT, "there is no series %lld in '%s'", (long long)wanted.value,
		      case_dir(cs));
	return err_set_remedy(err, "redhand case show lists them");
}

/* Failures of every run count only when there are no others. */
static int note_all(struct sentinel_source *s, struct case_store *cs, const struct tally *tally,
		    struct err *err)
{
	bool intermittent_only = tally_intermittent(tally);
	char id[SIGNATURE_ID_LEN + 1];
	int r = 0;

	VEC_FOREACH (&tally->counts, c) {
		for (const char *at = c->signatures;
		     r == 0 && (at = signature_next_id(at, id)) != NULL;) {
			const struct tally_signature *found = tally_find(tally, id);

			if (intermittent_only && found && found->always)
				continue;
			for (uint64_t i = 0; i < c->count && r == 0; i++)
				r = target_note(&s->target, cs, id, err);
		}
	}
	return r;
}

static int choose_target(struct sentinel_source *s, struct case_store *cs,
			 const struct tally *tally, const char *signature, struct err *err)
{
	int r;

	/* Damaged memory kills the same test in more than one function. */
	if (signature) {
		r = target_set(&s->target, cs, signature, err);
		s->target.exact = false;
		return r;
	}
	r = note_all(s, cs, tally, err);
	if (r == 0 && s->minimal.series != 0 && s->minimal.signature)
		return target_adopt(&s->target, cs, s->minimal.signature, err);
	if (r == 0)
		r = target_choose(&s->target, cs, true, err);
	if (r == 0 && !s->target.known) {
		(void)err_set(err, -ENOENT, "series %lld never failed", (long long)s->series.value);
		r = err_set_remedy(err, "a sentinel needs a rate: redhand repro with more trials");
	}
	return r;
}

static int count(struct sentinel_source *s, struct case_store *cs, const struct tally *tally,
		 struct err *err)
{
	int r = 0;

	VEC_FOREACH (&tally->signatures, signature)
		if (signature->always && strcmp(signature->id, s->target.signature.id) != 0)
			strv_add(&s->known, signature->id);
	if (s->minimal.series != 0) {
		s->failed = s->minimal.minimal.failed;
		s->trials = s->minimal.minimal.trials;
		return 0;
	}
	VEC_FOREACH (&tally->counts, c) {
		enum target_outcome outcome;

		if (r == 0)
			r = target_outcome(&s->target, cs, &s->known, c->signatures, c->cut_short,
					   &outcome, err);
		if (r == 0 && outcome != OUTCOME_OTHER)
			s->trials += c->count;
		if (r == 0 && outcome == OUTCOME_SHOWN)
			s->failed += c->count;
	}
	return r;
}

static int fill(struct sentinel_source *s, struct case_store *cs, const char *signature,
		struct err *err)
{
	AUTO(tally_deinit) struct tally tally = { 0 };
	int r = tally_load(&tally, cs, s->series, err);

	if (r == 0)
		r = choose_target(s, cs, &tally, signature, err);
	if (r == 0)
		r = count(s, cs, &tally, err);
	if (r == 0 && s->failed == 0)
		r = err_set(err, -ENOENT, "series %lld never failed with the signature %s",
			    (long long)s->series.value, s->target.signature.id);
	return r;
}

int sentinel_source_init(struct sentinel_source *s, struct case_store *cs, struct series_id series,
			 const char *signature, struct err *err)
{
	AUTO(candidates_deinit) struct candidates candidates = { 0 };
	const struct source_candidate *chosen = NULL;
	int r = case_series_each(cs, collect, &candidates, err);

	if (r == 0)
		r = case_minimal(cs, series, &s->minimal, err);
	/* A list that is still being searched may be anything. */
	if (r == 0 && s->minimal.series != 0 &&
	    (s->minimal.verdict != MINIMAL_FOUND || s->minimal.minimal.failed == 0)) {
		minimal_list_deinit(&s->minimal);
		s->minimal = (struct minimal_list){ 0 };
	}
	if (r == 0 && series.value == 0 && s->minimal.series != 0)
		series.value = s->minimal.series;
	if (r == 0)
		r = series.value != 0 ? choose_given(&candidates, cs, series, &chosen, err)
				      : choose_newest(&candidates, cs, &chosen, err);
	if (r == 0)
		r = series_settings_read(chosen->settings, &s->settings, err);
	if (r < 0)
		return r;
	s->series = chosen->id;
	return fill(s, cs, signature, err);
}
