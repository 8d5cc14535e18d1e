/* An extension of Python with a shelf of objects. What its functions do is right, but for those
 * whose names say what is wrong with them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#define PLACES 8

static PyObject *shelf[PLACES];
static PyObject *current;
static char *window;
static PyObject *names; /* of objects */

/* The one that came last. */
static struct drawer {
	long count;
	PyObject *last;
} *drawer;

static PyObject *put(PyObject *self, PyObject *args)
{
	Py_ssize_t at;
	PyObject *object;

	(void)self;
	if (!PyArg_ParseTuple(args, "nO", &at, &object))
		return NULL;
	Py_INCREF(object);
	Py_XSETREF(shelf[at % PLACES], object);
	Py_RETURN_NONE;
}

static PyObject *at(PyObject *number)
{
	return shelf[PyLong_AsSsize_t(number) % PLACES];
}

static PyObject *peek(PyObject *self, PyObject *number)
{
	(void)self;
	return Py_NewRef(at(number));
}

/* What is borrowed from the shelf is returned as a new reference. */
static PyObject *peek_borrowed(PyObject *self, PyObject *number)
{
	PyObject *object = shelf[PyLong_AsSsize_t(number) % PLACES];

	(void)self;
	return object;
}

static PyObject *touch(PyObject *self, PyObject *number)
{
	PyObject *object = at(number);

	(void)self;
	Py_INCREF(object);
	Py_XSETREF(current, object);
	Py_RETURN_NONE;
}

/* One reference too many is given back. */
static PyObject *touch_twice(PyObject *self, PyObject *number)
{
	PyObject *object = at(number);

	(void)self;
	Py_INCREF(object);
	Py_XSETREF(current, object);
	Py_DECREF(object);
	Py_RETURN_NONE;
}

/* It is kept without a reference. */
static PyObject *stash_borrowed(PyObject *self, PyObject *object)
{
	(void)self;
	drawer->count++;
	drawer->last = object;
	Py_RETURN_NONE;
}

static PyObject *stash(PyObject *self, PyObject *object)
{
	(void)self;
	drawer->count++;
	Py_INCREF(object);
	Py_XSETREF(drawer->last, object);
	Py_RETURN_NONE;
}

static PyObject *stashed(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_NewRef(drawer->last ? drawer->last : Py_None);
}

static PyObject *name(PyObject *self, PyObject *args)
{
	PyObject *key, *object;

	(void)self;
	if (!PyArg_ParseTuple(args, "UO", &key, &object) || PyDict_SetItem(names, key, object) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *named(PyObject *self, PyObject *key)
{
	(void)self;
	return Py_XNewRef(PyDict_GetItemWithError(names, key));
}

/* What is borrowed from the dictionary is returned as a new reference. */
static PyObject *named_borrowed(PyObject *self, PyObject *key)
{
	PyObject *object = PyDict_GetItemWithError(names, key);

	(void)self;
	if (!object)
		Py_RETURN_NONE;
	return object;
}

static PyObject *total(PyObject *self, PyObject *unused)
{
	Py_ssize_t sum = 0;

	(void)self;
	(void)unused;
	for (int i = 0; i < PLACES; i++) {
		PyObject *size = shelf[i] ? PyObject_CallMethod(shelf[i], "size", NULL) : NULL;

		if (!size)
			return NULL;
		sum += PyLong_AsSsize_t(size);
		Py_DECREF(size);
	}
	return PyLong_FromSsize_t(sum);
}

static PyObject *open_window(PyObject *self, PyObject *size)
{
	(void)self;
	window = malloc((size_t)PyLong_AsSsize_t(size));
	return PyMemoryView_FromMemory(window, PyLong_AsSsize_t(size), PyBUF_WRITE);
}

/* The views of it are not asked. */
static PyObject *close_window(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	free(window);
	window = NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "put", put, METH_VARARGS, NULL },
	{ "peek", peek, METH_O, NULL },
	{ "peek_borrowed", peek_borrowed, METH_O, NULL },
	{ "touch", touch, METH_O, NULL },
	{ "touch_twice", touch_twice, METH_O, NULL },
	{ "stash", stash, METH_O, NULL },
	{ "stash_borrowed", stash_borrowed, METH_O, NULL },
	{ "stashed", stashed, METH_NOARGS, NULL },
	{ "name", name, METH_VARARGS, NULL },
	{ "named", named, METH_O, NULL },
	{ "named_borrowed", named_borrowed, METH_O, NULL },
	{ "total", total, METH_NOARGS, NULL },
	{ "open_window", open_window, METH_O, NULL },
	{ "close_window", close_window, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef def = {
	PyModuleDef_HEAD_INIT, "shelf", NULL, -1, methods, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit_shelf(void);

PyMODINIT_FUNC PyInit_shelf(void)
{
	names = PyDict_New();
	drawer = calloc(1, sizeof(*drawer));
	if (!names || !drawer)
		return PyErr_NoMemory();
	return PyModule_Create(&def);
}
