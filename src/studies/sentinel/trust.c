#include "studies/sentinel/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/tree.h"

#define FOLDER "redhand/sentinels"
#define CONTENT_MAX (16u << 20)
#define DEPTH_MAX 8
/* Most are a few hundred bytes. Each hunt makes one: who tries many programs comes back later. */
#define REMEMBERED_MAX 4096
#define REMEMBERED_BYTES (64u << 20)

static bool add_file(int dir, const char *name, struct strbuf *ret)
{
	AUTO(fd_closep)
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size + ret->len > CONTENT_MAX)
		return false;
	strbuf_addf(ret, "%s %o %lld\n", name, (unsigned int)st.st_mode & 0111,
		    (long long)st.st_size);
	if (st.st_size > 0)
		n = read(fd, strbuf_reserve(ret, (size_t)st.st_size), (size_t)st.st_size);
	ret->len += n > 0 ? (size_t)n : 0;
	return st.st_size == 0 || n == st.st_size;
}

static bool add_tree(int dir, unsigned int depth, struct strbuf *ret);

static bool add_entry(int dir, const char *name, unsigned int depth, struct strbuf *ret)
{
	AUTO(fd_closep)
	int sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (sub < 0)
		return add_file(dir, name, ret);
	strbuf_addf(ret, "%s/\n", name);
	return depth > 0 && add_tree(sub, depth - 1, ret);
}

/* In the order of names. A link or anything else that is no file makes it false. */
static bool add_tree(int dir, unsigned int depth, struct strbuf *ret)
{
	struct dirent **entries = NULL;
	int count = scandirat(dir, ".", &entries, NULL, alphasort);
	bool whole = count >= 0;

	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
			whole = whole && add_entry(dir, name, depth, ret);
		free(entries[i]);
	}
	free(entries);
	return whole;
}

/* All that decides what is run. */
static bool content(const char *dir, struct strbuf *ret)
{
	AUTO(fd_closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !add_file(fd, SENTINEL_FILE, ret))
		return false;
	return faccessat(fd, SENTINEL_FILES, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
	       add_entry(fd, SENTINEL_FILES, DEPTH_MAX, ret);
}

/* -1: there is no such place. */
static int open_folder(bool make)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	AUTO(mem_freep) char *path = NULL;
	int fd;

	if (state && state[0] == '/')
		path = mem_printf("%s/" FOLDER, state);
	else if (home && home[0] == '/')
		path = mem_printf("%s/.local/state/" FOLDER, home);
	if (!path || (make && tree_make_private(path, NULL) < 0))
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fd_check_ours(fd, path, NULL) == 0)
		return fd;
	fd_close(fd);
	return -1;
}

/* Only for a name: the bytes themselves are compared. */
static void name_of(const struct strbuf *bytes, char ret[24])
{
	uint64_t h = hash_bytes(HASH_START, bytes->data, bytes->len);

	(void)snprintf(ret, 24, "%016llx", (unsigned long long)h);
}

bool sentinel_is_trusted(const char *dir)
{
	AUTO(strbuf_deinit) struct strbuf bytes = { 0 };
	AUTO(fd_closep) int folder = -1;
	char name[24];

	if (!content(dir, &bytes))
		return false;
	folder = open_folder(false);
	name_of(&bytes, name);
	return folder >= 0 && file_holds_at(folder, name, bytes.data, bytes.len);
}

/* The oldest goes, where there are too many. */
static bool make_room(int folder)
{
	struct dirent **entries = NULL;
	int count = scandirat(folder, ".", &entries, NULL, alphasort);
	struct timespec oldest = { 0 };
	const char *victim = NULL;
	uint64_t bytes = 0;
	struct stat st;
	bool full;

	for (int i = 0; i < count; i++) {
		if (fstatat(folder, entries[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		if (!victim || st.st_mtim.tv_sec < oldest.tv_sec) {
			victim = entries[i]->d_name;
			oldest = st.st_mtim;
		}
	}
	full = victim && (count > REMEMBERED_MAX || bytes > REMEMBERED_BYTES) &&
	       unlinkat(folder, victim, 0) == 0;
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	return full;
}

void sentinel_trust(const char *dir)
{
	AUTO(strbuf_deinit) struct strbuf bytes = { 0 };
	AUTO(fd_closep) int folder = -1;
	char name[24];

	if (!content(dir, &bytes))
		return;
	folder = open_folder(true);
	if (folder < 0)
		return;
	while (make_room(folder))
		;
	name_of(&bytes, name);
	(void)file_write_at(folder, name, bytes.data, bytes.len, NULL);
}

static int leads_out(const char *what, const char *path, struct err *err)
{
	(void)err_set(err, -EPERM, "%s '%s' is outside of the project", what, path);
	return err_set_remedy(err,
			      "look at what it is, then name the project with --root DIR, or make "
			      "a sentinel of your own");
}

static bool is_inside(const char *path, const char *root, const char *dir)
{
	AUTO(mem_freep) char *plain = realpath(path, NULL);

	return plain && ((root && path_below(root, plain)) || path_below(dir, plain));
}

/* Links included: a copy that is a link would be read, or run, as something else. */
static int check_names(const struct strv *names, const char *dir, struct err *err)
{
	AUTO(mem_freep) char *files = mem_printf("%s/" SENTINEL_FILES, dir);

	for (size_t i = 0; i < names->count; i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", files, names->items[i]);
		AUTO(mem_freep) char *plain = realpath(path, NULL);

		if (plain && !path_below(files, plain))
			return leads_out("the sentinel's file", names->items[i], err);
	}
	return 0;
}

int sentinel_check_paths(const struct sentinel *s, const char *dir, const char *root,
			 struct err *err)
{
	AUTO(mem_freep) char *here = realpath(dir, NULL);
	AUTO(mem_freep) char *way = NULL;
	AUTO(mem_freep) char *project = NULL;
	AUTO(mem_freep) char *checkout = NULL;
	int r;

	if (!here)
		return err_set_errno(err, -errno, "cannot find '%s'", dir);
	way = root ? mem_strdup(root) : path_join(here, s->root ? s->root : ".");
	project = realpath(way, NULL);
	/* The way up ends with the checkout that the sentinel came in. */
	checkout = path_find_up(here, ".git");
	if (!root && project &&
	    (!path_below(project, here) || !path_below(checkout ? checkout : project, project)))
		return leads_out("its project", project, err);
	if (!is_inside(s->trial.cwd, project, here))
		return leads_out("its directory", s->trial.cwd, err);
	if (s->trial.stdin_path && strcmp(s->trial.stdin_path, "/dev/null") != 0 &&
	    !is_inside(s->trial.stdin_path, project, here))
		return leads_out("its input", s->trial.stdin_path, err);
	r = check_names(&s->files, here, err);
	return r < 0 ? r : check_names(&s->own, here, err);
}
