#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/evidence.h"
#include "model/hypothesis.h"
#include "model/said.h"

/*
 * The verdict: what the evidence says about the cause, how sure that is, and what it leaves open.
 *
 * Made by judge/ from evidence alone. Everything in it is owned by it.
 */
enum verdict_class {
	VERDICT_NOT_CAUGHT, /* nothing fits: `open` and `next` say what remains */
	VERDICT_NARROW_WRITE,
	VERDICT_WIDE_WRITE,
	VERDICT_OVERFLOW,
	VERDICT_UNDERFLOW,
	VERDICT_WRITE_AFTER_FREE,
	VERDICT_USE_AFTER_FREE,
	VERDICT_DOUBLE_FREE,
	VERDICT_INVALID_FREE,
	VERDICT_DANGLING_HOLDER,
	VERDICT_INSTANCE_CONFLATION,
	VERDICT_STALE_CACHED_VALUE,
	VERDICT_RACE,
	VERDICT_MAPPING_TRUNCATED,
	VERDICT_OUTSIDE_WRITER,
	VERDICT_UNINITIALISED, /* nobody ever wrote the field since its block was allocated */
	VERDICT_HOST_SUSPECTED,
	VERDICT_LEAK_GROWTH,
	VERDICT_NOT_MEMORY,
	VERDICT_OVER_READ, /* a read behind the end of a block, or before its start */
	/* Plain faults: every run shows them, and experiments that show damage saw none. */
	VERDICT_NULL_POINTER,
	VERDICT_DIVISION_BY_ZERO,
	VERDICT_STACK_EXHAUSTED,
	VERDICT_ILLEGAL_INSTRUCTION,
	VERDICT_OVER_RELEASE, /* a reference was given back that was never taken */
	VERDICT_CLASSES,
};

/* "narrow-write" …, as DESIGN's contract has them; "a narrow write" …, for people. */
const char *verdict_class_name(enum verdict_class class);
struct said_value said_class(enum verdict_class class); /* in words */

/*
 * The ledger: every explanation, and what was done about it. Nothing is excluded that no experiment
 * could have shown.
 */
enum ledger_status {
	LEDGER_UNTESTED, /* nothing that was tried could have shown it */
	LEDGER_OPEN,	 /* looked at, and it cannot be told */
	LEDGER_EXCLUDED, /* `by`, over `telling` trials, with `missed` as the chance to be wrong */
	LEDGER_CONFIRMED,
	LEDGER_STATUSES,
};

/* "untested" …, as JSON has them. */
const char *ledger_status_name(enum ledger_status status);

struct ledger_entry {
	char *id;	  /* "narrow", "wide", … for the built-in ones, "H3" for the user's */
	struct said text; /* what it claims */
	enum ledger_status status;
	struct said because;	 /* what decided it, or why it is open; nothing when untested */
	enum experiment_kind by; /* that decided it; EXPERIMENT_KINDS: none, or a person */
	uint64_t telling;	 /* trials of that experiment that could have shown it */
	/* The chance that these trials would have shown the same if this explanation were behind
	 * every second failure. */
	double missed;
	VEC(uint64_t) evidence; /* ids of it */
};

/* Another class that the same evidence allows. */
struct verdict_alternative {
	enum verdict_class class;
	struct said sentence;
	struct said tell_apart; /* what would decide between the two */
	VEC(uint64_t) evidence;
};

/* A stop on the way from the allocation to the failure. */
struct verdict_step {
	struct said what; /* allocated here, freed here, the bad write, the crash */
	uint64_t trial, evidence;
	struct stack stack;
};

struct verdict {
	enum verdict_class class;
	/* Enough to accuse: caught in two failing trials or more, in every one that was watched,
	 * and nothing speaks against it. Else `doubts` says what is missing. */
	bool firm;
	struct said sentence;
	uint64_t caught, watched, trials;
	char signature[16]; /* of the failure that it explains; "" unknown */

	struct stack writer; /* empty: nobody was caught, or there is none */
	char *instruction;
	unsigned int width; /* 0 unknown */
	enum store_fit fit;
	bool values_known;
	uint64_t old, new;
	unsigned int value_len;
	int tid;

	struct home home;	   /* what was damaged */
	struct block_life *victim; /* its block; NULL */
	struct block_life *base;   /* the block that the writer meant to write to; NULL */
	struct stack freed_by;
	struct stack other;	/* race: the other thread; a copied value: who copied it */
	uint64_t crash, holder; /* ids of the evidence about them; 0 none */

	VEC(uint64_t) evidence; /* ids it rests on */
	VEC(struct verdict_step) steps;
	VEC(struct verdict_alternative) alternatives;
	VEC(struct ledger_entry) ledger;
	struct said_list doubts; /* their ids are names of rows of judge/considerations.c */
	struct said_list open;	 /* what could still be the cause */
	struct said next;	 /* the next cheapest experiment; nothing when none is needed */
	bool needs_user;	 /* …which only somebody who knows the program can make */
};

/* The class of what the writer did by himself: of a wrong free, he may have moved the pointer. */
static inline enum verdict_class verdict_act(const struct verdict *v)
{
	return v->class == VERDICT_INVALID_FREE && v->values_known ? VERDICT_NARROW_WRITE
								   : v->class;
}

void verdict_deinit(struct verdict *verdict);
void ledger_entry_deinit(struct ledger_entry *entry);

/* How many other explanations than the verdict's own have that status, of how many. */
size_t verdict_count(const struct verdict *verdict, enum ledger_status status, size_t *ret_others);

/* As bytes for the case and back, like evidence. */
void verdict_pack(const struct verdict *verdict, struct strbuf *sb);
int verdict_unpack(const void *bytes, size_t len, struct verdict *ret, struct err *err);

/* One line of a hunt: what was decided next, and why, with its figures. */
struct decision {
	uint64_t id;	 /* 0 until stored */
	int64_t time_ms; /* since the epoch */
	char *stage;	 /* "rate", "chase", … */
	struct said said;
};

struct decision_list {
	VEC(struct decision) list; /* in the order in which they were made */
};

void decision_list_deinit(struct decision_list *list);

/* An experiment that the hunt chose: why, what it was expected to take, and what it took and
 * brought. */
struct choice_record {
	int64_t time_ms;	     /* since the epoch */
	char *question, *experiment; /* "chase", "homes" */
	struct said why;
	double expected_trials, expected_failures, expected_s;
	bool ended;
	uint64_t trials, failures;
	double seconds;
	struct said brought; /* nothing until it has ended */
};

struct choice_list {
	VEC(struct choice_record) list; /* in the order in which they were made; owns its texts */
};

void choice_list_deinit(struct choice_list *list);
