#include "case/case.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/now.h"
#include "base/strbuf.h"
#include "base/tree.h"
#include "case/case_inside.h"
#include "case/schema.h"

/* How long to wait for another writer: after a SIGKILL the processes of the
 * trials in flight need a moment to be ended and to let go of the lock. */
#define LOCK_WAIT_MS 5000
#define LOCK_POLL_MS 20

#define DB_NAME "case.db"
#define TRIALS_NAME "trials"

const char *case_dir(const struct case_store *cs)
{
	return cs->dir;
}

int case_trials_dir(const struct case_store *cs)
{
	return cs->trials_fd;
}

int case_dir_fd(const struct case_store *cs)
{
	return cs->dir_fd;
}

int case_lock_fd(const struct case_store *cs)
{
	return cs->lock_fd;
}

static int lock_take(struct case_store *cs, struct err *err)
{
	char text[32] = "";
	ssize_t len;

	for (int waited = 0; flock(cs->lock_fd, LOCK_EX | LOCK_NB) < 0; waited += LOCK_POLL_MS) {
		if (errno != EWOULDBLOCK)
			return err_set_errno(err, -errno, "cannot lock the case '%s'", cs->dir);
		if (waited >= LOCK_WAIT_MS) {
			len = pread(cs->lock_fd, text, sizeof(text) - 1, 0);
			text[len > 0 ? len : 0] = '\0';
			(void)err_set(err, -EBUSY,
				      "the case '%s' is being written by another redhand (pid %ld)",
				      cs->dir, strtol(text, NULL, 10));
			return err_set_remedy(err, "wait for it, or name another with --case DIR");
		}
		pause_ms(LOCK_POLL_MS);
	}
	/* Only for that sentence; a lock without a pid is still a lock. */
	len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(cs->lock_fd, 0) < 0 || pwrite(cs->lock_fd, text, (size_t)len, 0) < 0)
		return 0;
	return 0;
}

/* A directory that has trials/ but no case.db is somebody else's: trials/1 and so on would be
 * overwritten. */
