/*
 * case/: what is no case, a newer one, a damaged one; and bringing an older one up to date.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "case/schema.h"
#include "case_fixture.h"

#define FLIPS 200
#define TRUNCATIONS 60
#define SEED 20240607u

static int setup(void **state)
{
	static struct scratch s;

	scratch_make(&s);
	*state = &s;
	return mkdirat(s.fd, "case", 0755);
}

static int teardown(void **state)
{
	scratch_remove(*state);
	return 0;
}

/* The same everywhere, unlike rand(). */
static uint32_t next_random(uint32_t *at)
{
	*at ^= *at << 13;
	*at ^= *at >> 17;
	*at ^= *at << 5;
	return *at;
}

static void make_database(const struct scratch *s, const char *name, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(scratch_path(s, name), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void fill_case(const struct scratch *s)
{
	static const char *const crumbs[] = { CRUMB_START, "load", "fuse", "run", CRUMB_END, NULL };
	struct case_store *cs = NULL;
	struct err err = { 0 };
	struct series_id series;

	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), 0);
	assert_int_equal(made_series(cs, "settings", &series, &err), 0);
	for (uint64_t i = 1; i <= 300; i++) {
		char test[32];

		(void)snprintf(test, sizeof(test), "Suite.Case%u", (unsigned int)(i % 13));
		assert_int_equal(add_made(cs, series,
					  &(struct made_trial){ .number = i,
								.position = i,
								.slot = i % 4,
								.signal = i % 5 == 0 ? 11 : 0,
								.test = i % 5 == 0 ? test : NULL,
								.last_crumb = "fuse",
								.crumbs = i < 10 ? crumbs : NULL },
					  &err),
				 0);
	}
	case_close(cs);
}

/* Opening fails, both ways, with that code and sentence, and with something to try. */
static void refused(const struct scratch *s, int code, const char *sentence)
{
	for (int mode = CASE_READ; mode <= CASE_WRITE; mode++) {
		struct case_store *cs = NULL;
		struct err err = { 0 };

		assert_int_equal(case_open(scratch_path(s, "case"), mode, &cs, &err), code);
		assert_null(cs);
		if (!strstr(err.message, sentence))
			fail_msg("'%s' does not say '%s'", err.message, sentence);
		assert_true(err.remedy[0] != '\0');
	}
}

static void unchanged(const struct scratch *s, const char *bytes, size_t len)
{
	AUTO(mem_freep) char *now = NULL;
	struct err err = { 0 };
	size_t now_len;

	assert_int_equal(file_read(scratch_path(s, "case/case.db"), 1 << 26, &now, &now_len, &err),
			 0);
	assert_int_equal(now_len, len);
	assert_memory_equal(now, bytes, len);
}

/* ---- not ours ---- */

static void a_newer_schema_is_left_alone(void **state)
{
	struct scratch *s = *state;
	AUTO(mem_freep) char *before = NULL;
	struct err err = { 0 };
	size_t len;

	fill_case(s);
	make_database(
		s, "case/case.db",
		"PRAGMA journal_mode=DELETE; PRAGMA user_version=99; CREATE TABLE future (x)");
	assert_int_equal(file_read(scratch_path(s, "case/case.db"), 1 << 26, &before, &len, &err),
			 0);
	refused(s, -EPROTO, "has schema 99");
	unchanged(s, before, len);
}

static void a_foreign_database_is_left_alone(void **state)
{
	struct scratch *s = *state;
	AUTO(mem_freep) char *before = NULL;
	struct err err = { 0 };
	size_t len;

	make_database(s, "case/case.db", "CREATE TABLE photos (x); INSERT INTO photos VALUES (1)");
	assert_int_equal(file_read(scratch_path(s, "case/case.db"), 1 << 26, &before, &len, &err),
			 0);
	refused(s, -EMEDIUMTYPE, "not a redhand case");
	unchanged(s, before, len);
}

static void garbage_is_refused(void **state)
{
	struct scratch *s = *state;
	uint32_t at = SEED;
	char bytes[8192];
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)next_random(&at);
	assert_int_equal(file_write_at(s->fd, "case/case.db", bytes, sizeof(bytes), &err), 0);
	refused(s, -EUCLEAN, "damaged or not a case database");
	unchanged(s, bytes, sizeof(bytes));
	assert_int_equal(file_write_at(s->fd, "case/case.db", "short", 5, &err), 0);
	refused(s, -EUCLEAN, "damaged or not a case database");
	unchanged(s, "short", 5);
}

