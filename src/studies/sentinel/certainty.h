#pragma once

#include "model/certificate.h"

/*
 * How many trials a sentinel takes, and what they prove. Pure: numbers in, numbers and words out.
 * docs/design/statistics.md says why it is reckoned this way.
 */

/*
 * Trials without the failure that show, with this confidence, that its rate is not what it was: at
 * the recorded rate itself, so that 20 % and 99 % give 21; or, `careful`, as many as make Fisher's
 * exact test against the recorded counts say it. A recorded rate of 1 is always treated carefully:
 * that nothing else was seen does not make it certain. At least 1; UINT64_MAX when nothing
 * failed.
 */
uint64_t certificate_needed(const struct rate *before, double confidence, bool careful);

/* Fills in what follows from the counts: figures, verdict and sentence. */
void certificate_conclude(struct certificate *c);
