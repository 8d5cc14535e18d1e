#include "run/tmp_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/tree.h"

#define NAME "/redhand-"
#define OWNER "case" /* a link to the trials/ that it serves */

/* Sockets in TMPDIR must have paths of at most 107 bytes (unix(7)). Programs put 40 and more of
 * their own behind it. */
#define PATH_SHORT 40

/* Where to try, in this order; a long TMPDIR is better than none. */
static const char *place(unsigned int n)
{
	const char *given = getenv("TMPDIR");
	bool short_one = given && given[0] == '/' && strlen(given) <= PATH_SHORT;
	const char *places[] = { short_one ? given : "/tmp", "/tmp", "/var/tmp",
				 getenv("XDG_RUNTIME_DIR"), given };

	return n < ARRAY_SIZE(places) ? places[n] : NULL;
}

#define PLACES 5u

/* Did a redhand leave it that was killed over this very case? We have the case's lock now. */
static bool is_left(const char *dir, const char *trials_path)
{
	AUTO(mem_freep) char *link = mem_printf("%s/" OWNER, dir);
	char target[PATH_MAX];
	struct stat st;
	ssize_t len;

	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return false;
	len = readlink(link, target, sizeof(target) - 1);
	target[len > 0 ? len : 0] = '\0';
	return len > 0 && strcmp(target, trials_path) == 0;
}

static void remove_left(const char *place, const char *trials_path)
{
	AUTO(mem_freep) char *pattern = mem_printf("%s" NAME "??????", place);
	glob_t found = { 0 };

	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (is_left(found.gl_pathv[i], trials_path))
				tmp_dirs_remove(found.gl_pathv[i]);
	globfree(&found);
}

static char *make_in(const char *place, const char *trials_path)
{
	AUTO(mem_freep) char *dir = mem_printf("%s" NAME "XXXXXX", place);
	AUTO(mem_freep) char *link = NULL;
	char *made;

	if (!mkdtemp(dir))
		return NULL;
	link = mem_printf("%s/" OWNER, dir);
	/* Root's programs may go on as somebody else (servers do), who gets to the trial's own
	 * directory and sees no other. */
	if ((geteuid() == 0 && chmod(dir, 0711) < 0) || symlink(trials_path, link) < 0) {
		tmp_dirs_remove(dir);
		return NULL;
	}
	made = dir;
	dir = NULL;
	return made;
}

int tmp_dirs_make(struct trial_settings *settings, struct err *err)
{
	for (unsigned int i = 0; i < PLACES && !settings->tmp_dirs; i++)
		if (place(i) && place(i)[0] == '/') {
			remove_left(place(i), settings->trials_path);
			settings->tmp_dirs = make_in(place(i), settings->trials_path);
		}
	if (settings->tmp_dirs)
		return 0;
	(void)err_set(err, -EACCES, "there is no place for temporary files of trials");
	return err_remedy(err,
			  "set TMPDIR to a directory that can be written to, or use --share-tmp");
}

void tmp_dirs_remove(const char *dir)
{
	if (dir)
		(void)tree_remove_at(AT_FDCWD, dir, NULL);
}

int tmp_dirs_open(const struct trial_settings *settings)
{
	if (!settings->tmp_dirs || (settings->flags & TRIAL_SHARE_TMP))
		return -1;
	return open(settings->tmp_dirs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
