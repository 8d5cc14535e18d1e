/*
 * Trials: storing one, and finding free places for the next.
 */
#include "case/case.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "base/strbuf.h"
#include "case/case_inside.h"

static const char *const statement_sql[STATEMENTS] = {
	[STATEMENT_TRIAL_ADD] =
		"INSERT INTO trial (number, series, position, arm, slot, outcome, cut_short,"
		" exit_status, signal, timed_out, stray_signal, leftovers, started_ms, wall_ns,"
		" user_ns, system_ns, peak_kib, stdout_bytes, stderr_bytes, crumb, kept)"
		" VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,nullif(?,0),?)",
	[STATEMENT_SIGNATURE_ADD] = "INSERT OR IGNORE INTO signature (id, kind, signal,"
				    " exit_status, stray, test, crumb, fault, site, summary)"
				    " VALUES (?,?,?,?,?,?,?,?,?,?)",
	[STATEMENT_OUTCOME_ADD] = "INSERT OR IGNORE INTO outcome (signatures) VALUES (?)",
	[STATEMENT_OUTCOME_GET] = "SELECT id FROM outcome WHERE signatures = ?",
	[STATEMENT_CRUMB_ADD] = "INSERT OR IGNORE INTO crumb (text) VALUES (?)",
	[STATEMENT_CRUMB_GET] = "SELECT id FROM crumb WHERE text = ?",
	[STATEMENT_NEXT_ADD] = "INSERT INTO crumb_next (series, crumb, next, runs) VALUES (?,?,?,1)"
			       " ON CONFLICT DO UPDATE SET runs = runs + 1",
	[STATEMENT_LEARNT] = "UPDATE series SET learnt = learnt + 1 WHERE id = ?",
	[STATEMENT_POSITION_GET] = "SELECT 1 FROM trial WHERE series = ? AND position = ?",
	[STATEMENT_NUMBER_GET] = "SELECT 1 FROM trial WHERE number = ?",
	[STATEMENT_LIST_ADD] = "INSERT OR IGNORE INTO list (series, items) VALUES (?,?)",
	[STATEMENT_LIST_GET] = "SELECT id FROM list WHERE series = ? AND items = ?",
	[STATEMENT_LIST_RUN_ADD] = "INSERT INTO list_run (trial, list, purpose, started, complete,"
				   " told) VALUES (?,?,?,?,?,?)",
	[STATEMENT_CHAOS_ADD] = "INSERT INTO chaos (trial, seed, knobs, pad_bytes, gap_bytes,"
				" heap_bytes, core, hold_weight, arm_us)"
				" VALUES (?,?,?,?,?,?,?,?,?)",
	[STATEMENT_MACHINE_ADD] =
		"INSERT OR IGNORE INTO machine (node, cores, cpu, microcode, kernel,"
		" gpu) VALUES (?,?,?,?,?,?)",
	[STATEMENT_TRIAL_MACHINE_ADD] =
		"INSERT INTO trial_machine (trial, machine) SELECT ?, id FROM machine WHERE node = ?"
		" AND cores = ? AND cpu = ? AND microcode = ? AND kernel = ? AND gpu = ?",
};

/* The prepared statement, made on first use. NULL with err set on failure. */
static struct query *store_statement(struct case_store *cs, enum statement which, struct err *err)
{
	struct query *query = &cs->statements[which];

	if (!query->stmt && db_prepare(&cs->db, statement_sql[which], query, err) < 0)
		return NULL;
	return query;
}

/* Runs a statement that is there to change something. */
#define RUN(cs, which, err, ...)                                                   \
	({                                                                         \
		struct query *query_ = store_statement(cs, which, err);            \
		int r_ = query_ ? db_bind(query_, err, __VA_ARGS__) : (err)->code; \
		r_ < 0 ? r_ : db_step(query_, err);                                \
	})

