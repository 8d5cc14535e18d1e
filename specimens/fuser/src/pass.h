/* Passes over a whole fusion. */
#ifndef FUSER_PASS_H
#define FUSER_PASS_H

#include "ir.h"

/*
 * Rebuilds in `dst` (empty) what src's outputs need, with equal expressions
 * computed once. False, with dst half done, when src has extents that two
 * expressions cannot be compared by.
 */
bool pass_compact(const struct ir_container *src, struct ir_container *dst);

/*
 * Gives every dynamic extent its value; sizes[] holds the extents of all inputs,
 * one after the other. False when they contradict the fusion.
 */
bool pass_concretize(struct ir_container *fusion, const int64_t *sizes, size_t nsizes);

#endif
