#pragma once

#include "judge/rules.h"

/*
 * Considerations: what speaks for or against a verdict, a row each. Private to judge/.
 *
 * A row says which classes it is about, when it holds, and what follows from it. A new one needs a
 * predicate and a row in considerations.c, its words in report/words_doubts.c, and two stories: one
 * that fires it, one that nearly does (docs/howto-consideration.md).
 */

/* What is being weighed. */
struct weighing {
	const struct rule *rule; /* NULL: only `write` is looked at */
	const struct facts *facts;
	const struct proof *proof;    /* NULL with `rule` */
	const struct evidence *write; /* the caught store; NULL where the proof is no store */
};

enum consideration_effect {
	DOUBT,	/* the verdict is not firm */
	CLEARS, /* this store is nobody's narrow or wide write: its writer owns the field */
};

struct consideration {
	const char *name; /* in JSON, in the stories, and of its words in report/words_doubts.c */
	uint32_t classes; /* BIT() of each class that it is about */
	bool (*holds)(const struct weighing *w);
	enum consideration_effect effect;
	void (*add)(const struct weighing *w, struct said *doubt); /* its values; NULL: none */
	/* In place of `holds`, where it is asked of the caught store alone. */
	bool (*of_store)(const struct write_seen *store);
};

extern const struct consideration considerations[];
extern const size_t consideration_count;

bool consideration_holds(const struct consideration *row, const struct weighing *w);

/* Adds every doubt that holds to the proof, in the order of the table. */
void consider(const struct rule *rule, const struct facts *facts, struct proof *proof);

/* The first row that clears the writer of this store; NULL: none. */
const struct consideration *consider_cleared(const struct facts *facts,
					     const struct evidence *write);
