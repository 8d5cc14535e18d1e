#pragma once

#include "model/verdict.h"

/*
 * What two verdicts have in common: a hint that two cases have one cause, no proof of it.
 *
 * Adds a line each: "block CONTEXT" where both are about blocks that the same code allocated,
 * "function NAME" where both name it: as the writer, as who freed or allocated the block, or as
 * where it fails. Functions of the C library and of interpreters do not count: everybody meets
 * there.
 */
void verdicts_common(const struct verdict *a, const struct verdict *b, struct strv *ret);
