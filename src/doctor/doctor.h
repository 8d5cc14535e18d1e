#pragma once

#include "base/err.h"
#include "model/finding.h"

/*
 * What this machine can do for a hunt, found out by doing it, and what is known
 * about the program to be hunted in.
 *
 * `program` may be NULL. On success the diagnosis is the caller's to deinit. It
 * fails when the program does not exist or may not be run or read; whatever
 * does not work on the machine is a finding, not a failure.
 */
int doctor_examine(const char *program, struct diagnosis *ret, struct err *err);
/* One of the findings about the machine, by its id. */
void doctor_try(const char *id, struct finding *ret);

void doctor_deinit(struct diagnosis *diagnosis);
