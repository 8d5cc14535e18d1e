#pragma once

#include <stddef.h>

#include "base/mem.h"

/*
 * A growing array of any type:
 *
 *	VEC(struct frame) frames = { 0 };
 *	VEC_PUSH(&frames, frame);
 *	VEC_FOREACH(&frames, f) use(f);
 *	VEC_DEINIT(&frames);
 */
#define VEC(type)             \
	struct {              \
		type *items;  \
		size_t count; \
		size_t room;  \
	}

#define VEC_PUSH(vec, value)                                                                       \
	((vec)->count == (vec)->room ? (void)((vec)->room = (vec)->room > 0 ? (vec)->room * 2 : 8, \
					      (vec)->items = mem_resize((vec)->items, (vec)->room, \
									sizeof((vec)->items[0])))  \
				     : (void)0,                                                    \
	 (void)((vec)->items[(vec)->count++] = (value)))

#define VEC_FOREACH(vec, item)                                 \
	for (__typeof__((vec)->items + 0) item = (vec)->items; \
	     item && item < (vec)->items + (vec)->count; item++)

#define VEC_DEINIT(vec) \
	(mem_free((vec)->items), (vec)->items = NULL, (vec)->count = 0, (vec)->room = 0)

/* A NULL-terminated list of owned strings, as argv and environ want them. */
struct strv {
	char **items; /* always ends in NULL once anything was added */
	size_t count;
};

void strv_add(struct strv *strv, const char *text);
void strv_take(struct strv *strv, char *text);	    /* adopts text */
void strv_copy(struct strv *to, char *const *from); /* NULL, as an empty one has it: nothing */
void strv_deinit(struct strv *strv);

/* Sets NAME=VALUE in an environment list, replacing an earlier NAME; value NULL removes it. */
void strv_setenv(struct strv *env, const char *name, const char *value);
