#include "debuginfo/script.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/which.h"

/* The kernel reads this much of the first line (BINPRM_BUF_SIZE). */
#define LINE_SIZE 256

/* Cuts the next word off the line; NULL at its end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t len = strcspn(word, " \t");

	if (len == 0)
		return NULL;
	*line = word + len;
	if (**line != '\0')
		*(*line)++ = '\0';
	return word;
}

/* What `env ARGS` would run: options and assignments are passed over. */
static const char *program_of_env(char *args)
{
	char *word;

	while ((word = next_word(&args))) {
		if (word[0] == '-' || strchr(word, '=')) {
			if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0)
				(void)next_word(&args);
			continue;
		}
		return word;
	}
	return NULL;
}

int script_interpreter(int fd, char ret[PATH_MAX], char *trouble, size_t trouble_size)
{
	char buffer[LINE_SIZE + 1], *rest = buffer + 2;
	const char *word, *slash;
	AUTO(mem_freep) char *found = NULL;
	ssize_t n = pread(fd, buffer, LINE_SIZE, 0);
	int r;

	ret[0] = '\0';
	if (n < 2 || buffer[0] != '#' || buffer[1] != '!')
		return 0;
	buffer[n] = '\0';
	buffer[strcspn(buffer, "\n")] = '\0';
	word = next_word(&rest);
	if (!word) {
		(void)snprintf(trouble, trouble_size, "its '#!' line names no interpreter");
		return 1;
	}
	if (strlen(word) > 0 && word[strlen(word) - 1] == '\r') {
		(void)snprintf(
			trouble, trouble_size,
			"its '#!' line ends in a carriage return: it was saved with line ends "
			"of another system");
		return 1;
	}
	slash = strrchr(word, '/');
	if (strcmp(slash ? slash + 1 : word, "env") == 0)
		word = program_of_env(rest);
	if (!word) {
		(void)snprintf(trouble, trouble_size, "its '#!' line gives env nothing to run");
		return 1;
	}
	r = which(word, NULL, &found, NULL);
	if (r < 0 || strlen(found) >= PATH_MAX) {
		(void)snprintf(trouble, trouble_size, "its interpreter '%.100s' %s", word,
			       r == -EACCES ? "may not be run" : "does not exist");
		return 1;
	}
	(void)snprintf(ret, PATH_MAX, "%s", found);
	return 1;
}
