#pragma once

#include "debuginfo/symbols.h"
#include "engine/autopsy/logs.h"
#include "engine/trial/job.h"
#include "model/growth.h"

/*
 * Holders: who still points to what grew. It takes a trial of its own, since only after the others
 * is it known what to look for; contexts have the same keys in every run.
 */

/* A global variable, or a place in a file's data. Name (NULL: unknown) and module are the caller's.
 */
struct global_place {
	char *name, *module;
	uint64_t offset; /* in the module's file */
	uint64_t within; /* from the variable's start; 0 without a name */
};

/* False when the address is in no module's data. */
bool global_find(struct event_log *log, struct symbols *symbols, uint64_t address,
		 struct global_place *ret);

/* Asks for the holders of the sites' blocks in this trial. */
void holders_ask(const struct growth_report *report, struct trial_job *job);

/* Reads what that trial found into the sites. */
void holders_read(int trials, const char *trial, struct symbols *symbols,
		  struct growth_report *report);
