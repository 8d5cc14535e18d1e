#pragma once

#include "debuginfo/symbols.h"
#include "model/frame.h"
#include "model/snapshot.h"

/*
 * Functions that only pass on to malloc, or to free: xcalloc, g_malloc, fz_alloc, xfree, item_unref
 * …
 *
 * A stack that begins in one says little by its first line. Two things must come together: they
 * are called so ("alloc" is in the name), and their code shows it: the size that they ask for is
 * the very argument that they were given. A constructor of many sizes does the latter, too. Inlined
 * ones have only their name: malloc, calloc, realloc or zalloc must be in it. So have duplicators
 * (strdup), which work out the size themselves. A freeing one hands on the very pointer that it was
 * given, and is called free, release, unref or decref: an object ends in its destructor.
 */
struct wrappers;

struct wrappers *wrappers_new(void);
void wrappers_free(struct wrappers *wrappers);

/* Gives the frames of such functions at the beginning of an allocation's or a free's stack the flag
 * FRAME_WRAPPER. Of the snapshot, only its mappings are used. */
void wrappers_mark(struct wrappers *wrappers, struct symbols *symbols,
		   const struct snapshot *snapshot, bool frees, struct stack *stack);
