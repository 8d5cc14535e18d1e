/*
 * How the agent begins and ends. What others have to do with that is theirs: feature.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/log_format.h"

/* In a child that a system call of the target's own made (clone, fork past libc), which is about to
 * die: it gets a log, for its end alone. False: it is no such child. _sigsafe */
bool agent_adopt_orphan_sigsafe(void);

/* Why this very image is not observed as it was asked for. */
void agent_unobserved(enum log_unobserved_why why);

/* The image ends by itself. how: as in struct log_exit. _sigsafe */
void agent_exiting_sigsafe(uint32_t status, uint32_t how);
