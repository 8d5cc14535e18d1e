#pragma once

#include "model/crash.h"
#include "run/job.h"

/*
 * From what was seen of a trial to whether it failed, and in which ways.
 *
 * One trial can show several signatures: a test that fails in every run, and a
 * crash in a later one.
 */
bool judge_failed(const struct trial_settings *settings, const struct trial_end *end);

/* Appends the trial's signatures, in ascending order of their ids; none when it passed. `crash` is
 * what an observer saw; NULL when there was none, or it saw nothing. */
void judge_signatures(const struct trial_settings *settings, const struct trial_end *end,
		      const struct crash *crash, struct signatures *ret);