/* The first column of the first row, 0 when there is no row. */
#define GET(cs, which, ret, err, ...)                                            \
	({                                                                       \
		int got_ = RUN(cs, which, err, __VA_ARGS__);                     \
		*(ret) = got_ == 1 ? query_int(&(cs)->statements[which], 0) : 0; \
		if (got_ == 1)                                                   \
			(void)sqlite3_reset((cs)->statements[which].stmt);       \
		got_ < 0 ? got_ : 0;                                             \
	})

static int add_signature(struct case_store *cs, const struct signature *s, struct err *err)
{
	return RUN(cs, STATEMENT_SIGNATURE_ADD, err, "ssiiisssss", s->id,
		   failure_kind_name(s->kind), (int64_t)s->signal, (int64_t)s->exit_status,
		   (int64_t)s->stray, s->test, s->crumb, s->fault, s->site, s->summary);
}

/* Judges hand signatures over in ascending order of their ids. */
static int outcome_id(struct case_store *cs, const struct signatures *signatures, int64_t *ret,
		      struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf ids = { 0 };
	int r = 0;

	VEC_FOREACH (&signatures->list, s) {
		strbuf_addf(&ids, "%s%s", ids.len > 0 ? " " : "", s->id);
		if (r == 0)
			r = add_signature(cs, s, err);
	}
	if (r == 0)
		r = RUN(cs, STATEMENT_OUTCOME_ADD, err, "s", strbuf_str(&ids));
	if (r == 0)
		r = GET(cs, STATEMENT_OUTCOME_GET, ret, err, "s", strbuf_str(&ids));
	return r;
}

static int crumb_id(struct case_store *cs, const char *text, int64_t *ret, struct err *err)
{
	int r = GET(cs, STATEMENT_CRUMB_GET, ret, err, "s", text);

	if (r < 0 || *ret != 0)
		return r;
	r = RUN(cs, STATEMENT_CRUMB_ADD, err, "s", text);
	return r < 0 ? r : GET(cs, STATEMENT_CRUMB_GET, ret, err, "s", text);
}

static int add_pairs(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	const struct trial_end *end = record->end;
	int64_t from, to;
	int r = 0;

	if (end->pairs.count == 0)
		return 0;
	VEC_FOREACH (&end->pairs, pair) {
		r = crumb_id(cs, pair->from, &from, err);
		if (r == 0)
			r = crumb_id(cs, pair->to, &to, err);
		if (r == 0)
			r = RUN(cs, STATEMENT_NEXT_ADD, err, "iii", record->series.value, from, to);
		if (r < 0)
			return r;
	}
	return RUN(cs, STATEMENT_LEARNT, err, "i", record->series.value);
}

static int add_list_run(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	const struct list_run *run = record->list_run;
	int64_t list = 0;
	int r;

	if (!run)
		return 0;
	r = RUN(cs, STATEMENT_LIST_ADD, err, "is", record->series.value, run->items);
	if (r == 0)
		r = GET(cs, STATEMENT_LIST_GET, &list, err, "is", record->series.value, run->items);
	if (r < 0)
		return r;
	return RUN(cs, STATEMENT_LIST_RUN_ADD, err, "iiiiii", (int64_t)record->number.value, list,
		   (int64_t)run->purpose, (int64_t)run->started, (int64_t)run->complete,
		   (int64_t)run->told);
}

static int add_chaos(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf knobs = { 0 };
	const struct chaos *chaos = record->chaos;

	if (!chaos)
		return 0;
	chaos_list(chaos->knobs, &knobs);
	return RUN(cs, STATEMENT_CHAOS_ADD, err, "iisiiiiii", (int64_t)record->number.value,
		   (int64_t)chaos->seed, strbuf_str(&knobs), (int64_t)chaos->pad_bytes,
		   (int64_t)chaos->gap_bytes, (int64_t)chaos->heap_bytes, (int64_t)chaos->core,
		   (int64_t)chaos->hold_weight, (int64_t)chaos->arm_us);
}

static int add_machine(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	const struct machine_facts *p = record->machine;
	int r;

	if (!p)
		return 0;
	r = RUN(cs, STATEMENT_MACHINE_ADD, err, "ssssss", p->node, p->cores, p->cpu, p->microcode,
		p->kernel, p->gpu);
	return r < 0 ? r
		     : RUN(cs, STATEMENT_TRIAL_MACHINE_ADD, err, "issssss",
			   (int64_t)record->number.value, p->node, p->cores, p->cpu, p->microcode,
			   p->kernel, p->gpu);
}

