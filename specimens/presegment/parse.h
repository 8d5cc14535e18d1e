/*
 * Fusions as text, one operation per line:
 *
 *     x = input bf16 16 64      # type and extents
 *     y = cast x f32
 *     z = slice y 1 4 60        # axis, from, to
 *     output z
 *
 * The words after the operands are those of the builders in ir.h, in the same order.
 */
#ifndef PRESEGMENT_PARSE_H
#define PRESEGMENT_PARSE_H

#include <stdio.h>

#include "ir.h"

/* Reads a fusion; `name` is for messages. The caller frees it. */
int fusion_parse(FILE *in, const char *name, struct fusion **ret, struct diag *diag);

#endif
