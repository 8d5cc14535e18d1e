#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The family: every process below the calling one.
 *
 * The caller is a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), so a descendant
 * that changed its process group or session, or whose parent has died, is still
 * in reach: it becomes the caller's own child.
 */

/* Sends `signal` to every descendant; returns how many there were. */
size_t family_signal(int signal);

/* Is `pid` a descendant of `ancestor`? */
bool family_is_below(pid_t pid, pid_t ancestor);
