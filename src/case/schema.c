#include "case/schema.h"

#include <errno.h>
#include <stdio.h>

/* schema.sql, made into a C array by the build. */
#include "schema_sql.h"

/* The migration steps; a change of schema.sql adds one and raises the version below. */
static const char *const case_steps[] = {
	NULL, /* version 0 is an empty database */
	/* 2: the lists of `minimize` */
	"CREATE TABLE item (\n"
	"series INTEGER NOT NULL REFERENCES series(id),\n"
	"number INTEGER NOT NULL,\n"
	"name   TEXT NOT NULL,\n"
	"PRIMARY KEY (series, number)\n"
	") WITHOUT ROWID;\n"
	"CREATE TABLE list (\n"
	"id     INTEGER PRIMARY KEY,\n"
	"series INTEGER NOT NULL REFERENCES series(id),\n"
	"items  TEXT NOT NULL,\n"
	"UNIQUE (series, items)\n"
	");\n"
	"CREATE TABLE list_run (\n"
	"seq      INTEGER PRIMARY KEY,\n"
	"trial    INTEGER NOT NULL UNIQUE REFERENCES trial(number),\n"
	"list     INTEGER NOT NULL REFERENCES list(id),\n"
	"purpose  INTEGER NOT NULL,\n"
	"started  INTEGER NOT NULL,\n"
	"complete INTEGER NOT NULL,\n"
	"told     INTEGER NOT NULL\n"
	");\n",
	/* 3: evidence, verdicts, decisions */
	"CREATE TABLE evidence (\n"
	"id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"trial INTEGER NOT NULL,\n"
	"failing INTEGER NOT NULL,\n"
	"kind TEXT NOT NULL,\n"
	"text TEXT NOT NULL,\n"
	"created_ms INTEGER NOT NULL,\n"
	"detail BLOB NOT NULL\n"
	");\n"
	"CREATE TABLE verdict (\n"
	"id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"class TEXT NOT NULL,\n"
	"firm INTEGER NOT NULL,\n"
	"sentence TEXT NOT NULL,\n"
	"caught INTEGER NOT NULL,\n"
	"watched INTEGER NOT NULL,\n"
	"trials INTEGER NOT NULL,\n"
	"created_ms INTEGER NOT NULL,\n"
	"detail BLOB NOT NULL\n"
	");\n"
	"CREATE TABLE decision (\n"
	"id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"time_ms INTEGER NOT NULL,\n"
	"stage TEXT NOT NULL,\n"
	"text TEXT NOT NULL\n"
	");\n",
	/* 4: what trials were disturbed with */
	"CREATE TABLE chaos (\n"
	"trial      INTEGER PRIMARY KEY REFERENCES trial(number),\n"
	"seed       INTEGER NOT NULL,\n"
	"knobs      TEXT NOT NULL,\n"
	"pad_bytes  INTEGER NOT NULL,\n"
	"gap_bytes  INTEGER NOT NULL,\n"
	"heap_bytes INTEGER NOT NULL,\n"
	"core       INTEGER NOT NULL,\n"
	"hold_weight INTEGER NOT NULL,\n"
	"arm_us     INTEGER NOT NULL\n"
	");\n",
	/* 5: what minimize found, what people write down, parking, sentinels */
	"CREATE TABLE minimal (\n"
	"series INTEGER PRIMARY KEY REFERENCES series(id),\n"
	"verdict INTEGER NOT NULL,\n"
	"items TEXT NOT NULL,\n"
	"victim TEXT,\n"
	"signature TEXT,\n"
	"failed INTEGER NOT NULL,\n"
	"trials INTEGER NOT NULL,\n"
	"full_failed INTEGER NOT NULL,\n"
	"full_trials INTEGER NOT NULL,\n"
	"confidence REAL NOT NULL,\n"
	"argv TEXT NOT NULL,\n"
	"env TEXT NOT NULL\n"
	");\n"
	"CREATE TABLE note (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"text TEXT NOT NULL\n"
	");\n"
	"CREATE TABLE hypothesis (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"text TEXT NOT NULL\n"
	");\n"
	"CREATE TABLE hypothesis_change (\n"
	"seq INTEGER PRIMARY KEY,\n"
	"hypothesis INTEGER NOT NULL REFERENCES hypothesis(id),\n"
	"made_ms INTEGER NOT NULL,\n"
	"status TEXT NOT NULL,\n"
	"because TEXT,\n"
	"trial INTEGER,\n"
	"evidence INTEGER\n"
	");\n"
	"CREATE TABLE workaround (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"text TEXT NOT NULL,\n"
	"removed_ms INTEGER\n"
	");\n"
	"CREATE TABLE parking (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"because TEXT NOT NULL,\n"
	"until TEXT NOT NULL,\n"
	"commit_id TEXT,\n"
	"program TEXT,\n"
	"kernel TEXT,\n"
	"machine TEXT,\n"
	"redhand TEXT,\n"
	"variables TEXT NOT NULL,\n"
	"resumed_ms INTEGER,\n"
	"gate TEXT\n"
	");\n"
	"CREATE TABLE sentinel (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"dir TEXT NOT NULL,\n"
	"series INTEGER NOT NULL,\n"
	"signature TEXT NOT NULL,\n"
	"failed INTEGER NOT NULL,\n"
	"trials INTEGER NOT NULL\n"
	");\n",
	/* 6: the commits of `bisect` */
	"CREATE TABLE build (\n"
	"series   INTEGER NOT NULL REFERENCES series(id),\n"
	"item     INTEGER NOT NULL,\n"
	"unusable TEXT NOT NULL,\n"
	"wall_ns  INTEGER NOT NULL,\n"
	"PRIMARY KEY (series, item)\n"
	") WITHOUT ROWID;\n",
	/* 7: which experiments a hunt chose */
	"CREATE TABLE choice (\n"
	"id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"time_ms INTEGER NOT NULL,\n"
	"question TEXT NOT NULL,\n"
	"experiment TEXT NOT NULL,\n"
	"why TEXT NOT NULL,\n"
	"expected_trials REAL NOT NULL,\n"
	"expected_failures REAL NOT NULL,\n"
	"expected_s REAL NOT NULL,\n"
	"trials INTEGER,\n"
	"failures INTEGER,\n"
	"seconds REAL,\n"
	"brought TEXT\n"
	");\n",
	/* 8: where workers ran */
	"CREATE TABLE machine (\n"
	"id INTEGER PRIMARY KEY,\n"
	"node TEXT NOT NULL,\n"
	"cores TEXT NOT NULL,\n"
	"cpu TEXT NOT NULL,\n"
	"microcode TEXT NOT NULL,\n"
	"kernel TEXT NOT NULL,\n"
	"gpu TEXT NOT NULL,\n"
	"UNIQUE (node, cores, cpu, microcode, kernel, gpu)\n"
	");\n"
	"CREATE TABLE trial_machine (\n"
	"trial INTEGER PRIMARY KEY REFERENCES trial(number),\n"
	"machine INTEGER NOT NULL REFERENCES machine(id)\n"
	");\n",
	/* 9: what a hunt said, as ids and values */
	"ALTER TABLE decision ADD COLUMN said BLOB;\n"
	"ALTER TABLE choice ADD COLUMN why_said BLOB;\n"
	"ALTER TABLE choice ADD COLUMN brought_said BLOB;\n",
	/* 10: attempts, next steps, related cases, where trials were run */
	"CREATE TABLE attempt (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"text TEXT NOT NULL,\n"
	"commit_id TEXT,\n"
	"branch TEXT,\n"
	"program TEXT,\n"
	"diff TEXT,\n"
	"after_trial INTEGER NOT NULL\n"
	");\n"
	"CREATE TABLE step (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"text TEXT NOT NULL,\n"
	"done_ms INTEGER\n"
	");\n"
	"CREATE TABLE relation (\n"
	"id INTEGER PRIMARY KEY,\n"
	"made_ms INTEGER NOT NULL,\n"
	"dir TEXT NOT NULL UNIQUE,\n"
	"common TEXT NOT NULL\n"
	");\n"
	"CREATE TABLE surroundings (\n"
	"id INTEGER PRIMARY KEY,\n"
	"seen_ms INTEGER NOT NULL,\n"
	"commit_id TEXT,\n"
	"branch TEXT,\n"
	"program TEXT,\n"
	"kernel TEXT,\n"
	"machine TEXT,\n"
	"redhand TEXT\n"
	");\n",
};

