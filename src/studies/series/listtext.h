#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

/*
 * A list of numbers as the case stores it: ascending neighbours as ranges, everything in order:
 * "0-5,7,9-12".
 */
struct numbers {
	VEC(uint32_t) list;
};

void listtext_write(const uint32_t *numbers, size_t count, struct strbuf *ret);

/* -EINVAL when it is no such text, or names a number that is not below `limit`. */
int listtext_read(const char *text, uint32_t limit, struct numbers *ret, struct err *err);
