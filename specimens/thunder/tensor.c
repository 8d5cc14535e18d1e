#include "tensor.h"

#include <string.h>

static const char *const dtype_names[DTYPE_COUNT] = {
	[DTYPE_FLOAT32] = "float32",
	[DTYPE_FLOAT64] = "float64",
};

const char *dtype_name(enum dtype dtype)
{
	return dtype_names[dtype];
}

static int dtype_parse(const char *name, enum dtype *ret)
{
	for (int i = 0; i < DTYPE_COUNT; i++) {
		if (strcmp(dtype_names[i], name) == 0) {
			*ret = (enum dtype)i;
			return 0;
		}
	}
	PyErr_Format(PyExc_ValueError, "unknown dtype '%s'", name);
	return -1;
}

struct tensor *tensor_new(enum dtype dtype, int rank, const Py_ssize_t *shape)
{
	struct tensor *self;

	if (rank < 0 || rank > TENSOR_MAX_RANK) {
		PyErr_Format(PyExc_ValueError, "rank %d is not supported", rank);
		return NULL;
	}
	self = PyObject_New(struct tensor, &tensor_type);
	if (!self)
		return NULL;
	self->dtype = dtype;
	self->rank = rank;
	self->size = 1;
	for (int i = 0; i < TENSOR_MAX_RANK; i++) {
		self->shape[i] = i < rank ? shape[i] : 1;
		self->size *= self->shape[i];
	}
	self->data = PyMem_RawCalloc((size_t)self->size, sizeof(*self->data));
	if (!self->data) {
		Py_DECREF(self);
		PyErr_NoMemory();
		return NULL;
	}
	return self;
}

static void tensor_dealloc(PyObject *obj)
{
	struct tensor *self = (struct tensor *)obj;

	PyMem_RawFree(self->data);
	PyObject_Free(self);
}

struct tensor *tensor_new_like(const struct tensor *other)
{
	return tensor_new(other->dtype, other->rank, other->shape);
}

void tensor_set(struct tensor *self, Py_ssize_t index, double value)
{
	self->data[index] = self->dtype == DTYPE_FLOAT32 ? (double)(float)value : value;
}

int tensor_same_layout(const struct tensor *a, const struct tensor *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}

/* Tensor(values, shape, dtype="float64"): values is a flat list. */
static PyObject *tensor_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "values", "shape", "dtype", NULL };
	Py_ssize_t shape[TENSOR_MAX_RANK];
	const char *dtype_text = "float64";
	PyObject *values, *dims;
	struct tensor *self;
	enum dtype dtype;

	(void)type;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|s", names, &PyList_Type, &values,
					 &PyTuple_Type, &dims, &dtype_text))
		return NULL;
	if (dtype_parse(dtype_text, &dtype) < 0)
		return NULL;
	if (PyTuple_GET_SIZE(dims) > TENSOR_MAX_RANK) {
		PyErr_SetString(PyExc_ValueError, "at most three dimensions are supported");
		return NULL;
	}
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); i++) {
		shape[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(dims, i));
		if (shape[i] < 0) {
			if (!PyErr_Occurred())
				PyErr_SetString(PyExc_ValueError, "negative dimension");
			return NULL;
		}
	}
	self = tensor_new(dtype, (int)PyTuple_GET_SIZE(dims), shape);
	if (!self)
		return NULL;
	if (PyList_GET_SIZE(values) != self->size) {
		PyErr_Format(PyExc_ValueError, "%zd values for a tensor of %zd elements",
			     PyList_GET_SIZE(values), self->size);
		Py_DECREF(self);
		return NULL;
	}
	for (Py_ssize_t i = 0; i < self->size; i++) {
		double value = PyFloat_AsDouble(PyList_GET_ITEM(values, i));

		if (value == -1.0 && PyErr_Occurred()) {
			Py_DECREF(self);
			return NULL;
		}
		tensor_set(self, i, value);
	}
	return (PyObject *)self;
}

static PyObject *tensor_tolist(PyObject *obj, PyObject *unused)
{
	struct tensor *self = (struct tensor *)obj;
	PyObject *list = PyList_New(self->size);

	(void)unused;
	if (!list)
		return NULL;
	for (Py_ssize_t i = 0; i < self->size; i++) {
		PyObject *item = PyFloat_FromDouble(self->data[i]);

		if (!item) {
			Py_DECREF(list);
			return NULL;
		}
		PyList_SET_ITEM(list, i, item);
	}
	return list;
}

static PyObject *tensor_get_shape(PyObject *obj, void *closure)
{
	struct tensor *self = (struct tensor *)obj;
	PyObject *shape = PyTuple_New(self->rank);

	(void)closure;
	if (!shape)
		return NULL;
	for (int i = 0; i < self->rank; i++) {
		PyObject *dim = PyLong_FromSsize_t(self->shape[i]);

		if (!dim) {
			Py_DECREF(shape);
			return NULL;
		}
		PyTuple_SET_ITEM(shape, i, dim);
	}
	return shape;
}

static PyObject *tensor_get_dtype(PyObject *obj, void *closure)
{
	(void)closure;
	return PyUnicode_FromString(dtype_name(((struct tensor *)obj)->dtype));
}

static PyObject *tensor_repr(PyObject *obj)
{
	PyObject *shape = tensor_get_shape(obj, NULL);
	PyObject *text;

	if (!shape)
		return NULL;
	text = PyUnicode_FromFormat("Tensor(shape=%R, dtype=%s)", shape,
				    dtype_name(((struct tensor *)obj)->dtype));
	Py_DECREF(shape);
	return text;
}

static PyMethodDef tensor_methods[] = {
	{ "tolist", tensor_tolist, METH_NOARGS, "The elements as a flat list of floats." },
	{ NULL },
};

static PyGetSetDef tensor_getset[] = {
	{ "shape", tensor_get_shape, NULL, "The dimensions as a tuple.", NULL },
	{ "dtype", tensor_get_dtype, NULL, "The name of the element type.", NULL },
	{ NULL },
};

PyTypeObject tensor_type = {
	.ob_base = { PyObject_HEAD_INIT(NULL) 0 },
	.tp_name = "_thunder.Tensor",
	.tp_doc = "A dense array of float32 or float64.",
	.tp_basicsize = sizeof(struct tensor),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = tensor_construct,
	.tp_dealloc = tensor_dealloc,
	.tp_repr = tensor_repr,
	.tp_methods = tensor_methods,
	.tp_getset = tensor_getset,
};
