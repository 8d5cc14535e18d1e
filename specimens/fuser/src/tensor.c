#include "tensor.h"

#include <math.h>
#include <stdlib.h>

#include "alloc.h"

struct tensor *tensor_create(enum ir_dtype dtype, int rank, const int64_t *size)
{
	struct tensor *t = fz_alloc(sizeof(*t));

	t->dtype = dtype;
	t->rank = rank;
	t->elements = 1;
	for (int d = 0; d < rank; d++) {
		t->size[d] = size[d];
		t->elements *= size[d];
	}
	t->data = fz_alloc((size_t)(t->elements ? t->elements : 1) * sizeof(*t->data));
	return t;
}

struct tensor *tensor_from(enum ir_dtype dtype, int rank, const int64_t *size, const double *values)
{
	struct tensor *t = tensor_create(dtype, rank, size);

	for (int64_t i = 0; i < t->elements; i++)
		t->data[i] = dtype_round(dtype, values[i]);
	return t;
}

struct tensor *tensor_arange(enum ir_dtype dtype, int rank, const int64_t *size, double start,
			     double step)
{
	struct tensor *t = tensor_create(dtype, rank, size);

	for (int64_t i = 0; i < t->elements; i++)
		t->data[i] = dtype_round(dtype, start + (double)i * step);
	return t;
}

struct tensor *tensor_scalar(enum ir_dtype dtype, double value)
{
	return tensor_from(dtype, 0, NULL, &value);
}

void tensor_destroy(struct tensor *t)
{
	if (!t)
		return;
	free(t->data);
	free(t);
}

int64_t tensor_offset(const struct tensor *t, const int64_t *at)
{
	int64_t offset = 0;

	for (int d = 0; d < t->rank; d++)
		offset = offset * t->size[d] + at[d];
	return offset;
}

void tensor_position(const struct tensor *t, int64_t offset, int64_t *at)
{
	for (int d = t->rank - 1; d >= 0; d--) {
		at[d] = offset % t->size[d];
		offset /= t->size[d];
	}
}

bool tensor_close(const struct tensor *t, const double *values)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double a = t->data[i], b = values[i];

		if (isnan(a) && isnan(b))
			continue;
		if (a != b && !(fabs(a - b) <= 1e-5 * (1.0 + fabs(b))))
			return false;
	}
	return true;
}
