/*
 * The way out when something is wrong with us.
 */
#ifndef REDHAND_AGENT_RETIRE_H
#define REDHAND_AGENT_RETIRE_H

#include "wire/log_format.h"

/* Turns every hook into a pass-through and says why in the log, if there is one. _sigsafe. */
void agent_retire_sigsafe(enum log_retired reason);

#endif
