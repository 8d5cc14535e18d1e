/*
 * The work is done in a forked child: path_add() appends to a path without room for it, and the
 * child dies of it. The parent only says that it did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "chase_truth.h"

struct settings {
	char *path, *directory;
};

APART static char *path_new(const char *directory)
{
	char *path = malloc(strlen(directory) + 1 + 8);

	if (!path)
		exit(3);
	return strcpy(path, directory);
}

APART static void path_add(char *path, const char *leaf)
{
	strcat(path, "/");
	strcat(path, leaf);
}

APART static struct settings *settings_new(void)
{
	struct settings *settings = malloc(sizeof(*settings));

	if (!settings)
		exit(3);
	settings->path = strdup("/etc/app.conf");
	settings->directory = settings->path;
	return settings;
}

APART static size_t settings_use(const struct settings *settings)
{
	return strlen(settings->path);
}

static int work(void)
{
	char *path = path_new("/usr/share/app");
	struct settings *settings = settings_new();

	path_add(path, "a-long-leaf-name.conf");
	printf("%zu characters\n", settings_use(settings));
	return 0;
}

int main(void)
{
	int status = 0;
	pid_t child;

	tell_truth("class overflow\n"
		   "writer chase_fork.c:path_add\n"
		   "allocator chase_fork.c:path_new\n");
	child = fork();
	if (child == 0)
		_exit(work());
	(void)waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? 1 : 0;
}