static void a_directory_for_a_database_is_refused(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = NULL;

	assert_int_equal(mkdirat(s->fd, "case/case.db", 0755), 0);
	for (int mode = CASE_READ; mode <= CASE_WRITE; mode++) {
		struct err err = { 0 };

		assert_true(case_open(scratch_path(s, "case"), mode, &cs, &err) < 0);
		assert_non_null(strstr(err.message, "case.db"));
	}
}

static void foreign_trials_are_refused(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	assert_int_equal(mkdirat(s->fd, "case/trials", 0755), 0);
	assert_int_equal(mkdirat(s->fd, "case/trials/1", 0755), 0);
	assert_int_equal(file_write_at(s->fd, "case/trials/1/thesis", "x", 1, &err), 0);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), -ENOTEMPTY);
	assert_non_null(strstr(err.message, "trials directory but no case.db"));
	assert_non_null(strstr(err.remedy, "--case"));
	assert_int_equal(faccessat(s->fd, "case/trials/1/thesis", F_OK, 0), 0);
	assert_int_equal(faccessat(s->fd, "case/case.db", F_OK, 0), -1);
	/* An empty one is as good as none. */
	assert_int_equal(unlinkat(s->fd, "case/trials/1/thesis", 0), 0);
	assert_int_equal(unlinkat(s->fd, "case/trials/1", AT_REMOVEDIR), 0);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), 0);
	case_close(cs);
}

static void an_empty_file_becomes_a_case(void **state)
{
	struct scratch *s = *state;
	struct err err = { 0 };

	assert_int_equal(file_write_at(s->fd, "case/case.db", "", 0, &err), 0);
	fill_case(s);
}

/* A file with code in it that SQLite would run. */
static void triggers_and_views_are_refused(void **state)
{
	static const char *const code[] = {
		"CREATE TRIGGER t AFTER INSERT ON note BEGIN DELETE FROM trial; END",
		"CREATE VIEW v AS SELECT randomblob(1000000000) FROM trial",
	};
	struct scratch *s = *state;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	fill_case(s);
	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
		make_database(s, "case/case.db", code[i]);
		assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err),
				 -EUCLEAN);
		assert_non_null(strstr(err.message, "triggers or views"));
		assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err),
				 -EUCLEAN);
		make_database(s, "case/case.db", i == 0 ? "DROP TRIGGER t" : "DROP VIEW v");
	}
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err), 0);
	case_close(cs);
}

/* Another user's, one that others can write to, and links: all lead where somebody else wants. */
static void a_case_of_doubtful_ownership_is_refused(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	fill_case(s);
	assert_int_equal(fchmodat(s->fd, "case/case.db", 0646, 0), 0);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err), -EPERM);
	assert_int_equal(fchmodat(s->fd, "case/case.db", 0600, 0), 0);
	assert_int_equal(fchmodat(s->fd, "case", 0777, 0), 0);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), -EPERM);
	assert_non_null(strstr(err.message, "changed by other users"));
	assert_int_equal(fchmodat(s->fd, "case", 0700, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(s->fd, "case/trials", 65534, 65534, 0), 0);
		assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err), -EPERM);
		assert_non_null(strstr(err.message, "another user"));
		assert_int_equal(fchownat(s->fd, "case/trials", 0, 0, 0), 0);
	}
	assert_int_equal(renameat(s->fd, "case/case.db", s->fd, "elsewhere"), 0);
	assert_int_equal(symlinkat("../elsewhere", s->fd, "case/case.db"), 0);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err), -EPERM);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), -EPERM);
	assert_null(cs);
}

static void a_file_for_a_directory_is_told(void **state)
{
	struct scratch *s = *state;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	assert_int_equal(file_write_at(s->fd, "file", "x", 1, &err), 0);
	assert_int_equal(case_open(scratch_path(s, "file"), CASE_WRITE, &cs, &err), -ENOTDIR);
	assert_true(err.remedy[0] != '\0');
	assert_true(case_open(scratch_path(s, "file/below"), CASE_WRITE, &cs, &err) < 0);
	assert_non_null(strstr(err.message, "file/below"));
	assert_int_equal(case_open("", CASE_WRITE, &cs, &err), -ENOENT);
	assert_true(err.message[0] != '\0');
	assert_null(cs);
}