static int refuse_foreign_trials(struct case_store *cs, struct err *err)
{
	struct dirent *entry;
	bool empty = true;
	DIR *stream;
	int fd;

	if (faccessat(cs->dir_fd, DB_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	fd = openat(cs->dir_fd, TRIALS_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		fd_close(fd);
		return 0;
	}
	while (empty && (entry = readdir(stream)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	(void)closedir(stream);
	if (empty)
		return 0;
	(void)err_set(err, -ENOTEMPTY, "'%s' has a trials directory but no case.db", cs->dir);
	return err_set_remedy(
		err, "name another with --case DIR; redhand deletes nothing it did not make");
}

/* A case is mostly made inside a checkout, where `git status` should not speak of it, but of the
 * sentinel, which is there to be committed. Only in a directory of our own: elsewhere it would hide
 * what is the user's. */
static void hide_from_git(const struct case_store *cs)
{
	static const char rules[] = "/*\n!/sentinel/\n";

	(void)file_write_at(cs->dir_fd, ".gitignore", rules, strlen(rules), NULL);
}

/* Whoever can change what is in a case could have redhand read, run and overwrite what he likes. So
 * all of it is to be this user's, as a repository is to git. */
static int open_dir(struct case_store *cs, struct err *err)
{
	cs->dir_fd = open(cs->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cs->dir_fd < 0) {
		(void)err_set_errno(err, -errno, "cannot open '%s'", cs->dir);
		return err_set_remedy(err, "name a directory that can be written with --case DIR");
	}
	return fd_check_ours(cs->dir_fd, cs->dir, err);
}

/* A file of the database: a link there would lead elsewhere. Missing is fine. It is not opened: to
 * close it would let go of SQLite's locks (sqlite.org/howtocorrupt.html, 2.2). */
static int check_file(const struct case_store *cs, const char *name, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", cs->dir, name);
	struct stat st;

	if (fstatat(cs->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : err_set_errno(err, -errno, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EPERM, "'%s' is a link or no ordinary file", path);
	return stat_check_owner(&st, geteuid(), path, err);
}

static int check_files(const struct case_store *cs, struct err *err)
{
	static const char *const names[] = { DB_NAME, DB_NAME "-wal", DB_NAME "-shm",
					     DB_NAME "-journal" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++)
		r = check_file(cs, names[i], err);
	return r;
}

/* SQLite opens by name: what it has opened must be what was checked. */
static int check_same(const struct case_store *cs, struct err *err)
{
	struct stat here, there;

	if (fstatat(cs->dir_fd, DB_NAME, &here, AT_SYMLINK_NOFOLLOW) < 0 ||
	    stat(cs->db_path, &there) < 0 || here.st_dev != there.st_dev ||
	    here.st_ino != there.st_ino)
		return err_set(err, -EPERM, "'%s' was exchanged while it was opened", cs->dir);
	return check_files(cs, err);
}

/* SQLite would make it as the umask says; its journals get the same mode. */
static int make_db(const struct case_store *cs, struct err *err)
{
	AUTO(fd_closep)
	int fd = openat(cs->dir_fd, DB_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);

	if (fd < 0 && errno != EEXIST)
		return err_set_errno(err, -errno, "cannot create '%s'", cs->db_path);
	/* Cases of earlier versions could be read by everybody. */
	return fchmodat(cs->dir_fd, DB_NAME, 0600, 0) < 0
		       ? err_set_errno(err, -errno, "cannot protect '%s'", cs->db_path)
		       : 0;
}

static int prepare_dir(struct case_store *cs, struct err *err)
{
	bool ours = access(cs->dir, F_OK) < 0;
	int r = tree_make_private(cs->dir, err);

	if (r < 0)
		return err_set_remedy(err, "name a directory that can be written with --case DIR");
	r = open_dir(cs, err);
	if (r < 0)
		return r;
	cs->lock_fd = openat(cs->dir_fd, "lock",
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (cs->lock_fd < 0) {
		(void)err_set_errno(err, -errno, "cannot write in the case directory '%s'",
				    cs->dir);
		return err_set_remedy(err, "name a directory that can be written with --case DIR");
	}
	if (ours)
		hide_from_git(cs);
	r = fd_check_ours(cs->lock_fd, "lock", err);
	(void)fchmod(cs->lock_fd, 0600); /* whatever the umask took away */
	if (r == 0)
		r = lock_take(cs, err);
	if (r == 0)
		r = refuse_foreign_trials(cs, err);
	if (r == 0)
		r = check_files(cs, err);
	return r < 0 ? r : make_db(cs, err);
}

static int open_trials(struct case_store *cs, enum case_mode mode, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/" TRIALS_NAME, cs->dir);
	int r;

	if (mode == CASE_WRITE && mkdirat(cs->dir_fd, TRIALS_NAME, 0700) < 0 && errno != EEXIST)
		return err_set_errno(err, -errno, "cannot create '%s'", path);
	cs->trials_fd =
		openat(cs->dir_fd, TRIALS_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (cs->trials_fd < 0)
		return mode == CASE_WRITE ? err_set_errno(err, -errno, "cannot open '%s'", path)
					  : 0;
	r = fd_check_ours(cs->trials_fd, path, err);
	/* A trial that gave root up may have opened it (docs/design/security.md). */
	if (r == 0 && mode == CASE_WRITE && fchmod(cs->trials_fd, 0700) < 0)
		r = err_set_errno(err, -errno, "cannot protect '%s'", path);
	return r;
}

/* Of trials that ran when an earlier redhand was killed. Nobody runs one now: slots hold the lock,
 * too. The same numbers need not come again. */
static void drop_unfinished(struct case_store *cs)
{
	int fd = openat(cs->trials_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int64_t last = INT64_MAX;
	char *end;

	(void)db_get_int(&cs->db, "SELECT coalesce(max(number), 0) FROM trial", &last, NULL);
	while (stream && (entry = readdir(stream)) != NULL)
		if (strtoll(entry->d_name, &end, 10) > last && *end == '\0')
			(void)tree_remove_at(cs->trials_fd, entry->d_name, NULL);
	if (stream)
		(void)closedir(stream);
}

static int check_health(struct db *db, struct err *err)
{
	AUTO(db_endp) struct query query = { 0 };
	int r = db_prepare(db, "PRAGMA quick_check(1)", &query, err);

	if (r == 0)
		r = db_step(&query, err);
	if (r == 1 && strcmp(query_text(&query, 0), "ok") != 0) {
		(void)err_set(err, -EUCLEAN, "'%s' is damaged (%s)", db->path,
			      query_text(&query, 0));
		return err_set_remedy(err,
				      "move that directory away, or name another with --case DIR");
	}
	return r < 0 ? r : 0;
}

/*
 * A case that may not be written (another user's, on a read-only or a full disk) can still be read.
 * SQLite wants to make an index of the write-ahead log beside it, log or no log; told that nothing
 * changes the file, it does without. That leaves out what stands in a log, so there must be none.
 */
static int open_unwritable(struct case_store *cs, int why, struct err *err)
{
	AUTO(mem_freep) char *wal = mem_printf("%s-wal", cs->db_path);
	AUTO(strbuf_deinit) struct strbuf uri = { 0 };
	struct stat st;
	int code;

	if (stat(wal, &st) == 0 && st.st_size > 0)
		return why;
	strbuf_adds(&uri, "file:");
	for (const char *c = cs->db_path; *c != '\0'; c++)
		if (strchr("%?#", *c))
			strbuf_addf(&uri, "%%%02x", (unsigned char)*c);
		else
			strbuf_addc(&uri, *c);
	strbuf_adds(&uri, "?immutable=1");
	(void)sqlite3_close(cs->db.handle);
	cs->db.handle = NULL;
	code = sqlite3_open_v2(strbuf_str(&uri), &cs->db.handle,
			       SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK)
		return db_error(&cs->db, code, err);
	code = db_distrust(&cs->db, err);
	return code < 0 ? code : schema_check(&cs->db, &case_schema, err);
}

static int open_db(struct case_store *cs, enum case_mode mode, struct err *err)
{
	int flags = mode == CASE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
				       : SQLITE_OPEN_READONLY;
	int fault = fault_hits("db_open");
	int code, r;

	cs->db.path = cs->db_path;
	if (fault > 0)
		return err_set_errno(err, -fault, "cannot open '%s'", cs->db_path);
	code = sqlite3_open_v2(cs->db_path, &cs->db.handle, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK)
		return db_error(&cs->db, code, err);
	(void)sqlite3_busy_timeout(cs->db.handle, 5000);
	r = db_distrust(&cs->db, err);
	if (mode == CASE_READ) {
		if (r == 0)
			r = schema_check(&cs->db, &case_schema, err);
		return r == -EACCES || r == -ENOSPC ? open_unwritable(cs, r, err) : r;
	}
	if (r < 0)
		return r;
	/* Before anything is changed: is this ours, and of a version we know? */
	r = schema_bring_up(&cs->db, &case_schema, err);
	/* NORMAL in WAL mode: a commit survives the death of redhand; a power cut may lose the
	 * last few trials but never damages the file (sqlite.org/pragma.html#pragma_synchronous).
	 */
	if (r == 0)
		r = db_exec(&cs->db,
			    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
			    /* Each checkpoint waits for the disk; with SQLite's default one would
			     * come every two hundred trials. */
			    "PRAGMA wal_autocheckpoint=10000",
			    err);
	return r < 0 ? r : check_health(&cs->db, err);
}

static int no_case(const char *dir, int code, struct err *err)
{
	(void)err_set_errno(err, code, "there is no case in '%s'", dir);
	(void)err_set_remedy(
		err, "redhand repro -- PROGRAM makes one; --case DIR names another, and redhand "
		     "case list shows those that are here");
	return code;
}

static int open_as_it_is(const char *dir, enum case_mode mode, struct case_store **ret,
			 struct err *err)
{
	AUTO(case_closep) struct case_store *cs = mem_alloc(sizeof(*cs));
	int r = 0;

	cs->dir = mem_strdup(dir);
	cs->db_path = mem_printf("%s/" DB_NAME, dir);
	fd_init(&cs->lock_fd);
	fd_init(&cs->trials_fd);
	fd_init(&cs->dir_fd);
	if (mode == CASE_WRITE)
		r = prepare_dir(cs, err);
	else if (access(cs->db_path, F_OK) < 0)
		return no_case(dir, -errno, err);
	else
		r = open_dir(cs, err);
	if (r == 0 && mode == CASE_READ)
		r = check_files(cs, err);
	if (r == 0)
		r = open_db(cs, mode, err);
	if (r == 0)
		r = check_same(cs, err);
	if (r == 0)
		r = open_trials(cs, mode, err);
	if (r < 0)
		return r;
	if (mode == CASE_WRITE)
		drop_unfinished(cs);
	*ret = TAKE(cs);
	return 0;
}

int case_open(const char *dir, enum case_mode mode, struct case_store **ret, struct err *err)
{
	int r = open_as_it_is(dir, mode, ret, err);
	struct case_store *newer;

	/* A case of an older redhand: a command that only reads has it brought up to date first. */
	if (r == -ESTALE && mode == CASE_READ &&
	    open_as_it_is(dir, CASE_WRITE, &newer, NULL) == 0) {
		case_close(newer);
		r = open_as_it_is(dir, mode, ret, err);
	}
	return r;
}

void case_close(struct case_store *cs)
{
	if (!cs)
		return;
	(void)case_flush(cs, NULL);
	for (size_t i = 0; i < STATEMENTS; i++)
		db_endp(&cs->statements[i]);
	(void)sqlite3_close(cs->db.handle);
	fd_close(cs->trials_fd);
	fd_close(cs->lock_fd);
	fd_close(cs->dir_fd);
	mem_free(cs->db_path);
	mem_free(cs->dir);
	mem_free(cs);
}