const struct schema case_schema = {
	.application = 0x52484e44, /* "RHND" */
	.version = 10,
	.create = schema_sql,
	.steps = case_steps,
};

static int set_pragmas(struct db *db, const struct schema *schema, int64_t version, struct err *err)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "PRAGMA application_id=%lld; PRAGMA user_version=%lld",
		       (long long)schema->application, (long long)version);
	return db_exec(db, sql, err);
}

static int step(struct db *db, const struct schema *schema, const char *sql, int64_t version,
		struct err *err)
{
	int r = db_exec(db, "BEGIN IMMEDIATE", err);

	if (r < 0)
		return r;
	r = db_exec(db, sql, err);
	if (r == 0)
		r = set_pragmas(db, schema, version, err);
	return db_end(db, r, err);
}

/* The stored version; 0 for an empty database. */
static int read_version(struct db *db, const struct schema *schema, int64_t *ret, struct err *err)
{
	int64_t application, version, tables;
	int r = db_get_int(db, "PRAGMA application_id", &application, err);

	if (r == 0)
		r = db_get_int(db, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = db_get_int(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (r < 0)
		return r;
	if (application != schema->application && tables > 0) {
		(void)err_set(err, -EMEDIUMTYPE, "'%s' is a database, but not a redhand case",
			      db->path);
		return err_set_remedy(err, "name another directory with --case DIR");
	}
	/* Nobody ever wrote such a number, and the steps are counted by it. */
	if (version < 0) {
		(void)err_set(err, -EUCLEAN, "'%s' is damaged (schema %lld)", db->path,
			      (long long)version);
		return err_set_remedy(err,
				      "move that directory away, or name another with --case DIR");
	}
	if (version > schema->version) {
		(void)err_set(err, -EPROTO, "'%s' has schema %lld, this build reads up to %lld",
			      db->path, (long long)version, (long long)schema->version);
		return err_set_remedy(err,
				      "use the newer redhand that wrote it, or another --case DIR");
	}
	*ret = tables > 0 ? version : 0;
	return 0;
}

int schema_check(struct db *db, const struct schema *schema, struct err *err)
{
	int64_t version = 0;
	int r = read_version(db, schema, &version, err);

	if (r == 0 && version < schema->version) {
		/* Without any it is just being made: nobody else may touch it. */
		(void)err_set(err, version == 0 ? -EPROTO : -ESTALE,
			      "'%s' has the older schema %lld", db->path, (long long)version);
		r = err_set_remedy(err, "its owner can bring it up to date: redhand case show");
	}
	return r;
}

int schema_bring_up(struct db *db, const struct schema *schema, struct err *err)
{
	int64_t version = 0;
	int r = read_version(db, schema, &version, err);

	if (r < 0)
		return r;
	if (version == 0)
		return step(db, schema, schema->create, schema->version, err);
	for (; r == 0 && version < schema->version; version++)
		r = step(db, schema, schema->steps[version], version + 1, err);
	return r;
}
