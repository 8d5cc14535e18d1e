/*
 * Files that workers on other machines got from here: a path a line in CASE/shipped. Whoever names
 * what happened there looks into these.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "case/case_inside.h"

#define NAME "shipped"
#define PATHS_MOST 1000u

void case_shipped(const struct case_store *cs, struct strv *ret)
{
	int fd = openat(cs->dir_fd, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *in = fd >= 0 ? fdopen(fd, "re") : NULL;
	char *line = NULL;
	size_t room = 0;

	if (!in) {
		fd_close(fd);
		return;
	}
	while (ret->count < PATHS_MOST && getline(&line, &room, in) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '/')
			strv_add(ret, line);
	}
	(void)fclose(in);
	free(line);
}

int case_add_shipped(struct case_store *cs, const char *path, struct err *err)
{
	AUTO(strv_deinit) struct strv known = { 0 };
	AUTO(fd_closep) int fd = -1;
	AUTO(mem_freep) char *line = mem_printf("%s\n", path);

	case_shipped(cs, &known);
	for (size_t i = 0; i < known.count; i++)
		if (strcmp(known.items[i], path) == 0)
			return 0;
	fd = openat(cs->dir_fd, NAME, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set_errno(err, -errno, "cannot write '%s/" NAME "'", cs->dir);
	return fd_write_all(fd, line, strlen(line), NAME, err);
}
