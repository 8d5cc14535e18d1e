#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Descriptors and files. Everything opened here is close-on-exec. */

static inline void fd_init(int *fd)
{
	*fd = -1;
}

void fd_close(int fd);	 /* accepts -1; keeps errno */
void fd_closep(int *fd); /* for AUTO() */

/* All of it or an error. `name` is for the sentence. */
int fd_write_all(int fd, const void *bytes, size_t len, const char *name, struct err *err);

/* Reads a whole file of at most `limit` bytes; longer ones are an error (-EFBIG). The result is
 * NUL-terminated and the caller's to free. */
int file_read(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err);
/* The same for what a stranger may have put there: no link, and nothing that one would wait for. */
int file_read_plain(const char *path, size_t limit, char **ret, size_t *ret_len, struct err *err);

/* Is `name` in directory `dir` a file with exactly these bytes? */
bool file_holds_at(int dir, const char *name, const void *bytes, size_t len);

/* Creates `name` in directory `dir` (or replaces it) with these bytes, for its owner alone. A
 * symbolic link there is never followed: the directory may be the target's. */
int file_write_at(int dir, const char *name, const void *bytes, size_t len, struct err *err);

/* A stream for the same: `name` in directory `dir`, made anew, for its owner alone. NULL with a
 * sentence when it cannot be made. */
FILE *file_create_at(int dir, const char *name, struct err *err);

/*
 * Files and directories that others could have put there or could change say what others want:
 * -EPERM with a sentence. They must be this user's, and writable by nobody else but a group that is
 * this user's own.
 */
int fd_check_ours(int fd, const char *path, struct err *err);
int stat_check_owner(const struct stat *st, uid_t owner, const char *path, struct err *err);
/* The same, of whoever `dir`, which was checked before, belongs to. */
int fd_check_owner_of(int fd, int dir, const char *path, struct err *err);
