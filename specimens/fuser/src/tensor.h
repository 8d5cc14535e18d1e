/* Tensors on the host: dense, row major, every element kept as a double. */
#ifndef FUSER_TENSOR_H
#define FUSER_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ir.h"

struct tensor {
	enum ir_dtype dtype;
	int rank; /* 0: a scalar */
	int64_t size[IR_MAX_DIMS];
	int8_t stride_order[IR_MAX_DIMS];
	int64_t elements;
	double *data;
};

struct tensor *tensor_create(enum ir_dtype dtype, int rank, const int64_t *size);
struct tensor *tensor_from(enum ir_dtype dtype, int rank, const int64_t *size,
			   const double *values);
struct tensor *tensor_arange(enum ir_dtype dtype, int rank, const int64_t *size, double start,
			     double step);
struct tensor *tensor_scalar(enum ir_dtype dtype, double value);
void tensor_destroy(struct tensor *t);

/* The offset of a position, and the position of an offset. */
int64_t tensor_offset(const struct tensor *t, const int64_t *at);
void tensor_position(const struct tensor *t, int64_t offset, int64_t *at);

/* Equal within a relative error of 1e-5; NaN equals NaN. */
bool tensor_close(const struct tensor *t, const double *values);

#endif
