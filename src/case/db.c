#include "case/db.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/auto.h"
#include "base/cstr.h"
#include "base/mem.h"
#include "model/known_secrets.h"

/* The least that SQLite's shared index of a WAL takes (sqlite.org/walformat.html). */
#define DB_INDEX_BYTES 32768
/* A row, and whatever an expression makes: nothing of ours comes near. */
#define DB_VALUE_BYTES (32 << 20)

static int no_space(const struct db *db, struct err *err)
{
	int r = -ENOSPC;

	(void)err_set(err, r, "no space left for '%s'", db->path);
	(void)err_set_remedy(err, "free some space and run the same command again: it goes "
				  "on where it was, nothing stored is lost");
	return r;
}

/* SQLite calls it an I/O error when its shared index cannot be made for lack of space. */
static bool disk_is_full(const struct db *db)
{
	struct statvfs fs;

	return statvfs(db->path, &fs) == 0 && fs.f_bavail * fs.f_frsize < DB_INDEX_BYTES;
}

int db_error(struct db *db, int code, struct err *err)
{
	int r = -EIO;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return no_space(db, err);
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		r = -EUCLEAN;
		(void)err_set(err, r, "'%s' is damaged or not a case database (%s)", db->path,
			      sqlite3_errmsg(db->handle));
		(void)err_set_remedy(err,
				     "move that directory away, or name another with --case DIR");
		return r;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
	case SQLITE_AUTH:
		r = -EACCES;
		(void)err_set(err, r, "cannot open or write '%s' (%s)", db->path,
			      sqlite3_errmsg(db->handle));
		(void)err_set_remedy(err, "check its permissions, or name another with --case DIR");
		return r;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		r = -EBUSY;
		return err_set(err, r, "'%s' is locked by another program", db->path);
	case SQLITE_IOERR:
		if (disk_is_full(db))
			return no_space(db, err);
		__attribute__((fallthrough));
	default:
		return err_set(err, r, "'%s': %s", db->path, sqlite3_errmsg(db->handle));
	}
}

