/*
 * What a search of `minimize` has found.
 */
#include "case/case.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "base/words.h"
#include "case/case_inside.h"

int case_set_minimal(struct case_store *cs, const struct minimal_record *record, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	AUTO(strbuf_deinit) struct strbuf argv = { 0 };
	AUTO(strbuf_deinit) struct strbuf env = { 0 };

	words_join(&argv, record->argv->items);
	words_join(&env, record->env->items);
	return db_first(&cs->db, &query, err,
			"INSERT OR REPLACE INTO minimal (series, verdict, items, victim, signature,"
			" failed, trials, full_failed, full_trials, confidence, argv, env)"
			" VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
			"iisssiiiidss", record->series.value, (int64_t)record->verdict,
			record->items, record->victim, record->signature,
			(int64_t)record->minimal.failed, (int64_t)record->minimal.trials,
			(int64_t)record->full.failed, (int64_t)record->full.trials,
			record->confidence, strbuf_str(&argv), strbuf_str(&env));
}

static int add_name(struct query *query, int64_t series, unsigned long number, struct strv *ret,
		    struct err *err)
{
	int r = db_bind(query, err, "ii", series, (int64_t)number);

	if (r == 0)
		r = db_step(query, err);
	if (r == 1)
		strv_add(ret, query_text(query, 0));
	if (r == 0)
		r = err_set(err, -EUCLEAN,
			    "a list of the case names an item that it does not have");
	return r < 0 ? r : 0;
}

/* The names behind "0-5,7". */
static int add_names(struct case_store *cs, int64_t series, const char *items, struct strv *ret,
		     struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db, "SELECT name FROM item WHERE series = ? AND number = ?", &query,
			   err);

	while (r == 0 && *items != '\0') {
		char *end;
		unsigned long first = strtoul(items, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		/* One that is not there ends it, however large the range says it is. */
		for (unsigned long n = first; n <= last && r == 0; n++)
			r = add_name(&query, series, n, ret, err);
		if (end == items || (*end != ',' && *end != '\0'))
			return err_set(err, -EUCLEAN, "a list of the case cannot be read");
		items = end + (*end == ',');
	}
	return r;
}

static int count_items(struct case_store *cs, int64_t series, uint64_t *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err, "SELECT count(*) FROM item WHERE series = ?", "i",
			 series);

	if (r < 0)
		return r;
	*ret = (uint64_t)query_int(&query, 0);
	return 0;
}

int case_set_minimal_verdict(struct case_store *cs, struct series_id series,
			     enum minimal_verdict verdict, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err, "UPDATE minimal SET verdict = ? WHERE series = ?",
			 "ii", (int64_t)verdict, series.value);

	return r < 0 ? r : 0;
}

static struct rate rate_at(struct query *query, int failed_column)
{
	uint64_t failed = (uint64_t)query_int(query, failed_column);
	uint64_t trials = (uint64_t)query_int(query, failed_column + 1);

	/* A damaged case must not make more failures than trials. */
	return (struct rate){ .trials = trials, .failed = failed < trials ? failed : trials };
}

int case_minimal(struct case_store *cs, struct series_id series, struct minimal_list *ret,
		 struct err *err)
{
	AUTO(minimal_list_deinit) struct minimal_list list = { 0 };
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "SELECT series, verdict, items, victim, signature, failed, trials,"
			 " full_failed, full_trials, confidence, argv, env FROM minimal"
			 " WHERE CASE WHEN ?1 = 0 THEN verdict = ?2 ELSE series = ?1 END"
			 " ORDER BY series DESC LIMIT 1",
			 "ii", series.value, (int64_t)MINIMAL_FOUND);

	if (r <= 0)
		return r;
	list.series = query_int(&query, 0);
	list.verdict = (enum minimal_verdict)query_int(&query, 1);
	list.victim = store_text(&query, 3);
	list.signature = store_text(&query, 4);
	list.minimal = rate_at(&query, 5);
	list.full = rate_at(&query, 7);
	list.confidence = sqlite3_column_double(query.stmt, 9);
	r = add_names(cs, list.series, query_text(&query, 2), &list.tests, err);
	if (r == 0)
		r = count_items(cs, list.series, &list.total, err);
	if (r == 0)
		r = words_split(query_text(&query, 10), &list.argv, err);
	if (r == 0)
		r = words_split(query_text(&query, 11), &list.env, err);
	if (r < 0)
		return r;
	*ret = list;
	list = (struct minimal_list){ 0 };
	return 0;
}
