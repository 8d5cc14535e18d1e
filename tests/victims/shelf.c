/* An extension of Python with a shelf of objects. What its functions do is right, but for those
 * whose names say what is wrong with them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#define PLACES 8

static PyObject *shelf[PLACES];
static PyObject *current;
static char *window;

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

struct hook {
	Py_ssize_t number;
	PyObject *object;
};
static struct hook *hook;

/* Nobody counts the pointer that is kept in the struct. */
static PyObject *hang_uncounted(PyObject *self, PyObject *object)
{
	(void)self;
	hook = malloc(sizeof(*hook));
	hook->number = 1;
	hook->object = object;
	Py_RETURN_NONE;
}

static PyObject *hanging(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return Py_NewRef(hook ? hook->object : Py_None);
}

/* The caller's own reference is given back. */
static PyObject *inspect_and_drop(PyObject *self, PyObject *object)
{
	(void)self;
	Py_DECREF(object);
	Py_RETURN_NONE;
}

/* The same in a helper that the compiler expands into its caller. */
static inline __attribute__((always_inline)) void drop_argument(PyObject *object)
{
	Py_DECREF(object);
}

static PyObject *inspect_in_line(PyObject *self, PyObject *object)
{
	(void)self;
	drop_argument(object);
	Py_RETURN_NONE;
}

/* A page with its number on it takes a place in the book, which has the page's only reference. */
static PyObject *new_page(PyObject *number)
{
	PyObject *page = PyList_New(0);

	PyList_Append(page, number);
	return page;
}

static PyObject *enter(PyObject *self, PyObject *args)
{
	PyObject *book, *number;

	(void)self;
	if (!PyArg_ParseTuple(args, "OO", &book, &number))
		return NULL;
	PyList_SetItem(book, PyLong_AsSsize_t(number), new_page(number));
	Py_RETURN_NONE;
}

/* That reference is given back, too. */
static PyObject *enter_and_drop(PyObject *self, PyObject *args)
{
	PyObject *book, *number, *page;

	(void)self;
	if (!PyArg_ParseTuple(args, "OO", &book, &number))
		return NULL;
	page = new_page(number);
	PyList_SetItem(book, PyLong_AsSsize_t(number), page);
	Py_DECREF(page);
	Py_RETURN_NONE;
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
	{ "hang_uncounted", hang_uncounted, METH_O, NULL },
	{ "hanging", hanging, METH_NOARGS, NULL },
	{ "inspect_and_drop", inspect_and_drop, METH_O, NULL },
	{ "inspect_in_line", inspect_in_line, METH_O, NULL },
	{ "enter", enter, METH_VARARGS, NULL },
	{ "enter_and_drop", enter_and_drop, METH_VARARGS, NULL },
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
	return PyModule_Create(&def);
}
