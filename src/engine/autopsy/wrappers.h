#pragma once

#include "engine/autopsy/logs.h"

/*
 * Functions that only pass on to malloc: xcalloc, g_malloc, fz_alloc …
 *
 * A stack that begins in one says little by its first line. What they are called says little,
 * too; what they do is to be seen in the log: one call of malloc that serves several callers with
 * blocks of several sizes. A constructor serves many callers as well, but with blocks of one size.
 */
struct wrappers;

struct wrappers *wrappers_new(struct event_log *log);
void wrappers_free(struct wrappers *wrappers);

/* Gives the frames of such functions at the stack's beginning the flag FRAME_WRAPPER. */
void wrappers_mark(const struct wrappers *wrappers, struct stack *stack);
