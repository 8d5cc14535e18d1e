#pragma once

#include <stdbool.h>

#include "model/experiment_made.h"
#include "model/said.h"

/*
 * A way to learn something by running trials. One file and one row each (experiments/table.c);
 * docs/howto-experiment.md says how to add one.
 */
struct inquiry;

/* What is asked, in this order: the answers to the first make the later ones cheaper. */
enum question {
	QUESTION_FAILS,	   /* does it fail? */
	QUESTION_SETTINGS, /* what makes it fail? */
	QUESTION_OBSERVER, /* which observer does it stand? */
	QUESTION_HIT,	   /* what was hit? */
	QUESTION_WHO,	   /* who did it? */
	QUESTION_FEWER,	   /* how little of it? */
	QUESTION_MACHINE,  /* is it the machine, or what runs beside it? */
	QUESTION_VERDICT,
	QUESTIONS,
};

/* What an experiment will take, about. */
struct price {
	double trials, failures; /* failing trials, of these */
	double seconds;
};

struct experiment_ops {
	const char *name; /* in the case: "homes" */
	enum question question;
	/* What it can show, and whose absence: as the judge knows it (judge_would_tell()).
	 * EXPERIMENT_RUN: it tells how the program fails, nothing about memory. */
	enum experiment_kind kind;
	/* The chance that its answer settles the question, by experience with programs like these;
	 * of several that apply, the one with the best chance per second is run. */
	double chance;
	/* The most that it may take of the budget; 0: as much as the question has. */
	double share;
	bool refines; /* also where the ledger has closed all that it can show */
	bool repeats; /* as long as it applies; else once for each time that its question is asked
		       */
	/* Is there something to look at? If not, and somebody might wonder: `why`. */
	bool (*applies)(struct inquiry *inq, struct said *why);
	/* NULL: it runs no trial. */
	void (*price)(const struct inquiry *inq, struct price *ret);
	/* Runs trials until it is enough; what they show becomes evidence. Lines of its own about
	 * what it decided and why go to decide(). */
	int (*run)(struct inquiry *inq);
};

/* EXPERIMENT(homes, .name = "homes", …): the row that experiments/table.c has. */
#define EXPERIMENT(id, ...) const struct experiment_ops experiment_##id = { __VA_ARGS__ }

/* experiments/table.c */
extern const struct experiment_ops *const experiments[];
extern const size_t experiment_count;
