/*
 * What a series shows: counts and places, computed by the database.
 */
#include "case/case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "case/case_inside.h"

int case_tally(struct case_store *cs, struct series_id series, tally_fn fn, void *ctx,
	       struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT t.arm, t.slot, o.signatures, t.cut_short, count(*), min(t.number),"
			 " coalesce(p.node, '') FROM trial t JOIN outcome o ON o.id = t.outcome"
			 " LEFT JOIN trial_machine w ON w.trial = t.number"
			 " LEFT JOIN machine p ON p.id = w.machine WHERE t.series = ?"
			 " GROUP BY t.arm, t.slot, p.node, t.outcome, t.cut_short",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		fn(ctx, &(struct tally_row){
				.arm = (unsigned int)query_int(&query, 0),
				.slot = (unsigned int)query_int(&query, 1),
				.signatures = query_text(&query, 2),
				.cut_short = query_int(&query, 3) != 0,
				.count = (uint64_t)query_int(&query, 4),
				.trial = (uint64_t)query_int(&query, 5),
				.node = query_text(&query, 6),
			});
	return r;
}

static enum failure_kind kind_from_name(const char *name)
{
	for (unsigned int kind = 0; kind < FAILURE_KINDS; kind++)
		if (strcmp(name, failure_kind_name(kind)) == 0)
			return kind;
	return FAILURE_EXIT;
}

char *store_text(struct query *query, int column)
{
	return sqlite3_column_type(query->stmt, column) == SQLITE_NULL
		       ? NULL
		       : mem_strdup(query_text(query, column));
}

/* Who asks for one that is not there wants to know which are. */
#define KNOWN_SHOWN 6

static int no_signature(struct case_store *cs, const char *id, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf known = { 0 };
	AUTO(db_endp) struct query query = { 0 };
	unsigned int count = 0;
	int r = db_prepare(&cs->db, "SELECT id, summary FROM signature ORDER BY id", &query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		if (count++ < KNOWN_SHOWN)
			strbuf_addf(&known, "%s%s (%.80s)", count > 1 ? ", " : "",
				    query_text(&query, 0), query_text(&query, 1));
	if (r < 0)
		return r;
	if (count == 0)
		return err_set(err, -ENOENT,
			       "there is no signature '%s' in '%s': no trial there has failed", id,
			       cs->dir);
	return err_set(err, -ENOENT, "there is no signature '%s' in '%s'; it has %s%s", id, cs->dir,
		       strbuf_str(&known), count > KNOWN_SHOWN ? ", …" : "");
}

int case_signature(struct case_store *cs, const char *id, struct signature *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(
		&cs->db, &query, err,
		"SELECT kind, signal, exit_status, stray, test, crumb, fault, site, summary"
		" FROM signature WHERE id = ?",
		"s", id);

	if (r < 0)
		return r;
	if (r == 0)
		return no_signature(cs, id, err);
	*ret = (struct signature){
		.kind = kind_from_name(query_text(&query, 0)),
		.signal = (int)query_int(&query, 1),
		.exit_status = (int)query_int(&query, 2),
		.stray = query_int(&query, 3) != 0,
		.test = store_text(&query, 4),
		.crumb = store_text(&query, 5),
		.fault = store_text(&query, 6),
		.site = store_text(&query, 7),
		.summary = mem_strdup(query_text(&query, 8)),
	};
	(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	return 0;
}

int case_windows(struct case_store *cs, struct series_id series, const char *signature,
		 window_fn fn, void *ctx, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT c.text, count(*), min(t.number),"
			 "  (SELECT n.text FROM crumb_next f JOIN crumb n ON n.id = f.next"
			 "   WHERE f.series = t.series AND f.crumb = t.crumb"
			 "   ORDER BY f.runs DESC, n.id LIMIT 1)"
			 " FROM trial t JOIN crumb c ON c.id = t.crumb"
			 "  JOIN outcome o ON o.id = t.outcome"
			 " WHERE t.series = ?1 AND CASE WHEN ?2 = '' THEN t.cut_short"
			 "  ELSE instr(' ' || o.signatures || ' ', ' ' || ?2 || ' ') > 0 END"
			 " GROUP BY t.crumb ORDER BY count(*) DESC, min(t.number)",
			 "is", series.value, signature);

	while (r >= 0 && (r = db_step(&query, err)) == 1) {
		bool known = sqlite3_column_type(query.stmt, 3) != SQLITE_NULL;

		fn(ctx, &(struct window_row){
				.last = query_text(&query, 0),
				.count = (uint64_t)query_int(&query, 1),
				.trial = (uint64_t)query_int(&query, 2),
				.next = known ? query_text(&query, 3) : NULL,
			});
	}
	return r;
}

int case_runs(struct case_store *cs, struct series_id series, run_fn fn, void *ctx, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT t.position, t.arm, o.signatures, t.number, t.kept,"
			 " CASE WHEN t.signal != 0 THEN t.signal ELSE t.stray_signal END,"
			 " coalesce(p.node, ''), t.wall_ns"
			 " FROM trial t JOIN outcome o ON o.id = t.outcome"
			 " LEFT JOIN trial_machine w ON w.trial = t.number"
			 " LEFT JOIN machine p ON p.id = w.machine"
			 " WHERE t.series = ? ORDER BY t.position",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		fn(ctx, &(struct run_row){
				.position = (uint64_t)query_int(&query, 0),
				.arm = (unsigned int)query_int(&query, 1),
				.signatures = query_text(&query, 2),
				.trial = (uint64_t)query_int(&query, 3),
				.kept = query_int(&query, 4) != 0,
				.signal = (int)query_int(&query, 5),
				.node = query_text(&query, 6),
				.wall_ns = (uint64_t)query_int(&query, 7),
			});
	return r;
}

int case_use(struct case_store *cs, struct series_id series, struct use_row *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "SELECT avg(wall_ns), max(wall_ns), avg(user_ns), avg(system_ns),"
			 " max(peak_kib), sum(leftovers > 0), sum(cut_short),"
			 " sum(signal != 0 AND stdout_bytes % 4096 = 0),"
			 " sum(NOT cut_short AND stdout_bytes > 0) FROM trial WHERE series = ?",
			 "i", series.value);

	if (r < 0)
		return r;
	*ret = (struct use_row){
		.wall_mean_ns = sqlite3_column_double(query.stmt, 0),
		.wall_max_ns = sqlite3_column_double(query.stmt, 1),
		.user_mean_ns = sqlite3_column_double(query.stmt, 2),
		.system_mean_ns = sqlite3_column_double(query.stmt, 3),
		.peak_kib = (uint64_t)query_int(&query, 4),
		.leftovers = (uint64_t)query_int(&query, 5),
		.cut_short = (uint64_t)query_int(&query, 6),
		.cut_full_buffer = (uint64_t)query_int(&query, 7),
		.full_with_output = (uint64_t)query_int(&query, 8),
	};
	return 0;
}

