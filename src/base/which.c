#include "base/which.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"

/* 0, or why execve() would refuse this file. */
static int runnable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

static int refuse(const char *path, int code, struct err *err)
{
	switch (code) {
	case -EISDIR:
		(void)err_set(err, code, "'%s' is a directory, not a program", path);
		(void)err_set_remedy(err, "name the program in it");
		return code;
	case -EACCES:
		(void)err_set(err, code, "'%s' may not be run", path);
		(void)err_set_remedy(err, "chmod +x it, or name its interpreter before it");
		return code;
	case -ENOENT:
	case -ENOTDIR:
		return err_set(err, -ENOENT, "there is no program '%s'", path);
	default:
		return err_set_errno(err, code, "cannot run '%s'", path);
	}
}

int which(const char *name, const char *cwd, char **ret, struct err *err)
{
	const char *list = getenv("PATH");
	int refused = -ENOENT, r;

	if (strchr(name, '/')) {
		AUTO(mem_freep)
		char *path =
			name[0] == '/' || !cwd ? mem_strdup(name) : mem_printf("%s/%s", cwd, name);

		r = runnable(path);
		if (r < 0) {
			r = refuse(path, r, err);
			if (r == -ENOENT)
				(void)err_set_remedy(err,
						     "check its path; one without a / in front "
						     "counts from where the program runs");
			return r;
		}
		*ret = TAKE(path);
		return 0;
	}
	/* The same default as execvp(3). */
	if (!list)
		list = "/bin:/usr/bin";
	while (name[0] != '\0') {
		size_t len = strcspn(list, ":");
		AUTO(mem_freep)
		char *path = mem_printf("%.*s%s%s", (int)len, list, len > 0 ? "/" : "./", name);

		r = runnable(path);
		if (r == 0) {
			*ret = TAKE(path);
			return 0;
		}
		/* Like execvp: one that may not be run is remembered, a later one may do. */
		if (r == -EACCES)
			refused = r;
		if (list[len] == '\0')
			break;
		list += len + 1;
	}
	(void)refuse(name, refused, err);
	if (refused == -ENOENT && name[0] != '\0' && access(name, F_OK) == 0)
		(void)err_set_remedy(err, "./%s for the one in the current directory", name);
	else if (refused == -ENOENT)
		(void)err_set_remedy(err, "give its path, or add its folder to PATH");
	return refused;
}
