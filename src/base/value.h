#pragma once

#include <stdint.h>

#include "base/err.h"

/* Values as people write them on a command line. On failure `err` has the sentence, without
 * the option's name: the caller prefixes it. */
int value_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
int value_share(const char *text, double *ret, struct err *err);
int value_size(const char *text, uint64_t *ret, struct err *err);
int value_duration(const char *text, uint64_t *ret_ns, struct err *err);