/* A list that cannot be read (a newer redhand's, or damage) is no reason not to show the trial. */
static int trial_chaos(struct case_store *cs, struct trial_number number, struct chaos *ret,
		       struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	struct chaos chaos = { 0 };
	int r = db_first(&cs->db, &query, err,
			 "SELECT knobs, seed, pad_bytes, gap_bytes, heap_bytes, core, hold_weight,"
			 " arm_us FROM chaos WHERE trial = ?",
			 "i", (int64_t)number.value);

	if (r <= 0)
		return r;
	if (chaos_parse(query_text(&query, 0), &chaos.knobs, NULL) < 0)
		return 0;
	chaos.seed = (uint64_t)query_int(&query, 1);
	chaos.pad_bytes = (uint64_t)query_int(&query, 2);
	chaos.gap_bytes = (uint64_t)query_int(&query, 3);
	chaos.heap_bytes = (uint64_t)query_int(&query, 4);
	chaos.core = (int)query_int(&query, 5);
	chaos.hold_weight = (uint64_t)query_int(&query, 6);
	chaos.arm_us = (uint64_t)query_int(&query, 7);
	*ret = chaos;
	return 0;
}

static int no_trial(struct case_store *cs, struct trial_number number, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(&cs->db,
			   "SELECT count(*), min(t.number), max(t.number),"
			   " max(CASE WHEN o.signatures != '' THEN t.number END)"
			   " FROM trial t JOIN outcome o ON o.id = t.outcome",
			   &query, err);

	if (r == 0)
		r = db_step(&query, err);
	if (r < 0)
		return r;
	(void)err_set(err, -ENOENT, "there is no trial %llu in '%s'",
		      (unsigned long long)number.value, cs->dir);
	if (query_int(&query, 0) == 0)
		return err_set_remedy(err, "it has none yet: redhand repro -- PROGRAM runs some");
	if (sqlite3_column_type(query.stmt, 3) == SQLITE_NULL)
		return err_set_remedy(err, "it has %lld to %lld, of which none failed",
				      (long long)query_int(&query, 1),
				      (long long)query_int(&query, 2));
	return err_set_remedy(err, "it has %lld to %lld; %lld is the last that failed",
			      (long long)query_int(&query, 1), (long long)query_int(&query, 2),
			      (long long)query_int(&query, 3));
}

