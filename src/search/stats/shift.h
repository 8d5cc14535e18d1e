/*
 * How many times as long does B take as A? Times have long tails and no law that is known, so
 * nothing is assumed of them: the median over all pairs of their ratio (Hodges and Lehmann), its
 * interval and p by the ranks (Mann and Whitney). Ties count half. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct shift {
	bool known;	  /* both have some, all are above 0 */
	double ratio;	  /* of B to A */
	double low, high; /* 95 % */
	double p;	  /* that chance alone parts them so */
};

double shift_median(double *times, size_t count); /* sorts them; 0 for none */

/* Sorts both. Of more than SHIFT_MOST times the first of each count. */
#define SHIFT_MOST 2000u
struct shift shift_of(double *a, size_t count_a, double *b, size_t count_b);
