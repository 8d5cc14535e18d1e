/*
 * Holm's correction: many questions asked of the same data.
 *
 * Twenty slots each tested against the rest give one p below 0.05 by
 * chance alone. The adjusted p-values can be compared with alpha as if there had been one
 * question: the chance of any false finding stays at most alpha, however
 * the tests depend on one another.
 */
#pragma once

#include <stddef.h>

/*
 * Adjusts `count` p-values (each 0 to 1, in any order) into `ret`, same order, each
 * at most 1. `ret` must not overlap `p`. Quadratic in `count`, which is a number of
 * arms or slots; allocates nothing.
 */
void holm_adjust(const double *p, size_t count, double *ret);
