/*
 * Evidence, verdicts, and the decisions of a hunt.
 */
#include "base/now.h"
#include "case/case.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "case/case_inside.h"

int case_add_evidence(struct case_store *cs, struct evidence *evidence, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	AUTO(said_deinit) struct said said = { 0 };
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	AUTO(strbuf_deinit) struct strbuf detail = { 0 };
	int fault = fault_hits("commit");
	int r;

	evidence_say(evidence, &said);
	said_plainly(&said, &text);
	evidence_pack(evidence, &detail);
	if (fault > 0)
		return db_error(&cs->db, fault == ENOSPC ? SQLITE_FULL : SQLITE_IOERR, err);
	r = db_first(&cs->db, &query, err,
		     "INSERT INTO evidence (trial, failing, kind, text, created_ms, detail)"
		     " VALUES (?,?,?,?,?,?)",
		     "iissib", (int64_t)evidence->trial, (int64_t)evidence->failing,
		     evidence_kind_name(evidence->kind), strbuf_str(&text), clock_epoch_ms(),
		     &detail);
	if (r == 0)
		evidence->id = (uint64_t)sqlite3_last_insert_rowid(cs->db.handle);
	return r;
}

static int damaged(struct case_store *cs, const char *what, int64_t id, struct err *err)
{
	AUTO(mem_freep) char *why = err ? mem_strdup(err->message) : NULL;
	/* A newer redhand's is no damage. */
	int code = err && err->code == -EPROTO ? -EPROTO : -EUCLEAN;

	(void)err_set(err, code, "%s %lld in '%s': %s", what, (long long)id, cs->db_path,
		      why ? why : "it is damaged");
	(void)err_set_remedy(
		err, code == -EPROTO ? "use the newer redhand that wrote it, or another --case DIR"
				     : "move that directory away, or name another with --case DIR");
	return code;
}

static int count_trials(struct case_store *cs, struct evidence_list *ret, struct err *err)
{
	int64_t trials, failed;
	int r = db_get_int(&cs->db, "SELECT count(*) FROM trial", &trials, err);

	if (r == 0)
		r = db_get_int(&cs->db,
			       "SELECT count(*) FROM trial t JOIN outcome o ON o.id = t.outcome"
			       " WHERE o.signatures != ''",
			       &failed, err);
	if (r < 0)
		return r;
	ret->trials = (uint64_t)trials;
	ret->failed = (uint64_t)failed;
	return 0;
}

static int read_evidence(struct case_store *cs, struct query *query, struct evidence_list *ret,
			 struct err *err)
{
	struct evidence evidence;
	struct err why = { 0 };
	size_t len;
	const void *bytes = query_bytes(query, 1, &len);
	int r = evidence_unpack(bytes, len, &evidence, &why);

	if (r < 0) {
		if (err)
			*err = why;
		return damaged(cs, "evidence", query_int(query, 0), err);
	}
	evidence.id = (uint64_t)query_int(query, 0);
	VEC_PUSH(&ret->list, evidence);
	return 0;
}

int case_evidence(struct case_store *cs, struct evidence_list *ret, struct err *err)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(db_endp) struct query query = { 0 };
	int r = count_trials(cs, &list, err);

	if (r == 0)
		r = db_prepare(&cs->db, "SELECT id, detail FROM evidence ORDER BY id", &query, err);
	while (r >= 0 && (r = db_step(&query, err)) == 1)
		r = read_evidence(cs, &query, &list, err);
	if (r < 0)
		return r;
	*ret = list;
	list = (struct evidence_list){ 0 };
	return 0;
}

int case_add_verdict(struct case_store *cs, const struct verdict *verdict, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	AUTO(strbuf_deinit) struct strbuf sentence = { 0 };
	AUTO(strbuf_deinit) struct strbuf detail = { 0 };

	said_plainly(&verdict->sentence, &sentence);
	verdict_pack(verdict, &detail);
	return db_first(&cs->db, &query, err,
			"INSERT INTO verdict (class, firm, sentence, caught, watched, trials,"
			" created_ms, detail) VALUES (?,?,?,?,?,?,?,?)",
			"sisiiiib", verdict_class_name(verdict->class), (int64_t)verdict->firm,
			strbuf_str(&sentence), (int64_t)verdict->caught, (int64_t)verdict->watched,
			(int64_t)verdict->trials, clock_epoch_ms(), &detail);
}

int case_verdict(struct case_store *cs, struct verdict *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	struct err why = { 0 };
	const void *bytes;
	size_t len;
	int r = db_prepare(&cs->db, "SELECT id, detail FROM verdict ORDER BY id DESC LIMIT 1",
			   &query, err);

	if (r == 0)
		r = db_step(&query, err);
	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, -ENOENT, "there is no verdict in '%s' yet", cs->dir);
	bytes = query_bytes(&query, 1, &len);
	r = verdict_unpack(bytes, len, ret, &why);
	if (r < 0) {
		if (err)
			*err = why;
		return damaged(cs, "verdict", query_int(&query, 0), err);
	}
	return 0;
}

/* A statement twice: plainly for whoever reads the database, and packed. */
struct stored_said {
	struct strbuf text, packed;
};