/* Root may write everything: the case becomes that of somebody who may not. */
static void become_nobody(const struct scratch *s)
{
	static const char *const names[] = { "case", "case/case.db", "case/lock", "case/trials" };

	if (geteuid() != 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)fchownat(s->fd, names[i], 65534, 65534, AT_SYMLINK_NOFOLLOW);
	(void)!setgid(65534);
	(void)!setuid(65534);
}

static int open_unwritable(void *arg)
{
	struct scratch *s = arg;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	become_nobody(s);
	CHILD_WANTS(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err) == -EACCES);
	CHILD_WANTS(strstr(err.message, "case") != NULL);
	CHILD_WANTS(strstr(err.remedy, "--case") != NULL);
	err = (struct err){ 0 };
	CHILD_WANTS(case_open(scratch_path(s, "new"), CASE_WRITE, &cs, &err) == -EACCES);
	CHILD_WANTS(strstr(err.remedy, "--case") != NULL);
	CHILD_WANTS(cs == NULL);
	return 0;
}

static void an_unwritable_directory_is_told(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(fchmodat(s->fd, "case", 0555, 0), 0);
	assert_int_equal(fchmod(s->fd, 0555), 0);
	assert_int_equal(in_child(open_unwritable, s), 0);
	assert_int_equal(fchmod(s->fd, 0755), 0);
	assert_int_equal(fchmodat(s->fd, "case", 0755, 0), 0);
}

static int read_unwritable(void *arg)
{
	struct scratch *s = arg;
	struct case_store *cs = NULL;
	struct err err = { 0 };

	become_nobody(s);
	CHILD_WANTS(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err) == 0);
	case_close(cs);
	return 0;
}

/* One on a disk that is mounted read-only. */
static void a_case_that_may_not_be_written_can_be_read(void **state)
{
	struct scratch *s = *state;

	fill_case(s);
	assert_int_equal(fchmodat(s->fd, "case", 0555, 0), 0);
	assert_int_equal(fchmod(s->fd, 0555), 0);
	assert_int_equal(in_child(read_unwritable, s), 0);
	assert_int_equal(fchmod(s->fd, 0755), 0);
	assert_int_equal(fchmodat(s->fd, "case", 0755, 0), 0);
}

/* ---- damage ---- */

static void ignore_tally(void *ctx, const struct tally_row *row)
{
	*(size_t *)ctx += strlen(row->signatures);
}

static void ignore_window(void *ctx, const struct window_row *row)
{
	*(size_t *)ctx += strlen(row->last);
}

static void ignore_run(void *ctx, const struct run_row *row)
{
	*(size_t *)ctx += strlen(row->signatures);
}

/* Either it works or it says why not. */
#define WORKS_OR_SAYS(call)                                     \
	do {                                                    \
		struct err err = { 0 };                         \
		int r_ = (call);                                \
		CHILD_WANTS(r_ >= 0 || err.message[0] != '\0'); \
		CHILD_WANTS(r_ >= 0 || err.code == r_);         \
	} while (0)

static int use_damaged(void *arg)
{
	struct scratch *s = arg;

	for (int mode = CASE_READ; mode <= CASE_WRITE; mode++) {
		struct case_store *cs = NULL;
		struct series_id series = { 1 };
		struct series_progress progress;
		struct trial_number number;
		struct use_row use;
		size_t sum = 0;
		bool done;

		WORKS_OR_SAYS(case_open(scratch_path(s, "case"), mode, &cs, &err));
		if (!cs)
			continue;
		if (mode == CASE_WRITE)
			WORKS_OR_SAYS(made_series(cs, "settings", &series, &err));
		WORKS_OR_SAYS(case_series_progress(cs, series, &progress, &err));
		WORKS_OR_SAYS(case_tally(cs, series, ignore_tally, &sum, &err));
		WORKS_OR_SAYS(case_windows(cs, series, "", ignore_window, &sum, &err));
		WORKS_OR_SAYS(case_runs(cs, series, ignore_run, &sum, &err));
		WORKS_OR_SAYS(case_use(cs, series, &use, &err));
		WORKS_OR_SAYS(case_position_done(cs, series, 7, &done, &err));
		WORKS_OR_SAYS(case_free_number(cs, 0, &number, &err));
		WORKS_OR_SAYS(add_made(cs, series,
				       &(struct made_trial){ .number = 1000,
							     .position = 1000,
							     .exit_status = 1,
							     .last_crumb = "new" },
				       &err));
		case_close(cs);
	}
	return 0;
}

