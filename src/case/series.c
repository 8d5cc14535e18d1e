/*
 * Series: finding the one that a command goes on with, and clearing it.
 */
#include "case/case.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/now.h"
#include "base/tree.h"
#include "case/case_inside.h"

static int other_builds(struct case_store *cs, const struct series_identity *identity, int64_t *ret,
			struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "SELECT count(*) FROM series WHERE settings = ? AND program != ?", "ss",
			 identity->settings, identity->program);

	if (r < 0)
		return r;
	*ret = query_int(&query, 0);
	return 0;
}

int case_series(struct case_store *cs, const struct series_identity *identity, uint64_t seed,
		struct series_found *ret, struct err *err)
{
	AUTO(db_endp) struct query add = { 0 };
	AUTO(db_endp) struct query get = { 0 };
	int64_t others = 0;
	int r, made;

	r = db_query(&cs->db, &add, err,
		     "INSERT INTO series (command, settings, program, seed, created_ms)"
		     " VALUES (?, ?, ?, ?, ?) ON CONFLICT (settings, program) DO NOTHING",
		     "sssii", identity->command, identity->settings, identity->program,
		     (int64_t)seed, clock_epoch_ms());
	if (r == 0)
		r = db_step(&add, err);
	made = sqlite3_changes(cs->db.handle);
	if (r == 0)
		r = db_query(&cs->db, &get, err,
			     "SELECT id, seed FROM series WHERE settings = ? AND program = ?", "ss",
			     identity->settings, identity->program);
	if (r == 0)
		r = db_step(&get, err);
	if (r >= 0)
		r = other_builds(cs, identity, &others, err);
	if (r < 0)
		return r;
	*ret = (struct series_found){ .id = { .value = query_int(&get, 0) },
				      .seed = (uint64_t)query_int(&get, 1),
				      .program_changed = made > 0 && others > 0 };
	return 0;
}

int case_series_each(struct case_store *cs, series_fn fn, void *ctx, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(
		&cs->db,
		"SELECT s.id, s.command, s.settings, s.program, s.created_ms, count(t.number),"
		" coalesce(max(t.started_ms), 0) FROM series s"
		" LEFT JOIN trial t ON t.series = s.id GROUP BY s.id ORDER BY s.id",
		&query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		r = fn(ctx,
		       &(struct series_row){ .id = { .value = query_int(&query, 0) },
					     .command = query_text(&query, 1),
					     .settings = query_text(&query, 2),
					     .program = query_text(&query, 3),
					     .created_ms = query_int(&query, 4),
					     .trials = (uint64_t)query_int(&query, 5),
					     .last_ms = query_int(&query, 6) },
		       err);
	return r;
}

static int run_with_series(struct case_store *cs, const char *sql, struct series_id series,
			   struct err *err)
{
	return db_run(&cs->db, err, sql, "i", series.value);
}

static int remove_dirs(struct case_store *cs, uint64_t *numbers, size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		char name[24];

		(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)numbers[i]);
		r = tree_remove_at(cs->trials_fd, name, err);
	}
	return r;
}

static int kept_numbers(struct case_store *cs, struct series_id series, uint64_t **ret,
			size_t *ret_count, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	VEC(uint64_t) numbers = { 0 };
	int r = db_query(&cs->db, &query, err, "SELECT number FROM trial WHERE series = ? AND kept",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&numbers, (uint64_t)query_int(&query, 0));
	*ret = numbers.items;
	*ret_count = numbers.count;
	return r;
}

/* Numbers of trials are given again, so what was seen in these must go with them, and with it
 * every verdict: it may rest on that. */
static int clear_evidence(struct case_store *cs, struct series_id series, struct err *err)
{
	int r = run_with_series(cs,
				"DELETE FROM verdict WHERE EXISTS (SELECT 1 FROM evidence WHERE"
				" trial IN (SELECT number FROM trial WHERE series = ?))",
				series, err);

	if (r < 0)
		return r;
	return run_with_series(cs,
			       "DELETE FROM evidence WHERE trial IN"
			       " (SELECT number FROM trial WHERE series = ?)",
			       series, err);
}

int case_series_clear(struct case_store *cs, struct series_id series, struct err *err)
{
	AUTO(mem_freep) uint64_t *numbers = NULL;
	size_t count = 0;
	int r = kept_numbers(cs, series, &numbers, &count, err);

	if (r == 0)
		r = store_begin(cs, err);
	if (r < 0)
		return r;
	r = run_with_series(cs,
			    "DELETE FROM list_run WHERE list IN"
			    " (SELECT id FROM list WHERE series = ?)",
			    series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM minimal WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM list WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM item WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs,
				    "DELETE FROM chaos WHERE trial IN"
				    " (SELECT number FROM trial WHERE series = ?)",
				    series, err);
	if (r == 0)
		r = run_with_series(cs,
				    "DELETE FROM trial_machine WHERE trial IN"
				    " (SELECT number FROM trial WHERE series = ?)",
				    series, err);
	if (r == 0)
		r = clear_evidence(cs, series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM build WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM trial WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM crumb_next WHERE series = ?", series, err);
	if (r == 0)
		r = run_with_series(cs, "DELETE FROM series WHERE id = ?", series, err);
	r = db_end(&cs->db, r, err);
	return r < 0 ? r : remove_dirs(cs, numbers, count, err);
}

int case_series_progress(struct case_store *cs, struct series_id series,
			 struct series_progress *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "SELECT count(t.number), coalesce(max(t.position), 0), s.learnt"
			 " FROM series s LEFT JOIN trial t ON t.series = s.id WHERE s.id = ?",
			 "i", series.value);

	if (r < 0)
		return r;
	ret->trials = (uint64_t)query_int(&query, 0);
	ret->last_position = (uint64_t)query_int(&query, 1);
	ret->learnt = (uint64_t)query_int(&query, 2);
	return 0;
}