static void stored_said_init(struct stored_said *ret, const struct said *said)
{
	*ret = (struct stored_said){ 0 };
	said_plainly(said, &ret->text);
	said_pack(said, &ret->packed);
}

static void stored_said_deinit(struct stored_said *stored)
{
	strbuf_deinit(&stored->text);
	strbuf_deinit(&stored->packed);
}

static char *printable(const char *text)
{
	struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strlen(text));
	return strbuf_take(&sb);
}

/* What an older redhand stored, or what is damaged, is told as its text. */
static void read_said(struct query *query, int text, int packed, struct said *ret)
{
	AUTO(mem_freep) char *plain = printable(query_text(query, text));
	size_t len;
	const void *bytes = query_bytes(query, packed, &len);

	if (len == 0 || !said_unpack(bytes, len, ret))
		said_as_text(ret, plain);
}

int case_add_decision(struct case_store *cs, const char *stage, const struct said *said,
		      struct err *err)
{
	AUTO(stored_said_deinit) struct stored_said stored;

	stored_said_init(&stored, said);
	return db_run(&cs->db, err,
		      "INSERT INTO decision (time_ms, stage, text, said) VALUES (?,?,?,?)", "issb",
		      clock_epoch_ms(), stage, strbuf_str(&stored.text), &stored.packed);
}

int case_decisions(struct case_store *cs, struct decision_list *ret, struct err *err)
{
	AUTO(decision_list_deinit) struct decision_list list = { 0 };
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT id, time_ms, stage, text, said FROM decision ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct decision decision = { .id = (uint64_t)query_int(&query, 0),
					     .time_ms = query_int(&query, 1),
					     .stage = printable(query_text(&query, 2)) };

		read_said(&query, 3, 4, &decision.said);
		VEC_PUSH(&list.list, decision);
	}
	if (r < 0)
		return r;
	*ret = list;
	list = (struct decision_list){ 0 };
	return 0;
}

int case_add_choice(struct case_store *cs, const struct choice_record *choice, uint64_t *ret_id,
		    struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	AUTO(stored_said_deinit) struct stored_said why;
	int64_t id = 0;
	int r;

	stored_said_init(&why, &choice->why);
	r = db_first(&cs->db, &query, err,
		     "INSERT INTO choice (time_ms, question, experiment, why, why_said,"
		     " expected_trials, expected_failures, expected_s)"
		     " VALUES (?,?,?,?,?,?,?,?)",
		     "isssbddd", clock_epoch_ms(), choice->question, choice->experiment,
		     strbuf_str(&why.text), &why.packed, choice->expected_trials,
		     choice->expected_failures, choice->expected_s);
	if (r >= 0)
		r = db_get_int(&cs->db, "SELECT last_insert_rowid()", &id, err);
	if (r < 0)
		return r;
	*ret_id = (uint64_t)id;
	return 0;
}

int case_end_choice(struct case_store *cs, uint64_t id, const struct choice_record *choice,
		    struct err *err)
{
	AUTO(stored_said_deinit) struct stored_said brought;

	stored_said_init(&brought, &choice->brought);
	return db_run(&cs->db, err,
		      "UPDATE choice SET trials=?, failures=?, seconds=?, brought=?,"
		      " brought_said=? WHERE id=?",
		      "iidsbi", (int64_t)choice->trials, (int64_t)choice->failures, choice->seconds,
		      strbuf_str(&brought.text), &brought.packed, (int64_t)id);
}

int case_choices(struct case_store *cs, struct choice_list *ret, struct err *err)
{
	AUTO(choice_list_deinit) struct choice_list list = { 0 };
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT time_ms, question, experiment, why, expected_trials,"
			   " expected_failures, expected_s, trials, failures, seconds,"
			   " brought IS NOT NULL, coalesce(brought, ''), why_said, brought_said"
			   " FROM choice ORDER BY id",
			   &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		struct choice_record choice = { .time_ms = query_int(&query, 0),
						.question = printable(query_text(&query, 1)),
						.experiment = printable(query_text(&query, 2)),
						.expected_trials = query_real(&query, 4),
						.expected_failures = query_real(&query, 5),
						.expected_s = query_real(&query, 6),
						.ended = query_int(&query, 10) != 0,
						.trials = (uint64_t)query_int(&query, 7),
						.failures = (uint64_t)query_int(&query, 8),
						.seconds = query_real(&query, 9) };

		read_said(&query, 3, 12, &choice.why);
		if (choice.ended)
			read_said(&query, 11, 13, &choice.brought);
		VEC_PUSH(&list.list, choice);
	}
	if (r < 0)
		return r;
	*ret = list;
	list = (struct choice_list){ 0 };
	return 0;
}

int case_clear_evidence(struct case_store *cs, struct err *err)
{
	int r = store_begin(cs, err);

	if (r < 0)
		return r;
	r = db_exec(&cs->db,
		    "DELETE FROM verdict; DELETE FROM evidence;"
		    "DELETE FROM choice; DELETE FROM decision WHERE stage <> 'bisect'",
		    err);
	return db_end(&cs->db, r, err);
}
