/*
 * What the truth programs share: a table of cases, one run by its name, which tells its own truth.
 *
 * Lines "ROLE WHAT" go to descriptor 3 when somebody opened it: "class CLASS" as in verdicts,
 * several where several are right, `none` for the innocent; "who FUNCTION" for whom a verdict may
 * accuse. In the source the line that a verdict shall name carries the comment "guilty".
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Stands for "in another source file": the compiler may not look inside from the call. */
#ifdef __clang__
#define APART __attribute__((noinline)) static
#else
#define APART __attribute__((noipa)) static
#endif

/* The compiler must take it that somebody else has seen, and may have changed, what is behind it.
 */
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

#define TRUTH_FD 3

struct truth_case {
	const char *name;
	const char *truth; /* lines for descriptor 3 */
	int (*run)(void);  /* the exit status */
};

/* In one run of n, by the clock. */
static inline int sometimes(unsigned int n)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned int)(now.tv_nsec / 100 * 2654435761u >> 8) % n == 0;
}

static inline int truth_main(int argc, char **argv, const struct truth_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			puts(cases[i].name);
		else if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
			if (fcntl(TRUTH_FD, F_GETFD) == 0)
				(void)!write(TRUTH_FD, cases[i].truth, strlen(cases[i].truth));
			return cases[i].run();
		}
	}
	return argc == 2 && strcmp(argv[1], "--list") == 0 ? 0 : 64;
}

#define TRUTH_MAIN(cases)                                                             \
	int main(int argc, char **argv)                                               \
	{                                                                             \
		return truth_main(argc, argv, cases, sizeof(cases) / sizeof(*cases)); \
	}

#endif
