/*
 * Tensor: a dense array of up to three dimensions.
 *
 * Elements are kept as doubles whatever the dtype; a float32 tensor rounds each
 * element on the way in, so that results agree with a real float32 device.
 */
#ifndef THUNDER_TENSOR_H
#define THUNDER_TENSOR_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define TENSOR_MAX_RANK 3

enum dtype {
	DTYPE_FLOAT32,
	DTYPE_FLOAT64,
	DTYPE_COUNT,
};

struct tensor {
	PyObject ob_base;
	enum dtype dtype;
	int rank;
	Py_ssize_t shape[TENSOR_MAX_RANK]; /* unused dimensions are 1 */
	Py_ssize_t size;		   /* product of the shape */
	double *data;			   /* row-major, `size` elements */
};

extern PyTypeObject tensor_type;

/* A new tensor of zeroes, or NULL with an exception set. */
struct tensor *tensor_new(enum dtype dtype, int rank, const Py_ssize_t *shape);

/* A new tensor of zeroes with dtype and shape of another. */
struct tensor *tensor_new_like(const struct tensor *other);

/* Stores one element, rounded to the tensor's dtype. */
void tensor_set(struct tensor *self, Py_ssize_t index, double value);

/* Whether dtype and shape agree. */
int tensor_same_layout(const struct tensor *a, const struct tensor *b);

/* "float32" or "float64". */
const char *dtype_name(enum dtype dtype);

#endif
