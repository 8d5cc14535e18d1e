/*
 * The way out when something is wrong with us.
 */
#pragma once

#include "wire/log_format.h"

/* Turns every hook into a pass-through and says why in the log, if there is one. _sigsafe. */
void agent_retire_sigsafe(enum log_retired reason);
