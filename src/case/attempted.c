/*
 * Fixes that were tried, next steps, related cases, and where trials were run.
 */
#include "case/stored_notebook.h"

#include <errno.h>
#include <string.h>

#include "base/now.h"
#include "case/case_inside.h"

int case_add_attempt(struct case_store *cs, const struct attempt *attempt, uint64_t *ret_id,
		     struct err *err)
{
	const struct world *world = &attempt->world;
	int r = db_run(&cs->db, err,
		       "INSERT INTO attempt (made_ms, text, commit_id, branch, program, diff,"
		       " after_trial) VALUES (?,?,?,?,?,?,"
		       " (SELECT coalesce(max(number), 0) FROM trial))",
		       "itssst", clock_epoch_ms(), attempt->text, world->commit, world->branch,
		       world->program, attempt->diff);

	if (r == 0)
		*ret_id = (uint64_t)sqlite3_last_insert_rowid(cs->db.handle);
	return r;
}

int case_add_step(struct case_store *cs, const char *text, uint64_t *ret_id, struct err *err)
{
	int r = db_run(&cs->db, err, "INSERT INTO step (made_ms, text) VALUES (?,?)", "it",
		       clock_epoch_ms(), text);

	if (r == 0)
		*ret_id = (uint64_t)sqlite3_last_insert_rowid(cs->db.handle);
	return r;
}

int case_end_step(struct case_store *cs, uint64_t id, struct err *err)
{
	int r = db_run(&cs->db, err, "UPDATE step SET done_ms = ? WHERE id = ? AND done_ms IS NULL",
		       "ii", clock_epoch_ms(), (int64_t)id);

	if (r < 0 || sqlite3_changes(cs->db.handle) > 0)
		return r;
	(void)err_set(err, -ENOENT, "the case '%s' has no step %llu to do", cs->dir,
		      (unsigned long long)id);
	return err_set_remedy(err, "redhand case show lists them");
}

int case_add_relation(struct case_store *cs, const char *dir, const struct strv *common,
		      struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf lines = { 0 };

	for (size_t i = 0; i < common->count; i++)
		strbuf_addf(&lines, "%s%s", i > 0 ? "\n" : "", common->items[i]);
	return db_run(&cs->db, err,
		      "INSERT INTO relation (made_ms, dir, common) VALUES (?,?,?)"
		      " ON CONFLICT (dir) DO UPDATE SET made_ms = excluded.made_ms,"
		      " common = excluded.common",
		      "iss", clock_epoch_ms(), dir, strbuf_str(&lines));
}

#define WORLD_COLUMNS "commit_id, branch, program, kernel, machine, redhand"

int case_add_surroundings(struct case_store *cs, const struct world *world, struct err *err)
{
	return db_run(&cs->db, err,
		      "INSERT INTO surroundings (seen_ms, " WORLD_COLUMNS ")"
		      " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM"
		      " surroundings WHERE id = (SELECT max(id) FROM surroundings)"
		      " AND commit_id IS ?2 AND branch IS ?3 AND program IS ?4"
		      " AND kernel IS ?5 AND machine IS ?6 AND redhand IS ?7)",
		      "issssss", clock_epoch_ms(), world->commit, world->branch, world->program,
		      world->kernel, world->machine, world->redhand);
}

int case_trials_after(struct case_store *cs, uint64_t after, uint64_t last, later_fn fn, void *ctx,
		      struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT s.command, o.signatures, t.cut_short, s.program IN (SELECT program"
			 " FROM series JOIN trial ON trial.series = series.id WHERE trial.number"
			 " <= ?1), count(*), min(t.number) FROM trial t"
			 " JOIN series s ON s.id = t.series JOIN outcome o ON o.id = t.outcome"
			 " WHERE t.number > ?1 AND t.number <= ?2 GROUP BY 1, 2, 3, 4"
			 " ORDER BY min(t.number)",
			 "ii", (int64_t)after, (int64_t)last);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		fn(ctx, &(struct later_row){ .command = query_text(&query, 0),
					     .signatures = query_text(&query, 1),
					     .cut_short = query_int(&query, 2) != 0,
					     .same_build = query_int(&query, 3) != 0,
					     .count = (uint64_t)query_int(&query, 4),
					     .trial = (uint64_t)query_int(&query, 5) });
	return r;
}

static int read_attempts(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT id, made_ms, text, commit_id, branch, program, diff, after_trial"
			   " FROM attempt ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->attempts,
			 ((struct attempt){ .id = (uint64_t)query_int(&query, 0),
					    .made_ms = query_int(&query, 1),
					    .text = mem_strdup(query_text(&query, 2)),
					    .world = { .commit = store_text(&query, 3),
						       .branch = store_text(&query, 4),
						       .program = store_text(&query, 5) },
					    .diff = store_text(&query, 6),
					    .after = (uint64_t)query_int(&query, 7) }));
	return r;
}

static int read_steps(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db, "SELECT id, made_ms, text, done_ms FROM step ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->steps, ((struct step){ .id = (uint64_t)query_int(&query, 0),
						      .made_ms = query_int(&query, 1),
						      .text = mem_strdup(query_text(&query, 2)),
						      .done_ms = query_int(&query, 3) }));
	return r;
}

static void add_lines(const char *text, struct strv *ret)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		if (len > 0)
			strv_take(ret, mem_strndup(text, len));
		text += len + (text[len] == '\n');
	}
}

static int read_relations(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db, "SELECT id, made_ms, dir, common FROM relation ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct relation relation = { .id = (uint64_t)query_int(&query, 0),
					     .made_ms = query_int(&query, 1),
					     .dir = mem_strdup(query_text(&query, 2)) };

		add_lines(query_text(&query, 3), &relation.common);
		VEC_PUSH(&ret->relations, relation);
	}
	return r;
}

static int read_surroundings(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT seen_ms, " WORLD_COLUMNS " FROM surroundings ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->surroundings,
			 ((struct surroundings){ .seen_ms = query_int(&query, 0),
						 .world = { .commit = store_text(&query, 1),
							    .branch = store_text(&query, 2),
							    .program = store_text(&query, 3),
							    .kernel = store_text(&query, 4),
							    .machine = store_text(&query, 5),
							    .redhand = store_text(&query, 6) } }));
	return r;
}

int store_read_attempts(struct case_store *cs, struct notebook *ret, struct err *err)
{
	int r = read_attempts(cs, ret, err);

	if (r == 0)
		r = read_steps(cs, ret, err);
	if (r == 0)
		r = read_relations(cs, ret, err);
	return r < 0 ? r : read_surroundings(cs, ret, err);
}