int case_trial(struct case_store *cs, struct trial_number number, struct trial_view *ret,
	       struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_first(
		&cs->db, &query, err,
		"SELECT t.position, t.slot, s.command, o.signatures, t.exit_status, t.signal,"
		" t.timed_out, t.kept, t.wall_ns, t.peak_kib, c.text, s.settings"
		" FROM trial t JOIN series s ON s.id = t.series"
		"  JOIN outcome o ON o.id = t.outcome LEFT JOIN crumb c ON c.id = t.crumb"
		" WHERE t.number = ?",
		"i", (int64_t)number.value);

	if (r < 0)
		return r;
	if (r == 0)
		return no_trial(cs, number, err);
	*ret = (struct trial_view){
		.number = number,
		.position = (uint64_t)query_int(&query, 0),
		.slot = (unsigned int)query_int(&query, 1),
		.command = mem_strdup(query_text(&query, 2)),
		.signatures = mem_strdup(query_text(&query, 3)),
		.exit_status = (int)query_int(&query, 4),
		.signal = (int)query_int(&query, 5),
		.timed_out = query_int(&query, 6) != 0,
		.kept = query_int(&query, 7) != 0,
		.wall_ns = (uint64_t)query_int(&query, 8),
		.peak_kib = (uint64_t)query_int(&query, 9),
		.last_crumb = store_text(&query, 10),
		.settings = mem_strdup(query_text(&query, 11)),
	};
	return trial_chaos(cs, number, &ret->chaos, err);
}

/* Of the signatures' summaries, in the order of their ids. */
#define SUMMARIES                                                                 \
	"(SELECT group_concat(summary, '; ') FROM (SELECT summary FROM signature" \
	" WHERE instr(' ' || o.signatures || ' ', ' ' || id || ' ') > 0 ORDER BY id))"

int case_trial_lines(struct case_store *cs, struct trial_lines *ret, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(
		&cs->db,
		"SELECT t.number, t.series, t.position, t.arm, t.slot, s.command,"
		" o.signatures, " SUMMARIES ", t.exit_status, t.signal, t.timed_out, t.kept,"
		" t.started_ms, t.wall_ns, t.stdout_bytes, t.stderr_bytes, c.knobs, l.items, b.text,"
		" p.node"
		" FROM trial t JOIN series s ON s.id = t.series"
		"  LEFT JOIN trial_machine w ON w.trial = t.number LEFT JOIN machine p ON p.id = w.machine"
		"  JOIN outcome o ON o.id = t.outcome LEFT JOIN chaos c ON c.trial = t.number"
		"  LEFT JOIN list_run n ON n.trial = t.number LEFT JOIN list l ON l.id = n.list"
		"  LEFT JOIN crumb b ON b.id = t.crumb"
		" ORDER BY t.number",
		&query, err);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		VEC_PUSH(&ret->list, ((struct trial_line){
					     .number = (uint64_t)query_int(&query, 0),
					     .series = (uint64_t)query_int(&query, 1),
					     .position = (uint64_t)query_int(&query, 2),
					     .arm = (unsigned int)query_int(&query, 3),
					     .slot = (unsigned int)query_int(&query, 4),
					     .command = mem_strdup(query_text(&query, 5)),
					     .signatures = mem_strdup(query_text(&query, 6)),
					     .summaries = store_text(&query, 7),
					     .exit_status = (int)query_int(&query, 8),
					     .signal = (int)query_int(&query, 9),
					     .timed_out = query_int(&query, 10) != 0,
					     .kept = query_int(&query, 11) != 0,
					     .started_ms = query_int(&query, 12),
					     .wall_ns = (uint64_t)query_int(&query, 13),
					     .stdout_bytes = (uint64_t)query_int(&query, 14),
					     .stderr_bytes = (uint64_t)query_int(&query, 15),
					     .chaos = store_text(&query, 16),
					     .items = store_text(&query, 17),
					     .crumb = store_text(&query, 18),
					     .node = store_text(&query, 19),
				     }));
	return r;
}

int case_crumb_order(struct case_store *cs, struct series_id series, crumb_order_fn fn, void *ctx,
		     struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT a.text, b.text, max(n.runs) FROM crumb_next n"
			 "  JOIN crumb a ON a.id = n.crumb JOIN crumb b ON b.id = n.next"
			 " WHERE n.series = ? GROUP BY n.crumb ORDER BY a.text",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		fn(ctx, query_text(&query, 0), query_text(&query, 1));
	return r;
}

void trial_view_deinit(struct trial_view *view)
{
	MEM_FREE(view->command, view->settings, view->signatures, view->last_crumb);
}

int case_cores(struct case_store *cs, struct series_id series, core_fn fn, void *ctx,
	       struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_query(&cs->db, &query, err,
			 "SELECT c.core, count(*), sum(o.signatures != '') FROM trial t"
			 " JOIN chaos c ON c.trial = t.number JOIN outcome o ON o.id = t.outcome"
			 " WHERE t.series = ? AND c.core >= 0 GROUP BY c.core ORDER BY c.core",
			 "i", series.value);

	while (r >= 0 && (r = db_step(&query, err)) == 1)
		fn(ctx, &(struct core_row){ .core = (int)query_int(&query, 0),
					    .trials = (uint64_t)query_int(&query, 1),
					    .failed = (uint64_t)query_int(&query, 2) });
	return r < 0 ? r : 0;
}
