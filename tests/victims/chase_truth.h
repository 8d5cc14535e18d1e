/*
 * What the chase_*.c programs share: nothing but the way to tell a test who is guilty.
 */
#ifndef CHASE_TRUTH_H
#define CHASE_TRUTH_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Stands for "in another source file": the compiler may not look inside from the call. */
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noipa))
#endif

#define TRUTH_FD 3

/*
 * Lines "ROLE FILE:FUNCTION" (README.md says which), for whoever opened descriptor 3 for us. An
 * inherited descriptor cannot be close-on-exec; what a library opened for itself is left alone.
 */
static inline void tell_truth(const char *lines)
{
	if (fcntl(TRUTH_FD, F_GETFD) == 0)
		(void)!write(TRUTH_FD, lines, strlen(lines));
}

#endif
