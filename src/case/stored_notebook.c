/*
 * Notes, workarounds, parking and sentinels.
 */
#include "case/stored_notebook.h"

#include <errno.h>
#include <stdio.h>

#include "base/now.h"
#include "case/case_inside.h"

/* Runs one statement that makes a row, and tells the row's number. */
static int insert(struct case_store *cs, const char *sql, const char *text, uint64_t *ret_id,
		  struct err *err)
{
	int r = db_run(&cs->db, err, sql, "it", clock_epoch_ms(), text);

	if (r < 0)
		return r;
	*ret_id = (uint64_t)sqlite3_last_insert_rowid(cs->db.handle);
	return 0;
}

int case_add_note(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err)
{
	return insert(cs, "INSERT INTO note (made_ms, text) VALUES (?,?)", text, ret_id, err);
}

int case_add_hypothesis(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err)
{
	return insert(cs, "INSERT INTO hypothesis (made_ms, text) VALUES (?,?)", text, ret_id, err);
}

int case_add_workaround(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err)
{
	return insert(cs, "INSERT INTO workaround (made_ms, text) VALUES (?,?)", text, ret_id, err);
}

int case_remove_workaround(struct case_store *cs, uint64_t id, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "UPDATE workaround SET removed_ms = ? WHERE id = ?"
			 " AND removed_ms IS NULL",
			 "ii", clock_epoch_ms(), (int64_t)id);

	if (r < 0 || sqlite3_changes(cs->db.handle) > 0)
		return r;
	(void)err_set(err, -ENOENT, "the case '%s' has no workaround %llu in place", cs->dir,
		      (unsigned long long)id);
	return err_set_remedy(err, "redhand case show lists them");
}

static int is_parked(struct case_store *cs, int64_t *ret, struct err *err)
{
	return db_get_int(&cs->db,
			  "SELECT coalesce(max(id), 0) FROM parking WHERE resumed_ms IS NULL", ret,
			  err);
}

int case_park(struct case_store *cs, const struct parking *parking, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	const struct world *world = &parking->world;
	int64_t parked = 0;
	int r = is_parked(cs, &parked, err);

	if (r == 0 && parked != 0) {
		(void)err_set(err, -EALREADY, "the case '%s' is parked already", cs->dir);
		return err_set_remedy(err,
				      "redhand case show tells why; redhand case resume ends it");
	}
	if (r < 0)
		return r;
	return db_first(&cs->db, &query, err,
			"INSERT INTO parking (made_ms, because, until, commit_id, program,"
			" kernel, machine, redhand, variables) VALUES (?,?,?,?,?,?,?,?,?)",
			"ittssssss", clock_epoch_ms(), parking->because, parking->until,
			world->commit, world->program, world->kernel, world->machine,
			world->redhand, world->variables ? world->variables : "");
}

int case_resume(struct case_store *cs, const char *gate, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int64_t parked = 0;
	int r = is_parked(cs, &parked, err);

	if (r == 0 && parked == 0)
		return err_set(err, -ENOENT, "the case '%s' is not parked", cs->dir);
	if (r < 0)
		return r;
	return db_first(&cs->db, &query, err,
			"UPDATE parking SET resumed_ms = ?, gate = ? WHERE id = ?", "iti",
			clock_epoch_ms(), gate, parked);
}

int case_add_sentinel(struct case_store *cs, const struct sentinel_note *sentinel, struct err *err)
{
	return db_run(&cs->db, err,
		      "INSERT INTO sentinel (made_ms, dir, series, signature, failed, trials)"
		      " VALUES (?,?,?,?,?,?)",
		      "isisii", clock_epoch_ms(), sentinel->dir, sentinel->series,
		      sentinel->signature, (int64_t)sentinel->failed, (int64_t)sentinel->trials);
}

static int read_notes(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db, "SELECT id, made_ms, text FROM note ORDER BY id", &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->notes, ((struct note){ .id = (uint64_t)query_int(&query, 0),
						      .made_ms = query_int(&query, 1),
						      .text = mem_strdup(query_text(&query, 2)) }));
	return r;
}

static int read_workarounds(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT id, made_ms, text FROM workaround WHERE removed_ms IS NULL"
			   " ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->workarounds,
			 ((struct workaround){ .id = (uint64_t)query_int(&query, 0),
					       .made_ms = query_int(&query, 1),
					       .text = mem_strdup(query_text(&query, 2)) }));
	return r;
}

static int read_parkings(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(
		&cs->db,
		"SELECT id, made_ms, because, until, commit_id, program, kernel,"
		" machine, redhand, variables, resumed_ms, gate FROM parking ORDER BY id",
		&query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->parkings,
			 ((struct parking){ .id = (uint64_t)query_int(&query, 0),
					    .made_ms = query_int(&query, 1),
					    .because = mem_strdup(query_text(&query, 2)),
					    .until = mem_strdup(query_text(&query, 3)),
					    .world = { .commit = store_text(&query, 4),
						       .program = store_text(&query, 5),
						       .kernel = store_text(&query, 6),
						       .machine = store_text(&query, 7),
						       .redhand = store_text(&query, 8),
						       .variables = store_text(&query, 9) },
					    .resumed_ms = query_int(&query, 10),
					    .gate = store_text(&query, 11) }));
	return r;
}

/* What was never written becomes none. */
static uint64_t store_count(struct query *query, int column)
{
	int64_t value = query_int(query, column);

	return value > 0 ? (uint64_t)value : 0;
}

static int read_sentinels(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT made_ms, dir, series, signature, failed, trials FROM sentinel"
			   " ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct sentinel_note sentinel = { .made_ms = query_int(&query, 0),
						  .dir = mem_strdup(query_text(&query, 1)),
						  .series = query_int(&query, 2),
						  .failed = store_count(&query, 4),
						  .trials = store_count(&query, 5) };

		(void)snprintf(sentinel.signature, sizeof(sentinel.signature), "%s",
			       query_text(&query, 3));
		VEC_PUSH(&ret->sentinels, sentinel);
	}
	return r;
}

int case_notebook(struct case_store *cs, struct notebook *ret, struct err *err)
{
	int r = read_notes(cs, ret, err);

	if (r == 0)
		r = store_read_hypotheses(cs, ret, err);
	if (r == 0)
		r = read_workarounds(cs, ret, err);
	if (r == 0)
		r = read_parkings(cs, ret, err);
	if (r == 0)
		r = read_sentinels(cs, ret, err);
	return r < 0 ? r : store_read_attempts(cs, ret, err);
}
