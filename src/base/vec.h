#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

/* The first item that the condition holds for, or NULL; whether there is one; for all of them. */
#define VEC_FIND(vec, item, condition)                                       \
	({                                                                   \
		__typeof__((vec)->items + 0) found_ = NULL;                  \
                                                                             \
		for (size_t at_ = 0; !found_ && at_ < (vec)->count; at_++) { \
			__auto_type item = (vec)->items + at_;               \
                                                                             \
			if (condition)                                       \
				found_ = item;                               \
		}                                                            \
		found_;                                                      \
	})
#define VEC_ANY(vec, item, condition) (VEC_FIND(vec, item, condition) != NULL)
#define VEC_ALL(vec, item, condition) (!VEC_ANY(vec, item, !(condition)))

#define VEC_DEINIT(vec) \
	(mem_free((vec)->items), (vec)->items = NULL, (vec)->count = 0, (vec)->room = 0)

/* For what qsort() compares by: which is less; several with ?: between them. */
#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

#define VEC_SORT(vec, by)                                                                    \
	((vec)->count > 1 ? qsort((vec)->items, (vec)->count, sizeof((vec)->items[0]), (by)) \
			  : (void)0)

/* By a member that is a uint64_t, the smallest first. */
#define VEC_SORT_BY(vec, member)                                                             \
	((vec)->count > 1 ? vec_sort_by((vec)->items, (vec)->count, sizeof((vec)->items[0]), \
					&(vec)->items->member)                               \
			  : (void)0)
void vec_sort_by(void *items, size_t count, size_t size, const uint64_t *first);
void numbers_sort(uint64_t *numbers, size_t count);

/* How many items at the beginning of a sorted vec the condition holds for. */
#define VEC_HOLDS_FOR(vec, item, condition)                         \
	({                                                          \
		size_t low_ = 0, high_ = (vec)->count;              \
                                                                    \
		while (low_ < high_) {                              \
			size_t middle_ = low_ + (high_ - low_) / 2; \
			__auto_type item = (vec)->items + middle_;  \
                                                                    \
			if (condition)                              \
				low_ = middle_ + 1;                 \
			else                                        \
				high_ = middle_;                    \
		}                                                   \
		low_;                                               \
	})

/* Where each item owns something: what ends it comes last. */
#define VEC_FREE(vec, item, ...)        \
	do {                            \
		VEC_FOREACH (vec, item) \
			__VA_ARGS__;    \
		VEC_DEINIT(vec);        \
	} while (0)

/* A NULL-terminated list of owned strings, as argv and environ want them. */
struct strv {
	char **items; /* always ends in NULL once anything was added */
	size_t count;
};

void strv_add(struct strv *strv, const char *text);
void strv_take(struct strv *strv, char *text);	    /* adopts text */
void strv_copy(struct strv *to, char *const *from); /* NULL, as an empty one has it: nothing */
bool strv_has(const struct strv *strv, const char *text);
void strv_deinit(struct strv *strv);

/* Sets NAME=VALUE in an environment list, replacing an earlier NAME; value NULL removes it. */
void strv_setenv(struct strv *env, const char *name, const char *value);