/* sqlite.org/security.html, "Untrusted SQLite Database Files". */
int db_distrust(struct db *db, struct err *err)
{
	static const struct {
		int option, value;
	} settings[] = { { SQLITE_DBCONFIG_DEFENSIVE, 1 },
			 { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
			 { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
			 { SQLITE_DBCONFIG_ENABLE_VIEW, 0 } };
	int64_t strangers = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		(void)sqlite3_db_config(db->handle, settings[i].option, settings[i].value, NULL);
	(void)sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, DB_VALUE_BYTES);
	r = db_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", err);
	if (r == 0)
		r = db_get_int(
			db,
			"SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
			" OR coalesce(rootpage, 0) < 1", /* virtual tables have none */
			&strangers, err);
	if (r < 0 || strangers == 0)
		return r;
	(void)err_set(err, -EUCLEAN, "'%s' has triggers or views, which redhand never makes",
		      db->path);
	return err_set_remedy(err, "move that directory away, or name another with --case DIR");
}

int db_exec(struct db *db, const char *sql, struct err *err)
{
	int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : db_error(db, code, err);
}

int db_prepare(struct db *db, const char *sql, struct query *ret, struct err *err)
{
	struct query query = { .db = db };
	int code = sqlite3_prepare_v2(db->handle, sql, -1, &query.stmt, NULL);

	if (code != SQLITE_OK)
		return db_error(db, code, err);
	*ret = query;
	return 0;
}

void db_endp(struct query *query)
{
	(void)sqlite3_finalize(query->stmt);
	query->stmt = NULL;
}

static int bind_bytes(struct query *query, int column, const struct strbuf *bytes)
{
	return sqlite3_bind_blob64(query->stmt, column, strbuf_str(bytes), bytes->len,
				   SQLITE_TRANSIENT);
}

/* Without the values of secrets. */
static int bind_free_text(struct query *query, int column, const char *text)
{
	AUTO(mem_freep) char *shown = cstr_dup(text);

	if (shown)
		secret_hide(shown, strlen(shown));
	return sqlite3_bind_text(query->stmt, column, shown, -1, SQLITE_TRANSIENT);
}

static int bind_all(struct query *query, struct err *err, const char *format, va_list args)
{
	int code = SQLITE_OK, column = 1;

	(void)sqlite3_reset(query->stmt);
	for (; *format != '\0' && code == SQLITE_OK; format++, column++) {
		if (*format == 'i')
			code = sqlite3_bind_int64(query->stmt, column, va_arg(args, int64_t));
		else if (*format == 'b')
			code = bind_bytes(query, column, va_arg(args, const struct strbuf *));
		else if (*format == 'd')
			code = sqlite3_bind_double(query->stmt, column, va_arg(args, double));
		else if (*format == 't')
			code = bind_free_text(query, column, va_arg(args, const char *));
		else
			code = sqlite3_bind_text(query->stmt, column, va_arg(args, const char *),
						 -1, SQLITE_TRANSIENT);
	}
	return code == SQLITE_OK ? 0 : db_error(query->db, code, err);
}

int db_bind(struct query *query, struct err *err, const char *format, ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = bind_all(query, err, format, args);
	va_end(args);
	return r;
}

static int query_all(struct db *db, struct query *ret, struct err *err, const char *sql,
		     const char *format, va_list args)
{
	int r = db_prepare(db, sql, ret, err);

	return r < 0 ? r : bind_all(ret, err, format, args);
}

int db_query(struct db *db, struct query *ret, struct err *err, const char *sql, const char *format,
	     ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = query_all(db, ret, err, sql, format, args);
	va_end(args);
	return r;
}

int db_end(struct db *db, int r, struct err *err)
{
	if (r == 0)
		r = db_exec(db, "COMMIT", err);
	if (r < 0)
		(void)db_exec(db, "ROLLBACK", NULL);
	return r;
}

int db_first(struct db *db, struct query *ret, struct err *err, const char *sql, const char *format,
	     ...)
{
	va_list args;
	int r;

	va_start(args, format);
	r = query_all(db, ret, err, sql, format, args);
	va_end(args);
	return r < 0 ? r : db_step(ret, err);
}

int db_run(struct db *db, struct err *err, const char *sql, const char *format, ...)
{
	AUTO(db_endp) struct query query = { 0 };
	va_list args;
	int r;

	va_start(args, format);
	r = query_all(db, &query, err, sql, format, args);
	va_end(args);
	return r < 0 ? r : db_step(&query, err);
}

int db_step(struct query *query, struct err *err)
{
	int code = sqlite3_step(query->stmt);

	if (code == SQLITE_ROW)
		return 1;
	if (code == SQLITE_DONE) {
		(void)sqlite3_reset(query->stmt);
		return 0;
	}
	(void)db_error(query->db, code, err);
	(void)sqlite3_reset(query->stmt);
	return err ? err->code : -EIO;
}

int db_get_int(struct db *db, const char *sql, int64_t *ret, struct err *err)
{
	struct query query;
	int r = db_prepare(db, sql, &query, err);

	if (r < 0)
		return r;
	r = db_step(&query, err);
	if (r >= 0)
		*ret = r == 1 ? query_int(&query, 0) : 0;
	db_endp(&query);
	return r < 0 ? r : 0;
}

const char *query_text(struct query *query, int column)
{
	const unsigned char *text = sqlite3_column_text(query->stmt, column);

	return text ? (const char *)text : "";
}

int64_t query_int(struct query *query, int column)
{
	return sqlite3_column_int64(query->stmt, column);
}

double query_real(struct query *query, int column)
{
	return sqlite3_column_double(query->stmt, column);
}

const void *query_bytes(struct query *query, int column, size_t *ret_len)
{
	const void *bytes = sqlite3_column_blob(query->stmt, column);

	*ret_len = bytes ? (size_t)sqlite3_column_bytes(query->stmt, column) : 0;
	return bytes;
}
