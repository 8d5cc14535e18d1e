/*
 * The minimum trigger set, from the stored runs of `minimize`.
 *
 * The search itself would have to be replayed to say how sure it is; here it is told what was
 * seen: which list is the shortest that failed, how often, and how often it failed without each
 * of its tests.
 */
#include "studies/overview/case_investigation.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search/minimize/minimiser.h"
#include "search/stats/rate.h"
#include "studies/series/listtext.h"
#include "studies/series/target.h"

/* All runs of one list. */
struct tried {
	char *text; /* as the case has it */
	size_t length;
	uint64_t runs, failed;
	bool proof; /* run to prove the list, or without one of its items */
};

struct trigger_reading {
	struct case_store *cs;
	struct target target;
	struct strv names;
	VEC(struct tried) tried;
};

static void trigger_reading_deinit(struct trigger_reading *reading)
{
	target_deinit(&reading->target);
	strv_deinit(&reading->names);
	VEC_FREE(&reading->tried, t, mem_free(t->text));
}

static int numbers_of(const struct trigger_reading *reading, const char *text, struct numbers *ret,
		      struct err *err)
{
	return listtext_read(text, (uint32_t)reading->names.count, ret, err);
}

static int note_target(void *ctx, const struct list_run_row *row, struct err *err)
{
	struct trigger_reading *reading = ctx;

	if (!row->run.told || row->run.purpose != MINIMISER_BASELINE)
		return 0;
	return target_note(&reading->target, reading->cs, row->signatures, err);
}

static int count_run(void *ctx, const struct list_run_row *row, struct err *err)
{
	struct trigger_reading *reading = ctx;
	struct tried *found = NULL;
	bool shown = false;
	int r = target_shown(&reading->target, reading->cs, row->signatures, &shown, err);

	if (r < 0 || !row->run.told)
		return r;
	VEC_FOREACH (&reading->tried, t)
		if (strcmp(t->text, row->run.items) == 0)
			found = t;
	if (!found) {
		struct numbers numbers = { 0 };

		r = numbers_of(reading, row->run.items, &numbers, err);
		if (r == 0) {
			VEC_PUSH(&reading->tried,
				 ((struct tried){ .text = mem_strdup(row->run.items),
						  .length = numbers.list.count }));
			found = &reading->tried.items[reading->tried.count - 1];
		}
		VEC_DEINIT(&numbers.list);
	}
	if (!found)
		return r;
	/* What fails in another way says nothing about its list. */
	if (!shown && row->signatures[0] != '\0')
		return 0;
	found->runs++;
	found->failed += shown;
	found->proof = found->proof || row->run.purpose == MINIMISER_PROOF;
	return 0;
}

/* The shortest that was seen to fail; of those, the one that was proved or failed most often (the
 * others are its items in another order, or a coincidence). */
static const struct tried *best_list(const struct trigger_reading *reading)
{
	const struct tried *best = NULL;

	VEC_FOREACH (&reading->tried, t) {
		if (t->failed == 0 || (best && t->length > best->length))
			continue;
		if (!best || t->length < best->length || (t->proof && !best->proof) ||
		    (t->proof == best->proof && t->failed > best->failed))
			best = t;
	}
	return best;
}

static const struct tried *list_without(const struct trigger_reading *reading,
					const struct numbers *numbers, size_t left_out)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	AUTO(mem_freep)
	uint32_t *rest = mem_alloc((numbers->list.count + 1) * sizeof(*rest));
	size_t count = 0;

	for (size_t i = 0; i < numbers->list.count; i++)
		if (i != left_out)
			rest[count++] = numbers->list.items[i];
	listtext_write(rest, count, &text);
	return VEC_FIND(&reading->tried, t, strcmp(t->text, strbuf_str(&text)) == 0);
}

static struct rate rate_of(const struct tried *t)
{
	return t ? rate_wilson(t->runs, t->failed, RATE_CONFIDENCE) : (struct rate){ 0 };
}

static void add_items(const struct trigger_reading *reading, const struct numbers *numbers,
		      struct trigger_set *ret)
{
	const char *victim = reading->target.known ? reading->target.signature.test : NULL;

	ret->proven = true;
	for (size_t i = 0; i < numbers->list.count; i++) {
		const char *name = reading->names.items[numbers->list.items[i]];
		const struct tried *without = list_without(reading, numbers, i);
		bool is_victim = victim && strcmp(victim, name) == 0;

		if (!is_victim && (!without || without->runs == 0 || without->failed > 0))
			ret->proven = false;
		VEC_PUSH(&ret->items, ((struct minimal_item){ .name = mem_strdup(name),
							      .victim = is_victim,
							      .without = rate_of(without) }));
	}
}

