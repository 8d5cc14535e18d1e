#pragma once

#include <stdbool.h>

#include "model/evidence.h"

/*
 * Signs that it is the machine, each of which a broken program could show, too: see weigh_host().
 */

/* Counts failing trials in which the victim was watched all the time, nobody wrote it, and just one
 * bit of it is not what it was; in how many homes, and how many different bits. */
void signs_count_flips(const struct evidence_list *list, struct host_signs *signs);

/* Bits flipped here and there. The same bit of the same field every time is a program's doing. */
bool signs_flips(const struct host_signs *signs);

/* SIGSEGV, SIGBUS and SIGILL, in places that have nothing to do with each other. */
bool signs_signals(const struct host_signs *signs);

/* It fails on one core only. */
/* Failures keep to one of several machines. */
bool signs_node(const struct host_signs *signs);
bool signs_core(const struct host_signs *signs);
