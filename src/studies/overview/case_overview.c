#include "studies/overview/case_overview.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "judge/judge.h"
#include "run/settings.h"
#include "run/tally.h"
#include "search/stats/rate.h"
#include "studies/overview/case_investigation.h"

/* Enough for one case per sub-project, without walking through a whole disk. */
#define DEPTH_MAX 3
#define LINES_MAX 200

#define ARMS_MAX 64

static int by_weight(const void *a, const void *b)
{
	const struct signature_count *x = a, *y = b;

	return ORDER(x->always, y->always) ?: ORDER(y->count, x->count) ?: strcmp(x->id, y->id);
}

static int add_signatures(struct case_store *cs, const struct tally *tally,
			  struct series_overview *ret, struct err *err)
{
	VEC_FOREACH (&tally->signatures, t) {
		AUTO(signature_deinit) struct signature signature = { 0 };
		struct signature_count count = { .count = t->count,
						 .trial = t->trial,
						 .always = t->always };
		int r = case_signature(cs, t->id, &signature, err);

		if (r < 0)
			return r;
		memcpy(count.id, t->id, sizeof(count.id));
		count.summary = mem_strdup(signature.summary);
		VEC_PUSH(&ret->signatures, count);
	}
	VEC_SORT(&ret->signatures, by_weight);
	return 0;
}

static struct rate rate_of(const struct tally *tally, unsigned int arm)
{
	uint64_t trials, failed;

	tally_failed(tally, arm, TALLY_ALL, &trials, &failed);
	return rate_wilson(trials, failed, RATE_CONFIDENCE);
}

/* What the settings cannot tell is left out; the counts are there anyway. */
static void add_settings(const struct series_row *row, const struct tally *tally,
			 struct series_overview *ret)
{
	AUTO(series_settings_deinit) struct series_settings settings = { 0 };

	if (series_settings_read(row->settings, &settings, NULL) < 0)
		return;
	strv_copy(&ret->program, settings.program.items);
	ret->jobs = settings.jobs;
	ret->observer = observer_names[settings.observer];
	for (size_t i = 0; i < settings.arms.count && i < ARMS_MAX; i++)
		VEC_PUSH(&ret->arms,
			 ((struct arm_count){
				 .name = mem_strndup(settings.arms.items[i],
						     strcspn(settings.arms.items[i], ":")),
				 .rate = rate_of(tally, (unsigned int)i) }));
}

struct overview_reading {
	struct case_store *cs;
	struct case_overview *overview;
};

static int read_series(void *ctx, const struct series_row *row, struct err *err)
{
	struct overview_reading *reading = ctx;
	AUTO(tally_deinit) struct tally tally = { 0 };
	struct series_overview series = { .id = row->id.value,
					  .created_ms = row->created_ms,
					  .command = mem_strdup(row->command) };
	int r = tally_load(&tally, reading->cs, row->id, err);

	series.rate = rate_of(&tally, TALLY_ALL);
	series.intermittent = tally_intermittent(&tally);
	add_settings(row, &tally, &series);
	if (r == 0)
		r = add_signatures(reading->cs, &tally, &series, err);
	VEC_PUSH(&reading->overview->series, series);
	return r;
}

static void complete_rate(struct rate *rate)
{
	*rate = rate_wilson(rate->trials, rate->failed, RATE_CONFIDENCE);
}

/* Does it name a command of which only the kind is known? */
static bool wants_command(const struct said *said)
{
	return VEC_ANY(&said->values, value,
		       value->kind == SAID_TEXT && strstr(value->text, " -- CMD"));
}

/* What to do next, with the program in it. */
static int read_commands(struct case_store *cs, struct verdict *verdict, struct err *err)
{
	AUTO(investigation_deinit) struct investigation inv = { 0 };
	int r;

	if (!wants_command(&verdict->next))
		return 0;
	r = investigation_read(cs, NULL, &inv, err);
	if (r == 0) {
		said_deinit(&verdict->next);
		verdict->next = inv.verdict.next;
		inv.verdict.next = (struct said){ 0 };
	}
	return r;
}

/* Where nobody has looked for the cause, every explanation is open. */
static int read_verdict(struct case_store *cs, struct case_overview *ret, struct err *err)
{
	AUTO(evidence_list_deinit) struct evidence_list evidence = { 0 };
	int r = judgement_read(cs, &evidence, &ret->verdict, &ret->judged, err);

	if (r == 0 && !ret->judged)
		judge_evidence(&evidence, &ret->verdict);
	if (r == 0 && ret->judged)
		r = read_commands(cs, &ret->verdict, err);
	VEC_FOREACH (&evidence.list, e) {
		struct sighting_overview seen = { .evidence = e->id,
						  .trial = e->trial,
						  .failing = e->failing };

		if (e->kind != EVIDENCE_SIGHTING)
			continue;
		evidence_say(e, &seen.text);
		VEC_PUSH(&ret->sightings, seen);
	}
	return r;
}

int overview_read(struct case_store *cs, struct case_overview *ret, struct err *err)
{
	int r = case_series_each(cs, read_series, &(struct overview_reading){ cs, ret }, err);

	ret->case_dir = case_dir(cs);
	if (r == 0)
		r = case_notebook(cs, &ret->notebook, err);
	if (r == 0)
		r = attempts_count(cs, &ret->notebook, err);
	if (r == 0)
		r = case_minimal(cs, (struct series_id){ 0 }, &ret->minimal, err);
	if (r == 0)
		r = read_verdict(cs, ret, err);
	if (r == 0)
		r = case_decisions(cs, &ret->decisions, err);
	if (r == 0)
		r = case_choices(cs, &ret->choices, err);
	complete_rate(&ret->minimal.minimal);
	complete_rate(&ret->minimal.full);
	return r;
}

void overview_add(const char *dir, struct case_lines *ret)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	struct case_line line = { .dir = mem_strdup(dir) };
	struct err err = { 0 };
	int r = case_open(dir, CASE_READ, &cs, &err);

	if (r == 0)
		r = overview_read(cs, &line.overview, &err);
	/* The store that this pointed into is about to be closed. */
	line.overview.case_dir = line.dir;
	if (r < 0)
		line.trouble = mem_strdup(err.message);
	VEC_PUSH(&ret->list, line);
}

static int no_dots(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool has_case(const char *dir)
{
	AUTO(mem_freep) char *path = mem_printf("%s/case.db", dir);

	return access(path, F_OK) == 0;
}

static void search(const char *dir, unsigned int depth, struct case_lines *ret)
{
	struct dirent **entries = NULL;
	int count;

	if (has_case(dir)) {
		overview_add(dir, ret);
		return;
	}
	count = depth < DEPTH_MAX ? scandir(dir, &entries, no_dots, alphasort) : 0;
	for (int i = 0; i < count; i++) {
		AUTO(mem_freep)
		char *path = strcmp(dir, ".") == 0 ? mem_strdup(entries[i]->d_name)
						   : mem_printf("%s/%s", dir, entries[i]->d_name);
		struct stat st;

		if (ret->list.count < LINES_MAX && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			search(path, depth + 1, ret);
		free(entries[i]);
	}
	free(entries);
}

void overview_find(const char *dir, struct case_lines *ret)
{
	search(dir, 0, ret);
}
