#include "run/trial_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/tree.h"
#include "wire/plan.h"

#define ROOM_MODE 0700u
#define KEPT_TMP ".tmp" /* what tools that walk through a project leave out */

void room_init(struct room *room, int trials, unsigned int slot, int tmp)
{
	*room = (struct room){ .trials = trials, .slot = slot, .tmp = tmp };
}

static void spare_name(const struct room *room, char ret[32])
{
	(void)snprintf(ret, 32, "spare-%u", room->slot);
}

static mode_t tmp_mode(const struct room *room)
{
	return room->shared ? 01777 : 0700;
}

static int dir_open(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_own_dir(const struct stat *st, mode_t mode)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & 07777) == mode && st->st_uid == geteuid();
}

/* Access lists and the like would be handed on; labels that the system gives everything do not
 * matter. */
static bool has_attributes(int fd)
{
	char names[1024];
	ssize_t len = flistxattr(fd, names, sizeof(names));

	if (len < 0)
		return errno != ENOTSUP;
	for (const char *name = names; name < names + len; name += strlen(name) + 1)
		if (strncmp(name, "security.", 9) != 0)
			return true;
	return false;
}

/* Calls fn for every entry; stops when it answers false, and answers that. */
static bool each_entry(int fd, bool (*fn)(int fd, const char *name))
{
	int again = dup(fd); /* closedir() closes the one it was given */
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;
	bool going = stream != NULL;

	if (!stream) {
		fd_close(again);
		return false;
	}
	while (going && (entry = readdir(stream)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			going = fn(fd, entry->d_name);
	(void)closedir(stream);
	return going;
}

static bool stop_at_any(int fd, const char *name)
{
	(void)fd;
	(void)name;
	return false;
}

/* Is it as we made it? */
static bool tmp_untouched(const struct room *room, const char *name)
{
	AUTO(fd_closep) int fd = dir_open(room->tmp, name);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && is_own_dir(&st, tmp_mode(room)) &&
	       !has_attributes(fd) && each_entry(fd, stop_at_any);
}

/* A plan that is no longer ours alone might be written to from elsewhere. */
static bool is_plan(int dir, const char *name)
{
	struct stat st;

	return strcmp(name, WIRE_PLAN_NAME) == 0 &&
	       fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink == 1 && st.st_uid == geteuid();
}

static bool clear_entry(int dir, const char *name)
{
	struct err ignored = { 0 };

	if (is_plan(dir, name))
		return true;
	return tree_remove_at(dir, name, &ignored) == 0;
}

/* Puts the room aside for the next trial. False: it is to be removed, whatever is left of it. */
static bool spare_keep(const struct room *room, const char *name)
{
	AUTO(fd_closep) int dir = dir_open(room->trials, name);
	char spare[32];
	struct stat st;

	spare_name(room, spare);
	return dir >= 0 && fstat(dir, &st) == 0 && is_own_dir(&st, ROOM_MODE) &&
	       each_entry(dir, clear_entry) &&
	       renameat(room->trials, name, room->trials, spare) == 0;
}

/* False: there is none, or something else has its name. */
static bool spare_take(const struct room *room, const char *name)
{
	char spare[32];
	struct stat st;

	spare_name(room, spare);
	return fstatat(room->trials, spare, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is_own_dir(&st, ROOM_MODE) && renameat(room->trials, spare, room->trials, name) == 0;
}

/* As it was made: for the next trial. */
static bool tmp_keep(const struct room *room, const char *name)
{
	char spare[32];

	spare_name(room, spare);
	return tmp_untouched(room, name) && renameat(room->tmp, name, room->tmp, spare) == 0;
}

static int tmp_open(const struct room *room, const char *name, struct err *err)
{
	char spare[32];

	if (room->tmp < 0)
		return 0;
	spare_name(room, spare);
	if (tmp_untouched(room, spare) && renameat(room->tmp, spare, room->tmp, name) == 0)
		return 0;
	/* One may be there: of a slot that died during this very trial. */
	if (tree_remove_at(room->tmp, name, err) < 0)
		return -EEXIST;
	if (mkdirat(room->tmp, name, 0700) < 0)
		return err_set_errno(err, -errno, "cannot create a temporary directory");
	/* Whatever the umask takes away. */
	if (fchmodat(room->tmp, name, tmp_mode(room), 0) < 0 ||
	    (room->shared && fchmod(room->tmp, 0711) < 0))
		return err_set_errno(err, -errno, "cannot set the mode of a temporary directory");
	return 0;
}

static int tmp_drop(const struct room *room, const char *name, struct err *err)
{
	return room->tmp < 0 || tmp_keep(room, name) ? 0 : tree_remove_at(room->tmp, name, err);
}

int room_leave(const struct room *room, const char *name, bool keep_tmp, struct err *err)
{
	AUTO(fd_closep) int dir = -1;

	if (room->tmp < 0 || !keep_tmp || tmp_untouched(room, name))
		return tmp_drop(room, name, err);
	dir = dir_open(room->trials, name);
	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open trials/%s", name);
	return tree_move_at(room->tmp, name, dir, KEPT_TMP, err);
}

int room_open(const struct room *room, const char *name, struct err *err)
{
	int fault = fault_hits("trial_dir");

	if (fault > 0)
		return err_set_errno(err, -fault, "cannot create trials/%s", name);
	if (spare_take(room, name))
		return tmp_open(room, name, err);
	/* One may be there from a redhand that was killed during this very trial. */
	if (mkdirat(room->trials, name, ROOM_MODE) < 0) {
		int r = errno == EEXIST ? tree_remove_at(room->trials, name, err) : -errno;

		if (r == 0 && mkdirat(room->trials, name, ROOM_MODE) < 0)
			r = -errno;
		if (r < 0)
			return err_set_errno(err, r, "cannot create trials/%s", name);
	}
	if (fchmodat(room->trials, name, ROOM_MODE, 0) < 0)
		return err_set_errno(err, -errno, "cannot set the mode of trials/%s", name);
	return tmp_open(room, name, err);
}

/* What another user's process left becomes ours, and nothing but files. */
static bool reclaim_entry(int dir, const char *name)
{
	AUTO(fd_closep)
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid())
		return true;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    fchown(fd, geteuid(), getegid()) < 0 || fchmod(fd, 0600) < 0)
		(void)tree_remove_at(dir, name, NULL);
	return true;
}

void room_reclaim(const struct room *room, const char *name)
{
	AUTO(fd_closep) int dir = dir_open(room->trials, name);
	struct stat st;

	if (dir < 0 || fstat(dir, &st) < 0 || is_own_dir(&st, ROOM_MODE) ||
	    st.st_uid != geteuid() || fchmod(dir, ROOM_MODE) < 0)
		return;
	(void)each_entry(dir, reclaim_entry);
}

int room_drop(const struct room *room, const char *name, struct err *err)
{
	int r = tmp_drop(room, name, err);

	if (r < 0)
		return r;
	return spare_keep(room, name) ? 0 : tree_remove_at(room->trials, name, err);
}

void room_end(const struct room *room)
{
	struct err ignored = { 0 };
	char spare[32];

	spare_name(room, spare);
	(void)tree_remove_at(room->trials, spare, &ignored);
	if (room->tmp >= 0)
		(void)tree_remove_at(room->tmp, spare, &ignored);
}
