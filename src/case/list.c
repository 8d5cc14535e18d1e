/*
 * The lists of `minimize`: what there is to choose from, and which list each trial ran.
 */
#include "case/case.h"

#include <string.h>

#include "base/strbuf.h"
#include "case/case_inside.h"

static int add_items(struct case_store *cs, struct series_id series, const struct strv *names,
		     struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "INSERT OR IGNORE INTO item (series, number, name) VALUES (?,?,?)",
			   &query, err);

	for (size_t i = 0; i < names->count && r == 0; i++) {
		r = db_bind(&query, err, "iis", series.value, (int64_t)i, names->items[i]);
		if (r == 0)
			r = db_step(&query, err);
	}
	return r;
}

int case_set_items(struct case_store *cs, struct series_id series, const struct strv *names,
		   struct err *err)
{
	int r = store_begin(cs, err);

	if (r < 0)
		return r;
	r = add_items(cs, series, names, err);
	return db_end(&cs->db, r, err);
}

int case_items(struct case_store *cs, struct series_id series, struct strv *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT name FROM item WHERE series = ? ORDER BY number", "i",
			 series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct strbuf name = { 0 };

		strbuf_add_printable(&name, query_text(&query, 0), strlen(query_text(&query, 0)));
		strv_take(ret, strbuf_take(&name));
	}
	return r;
}

int case_list_runs(struct case_store *cs, struct series_id series, list_run_fn fn, void *ctx,
		   struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT l.items, n.purpose, n.started, n.complete, n.told, o.signatures,"
			 " n.trial FROM list_run n JOIN list l ON l.id = n.list"
			 " JOIN trial t ON t.number = n.trial JOIN outcome o ON o.id = t.outcome"
			 " WHERE l.series = ? ORDER BY n.seq",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		r = fn(ctx,
		       &(struct list_run_row){
			       .run = { .items = query_text(&query, 0),
					.purpose = (unsigned int)query_int(&query, 1),
					.started = (uint64_t)query_int(&query, 2),
					.complete = query_int(&query, 3) != 0,
					.told = query_int(&query, 4) != 0 },
			       .signatures = query_text(&query, 5),
			       .trial = (uint64_t)query_int(&query, 6),
		       },
		       err);
	}
	return r;
}