static void put_case(const struct scratch *s, const char *bytes, size_t len)
{
	struct err err = { 0 };

	(void)unlinkat(s->fd, "case/case.db-wal", 0);
	(void)unlinkat(s->fd, "case/case.db-shm", 0);
	assert_int_equal(file_write_at(s->fd, "case/case.db", bytes, len, &err), 0);
}

static void bit_flips_never_crash(void **state)
{
	struct scratch *s = *state;
	AUTO(mem_freep) char *bytes = NULL;
	struct err err = { 0 };
	uint32_t at = SEED;
	size_t len;

	fill_case(s);
	assert_int_equal(file_read(scratch_path(s, "case/case.db"), 1 << 26, &bytes, &len, &err),
			 0);
	put_case(s, bytes, len);
	assert_int_equal(in_child(use_damaged, s), 0);
	for (int i = 0; i < FLIPS; i++) {
		/* A third of them in the header and the schema, where it hurts most. */
		size_t place = next_random(&at) % (i % 3 == 0 ? 4096 : len);
		char bit = (char)(1u << next_random(&at) % 8);

		bytes[place] ^= bit;
		put_case(s, bytes, len);
		bytes[place] ^= bit;
		if (in_child(use_damaged, s) != 0)
			fail_msg("byte %zu, bit %#x (%d of seed %u)", place, (unsigned int)bit, i,
				 SEED);
	}
}

static void truncations_never_crash(void **state)
{
	struct scratch *s = *state;
	AUTO(mem_freep) char *bytes = NULL;
	struct err err = { 0 };
	uint32_t at = SEED;
	size_t len;

	fill_case(s);
	assert_int_equal(file_read(scratch_path(s, "case/case.db"), 1 << 26, &bytes, &len, &err),
			 0);
	for (int i = 0; i < TRUNCATIONS; i++) {
		size_t left = i % 4 == 0 ? 4096 * (next_random(&at) % (len / 4096))
					 : next_random(&at) % len;

		put_case(s, bytes, left);
		if (in_child(use_damaged, s) != 0)
			fail_msg("%zu of %zu bytes (%d of seed %u)", left, len, i, SEED);
	}
}

/* Versions that no build ever wrote. */
static void impossible_versions_are_refused(void **state)
{
	struct scratch *s = *state;

	fill_case(s);
	make_database(s, "case/case.db", "PRAGMA user_version=-2147483648");
	assert_int_equal(in_child(use_damaged, s), 0);
	refused(s, -EUCLEAN, "damaged");
	make_database(s, "case/case.db", "PRAGMA user_version=-1");
	refused(s, -EUCLEAN, "damaged");
}

/* ---- migration ---- */

#define APPLICATION 0x74657374

static const char *const good_steps[] = {
	NULL,
	"ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 7",
	"CREATE TABLE u (c); INSERT INTO u SELECT a * b FROM t",
};
static const char *const bad_steps[] = {
	NULL,
	"ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 7",
	"CREATE TABLE u (c); INSERT INTO u VALUES (1); INSERT INTO nonsense VALUES (1)",
};
static const struct schema v1 = { APPLICATION, 1, "CREATE TABLE t (a)", good_steps };
static const struct schema v3 = { APPLICATION, 3, "CREATE TABLE t (a, b); CREATE TABLE u (c)",
				  good_steps };
static const struct schema v3_bad = { APPLICATION, 3, "CREATE TABLE t (a, b)", bad_steps };

static int64_t ask(struct db *db, const char *sql)
{
	struct err err = { 0 };
	int64_t got = -1;

	if (db_get_int(db, sql, &got, &err) < 0)
		fail_msg("%s: %s", sql, err.message);
	return got;
}

static void open_memory(struct db *db)
{
	db->path = "memory";
	assert_int_equal(sqlite3_open(":memory:", &db->handle), SQLITE_OK);
}

