#pragma once

#include "case/case.h"
#include "case/db.h"
#include "model/notebook.h"

/* The inside of a case_store. Private to case/. */

/* Statements that run once a trial are prepared once. */
enum statement {
	STATEMENT_TRIAL_ADD,
	STATEMENT_SIGNATURE_ADD,
	STATEMENT_OUTCOME_ADD,
	STATEMENT_OUTCOME_GET,
	STATEMENT_CRUMB_ADD,
	STATEMENT_CRUMB_GET,
	STATEMENT_NEXT_ADD,
	STATEMENT_LEARNT,
	STATEMENT_POSITION_GET,
	STATEMENT_NUMBER_GET,
	STATEMENT_LIST_ADD,
	STATEMENT_LIST_GET,
	STATEMENT_LIST_RUN_ADD,
	STATEMENT_CHAOS_ADD,
	STATEMENT_MACHINE_ADD,
	STATEMENT_TRIAL_MACHINE_ADD,
	STATEMENTS,
};

struct case_store {
	char *dir;
	char *db_path;
	int dir_fd;
	int lock_fd;   /* -1 for readers */
	int trials_fd; /* -1 when there is no trials/ (readers only) */
	struct db db;
	struct query statements[STATEMENTS];
	unsigned int batch; /* trials of the open transaction; 0: none is open */
};

/* Begins a transaction, after the trials that wait for theirs. */
int store_begin(struct case_store *cs, struct err *err);

/* A copy of the column's text, NULL when it has none. */
char *store_text(struct query *query, int column);

/* The parts of case_notebook() that are in hypotheses.c and attempted.c. */
int store_read_hypotheses(struct case_store *cs, struct notebook *ret, struct err *err);
int store_read_attempts(struct case_store *cs, struct notebook *ret, struct err *err);