static int add_rows(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	const struct trial_end *end = record->end;
	int64_t outcome = 0, crumb = 0;
	int r = outcome_id(cs, record->signatures, &outcome, err);

	if (r == 0 && record->signatures->list.count > 0)
		r = crumb_id(cs, end->last_crumb ? end->last_crumb : CRUMB_START, &crumb, err);
	if (r == 0)
		r = add_pairs(cs, record, err);
	if (r < 0)
		return r;
	return RUN(cs, STATEMENT_TRIAL_ADD, err, "iiiiiiiiiiiiiiiiiiiii",
		   (int64_t)record->number.value, record->series.value, (int64_t)record->position,
		   (int64_t)record->arm, (int64_t)record->slot, outcome,
		   (int64_t)trial_end_cut_short(end), (int64_t)end->exit_status,
		   (int64_t)end->signal, (int64_t)end->timed_out, (int64_t)end->stray.signal,
		   (int64_t)end->leftovers, end->started_ms, (int64_t)end->wall_ns,
		   (int64_t)end->user_ns, (int64_t)end->system_ns, (int64_t)end->peak_kib,
		   (int64_t)end->stdout_bytes, (int64_t)end->stderr_bytes, crumb,
		   (int64_t)record->kept);
}

/* SQLite would go on with a file that has no name any more, and all of it would be lost. */
static int still_there(const struct case_store *cs, struct err *err)
{
	struct stat st;

	if (fstat(cs->lock_fd, &st) < 0 || st.st_nlink > 0)
		return 0;
	(void)err_set(err, -ENOENT, "the case '%s' was removed while it was in use", cs->dir);
	return err_set_remedy(err, "run the same command again, which makes a new one");
}

int case_flush(struct case_store *cs, struct err *err)
{
	int r = cs->batch > 0 ? db_end(&cs->db, 0, err) : 0;

	cs->batch = 0;
	return r;
}

int store_begin(struct case_store *cs, struct err *err)
{
	int r = case_flush(cs, err);

	return r < 0 ? r : db_exec(&cs->db, "BEGIN IMMEDIATE", err);
}

static int add_all(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	int r = add_rows(cs, record, err);

	if (r == 0)
		r = add_list_run(cs, record, err);
	if (r == 0)
		r = add_chaos(cs, record, err);
	return r == 0 ? add_machine(cs, record, err) : r;
}

int case_add_trial(struct case_store *cs, const struct trial_record *record, struct err *err)
{
	int fault = fault_hits("commit");
	int r = still_there(cs, err);

	if (r == 0 && cs->batch == 0)
		r = db_exec(&cs->db, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	cs->batch++;
	r = add_all(cs, record, err);
	if (r == 0 && fault > 0)
		r = db_error(&cs->db, fault == ENOSPC ? SQLITE_FULL : SQLITE_IOERR, err);
	if (r < 0) {
		(void)db_exec(&cs->db, "ROLLBACK", NULL);
		cs->batch = 0;
		return r;
	}
	return record->more && cs->batch < CASE_BATCH_MOST ? 0 : case_flush(cs, err);
}

int case_position_done(struct case_store *cs, struct series_id series, uint64_t position, bool *ret,
		       struct err *err)
{
	int64_t found;
	int r = GET(cs, STATEMENT_POSITION_GET, &found, err, "ii", series.value, (int64_t)position);

	if (r == 0)
		*ret = found != 0;
	return r;
}

int case_free_number(struct case_store *cs, uint64_t after, struct trial_number *ret,
		     struct err *err)
{
	int64_t found;

	for (uint64_t number = after + 1;; number++) {
		int r = GET(cs, STATEMENT_NUMBER_GET, &found, err, "i", (int64_t)number);

		if (r < 0)
			return r;
		if (found == 0) {
			ret->value = number;
			return 0;
		}
	}
}
