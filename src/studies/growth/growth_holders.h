#pragma once

#include "model/growth_site.h"
#include "read/reading.h"
#include "run/job.h"

/*
 * Holders: who still points to what grew. It takes a trial of its own, since only after the others
 * is it known what to look for; contexts have the same keys in every run.
 */

/* Asks for the holders of the sites' blocks in this trial. */
void holders_ask(const struct growth_report *report, struct trial_job *job);

/* Reads what that trial found into the sites. */
void holders_read(struct reading *reading, struct growth_report *report);
