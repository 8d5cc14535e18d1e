#include "run/tmp_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/tmpdir.h"

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

int tmp_dirs_make(struct trial_settings *settings, struct err *err)
{
	for (unsigned int i = 0; i < PLACES && !settings->trials.tmp_dirs; i++)
		if (place(i) && place(i)[0] == '/')
			(void)tmpdir_make(place(i), "", &settings->trials.tmp_dirs, NULL);
	if (settings->trials.tmp_dirs)
		return 0;
	(void)err_set(err, -EACCES, "there is no place for temporary files of trials");
	return err_set_remedy(
		err, "set TMPDIR to a directory that can be written to, or use --share-tmp");
}

int tmp_dirs_open(const struct trial_settings *settings)
{
	if (!settings->trials.tmp_dirs || (settings->flags & TRIAL_SHARE_TMP))
		return -1;
	return open(settings->trials.tmp_dirs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}