/* A list without it failed, or it failed in no list without it, or neither is known. */
static void add_cells(const struct trigger_reading *reading, const struct numbers *numbers,
		      struct trigger_set *ret)
{
	for (uint32_t n = 0; n < reading->names.count; n++) {
		enum cell_state state = CELL_NOT_NEEDED;

		for (size_t i = 0; i < numbers->list.count; i++)
			if (numbers->list.items[i] == n) {
				const struct minimal_item *item = &ret->items.items[i];

				state = item->victim ? CELL_VICTIM
					: item->without.trials > 0 && item->without.failed == 0
						? CELL_NEEDED
						: CELL_UNSURE;
			}
		VEC_PUSH(&ret->cells,
			 ((struct trigger_cell){ mem_strdup(reading->names.items[n]), state }));
	}
}

static void add_full(const struct trigger_reading *reading, struct trigger_set *ret)
{
	const struct tried *full = NULL;

	VEC_FOREACH (&reading->tried, t)
		if (t->length == reading->names.count)
			full = t;
	ret->full = rate_of(full);
	ret->total = reading->names.count;
}

static void add_file(const struct trigger_reading *reading, struct series_id series,
		     struct trigger_set *ret)
{
	static const char *const endings[] = { "txt", "sh" };

	for (size_t i = 0; i < ARRAY_SIZE(endings) && !ret->file; i++) {
		char *path = mem_printf("%s/minimal-%lld.%s", case_dir(reading->cs),
					(long long)series.value, endings[i]);

		if (access(path, R_OK) == 0)
			ret->file = path;
		else
			mem_free(path);
	}
}

/* What the search was for is stored with what it found; before it found anything, what stands out
 * so far. */
static int find_target(struct trigger_reading *reading, struct series_id series,
		       const struct minimal_list *minimal, struct err *err)
{
	int r = case_list_runs(reading->cs, series, note_target, reading, err);

	if (r == 0 && minimal->signature && minimal->signature[0] != '\0' &&
	    target_adopt(&reading->target, reading->cs, minimal->signature, NULL) == 0)
		return 0;
	return r == 0 ? target_choose(&reading->target, reading->cs, true, err) : r;
}

/* The one that was found; before that, the best so far. What was found need not have been run by
 * itself: what stands before the test that fails is all that can matter. */
static int choose_list(const struct trigger_reading *reading, const struct minimal_list *minimal,
		       struct numbers *ret, struct rate *ret_rate, struct err *err)
{
	const struct tried *best;

	if (minimal->verdict == MINIMAL_FOUND && minimal->tests.count > 0) {
		for (size_t i = 0; i < minimal->tests.count; i++)
			for (uint32_t n = 0; n < reading->names.count; n++)
				if (strcmp(reading->names.items[n], minimal->tests.items[i]) == 0) {
					VEC_PUSH(&ret->list, n);
					break;
				}
		*ret_rate = rate_wilson(minimal->minimal.trials, minimal->minimal.failed,
					RATE_CONFIDENCE);
		return 0;
	}
	best = best_list(reading);
	if (!best)
		return 0;
	*ret_rate = rate_of(best);
	return numbers_of(reading, best->text, ret, err);
}

int trigger_read(struct case_store *cs, struct series_id series, struct trigger_set *ret,
		 struct err *err)
{
	AUTO(trigger_reading_deinit) struct trigger_reading reading = { .cs = cs };
	AUTO(minimal_list_deinit) struct minimal_list minimal = { 0 };
	struct numbers numbers = { 0 };
	int r = case_items(cs, series, &reading.names, err);

	if (r < 0 || reading.names.count == 0)
		return r;
	r = case_minimal(cs, series, &minimal, err);
	/* A list that does not fail by itself is none. */
	if (r < 0 || minimal.verdict == MINIMAL_NOT_BY_ITSELF)
		return r;
	r = find_target(&reading, series, &minimal, err);
	if (r < 0 || !reading.target.known)
		return r;
	r = case_list_runs(cs, series, count_run, &reading, err);
	if (r == 0)
		r = choose_list(&reading, &minimal, &numbers, &ret->minimal, err);
	if (r == 0 && numbers.list.count > 0) {
		ret->known = true;
		add_items(&reading, &numbers, ret);
		add_cells(&reading, &numbers, ret);
		add_full(&reading, ret);
		add_file(&reading, series, ret);
	}
	VEC_DEINIT(&numbers.list);
	return r;
}
