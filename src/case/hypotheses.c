/*
 * The user's hypotheses: each change of status is a row, and the last one holds.
 */
#include <errno.h>

#include "base/now.h"
#include "case/case_inside.h"
#include "case/stored_notebook.h"

static int exists(struct case_store *cs, const char *sql, uint64_t number, bool *ret,
		  struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err, sql, "i", (int64_t)number);

	if (r < 0)
		return r;
	*ret = r == 1;
	return 0;
}

/* A case that nobody has chased anything in has no such table. */
static int evidence_exists(struct case_store *cs, uint64_t id, bool *ret, struct err *err)
{
	int64_t tables = 0;
	int r = db_get_int(&cs->db, "SELECT count(*) FROM sqlite_schema WHERE name = 'evidence'",
			   &tables, err);

	if (r < 0)
		return r;
	*ret = false;
	return tables == 0 ? 0 : exists(cs, "SELECT 1 FROM evidence WHERE rowid = ?", id, ret, err);
}

/* An observation that nobody can look up is none. */
static int check_seen(struct case_store *cs, const struct citation *seen, struct err *err)
{
	bool there = true;
	int r = 0;

	if (seen->trial != 0)
		r = exists(cs, "SELECT 1 FROM trial WHERE number = ?", seen->trial, &there, err);
	else if (seen->evidence != 0)
		r = evidence_exists(cs, seen->evidence, &there, err);
	if (r < 0 || there)
		return r;
	if (seen->trial != 0)
		return err_set(err, -ENOENT, "there is no trial %llu in '%s'",
			       (unsigned long long)seen->trial, cs->dir);
	return err_set(err, -ENOENT, "there is no evidence e%llu in '%s'",
		       (unsigned long long)seen->evidence, cs->dir);
}

static int add_change(struct case_store *cs, uint64_t id, const struct hypothesis_change *change,
		      struct err *err)
{
	return db_run(&cs->db, err,
		      "INSERT INTO hypothesis_change (hypothesis, made_ms, status, because,"
		      " trial, evidence) VALUES (?,?,?,?,nullif(?,0),nullif(?,0))",
		      "iistii", (int64_t)id, clock_epoch_ms(),
		      hypothesis_status_word(change->status), change->because,
		      (int64_t)change->seen.trial, (int64_t)change->seen.evidence);
}

int case_change_hypothesis(struct case_store *cs, uint64_t id,
			   const struct hypothesis_change *change, struct err *err)
{
	bool there = false;
	int r = exists(cs, "SELECT 1 FROM hypothesis WHERE id = ?", id, &there, err);

	if (r < 0)
		return r;
	if (!there) {
		(void)err_set(err, -ENOENT, "the case '%s' has no hypothesis %llu", cs->dir,
			      (unsigned long long)id);
		return err_set_remedy(err, "redhand case show lists them");
	}
	r = check_seen(cs, &change->seen, err);
	return r < 0 ? r : add_change(cs, id, change, err);
}

static int read_changes(struct case_store *cs, struct hypothesis *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT made_ms, status, because, trial, evidence"
			 " FROM hypothesis_change WHERE hypothesis = ? ORDER BY seq",
			 "i", (int64_t)ret->id);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		enum hypothesis_status status = hypothesis_status_from(query_text(&query, 1));

		/* A word that nobody ever wrote decides nothing. */
		if (status == HYPOTHESIS_STATUSES)
			continue;
		VEC_PUSH(&ret->changes,
			 ((struct hypothesis_change){
				 .made_ms = query_int(&query, 0),
				 .status = status,
				 .because = store_text(&query, 2),
				 .seen = { .trial = (uint64_t)query_int(&query, 3),
					   .evidence = (uint64_t)query_int(&query, 4) } }));
		ret->status = status;
	}
	return r;
}

int store_read_hypotheses(struct case_store *cs, struct notebook *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db, "SELECT id, made_ms, text FROM hypothesis ORDER BY id", &query,
			   err);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct hypothesis hypothesis = { .id = (uint64_t)query_int(&query, 0),
						 .made_ms = query_int(&query, 1),
						 .text = mem_strdup(query_text(&query, 2)) };

		r = read_changes(cs, &hypothesis, err);
		VEC_PUSH(&ret->hypotheses, hypothesis);
	}
	return r;
}
