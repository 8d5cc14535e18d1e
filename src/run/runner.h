#pragma once

#include "case/case.h"
#include "run/job.h"
#include "run/stored.h"
#include "run/tally.h"

/*
 * Runs the trials of a series on the slots of a pool, and stores each as it ends.
 *
 * What to run next and when to stop is the caller's, through `struct runner_ops`.
 */
struct runner;

/* One run of the series, chosen by the caller. */
struct run {
	uint64_t position; /* from 1, unique in the series */
	unsigned int arm;
};

struct runner_ops {
	/* 1: the next run for this free slot; 0: leave it idle for now; negative: error. */
	int (*next)(void *ctx, unsigned int slot, struct run *ret, struct err *err);

	/* Sets argv and env of the job; number and slot are already in it. */
	void (*prepare)(void *ctx, const struct run *run, struct trial_job *job);

	/* Before a trial is stored, if it has left anything. `reading` is the trial's one reading:
	 * whoever wants it after this call shares it. May be NULL. */
	void (*examine)(void *ctx, const struct trial_result *result, struct reading *reading);

	/* A trial has ended and is about to be stored: adds to the record what belongs to it. May
	 * be NULL. What it points to must live until ended(). */
	void (*record)(void *ctx, const struct run *run, struct trial_record *record);

	/* A trial has been stored and is in runner->tally; true: start no more. */
	bool (*ended)(void *ctx, const struct run *run, bool failed);

	/* Now and then, for progress. May be NULL. */
	void (*tick)(void *ctx);

	/* next() may be asked before the slot is free: it does not matter what runs beside what. */
	bool ahead;
};

struct runner {
	struct case_store *cs;
	struct series_id series;
	const struct trial_settings *settings;
	enum observer observer; /* of every trial, unless prepare() says otherwise in the job */
	unsigned int slots;
	const struct runner_ops *ops;
	void *ctx;

	struct tally tally;  /* load it before, read it after */
	uint64_t learnt;     /* runs whose breadcrumbs are stored already */
	uint64_t ran;	     /* trials of this call */
	uint64_t running;    /* trials that were started and have not ended */
	uint64_t news_trial; /* the latest trial that failed in a way not seen before; 0 = none */
	char *news_summary;  /* that way */
	struct readings own; /* runner_readings(), where the settings have none */
	bool python;	     /* a trial died in CPython: the next ones follow its objects */
	bool interrupted;    /* SIGINT, SIGTERM or SIGHUP came */
};

int runner_run(struct runner *runner, struct err *err);

/* Will those that run now bring so many more that fail, nearly certainly, if one in so many does as
 * seen so far? Then what is started beside them would fail for nothing: next() leaves its slot
 * idle. */
bool runner_will_do(const struct runner *runner, uint64_t trials, uint64_t failed,
		    uint64_t missing);

/* Readings that stay open: of the examples of each way to fail. */
struct readings *runner_readings(struct runner *runner);
/* What its trials' readings name things by. */
struct symbols *runner_symbols(struct runner *runner);

/* For what runs more than one series: what means 'stop' is kept from now on, as a runner does, so
 * that the next one sees it; and whether there is such. */
void runner_hold_signals(void);
bool runner_stop_pending(void);
void runner_deinit(struct runner *runner);
