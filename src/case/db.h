#pragma once

#include <sqlite3.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

/*
 * The thin layer between SQLite and our errors. Private to case/.
 */
struct db {
	sqlite3 *handle;
	const char *path; /* for sentences */
};

/* A prepared statement in flight; finalised by AUTO(db_endp). */
struct query {
	sqlite3_stmt *stmt;
	struct db *db;
};

/* Right after the open: what is in the file may be a stranger's work. -EUCLEAN, with a sentence,
 * when it brings code of its own. */
int db_distrust(struct db *db, struct err *err);

int db_error(struct db *db, int code, struct err *err);
int db_exec(struct db *db, const char *sql, struct err *err);
int db_prepare(struct db *db, const char *sql, struct query *ret, struct err *err);
void db_endp(struct query *query);

/* Binds by format: i = int64_t, d = double, s = const char * (NULL allowed), t = the same, of a
 * text by people: values of secrets are hidden, b = const struct strbuf *, any bytes. Resets the
 * statement first. */
int db_bind(struct query *query, struct err *err, const char *format, ...);

/* Both at once; with the first step; a statement that has no rows. */
int db_query(struct db *db, struct query *ret, struct err *err, const char *sql, const char *format,
	     ...);
int db_first(struct db *db, struct query *ret, struct err *err, const char *sql, const char *format,
	     ...);
int db_run(struct db *db, struct err *err, const char *sql, const char *format, ...);

/* 1 = a row is there, 0 = no more, negative = error. */
int db_step(struct query *query, struct err *err);

/* The end of a transaction in which `r` came out: below 0 it is taken back. */
int db_end(struct db *db, int r, struct err *err);

/* Bind-free statement that returns one integer. */
int db_get_int(struct db *db, const char *sql, int64_t *ret, struct err *err);

const char *query_text(struct query *query, int column); /* never NULL */
int64_t query_int(struct query *query, int column);
double query_real(struct query *query, int column);

/* The bytes of a column, valid until the next step. */
const void *query_bytes(struct query *query, int column, size_t *ret_len);
