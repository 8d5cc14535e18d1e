/*
 * The commits of `bisect`: which could be built, which could not.
 */
#include "case/case.h"
#include "case/case_inside.h"

int case_add_build(struct case_store *cs, struct series_id series,
		   const struct build_record *record, struct err *err)
{
	return db_run(&cs->db, err,
		      "INSERT OR REPLACE INTO build (series, item, unusable, wall_ns)"
		      " VALUES (?,?,?,?)",
		      "iisi", series.value, (int64_t)record->item,
		      record->unusable ? record->unusable : "", (int64_t)record->wall_ns);
}

int case_builds(struct case_store *cs, struct series_id series, build_fn fn, void *ctx,
		struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT item, unusable, wall_ns FROM build WHERE series = ?"
			 " ORDER BY item",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		const char *unusable = query_text(&query, 1);

		fn(ctx, &(struct build_record){ .item = (uint64_t)query_int(&query, 0),
						.unusable = unusable[0] != '\0' ? unusable : NULL,
						.wall_ns = (uint64_t)query_int(&query, 2) });
	}
	return r;
}
