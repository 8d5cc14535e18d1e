/*
 * The recorded trials of tests/corpus, for the tests of src/read.
 *
 * What a test asserts is what the victim does by its source (tests/victims), or what the log itself
 * says. Functions have names because the programs are in the corpus; what the C library's are
 * called depends on the machine.
 */
#ifndef REDHAND_TESTS_CORPUS_H
#define REDHAND_TESTS_CORPUS_H

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "read/reading.h"

struct corpus_trial {
	unsigned long long number;
	char name[64], observer[16];
	int signal; /* that the command died of */
	char ended[8];
};

static struct {
	const char *path;
	int fd;
	struct symbols *symbols;
	VEC(struct corpus_trial) trials;
} corpus = { .fd = -1 };

static inline void corpus_open(const char *path)
{
	char whole[PATH_MAX];
	/* Where files are found by their build-id; a relative path would not be looked at. */
	AUTO(mem_freep)
	char *debug = mem_printf("%s/debug", realpath(path, whole) ? whole : path);
	AUTO(mem_freep) char *table = mem_printf("%s/trials.tsv", path);
	FILE *file = fopen(table, "re");
	char line[512];

	corpus.path = path;
	corpus.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	corpus.symbols = symbols_new(&(struct symbols_options){ .debug_path = debug });
	while (file && fgets(line, sizeof(line), file)) {
		struct corpus_trial t = { 0 };

		if (sscanf(line, "%llu %63s %15s %d %7s", &t.number, t.name, t.observer, &t.signal,
			   t.ended) == 5)
			VEC_PUSH(&corpus.trials, t);
	}
	if (!file || corpus.fd < 0 || corpus.trials.count == 0) {
		(void)fprintf(stderr, "no corpus in '%s'\n", path);
		exit(2);
	}
	(void)fclose(file);
}

static inline void corpus_close(void)
{
	VEC_DEINIT(&corpus.trials);
	symbols_free(corpus.symbols);
	fd_close(corpus.fd);
}

static inline struct reading *corpus_read_trial(const struct corpus_trial *t,
						const struct trial_end *end)
{
	return reading_open(&(struct reading_of){ .trials = corpus.fd,
						  .trial = t->number,
						  .signal = t->signal,
						  .symbols = corpus.symbols,
						  .end = end });
}

static inline const struct corpus_trial *corpus_find(const char *name)
{
	VEC_FOREACH (&corpus.trials, t)
		if (strcmp(t->name, name) == 0)
			return t;
	fail_msg("the corpus has no trial '%s'", name);
	return NULL;
}

/* The caller closes it. */
static inline struct reading *corpus_read(const char *name)
{
	return corpus_read_trial(corpus_find(name), NULL);
}

static inline struct event_logs *corpus_logs(struct reading *reading)
{
	struct event_logs *logs = NULL;

	assert_int_equal(reading_logs(reading, &logs, NULL), 0);
	return logs;
}

/* Is a function of this name among the first frames? */
static inline bool stack_names(const struct stack *stack, const char *function)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].function && strcmp(stack->frames[i].function, function) == 0)
			return true;
	return false;
}

/* With the corpus's directory as argument. */
#define CORPUS_MAIN(tests)                                                    \
	int main(int argc, char **argv)                                       \
	{                                                                     \
		int failed;                                                   \
                                                                              \
		if (argc != 2) {                                              \
			(void)fprintf(stderr, "usage: %s CORPUS\n", argv[0]); \
			return 2;                                             \
		}                                                             \
		corpus_open(argv[1]);                                         \
		failed = cmocka_run_group_tests(tests, NULL, NULL);           \
		corpus_close();                                               \
		return failed;                                                \
	}

#endif
