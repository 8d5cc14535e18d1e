#pragma once

#include "engine/autopsy/logs.h"

/*
 * Functions that only pass on to malloc: xcalloc, g_malloc, fz_alloc …
 *
 * A stack that begins in one says little by its first line. What they are called tells nothing for
 * sure; what they do stands in their code: the size that they ask for is the very argument that
 * they were given. A constructor knows its size.
 */
struct wrappers;

struct wrappers *wrappers_new(void);
void wrappers_free(struct wrappers *wrappers);

/* Gives the frames of such functions at the beginning of an allocation's stack the flag
 * FRAME_WRAPPER. Of the snapshot, only its mappings are used. */
void wrappers_mark(struct wrappers *wrappers, struct symbols *symbols,
		   const struct snapshot *snapshot, struct stack *stack);