static void migration_goes_step_by_step(void **state)
{
	struct err err = { 0 };
	struct db db;

	open_memory(&db);
	assert_int_equal(schema_bring_up(&db, &v1, &err), 0);
	assert_int_equal(ask(&db, "PRAGMA user_version"), 1);
	assert_int_equal(ask(&db, "PRAGMA application_id"), APPLICATION);
	assert_int_equal(db_exec(&db, "INSERT INTO t VALUES (6)", &err), 0);
	/* A reader changes nothing. */
	assert_int_equal(schema_check(&db, &v3, &err), -ESTALE);
	assert_non_null(strstr(err.message, "older schema 1"));
	assert_true(err.remedy[0] != '\0');
	assert_int_equal(ask(&db, "PRAGMA user_version"), 1);

	assert_int_equal(schema_bring_up(&db, &v3, &err), 0);
	assert_int_equal(ask(&db, "PRAGMA user_version"), 3);
	assert_int_equal(ask(&db, "SELECT c FROM u"), 42);
	assert_int_equal(schema_check(&db, &v3, &err), 0);
	/* Nothing is left to do. */
	assert_int_equal(schema_bring_up(&db, &v3, &err), 0);
	assert_int_equal(ask(&db, "SELECT count(*) FROM u"), 1);
	/* The older build refuses it now. */
	assert_int_equal(schema_bring_up(&db, &v1, &err), -EPROTO);
	(void)sqlite3_close(db.handle);
}

static void a_failing_step_leaves_the_version_before(void **state)
{
	struct err err = { 0 };
	struct db db;

	open_memory(&db);
	assert_int_equal(schema_bring_up(&db, &v1, &err), 0);
	assert_int_equal(db_exec(&db, "INSERT INTO t VALUES (6)", &err), 0);
	assert_true(schema_bring_up(&db, &v3_bad, &err) < 0);
	assert_non_null(strstr(err.message, "nonsense"));
	/* The first step stands, the second is undone as a whole. */
	assert_int_equal(ask(&db, "PRAGMA user_version"), 2);
	assert_int_equal(ask(&db, "SELECT a * b FROM t"), 42);
	assert_int_equal(ask(&db, "SELECT count(*) FROM sqlite_schema WHERE name = 'u'"), 0);
	assert_int_equal(sqlite3_get_autocommit(db.handle), 1);
	assert_int_equal(schema_bring_up(&db, &v3, &err), 0);
	assert_int_equal(ask(&db, "PRAGMA user_version"), 3);
	assert_int_equal(ask(&db, "SELECT c FROM u"), 42);
	(void)sqlite3_close(db.handle);
}

static void a_failing_create_leaves_nothing(void **state)
{
	const struct schema broken = { APPLICATION, 1, "CREATE TABLE t (a); CREATE nonsense",
				       good_steps };
	struct err err = { 0 };
	struct db db;

	open_memory(&db);
	assert_true(schema_bring_up(&db, &broken, &err) < 0);
	assert_int_equal(ask(&db, "SELECT count(*) FROM sqlite_schema"), 0);
	assert_int_equal(ask(&db, "PRAGMA user_version"), 0);
	assert_int_equal(schema_bring_up(&db, &v3, &err), 0);
	(void)sqlite3_close(db.handle);
}

static int count_trials(void *ctx, const struct list_run_row *row, struct err *err)
{
	++*(int *)ctx;
	return 0;
}

static void add_up(void *ctx, const struct tally_row *row)
{
	*(uint64_t *)ctx += row->count;
}

