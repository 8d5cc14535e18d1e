/*
 * The reference interpreter: what a fusion computes, slowly and by the book. Passes are checked
 * against it, and so are the tests.
 */
#ifndef PRESEGMENT_EVAL_H
#define PRESEGMENT_EVAL_H

#include "ir.h"

struct tensor {
	struct shape shape;
	double *data; /* dense, last axis fastest */
};

struct result {
	struct tensor out[OUTPUTS_MAX];
	int count;
};

/* Runs the fusion on sample inputs, which depend only on their position and shape. The caller
 * frees the result with result_deinit(). `order` as from fusion_order(). */
void eval_fusion(const struct fusion *f, const int *order, int norder, struct result *ret);
void result_deinit(struct result *r);

/* True when both have the same shapes and values that differ by no more than `tolerance`,
 * absolutely or relatively. */
bool result_equal(const struct result *a, const struct result *b, double tolerance);

#endif
