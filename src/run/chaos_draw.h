#pragma once

#include <sched.h>

#include "model/chaos_knobs.h"
#include "run/job.h"

/*
 * Drawing a trial's chaos from its seed, and bringing it about.
 *
 * Every knob is drawn whether it is wanted or not, so that the same seed gives a knob the same
 * value beside any others.
 */

/* Variable that pads the environment. */
#define CHAOS_PAD_VARIABLE "REDHAND_PADDING"

/* What this seed means for these knobs; those that need the agent are left out where it is not
 * loaded. `cores`: those that a trial may be pinned to. */
void chaos_draw(unsigned int knobs, uint64_t seed, enum observer observer, const cpu_set_t *cores,
		struct chaos *ret);

/* Adds the item of the plan, if the agent has anything to do. */
void chaos_plan_item(const struct chaos *chaos, struct strbuf *items);

/* Adds the padding to the command's environment. */
void chaos_environment(const struct chaos *chaos, struct strv *env);

/* Before the command is started, in the slot, which it inherits from: pins it. `ret_before` is for
 * chaos_unpin(). */
void chaos_pin(const struct chaos *chaos, cpu_set_t *ret_before);
void chaos_unpin(const struct chaos *chaos, const cpu_set_t *before);
