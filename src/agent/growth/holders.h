/*
 * Holders: who points to the live blocks of some contexts, looked for once when the plan asks.
 *
 * A conservative look through all writable memory for words that point into a sample of those
 * blocks. Other threads run on meanwhile, so what they change is seen before or after.
 */
#pragma once

#include <stdint.h>

#include "wire/plan.h"

/* What to look for; copied. */
void holders_plan(const struct plan_holders *plan);

/* At a checkpoint: `lines` of them at lines so far, UINT32_MAX at exit. Looks if it is time and
 * nobody has. The caller lets in one thread at a time. */
void holders_look_sigsafe(uint32_t lines);