/* Everything about the tables but the text that made them. */
static char *shape_of(const struct scratch *s, const char *name)
{
	static const char sql[] =
		"SELECT group_concat(line, char(10)) FROM (SELECT m.name || ' ' || c.name || ' ' ||"
		" c.type || ' ' || c.\"notnull\" || ' ' || c.pk AS line FROM sqlite_schema m,"
		" pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid)";
	sqlite3_stmt *stmt;
	char *shape;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(scratch_path(s, name), &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	shape = mem_strdup((const char *)sqlite3_column_text(stmt, 0));
	(void)sqlite3_finalize(stmt);
	(void)sqlite3_close(db);
	return shape;
}

/* What version 9 added. */
#define DROP_SAID                                                                         \
	"ALTER TABLE decision DROP COLUMN said; ALTER TABLE choice DROP COLUMN why_said;" \
	"ALTER TABLE choice DROP COLUMN brought_said;"

/* What version 10 added. */
#define DROP_10 "DROP TABLE attempt; DROP TABLE step; DROP TABLE relation; DROP TABLE surroundings;"

/* What version 3 and later ones added. */
#define DROP_NEWER                                                                                                                     \
	DROP_10 "DROP TABLE trial_machine; DROP TABLE machine;"                                                                        \
		"DROP TABLE choice; DROP TABLE build; DROP TABLE evidence; DROP TABLE verdict; DROP TABLE decision; DROP TABLE chaos;" \
		"DROP TABLE minimal; DROP TABLE note; DROP TABLE hypothesis_change;"                                                   \
		"DROP TABLE hypothesis; DROP TABLE workaround; DROP TABLE parking; DROP TABLE sentinel;"

static void an_older_case_keeps_its_trials(const struct scratch *s, const char *make_old)
{
	AUTO(mem_freep) char *new_shape = NULL;
	AUTO(mem_freep) char *old_shape = NULL;
	struct case_store *cs = NULL;
	struct err err = { 0 };
	struct series_id series;
	uint64_t trials = 0;
	int runs = 0;

	fill_case(s);
	new_shape = shape_of(s, "case/case.db");
	make_database(s, "case/case.db", make_old);
	/* Whoever only reads has it brought up to date, too. */
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_READ, &cs, &err), 0);
	case_close(cs);
	assert_int_equal(case_open(scratch_path(s, "case"), CASE_WRITE, &cs, &err), 0);
	assert_int_equal(made_series(cs, "settings", &series, &err), 0);
	assert_int_equal(case_tally(cs, series, add_up, &trials, &err), 0);
	assert_int_equal(trials, 300);
	assert_int_equal(case_list_runs(cs, series, count_trials, &runs, &err), 0);
	assert_int_equal(runs, 0);
	case_close(cs);
	old_shape = shape_of(s, "case/case.db");
	assert_string_equal(old_shape, new_shape);
}

static void a_case_of_version_1_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_NEWER
				       "DROP TABLE list_run; DROP TABLE list; DROP TABLE item; "
				       "PRAGMA user_version=1");
}

static void a_case_of_version_2_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_NEWER "PRAGMA user_version=2");
}

static void a_case_of_version_6_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_10 DROP_SAID
				       "DROP TABLE trial_machine; DROP TABLE machine;"
				       "DROP TABLE choice; PRAGMA user_version=6");
}

static void a_case_of_version_7_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_10 DROP_SAID
				       "DROP TABLE trial_machine; DROP TABLE machine;"
				       "PRAGMA user_version=7");
}

static void a_case_of_version_8_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_10 DROP_SAID "PRAGMA user_version=8");
}

static void a_case_of_version_9_keeps_its_trials(void **state)
{
	an_older_case_keeps_its_trials(*state, DROP_10 "PRAGMA user_version=9");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_newer_schema_is_left_alone),
		TEST(a_foreign_database_is_left_alone),
		TEST(garbage_is_refused),
		TEST(a_directory_for_a_database_is_refused),
		TEST(foreign_trials_are_refused),
		TEST(an_empty_file_becomes_a_case),
		TEST(triggers_and_views_are_refused),
		TEST(a_case_of_doubtful_ownership_is_refused),
		TEST(a_file_for_a_directory_is_told),
		TEST(an_unwritable_directory_is_told),
		TEST(a_case_that_may_not_be_written_can_be_read),
		TEST(bit_flips_never_crash),
		TEST(truncations_never_crash),
		TEST(impossible_versions_are_refused),
		TEST(a_case_of_version_1_keeps_its_trials),
		TEST(a_case_of_version_2_keeps_its_trials),
		TEST(a_case_of_version_6_keeps_its_trials),
		TEST(a_case_of_version_7_keeps_its_trials),
		TEST(a_case_of_version_8_keeps_its_trials),
		TEST(a_case_of_version_9_keeps_its_trials),
		cmocka_unit_test(migration_goes_step_by_step),
		cmocka_unit_test(a_failing_step_leaves_the_version_before),
		cmocka_unit_test(a_failing_create_leaves_nothing),
	};

	return cmocka_run_group_tests_name("case_damage", tests, NULL, NULL);
}
