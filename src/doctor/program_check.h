#pragma once

#include "base/err.h"
#include "model/finding.h"

/* Finds the program `name` through PATH, reads it in a process of its own and judges what that
 * means for a hunt. Sets facts and the program's findings in `ret`, owned by the caller. Private to
 * doctor/. */
int program_check(const char *name, struct diagnosis *ret, struct err *err);
