#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "evidence_fixture.h"
#include "judge/judge.h"

/*
 * Stories for the verdict rules: for each class evidence that fires it, and evidence that nearly
 * does. A new one goes into the file of its class, with a row in the table at its end.
 */

#define FIRM true
#define DOUBTED false

struct story {
	const char *name;
	void (*make)(struct evidence_list *list);
	enum verdict_class class;
	bool firm;
	const char *writer; /* function of the accused; NULL: nobody */
};

#define ROW(make, class, firm, writer)                     \
	{                                                  \
#make, make, VERDICT_##class, firm, writer \
	}

extern const struct story stories_write[], stories_free[], stories_value[], stories_fault[],
	stories_pairs[];
extern const size_t stories_write_count, stories_free_count, stories_value_count,
	stories_fault_count, stories_pairs_count;

#define EACH_PIECE(l, e) VEC_FOREACH (&(l)->list, e)

/* Through all tables (stories.c), NULL first and last. */
const struct story *story_next(const struct story *last);
#define EACH_STORY(story) \
	for (const struct story *story = story_next(NULL); story; story = story_next(story))

/* By its name; the test fails when there is none. */
const struct story *story_find(const char *name);
void tell_story(struct evidence_list *list, const char *name);

/* Adds it with the next id, as the case would. */
static inline struct evidence *add(struct evidence_list *list, struct evidence e)
{
	e.id = list->list.count + 1;
	VEC_PUSH(&list->list, e);
	return &list->list.items[list->list.count - 1];
}

/* The same writer in `count` failing trials, each with its watch and its crash. */
static inline void caught(struct evidence_list *list, struct made_write made, unsigned int count)
{
	for (unsigned int i = 1; i <= count; i++) {
		made.trial = i;
		add(list, made_crash(i, FAULT_NULL));
		add(list, made_watch(i, 3));
		add(list, made_write(made));
	}
	list->trials = 41;
	list->failed = 9;
}

/* Those that are parts of others, or looked at closely. */
void narrow(struct evidence_list *l);
void after_free_inferred(struct evidence_list *l);
void dangling(struct evidence_list *l);
void make_slot(struct home *home);
void zero_from_birth_on(struct evidence_list *l);
void machine_signs(struct evidence_list *l);
void growth(struct evidence_list *l);
void nothing(struct evidence_list *l);
void imprecise(struct evidence_list *l);
void one_of_five(struct evidence_list *l);
void once_only(struct evidence_list *l);
void constructor(struct evidence_list *l);
void damage_only(struct evidence_list *l);
void holder_with_gaps(struct evidence_list *l);
void race_nothing_lost(struct evidence_list *l);
void outside_with_a_gap(struct evidence_list *l);
void plain_beside_a_crash(struct evidence_list *l);
void numbers_all_the_time(struct evidence_list *l);
void a_readable_address(struct evidence_list *l);
