/*
 * Invariants: what is always true of a structure when nobody is in the middle of changing it.
 *
 * Debug builds (buildtype=debug) ask at the structure's borders: where it is entered from outside,
 * and where it is left. Each structure has one function, X_invariant_sigsafe(), that says in words
 * what is wrong, or NULL. It takes no lock, allocates nothing and looks at a few words, so that it
 * may run wherever the structure is used. What is broken makes the agent retire
 * (LOG_RETIRED_SELF_FAULT): the target runs on, and the log says so. Other builds have none of it.
 */
#pragma once

#ifndef AGENT_CHECKS
#define AGENT_CHECKS 0
#endif

#if AGENT_CHECKS

/* The last one that was broken, for a debugger. */
extern __attribute__((visibility("hidden"))) const char *invariant_last;

void invariant_broken_sigsafe(const char *what);

#define INVARIANT(question)                                       \
	do {                                                      \
		const char *invariant_what = (question);          \
                                                                  \
		if (__builtin_expect(invariant_what != 0, 0))     \
			invariant_broken_sigsafe(invariant_what); \
	} while (0)

#else

#define INVARIANT(question) ((void)0)

#endif
